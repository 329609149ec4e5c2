"""`etascope sweep`: a grid of learning rates in this process, with no server."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from backend.cli.settings_flags import with_settings
from ib_core.errors import IBError, InvalidSpec, said_where

if TYPE_CHECKING:  # torch, a second that `--help` must not cost
    from ib_core.sweep import Book, SweepSpec, TrialResult, TrialSpec
    from ib_core.tasks import Task


@with_settings
def sweep(
    asked: dict[str, Any],
    csv: Annotated[Path | None, typer.Option(help="Write one line a trial.")] = None,
    json: Annotated[Path | None, typer.Option(help="Write trials, curves and records.")] = None,
    png: Annotated[Path | None, typer.Option(help="Draw loss against learning rate.")] = None,
    scorecard: Annotated[
        Path | None, typer.Option(help="Write one line a method and number, as CSV.")
    ] = None,
    stall: Annotated[
        float, typer.Option(help="Seconds without a step after which a file's code is stopped.")
    ] = 300.0,
) -> None:
    """Train a grid here and print what it shows. Ctrl-C keeps what is finished."""
    specs = _checked(asked, (csv, json, png, scorecard))
    results, interrupted, searches = _train(specs, stall)
    _write(results, csv, json, png)
    from backend.cli.sweep_report import print_report, print_searches, write_scorecard

    if scorecard is not None:
        with scorecard.open("w", newline="") as opened:
            write_scorecard(results, opened)
    total = sum(book.trials for book in searches) or sum(spec.size for spec in specs)
    print_searches(searches)
    print_report(results, total=total, means=not searches)
    if interrupted:
        raise typer.Exit(130)
    if results and all(result.outcome.value == "failed" for result in results):
        raise typer.Exit(1)


def _checked(asked: dict[str, Any], files: tuple[Path | None, ...]) -> "tuple[SweepSpec, ...]":
    """Refuse, before any training, whatever could not be finished."""
    from ib_core.sweep import choose_device, specs_of
    from ib_core.tasks import find_task

    specs = specs_of(registered(asked), typed=True)
    for spec in specs:
        choose_device(spec.device)
        _check_data(find_task(spec.task))
    for file in files:
        if file is not None:
            _check_writable(file)
    if files[2] is not None:
        from backend.cli.sweep_report import check_drawing

        check_drawing(files[2])
    return specs


def registered(asked: dict[str, Any]) -> dict[str, Any]:
    """Return what was asked after running the files it names; here that is its user's own wish."""
    from ib_core.own import register_word
    from ib_core.sweep.request import read_body

    found = dict(asked)
    if "task" in found:
        found["task"] = register_word(found["task"].strip(), "task")
    if "methods" in found:
        words = read_body({"methods": found["methods"]}, typed=True)["methods"]
        found["methods"] = [register_word(word, "method") for word in words]
    return found


def _check_data(task: "Task") -> None:
    """Read the data, so that what is wrong with them is said before any training."""
    try:
        task.data_hash()
    except IBError:
        raise
    except Exception as error:
        raise InvalidSpec(f"{said_where(error)}.", field="task") from error


def _check_writable(file: Path) -> None:
    there = file.exists()
    try:
        with file.open("a"):
            pass
        if not there:
            file.unlink()
    except OSError as error:
        raise InvalidSpec(f"Cannot write {file}: {error.strerror}.") from None


def _train(
    specs: "tuple[SweepSpec, ...]", stall: float
) -> "tuple[list[TrialResult], bool, list[Book]]":
    """Return what was finished, in the order of the grid, whether Ctrl-C ended it, and searches."""
    from backend.cli.sweep_report import Bar
    from ib_core.sweep import Book, calibrate, run_all, run_rounds
    from ib_core.tasks import find_task

    trials = [trial for spec in specs for trial in spec.expand()]
    calibrate(
        specs[0].device,
        activations={trial.activation for trial in trials},
        families={find_task(spec.task).family for spec in specs},
    )
    found: list[TrialResult] = []

    def train(trials: "list[TrialSpec]") -> "list[TrialResult | None]":
        with Bar(len(trials)) as bar:
            try:
                return run_all(trials, device=specs[0].device, observer=bar, stall=stall)
            finally:
                found.extend(bar.results())

    books = [Book(spec) for spec in specs if spec.search is not None]
    try:
        if books:
            run_rounds(books, train)
        else:
            train(trials)
    except KeyboardInterrupt:
        return found, True, books
    return found, False, books


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
