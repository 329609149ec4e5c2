"""`etascope report paper`: the paper's experiments, trained as far as time allows, and judged."""

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ib_core.errors import InvalidSpec

if TYPE_CHECKING:  # torch, a second that `--help` must not cost
    from ib_core.reproduction.bundle import Bundle
    from ib_core.reproduction.studies import Study
    from ib_core.reproduction.training import Finder, Forecast

#: Reports there are.
REPORTS = ("paper",)


def report(
    what: Annotated[str, typer.Argument(help="Which report: paper.")] = "paper",
    out: Annotated[
        Path | None, typer.Option(help="Write the report, one HTML file that opens offline.")
    ] = None,
    run: Annotated[
        bool, typer.Option("--run", help="First train what is missing; resumes, reuses.")
    ] = False,
    plan: Annotated[
        bool, typer.Option("--plan", help="Print what is left to train, and its cost.")
    ] = False,
    bundle: Annotated[
        Path | None,
        typer.Option(help="Folder of results. Default: paper in ETASCOPE_HOME, else the shipped."),
    ] = None,
    only: Annotated[
        str | None,
        typer.Option(help="Studies, as 05_jsb_chorales,text/uci,beyond: any part of a name."),
    ] = None,
    tasks: Annotated[
        str | None, typer.Option(help="Only these tasks of the studies, as uci/iris,uci/wine.")
    ] = None,
    seeds: Annotated[int | None, typer.Option(help="At most so many seeds.")] = None,
    max_minutes: Annotated[
        float | None, typer.Option(help="Stop after so long; what is finished is kept.")
    ] = None,
) -> None:
    """Reproduce the paper: train (--run), resume where it stopped, and report (--out)."""
    if what not in REPORTS:
        raise InvalidSpec(f"There is no report {what!r}. Known: {', '.join(REPORTS)}.")
    if not (out or run or plan):
        raise InvalidSpec(
            "Say what to do: --out FILE.html writes the report, --run trains what is missing, "
            "--plan prints what that would take."
        )
    results = _folder(bundle, training=run or plan)
    wanted = chosen(only, tasks)
    interrupted = _train(results, wanted, seeds, max_minutes, run) if run or plan else False
    if out is not None:
        from backend.paper.writing import write_report

        write_report(results, out)
        typer.echo(f"Wrote {out} ({out.stat().st_size / 1e6:.1f} MB).")
    if interrupted:
        raise typer.Exit(130)


def chosen(only: str | None, tasks: str | None = None) -> "list[Study]":
    """Return the studies whose name contains one of the given words; all without any.

    Args:
        only: Words, separated by commas.
        tasks: Tasks to keep of these studies, likewise; all without any.

    Raises:
        InvalidSpec: If a word is in no study's name, or no study has such a task.
    """
    from ib_core.reproduction.plan import PLAN

    names, kept = _words(only), _words(tasks)
    for word in names:
        if not any(word in name for name in PLAN):
            raise InvalidSpec(f"No study has {word!r} in its name. Studies: {', '.join(PLAN)}.")
    found = [s for s in PLAN.values() if not names or any(word in s.name for word in names)]
    if kept:
        found = [study.only(kept) for study in found]
        if not any(study.portions for study in found):
            raise InvalidSpec(f"None of these studies has a task {' or '.join(kept)}.")
    return found


def _words(text: str | None) -> list[str]:
    return [word.strip() for word in (text or "").split(",") if word.strip()]


def _folder(bundle: Path | None, *, training: bool) -> "Bundle":
    """Return where results are read from and written to.

    A run that names no folder writes to the user's own, which starts as a copy of nothing: what
    the shipped bundle holds is found there by content, and not trained again. A report shows both.
    """
    from backend.cli_server import read_settings
    from ib_core.reproduction.bundle import SHIPPED, Bundle, find_bundle

    if bundle is not None:
        return Bundle(bundle) if training else find_bundle(bundle)
    own = read_settings().home / "paper"
    if training:
        return Bundle(own)
    shipped = find_bundle(SHIPPED)
    if not own.is_dir():
        return shipped
    both = Bundle(own)
    both.borrow(shipped)
    return both


def _train(
    bundle: "Bundle",
    studies: "list[Study]",
    seeds: int | None,
    max_minutes: float | None,
    run: bool,
) -> bool:
    """Train what is missing; return whether Ctrl-C ended it."""
    from backend.paper.known import everywhere
    from backend.paper.run_bar import RunBar, print_plan
    from ib_core.reproduction.plan import PLAN
    from ib_core.reproduction.timing import measure_overheads
    from ib_core.reproduction.training import forecast, train
    from ib_core.sweep.speed import calibrate

    calibrate()
    with bundle.locked():
        finder: Finder = everywhere(bundle)
        wanted: Forecast = forecast(studies, bundle, elsewhere=finder, seeds=seeds)
        print_plan(wanted)
        if not run:
            return False
        deadline = time.monotonic() + 60 * max_minutes if max_minutes else float("inf")
        interrupted = False
        try:
            with RunBar(wanted) as bar:
                left = train(wanted.units, bundle, progress=bar, deadline=deadline)
            bar.print_end(left)
        except KeyboardInterrupt:
            interrupted = True
            typer.echo("Stopped; what is finished is kept, and the next --run goes on.", err=True)
        bundle.pack(PLAN.values())
        if not interrupted and not bundle.run_times():
            bundle.keep_run_times(measure_overheads(lambda name: typer.echo(f"Timing {name}.")))
        typer.echo(f"{len(bundle.results)} trials in {bundle.folder}.")
        return interrupted
