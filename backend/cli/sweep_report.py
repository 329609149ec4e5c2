"""A sweep on the terminal: progress while it trains, then the same numbers the dashboard shows."""

from collections import Counter
from collections.abc import Collection, Sequence
from pathlib import Path
from statistics import fmean
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Table

from backend.schemas import RatePointRead, ScorecardRow, SeriesRead
from backend.services.analysis import (
    Finished,
    Key,
    Measure,
    Series,
    canonical,
    to_plots,
    to_rows,
    to_series,
)
from ib_core.errors import InvalidSpec
from ib_core.metrics import METRICS
from ib_core.sweep import ENGINE_VERSION, Observer, TrialResult, finite_or_none
from ib_core.tasks import find_task

#: Scorecard columns that fit a terminal, in order.
SHOWN = ("best_mean", "best_lr", "robust_range", "divergence_rate", "headroom")
#: More tasks than this and only a line a task is printed.
MOST_TABLES = 6


class Bar(Observer):
    """A progress bar with running outcomes; keeps every result as soon as there is one."""

    def __init__(self, total: int) -> None:
        self.total = total
        self.found: dict[int, TrialResult] = {}
        self._outcomes: Counter[str] = Counter()
        self._progress = Progress(
            TextColumn("training"),
            BarColumn(),
            TextColumn("{task.percentage:>3.0f}%"),
            TimeElapsedColumn(),
            TextColumn("· left"),
            TimeRemainingColumn(),
            TextColumn("{task.description}"),
            console=Console(stderr=True),
        )
        self._bar = self._progress.add_task(f"{total} trials", total=1.0)

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._progress.stop()

    def finished(self, index: int, result: TrialResult) -> None:
        """Keep the result and count its outcome."""
        self.found[index] = result
        self._outcomes[result.outcome.value] += 1
        counts = " · ".join(f"{count} {outcome}" for outcome, count in self._outcomes.items())
        self._progress.update(self._bar, description=f"{counts} of {self.total}")
        if len(self.found) == self.total:
            self._progress.update(self._bar, completed=1.0)

    def progress(self, fraction: float) -> Collection[int]:
        """Move the bar."""
        self._progress.update(self._bar, completed=fraction)
        return ()

    def results(self) -> list[TrialResult]:
        """Return what is finished, in the order of the grid."""
        return [self.found[index] for index in sorted(self.found)]


def series_of(results: Sequence[TrialResult]) -> list[Series]:
    """Group results as the server groups a study's trials."""
    found: dict[Key, Series] = {}
    for number, result in enumerate(results):
        spec = result.spec
        key = Key(
            study_id=0,
            task=spec.task,
            profile=spec.profile,
            method=spec.method,
            batch_rule=spec.batch_rule,
            activation=spec.activation,
            clip=spec.clip,
            mu=spec.mu,
            epochs=spec.epochs,
            batch_size=spec.batch_size,
            options=canonical(spec.as_dict()["options"]),
            imported=False,
            engine_version=ENGINE_VERSION,
            data_hash=result.record.get("data"),
        )
        trial = Finished(
            id=number,
            lr=spec.lr,
            seed=spec.seed,
            state=result.outcome.value,
            initial_loss=finite_or_none(result.initial_loss),
            seconds=result.seconds,
            final=finite_or_none(result.train_loss),
            curve=None,
        )
        found.setdefault(key, Series(key)).rows.append(trial)
    return list(found.values())


def print_report(results: Sequence[TrialResult], *, total: int) -> None:
    """Print means by method and rate, then the scorecard and a recommendation in words."""
    console = Console()
    if not results:
        console.print("No trial was finished.")
        return
    measure = Measure("train_loss")
    grouped = series_of(results)
    plots = to_plots(grouped, measure, initial=True)
    lines, scores = to_series(plots, measure, "std"), to_rows(plots, measure)
    tasks = list(dict.fromkeys(line.task for line in lines))
    for task in tasks[:MOST_TABLES]:
        own = [line for line in lines if line.task == task]
        _print_means(console, task, own)
        _print_scores(console, [row for row in scores if row.task == task])
    if len(tasks) > MOST_TABLES:
        console.print(f"... and {len(tasks) - MOST_TABLES} more tasks; see --csv for all of them.")
    if len(results) < total:
        console.print(f"Stopped: {len(results)} of {total} trials were finished and are kept.")


def _print_means(console: Console, task: str, lines: Sequence[SeriesRead]) -> None:
    rates = sorted({point.lr for line in lines for point in line.points})
    console.print(f"{task}: training loss, mean ± std over seeds (diverged/n)", highlight=False)
    table = Table("learning rate", box=None)
    for line in lines:
        table.add_column(line.label, justify="right")
    by_rate = [{point.lr: point for point in line.points} for line in lines]
    for rate in rates:
        table.add_row(f"{rate:g}", *(_cell(points.get(rate)) for points in by_rate))
    console.print(table)


def _cell(point: RatePointRead | None) -> str:
    if point is None:
        return ""
    diverged = f" [red]({point.diverged}/{point.n})[/]" if point.diverged else ""
    if point.mean is None:
        rest = "" if point.finite_mean is None else f" {point.finite_mean:.3g} of {point.n_finite}"
        return f"not finite{rest}{diverged}"
    spread = 0.0 if point.high is None or point.low is None else (point.high - point.low) / 2
    return f"{point.mean:.4g} ± {spread:.2g}{diverged}"


def _print_scores(console: Console, rows: Sequence[ScorecardRow]) -> None:
    table = Table("method", box=None)
    for name in SHOWN:
        table.add_column(METRICS[name].title, justify="right")
    for row in rows:
        table.add_row(row.label, *(row.metrics[name].text or "–" for name in SHOWN))
    console.print(table)
    for row in rows:
        console.print(f"{row.label}: {row.recommendation}", highlight=False)
    console.print()


def check_drawing(file: Path) -> None:
    """Refuse a picture that could not be drawn, before any training."""
    if file.suffix not in (".png", ".svg", ".pdf"):
        raise InvalidSpec(f"A picture is a .png, .svg or .pdf file; got {file.name}.")
    from choreographer.browsers.chromium import Chromium

    if not Chromium.find_browser(skip_local=False):
        raise InvalidSpec(
            "Drawing a file needs Chrome or Chromium, and none was found on this machine.",
            hint="Install one (Debian: apt install chromium), or use --csv.",
        )


def draw(results: Sequence[TrialResult], file: Path) -> None:
    """Draw loss against learning rate into a file, as the Study page does."""
    from dashboard.figures import Picture, sensitivity_figure

    measure = Measure("train_loss")
    series = to_series(to_plots(series_of(results), measure), measure, "std")
    titles = dict.fromkeys(find_task(result.spec.task).title for result in results)
    figure = sensitivity_figure(
        series,
        Picture(title=" · ".join(titles)),
        threshold=next((line.threshold for line in series if line.threshold is not None), None),
        initial=fmean(result.initial_loss for result in results),
    )
    figure.write_image(file, width=1120, height=640, scale=2 if file.suffix == ".png" else 1)
