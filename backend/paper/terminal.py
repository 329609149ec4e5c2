"""The reproduction on a terminal: what is to train, how a long run goes, what a check found."""

import sys
import time
from collections import Counter
from collections.abc import Sequence
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn
from rich.table import Table

from ib_core.reproduction import Check, Drawn, Forecast, Unit
from ib_core.reproduction import Progress as RunProgress
from ib_core.sweep import TrialResult


def duration(seconds: float) -> str:
    """Return a duration as people say it."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    minutes = seconds / 60
    return f"{minutes:.0f} min" if minutes < 90 else f"{minutes / 60:.1f} h"


def print_plan(wanted: Forecast) -> None:
    """Print what is left to train, stage by stage, with its forecast."""
    console = Console(highlight=False, emoji=False)
    table = Table("stage", "study", box=None)
    for title in ("trials", "forecast", "in all"):
        table.add_column(title, justify="right")
    total = 0.0
    for unit in wanted.units:
        total += unit.seconds
        cells = (str(len(unit.trials)), duration(unit.seconds), duration(total))
        table.add_row(str(unit.stage), unit.study, *cells)
    if wanted.units:
        console.print(table)
    trials = sum(len(unit.trials) for unit in wanted.units)
    console.print(f"{wanted.known} trials are known, {trials} are left: {duration(total)}.")
    if wanted.missing:
        lost = sum(wanted.missing.values())
        names = sorted(wanted.missing)
        shown = ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
        console.print(
            f"{lost} trials cannot be run, because their data is not here: {shown}. "
            "`etascope data list` says how to get it.",
            soft_wrap=True,
        )


class RunBar(RunProgress):
    """Shows where a run is and how long it will take, corrected by how long it has taken."""

    def __init__(self, wanted: Forecast) -> None:
        self._console = Console(stderr=True, highlight=False, emoji=False)
        self._total = wanted.seconds or 1.0
        self._done = 0.0
        self._began = time.monotonic()
        self._bar = Progress(
            TextColumn("{task.fields[study]}"),
            BarColumn(),
            TextColumn("{task.percentage:>3.0f}%  {task.description}"),
            console=self._console,
        )
        self._task: TaskID = self._bar.add_task("", total=1.0, study="")

    def __enter__(self) -> Self:
        if self._console.is_terminal:
            self._bar.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        self._bar.stop()

    def begin(self, unit: Unit) -> None:
        """Show the unit's name."""
        self._bar.update(self._task, study=unit.name)

    def moved(self, unit: Unit, fraction: float) -> None:
        """Move the bar."""
        share = (self._done + fraction * unit.seconds) / self._total
        self._bar.update(self._task, completed=share, description=self._left(share))

    def end(self, unit: Unit, seconds: float) -> None:
        """Count the unit; in a log file, say so."""
        self._done += unit.seconds
        share = self._done / self._total
        if not self._console.is_terminal:
            clock = time.strftime("%H:%M:%S")
            self._console.print(
                f"{clock} {unit.name}: {len(unit.trials)} trials in "
                f"{duration(seconds)} (forecast {duration(unit.seconds)}); "
                f"{100 * share:.0f}%, {self._left(share)}",
                soft_wrap=True,
            )

    def print_end(self, left: Sequence[Unit]) -> None:
        """Say what there was no time for."""
        if left:
            seconds = sum(unit.seconds for unit in left)
            self._console.print(
                f"{sum(len(unit.trials) for unit in left)} trials ({duration(seconds)}) are left."
            )

    def _left(self, share: float) -> str:
        if share < 0.001:
            return ""
        return f"{duration((time.monotonic() - self._began) * (1 - share) / share)} left"


COLOURS = {"agrees": "green", "chaotic": "yellow", "differs": "red"}
#: Verdicts before a count.
COUNTED = {"agrees": "agreeing", "chaotic": "chaotic", "differs": "differing"}


def print_checks(checks: Sequence[Check], drawn: Drawn) -> None:
    """Print every trial then and now, and the counts."""
    console = Console(highlight=False, emoji=False, width=None if sys.stdout.isatty() else 130)
    console.print(_table(checks))
    counts = Counter(one.verdict for one in checks)
    words = ", ".join(f"{word} {counts[verdict]}" for verdict, word in COUNTED.items())
    lines = [f"{len(checks)} trials trained again: {words}.", *_what_it_means(checks, counts)]
    changed = sum(not one.same_data for one in checks)
    if changed:
        lines.append(f"{changed} were made with other data or another engine version.")
    if drawn.too_long:
        lines.append(f"{drawn.too_long} were passed over as too long; see --max-minutes.")
    for line in lines:
        console.print(line, soft_wrap=True)


def _table(checks: Sequence[Check]) -> Table:
    """Return a row a trial: of the number that decides, the training loss if all agree."""
    table = Table("trial", box=None)
    for title in ("rate", "seed", "number", "bundle", "again", "rounding", ""):
        table.add_column(title, justify="right")
    for one in checks:
        spec, worst = one.kept.spec, one.worst
        rule = f" {spec.batch_rule}" if spec.batch_rule else ""
        clip = "" if spec.clip is None else f" clip {spec.clip:g}"
        table.add_row(
            f"{spec.task} {spec.profile} {spec.method}{rule}{clip}",
            f"{spec.lr:g}",
            str(spec.seed),
            worst.name.replace("_", " "),
            _shown(one.kept, worst.name),
            _shown(one.again, worst.name),
            f"{worst.spread:.2g}" if one.nudged else "",
            f"[{COLOURS[worst.verdict]}]{worst.verdict}[/]",
        )
    return table


def _shown(result: TrialResult, name: str) -> str:
    value = getattr(result, name)
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _what_it_means(checks: Sequence[Check], counts: Counter[str]) -> list[str]:
    """Return what the counts do and do not show."""
    if not counts["chaotic"]:
        return []
    tested = len(checks) - counts["chaotic"]
    said = [
        "Chaotic: a rounding error in the rate alone moves the number by so much (column "
        "rounding), a third of the difference or more."
    ]
    if tested:
        said.append(f"So {tested} of the {len(checks)} were tested: rounding does not decide them.")
    else:
        said.append(
            "So nothing was confirmed: no trial that was drawn could be tested. Another --seed or "
            "a larger --sample draws others."
        )
    return said
