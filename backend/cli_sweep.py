"""`etascope sweep`: a grid of learning rates in this process, with no server."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from backend.cli_submit import body_of
from ib_core.errors import InvalidSpec

if TYPE_CHECKING:  # torch, a second that `--help` must not cost
    from ib_core.sweep import SweepSpec, TrialResult


def sweep(
    task: Annotated[str | None, typer.Argument(help="A task; not needed with --preset.")] = None,
    methods: Annotated[str | None, typer.Option(help="As eb,ib.")] = None,
    lrs: Annotated[str | None, typer.Option(help="As 0.1,1,10 or from:to:count.")] = None,
    seeds: Annotated[str | None, typer.Option(help="5 means 1 to 5; or a list, 1,2,7.")] = None,
    epochs: Annotated[int | None, typer.Option(help="Default: the task's.")] = None,
    batch_size: Annotated[int | None, typer.Option(help="Default: the task's.")] = None,
    clip: Annotated[str | None, typer.Option(help="Largest gradient norm, as 1 or none,1.")] = None,
    mu: Annotated[float | None, typer.Option(help="Ridge strength.")] = None,
    batch_rule: Annotated[str | None, typer.Option(help="own or share.")] = None,
    profile: Annotated[str | None, typer.Option(help="text or authors.")] = None,
    activation: Annotated[str | None, typer.Option(help="Default: the task's.")] = None,
    width: Annotated[int | None, typer.Option(help="Hidden units a layer.")] = None,
    depth: Annotated[int | None, typer.Option(help="Hidden layers.")] = None,
    device: Annotated[str | None, typer.Option(help="auto, cpu, cuda or mps.")] = None,
    preset: Annotated[str | None, typer.Option(help="As paper/05_jsb_chorales.")] = None,
    csv: Annotated[Path | None, typer.Option(help="Write one line a trial.")] = None,
    json: Annotated[Path | None, typer.Option(help="Write trials, curves and records.")] = None,
    png: Annotated[Path | None, typer.Option(help="Draw loss against learning rate.")] = None,
) -> None:
    """Train a grid here and print what it shows. Ctrl-C keeps what is finished."""
    body = body_of(
        task=task,
        methods=methods,
        lrs=lrs,
        seeds=seeds,
        epochs=epochs,
        batch_size=batch_size,
        clip=clip,
        mu=mu,
        batch_rule=batch_rule,
        profile=profile,
        activation=activation,
        device=device,
        preset=preset,
    )
    options = {"width": width, "depth": depth}
    if any(value is not None for value in options.values()):
        body["options"] = {name: value for name, value in options.items() if value is not None}
    if not task and not preset:
        raise InvalidSpec("Name a task, as in `etascope sweep digits_mlp`, or a --preset.")
    specs = _checked(body, (csv, json, png))
    results, interrupted = _train(specs)
    _write(results, csv, json, png)
    from backend.sweep_report import print_report

    print_report(results, total=sum(spec.size for spec in specs))
    if interrupted:
        raise typer.Exit(130)


def _checked(body: dict[str, Any], files: tuple[Path | None, ...]) -> "tuple[SweepSpec, ...]":
    """Refuse, before any training, whatever could not be finished."""
    from ib_core.datasets import data_hash
    from ib_core.sweep import choose_device, specs_of
    from ib_core.tasks import find_task

    specs = specs_of(body)
    for spec in specs:
        choose_device(spec.device)
        data_hash(find_task(spec.task).dataset)
    for file in files:
        if file is not None:
            _check_writable(file)
    if files[2] is not None:
        from backend.sweep_report import check_drawing

        check_drawing(files[2])
    return specs


def _check_writable(file: Path) -> None:
    there = file.exists()
    try:
        with file.open("a"):
            pass
        if not there:
            file.unlink()
    except OSError as error:
        raise InvalidSpec(f"Cannot write {file}: {error.strerror}.") from None


def _train(specs: "tuple[SweepSpec, ...]") -> "tuple[list[TrialResult], bool]":
    """Return what was finished, in the order of the grid, and whether Ctrl-C ended it."""
    from backend.sweep_report import Bar
    from ib_core.sweep import calibrate, run_all

    calibrate(specs[0].device)

    trials = [trial for spec in specs for trial in spec.expand()]
    with Bar(len(trials)) as bar:
        try:
            run_all(trials, device=specs[0].device, observer=bar)
        except KeyboardInterrupt:
            return bar.results(), True
    return bar.results(), False


def _write(
    results: "list[TrialResult]", csv: Path | None, json: Path | None, png: Path | None
) -> None:
    from ib_core.sweep import write_csv, write_json

    for file, write in ((csv, write_csv), (json, write_json)):
        if file is not None:
            with file.open("w", newline="") as opened:
                write(results, opened)
    if png is not None and results:
        from backend.sweep_report import draw

        draw(results, png)
