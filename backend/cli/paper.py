"""`etascope report` and `verify`: the paper, trained as far as time allows, judged, checked."""

import math
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ib_core.errors import InvalidSpec

if TYPE_CHECKING:  # torch and plotly, seconds that `--help` must not cost
    from backend.paper.pictures import Look
    from ib_core.reproduction import Bundle, Finder, Study
    from ib_core.sweep import TrialResult

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
        bool, typer.Option("--plan", help="Only print what is left to train, and its cost.")
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
    seeds: Annotated[int | None, typer.Option(min=1, help="At most so many seeds.")] = None,
    max_minutes: Annotated[
        float | None, typer.Option(help="Stop after so long; what is finished is kept.")
    ] = None,
) -> None:
    """Reproduce the paper: train (--run), resume where it stopped, and report (--out)."""
    _check(what, out, max_minutes)
    if not (out or run or plan):
        raise InvalidSpec(
            "Say what to do: --out FILE.html writes the report, --run trains what is missing, "
            "--plan prints what that would take."
        )
    wanted = chosen(only, tasks)
    interrupted = False
    if run:
        interrupted = _train(_folder(bundle), wanted, seeds, max_minutes or math.inf)
    elif plan:
        _print_plan(_folder(bundle), wanted, seeds)
    if out is not None:
        from backend.paper.report import write_report

        write_report(_reported(bundle, trained=run), out, look=dashboard_look())
        typer.echo(f"Wrote {out} ({out.stat().st_size / 1e6:.1f} MB).")
    if interrupted:
        raise typer.Exit(130)


def dashboard_look() -> "Look":
    """Return how the dashboard draws, for the report's pictures."""
    from backend.paper.pictures import Look
    from dashboard.figures import (
        METHOD_STYLE,
        PALETTE,
        Picture,
        accuracy_figure,
        agreement_figure,
        clip_figure,
        sensitivity_figure,
        template,
    )

    return Look(
        curves=lambda series, title, scheme, narrow, threshold, initial: sensitivity_figure(
            series,
            Picture(title=title, scheme=scheme, narrow=narrow, seeds=True),
            threshold=threshold,
            initial=initial,
        ),
        clipping=lambda found, title, scheme, narrow: clip_figure(
            found, title, scheme, narrow=narrow
        ),
        accuracies=lambda found, scheme, narrow: accuracy_figure(found, scheme, narrow=narrow),
        agreement=lambda paper, scheme, narrow: agreement_figure(paper, scheme, narrow=narrow),
        template=template,
        methods=METHOD_STYLE,
        text_colour={scheme: palette.text for scheme, palette in PALETTE.items()},
    )


def _check(what: str, out: Path | None, max_minutes: float | None) -> None:
    """Refuse now what could not be done after hours of training."""
    if what not in REPORTS:
        raise InvalidSpec(f"There is no report {what!r}. Known: {', '.join(REPORTS)}.")
    if max_minutes is not None and not max_minutes > 0:
        raise InvalidSpec(f"--max-minutes must be above 0; got {max_minutes:g}.")
    if out is not None:
        _refuse_unwritable(out)


def chosen(only: str | None, tasks: str | None = None) -> "list[Study]":
    """Return the studies whose name contains one of the given words; all without any.

    Args:
        only: Words, separated by commas.
        tasks: Tasks to keep of these studies, likewise; all without any.

    Raises:
        InvalidSpec: If a word is in no study's name, or no study has such a task.
    """
    from ib_core.reproduction import PLAN

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


def _refuse_unwritable(out: Path) -> None:
    """Try whether the report can be written; nothing is left behind but its folder."""
    if out.is_dir():
        raise InvalidSpec(
            f"{out} is a folder; --out names the file to write.",
            hint=f"For example --out {out / 'paper.html'}.",
        )
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        is_new = not out.exists()
        out.open("ab").close()
        if is_new:
            out.unlink()
    except OSError as error:
        raise InvalidSpec(
            f"The report cannot be written to {out}: {error.strerror}.",
            hint="Name another place with --out.",
        ) from None


def _folder(bundle: Path | None) -> Path:
    """Return where results are kept: the folder that was named, else the user's own.

    One's own starts empty: what the shipped bundle holds is found by content, and not trained
    again.
    """
    from backend.cli.server import read_settings

    return bundle if bundle is not None else read_settings().home / "paper"


def _reported(bundle: Path | None, *, trained: bool) -> "Bundle":
    """Return what to report: the folder that was named, else one's own runs and the shipped."""
    from ib_core.reproduction import SHIPPED, SHIPPED_SEEDS, Bundle, find_bundle

    if bundle is not None:
        # What was trained into a folder called `paper` is not the shipped bundle of that name.
        return Bundle(bundle) if trained else find_bundle(bundle)
    shipped, own = find_bundle(SHIPPED), _folder(None)
    shipped.borrow(find_bundle(SHIPPED_SEEDS))
    if not own.is_dir():
        return shipped
    both = Bundle(own)
    both.borrow(shipped)
    return both


