"""How a long run goes: a bar on a terminal, a line a unit in a log file."""

import time
from collections.abc import Sequence
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn
from rich.table import Table

from ib_core.reproduction import Forecast, Unit
from ib_core.reproduction import Progress as RunProgress


def duration(seconds: float) -> str:
    """Return a duration as people say it."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    minutes = seconds / 60
    return f"{minutes:.0f} min" if minutes < 90 else f"{minutes / 60:.1f} h"


def print_plan(wanted: Forecast) -> None:
    """Print what is left to train, stage by stage, with its forecast."""
    console = Console(highlight=False)
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
        self._console = Console(stderr=True, highlight=False)
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
