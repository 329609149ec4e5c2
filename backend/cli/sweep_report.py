"""A sweep on the terminal: progress while it trains, then the numbers the dashboard shows."""

from collections import Counter
from collections.abc import Collection, Sequence
from pathlib import Path
from statistics import fmean
from typing import IO, Any, Self

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Table

from backend.schemas import NumberRead, RatePointRead, ScorecardRow, SeriesRead
from backend.services.analysis import (
    Measure,
    score_plots,
    scorecard_csv,
    series_of,
    to_answers,
    to_plots,
    to_rows,
    to_series,
    training_of,
)
from ib_core.errors import InvalidSpec
from ib_core.metrics import KINDS
from ib_core.sweep import (
    Book,
    Observer,
    Outcome,
    SeedEdge,
    SeriesFound,
    TrialResult,
    in_words,
    series_found,
)
from ib_core.tasks import find_task

#: What of the scorecard a terminal shows, in order; files have all of it.
SHOWN = (
    *("edge", "headroom", "good_range", "start_at", "best_rate", "best_mean", "price"),
    *("lr_sensitivity", "best_of_3", "chance_better", "time_to_target"),
)
#: Columns that a number's name and a number with its interval take.
TITLE_WIDTH, NUMBER_WIDTH = 22, 29
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
            console=Console(stderr=True, emoji=False),
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


def print_searches(books: Sequence[Book]) -> None:
    """Print what searches have found: each series' number with its interval, and every seed's."""
    console = Console(emoji=False)  # `:lion:` is a method's name
    for book in books:
        search, edge = book.search, book.search.find == "edge"
        sweep = book.spec
        console.print(
            f"{escape(sweep.task)}: the {'edge' if edge else 'best rate'} within a factor of "
            f"{search.within:g}, {search.low:g} to {search.high:g}",
            highlight=False,
        )
        table = Table("series", "edge" if edge else "best rate", box=None)
        table.add_column("seeds" if edge else "mean loss")
        for found in series_found(search, book.known):
            table.add_row(*(escape(cell) for cell in _found_cells(found)))
        console.print(table)
        fewer = book.grid / max(1, book.trials)
        console.print(
            f"{book.rounds} rounds, {book.trials} trials of at most {search.most}; a grid as fine "
            f"takes {book.grid}, {fewer:.3g} times as many.\n",
            highlight=False,
        )


def _found_cells(found: SeriesFound) -> tuple[str, str, str]:
    trial: Any = found.series
    clip = f", clip {trial.clip:g}" if trial.clip is not None else ""
    seeds = ", ".join(f"{one.seed}: {_bracket(one)}" for one in found.seeds)
    if found.loss is not None:
        seeds = f"{found.loss:.4g}"
    if not found.monotone:
        seeds += "; not monotone: a broken rate lies below a sound one"
    return f"{trial.method}{clip}", found.text, seeds


def _bracket(seed: SeedEdge) -> str:
    if seed.low is None or seed.high is None:
        return in_words(None, seed.where)
    return f"{seed.low:.4g} to {seed.high:.4g}"


def print_report(results: Sequence[TrialResult], *, total: int, means: bool = True) -> None:
    """Print each task's answer, means by method and rate, the scorecard and advice in words."""
    console = Console(emoji=False)  # `:lion:` is a method's name
    if not results:
        console.print("No trial was finished.")
        return
    measure = Measure("train_loss")
    plots = to_plots(series_of(results), measure, initial=True)
    scored = score_plots(plots, measure, training=training_of(results))
    rows = {row.id: row for row in to_rows(scored, measure)}
    lines = to_series(plots, measure, "std")
    answers = to_answers(scored)
    for answer in answers[:MOST_TABLES]:
        console.print(f"{escape(answer.title)}: {escape(answer.answer)}\n", highlight=False)
        for move in answer.moves:
            console.print(escape(move.text), highlight=False)
        if means:
            mine = [line for line in lines if line.task == answer.task]
            _print_means(console, answer.task, mine)
        _print_scores(console, [rows[name] for name in answer.rows])
    if len(answers) > MOST_TABLES:
        more = len(answers) - MOST_TABLES
        console.print(f"... and {more} more tasks; see --scorecard for all of them.")
    _print_ways(console, results)
    _print_failures(console, results)
    if len(results) < total:
        console.print(f"Stopped: {len(results)} of {total} trials were finished and are kept.")


def write_scorecard(results: Sequence[TrialResult], file: IO[str]) -> None:
    """Write one line a series and number, as the API's export does."""
    measure = Measure("train_loss")
    plots = to_plots(series_of(results), measure, initial=True)
    scored = score_plots(plots, measure, training=training_of(results))
    file.write(scorecard_csv(to_rows(scored, measure)))


def _print_ways(console: Console, results: Sequence[TrialResult]) -> None:
    """Say how trials were trained, where there was something to choose, and why."""
    ways: Counter[tuple[str, str, str]] = Counter()
    for result in results:
        if "way" in result.record:
            spec = result.spec
            values = " ".join(f"{name}={value}" for name, value in spec.options.of_task.items())
            what = " ".join(filter(None, (spec.method, values)))
            ways[what, result.record["way"], result.record["why"]] += 1
    if not ways:
        return
    table = Table("trained", "trials", "way", "because", box=None)
    for (what, way, why), count in ways.items():
        table.add_row(escape(what), str(count), way, escape(why))
    console.print(table)


def _print_failures(console: Console, results: Sequence[TrialResult]) -> None:
    failed = Counter(result.error for result in results if result.outcome is Outcome.FAILED)
    for error, count in failed.items():
        trials = "1 trial" if count == 1 else f"{count} trials"
        console.print(f"{trials} failed: {escape(str(error))}", highlight=False)


def _print_means(console: Console, task: str, lines: Sequence[SeriesRead]) -> None:
    rates = sorted({point.lr for line in lines for point in line.points})
    console.print(
        f"{escape(task)}: training loss, mean ± std over seeds (diverged/n)", highlight=False
    )
    table = Table("learning rate", box=None)
    for line in lines:
        table.add_column(escape(line.label), justify="right")
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
    """Print numbers down and series across: value, interval, n seeds; what nobody has is left out.

    As many series as fit beside each other, the next ones below.
    """
    beside = max(1, (console.width - TITLE_WIDTH) // NUMBER_WIDTH)
    for start in range(0, len(rows), beside):
        some = rows[start : start + beside]
        table = Table("95 % interval, seeds", box=None)
        for row in some:
            table.add_column(escape(row.label), justify="right")
        for name in SHOWN:
            if any(row.metrics[name].value is not None for row in some):
                table.add_row(KINDS[name].title, *(_number(row.metrics[name]) for row in some))
        console.print(table)
    if any("Chosen on validation." in row.metrics["best_rate"].note for row in rows):
        console.print("Best rates are chosen on validation losses.")
    for row in rows:
        console.print(f"{escape(row.label)}: {escape(row.advice)}", highlight=False)
    console.print()


def _number(number: NumberRead) -> str:
    if number.value is None:
        return number.text
    interval = f" [dim]({number.interval})[/]" if number.interval else ""
    return f"{number.text}{interval} [dim]n={number.n}[/]"


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
