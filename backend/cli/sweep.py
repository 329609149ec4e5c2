"""`etascope sweep`: a grid of learning rates in this process, with no server."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from backend.cli.settings_flags import with_settings
from ib_core.errors import InvalidSpec

if TYPE_CHECKING:  # torch, a second that `--help` must not cost
    from ib_core.sweep import SweepSpec, TrialResult


@with_settings
def sweep(
    asked: dict[str, Any],
    csv: Annotated[Path | None, typer.Option(help="Write one line a trial.")] = None,
    json: Annotated[Path | None, typer.Option(help="Write trials, curves and records.")] = None,
    png: Annotated[Path | None, typer.Option(help="Draw loss against learning rate.")] = None,
) -> None:
    """Train a grid here and print what it shows. Ctrl-C keeps what is finished."""
    specs = _checked(asked, (csv, json, png))
    results, interrupted = _train(specs)
    _write(results, csv, json, png)
    from backend.cli.sweep_report import print_report

    print_report(results, total=sum(spec.size for spec in specs))
    if interrupted:
        raise typer.Exit(130)


def _checked(asked: dict[str, Any], files: tuple[Path | None, ...]) -> "tuple[SweepSpec, ...]":
    """Refuse, before any training, whatever could not be finished."""
    from ib_core.datasets import data_hash
    from ib_core.sweep import choose_device, specs_of
    from ib_core.tasks import find_task

    specs = specs_of(asked, typed=True)
    for spec in specs:
        choose_device(spec.device)
        data_hash(find_task(spec.task).dataset)
    for file in files:
        if file is not None:
            _check_writable(file)
    if files[2] is not None:
        from backend.cli.sweep_report import check_drawing

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
    from backend.cli.sweep_report import Bar
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
        from backend.cli.sweep_report import draw

        draw(results, png)