def _print_plan(folder: Path, studies: "list[Study]", seeds: int | None) -> None:
    """Print what is left to train; the folder is only read, even while a run writes to it."""
    from backend.paper.terminal import print_plan
    from ib_core.reproduction import Bundle, forecast
    from ib_core.sweep import calibrate

    calibrate()
    own = Bundle(folder)
    print_plan(forecast(studies, own, elsewhere=known_elsewhere(own, studies), seeds=seeds))


def _train(folder: Path, studies: "list[Study]", seeds: int | None, minutes: float) -> bool:
    """Train what is missing; return whether Ctrl-C ended it."""
    from backend.paper.terminal import RunBar, print_plan
    from ib_core.reproduction import PLAN, Bundle, forecast, locked, measure_overheads, train
    from ib_core.sweep import calibrate

    def say_waiting() -> None:
        typer.echo(f"Another run writes to {folder}; waiting until it ends.", err=True)

    calibrate()
    with locked(folder, waiting=say_waiting):
        bundle = Bundle(folder)
        wanted = forecast(studies, bundle, elsewhere=known_elsewhere(bundle, studies), seeds=seeds)
        for result in wanted.found:
            bundle.append(result)
        print_plan(wanted)
        interrupted = False
        try:
            with RunBar(wanted) as bar:
                deadline = time.monotonic() + 60 * minutes
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


def known_elsewhere(own: "Bundle", studies: "Sequence[Study]") -> "Finder":
    """Return a finder that asks the shipped bundles, then the local database.

    Args:
        own: Where results are kept.
        studies: Whose trials will be asked for: bundles without any of them are not read.
    """
    from ib_core.reproduction import shipped_in

    names = sorted({shipped_in(trial) for study in studies for _, trial in study.trials()})

    def find(addresses: Sequence[str]) -> "Mapping[str, TrialResult]":
        found = _in_shipped(own, names, set(addresses))
        rest = [address for address in addresses if address not in found]
        return {**found, **_in_database(rest)}

    return find


def _in_shipped(
    own: "Bundle", names: Sequence[str], addresses: set[str]
) -> "dict[str, TrialResult]":
    from ib_core.reproduction import Bundle, shipped_folder

    found: dict[str, TrialResult] = {}
    for name in names:
        folder = shipped_folder(name)
        wanted = addresses - found.keys()
        if wanted and folder.is_dir() and folder.resolve() != own.folder.resolve():
            results = Bundle(folder).results.values()
            found |= {one.fingerprint: one for one in results if one.fingerprint in wanted}
    return found


def _in_database(addresses: Sequence[str]) -> "dict[str, TrialResult]":
    """Return what the database of this installation has; nothing where there is none yet."""
    from backend.services.trials import stored_results

    return stored_results(addresses)


def verify(
    bundle: Annotated[
        str, typer.Argument(help="A bundle's folder, or one that comes along: paper, seeds.")
    ] = "paper",
    sample: Annotated[
        int,
        typer.Option(min=1, help="How many random trials to train; kinds of tasks take turns."),
    ] = 20,
    seed: Annotated[int, typer.Option(help="Of the choice; another one draws others.")] = 1,
    max_minutes: Annotated[
        float, typer.Option(help="Leave out trials whose forecast is longer than this in all.")
    ] = 15.0,
) -> None:
    """Train random trials of a bundle again and compare; exit code 1 if one does not hold.

    The kinds of tasks (uci, music, mnist_classifier, ...) take turns, and in a kind its tasks, so
    that a few trials touch many. Compared are losses, accuracies and how the trial ended; numbers
    agree within a thousandth, accuracies also within one example.
    """
    from backend.cli.sweep_report import Bar
    from backend.paper.terminal import print_checks
    from ib_core.reproduction import check, draw, find_bundle

    found = find_bundle(bundle)
    drawn = draw(found, sample, seed=seed, most_seconds=60 * max_minutes)
    if drawn.missing:
        names = sorted(drawn.missing)
        shown = ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
        lost = sum(drawn.missing.values())
        typer.echo(f"Left out: {lost} trials of {shown}, whose data is not here.")
    if not drawn.results:
        raise InvalidSpec(
            "No trial of the bundle can be trained on this machine"
            + (f" in {max_minutes:g} minutes." if drawn.too_long else "."),
            hint="--max-minutes gives them more time." if drawn.too_long else None,
        )
    checks = check(drawn.results, watch=Bar)
    print_checks(checks, drawn)
    if any(one.verdict == "differs" for one in checks):
        raise typer.Exit(1)
