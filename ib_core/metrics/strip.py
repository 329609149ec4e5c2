"""What was tested and how it went, rate by rate, and the rates to use that follow from it."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

import numpy as np

from ib_core.metrics.edge import bracket
from ib_core.metrics.number import ADVISED_SEEDS, LEAST_SEEDS, Number, joined, unknown
from ib_core.metrics.reading import Flags
from ib_core.metrics.task_table import TaskTable

State = Literal["good", "tested", "broken"]
THIN = "Thin margin: it lies above half the lower end of the edge's interval."


def listed(rates: Sequence[float]) -> str:
    """Write rates as a list: "0.1, 0.3 and 1"."""
    words = [rate_text(lr) for lr in rates]
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"


def rate_text(lr: float) -> str:
    """Write a rate as it was trained, every digit of it."""
    short = f"{lr:.6g}"
    return short if float(short) == lr else repr(lr)


@dataclass(frozen=True, slots=True)
class RateCell:
    """One tested rate of one series.

    Attributes:
        lr: The rate.
        state: ``good``; ``broken``, for half its seeds or more; else ``tested``.
        n: Seeds.
        broke: How many of them broke.
    """

    lr: float
    state: State
    n: int
    broke: int


@dataclass(frozen=True, slots=True)
class Strip:
    """Every tested rate of one series, ascending.

    Attributes:
        cells: The rates.
        best: The rate with the lowest mean of those that did not break; None if all did.
        run: The neighbouring good rates around the best one; empty if none is good.
        to_test: The gap in which half the seeds begin to break, between two neighbours; None
            where no tested rate broke half of them, or the lowest did.
    """

    cells: tuple[RateCell, ...]
    best: float | None
    run: tuple[float, ...]
    to_test: tuple[float, float] | None

    @property
    def gaps(self) -> tuple[tuple[float, float], ...]:
        """Pairs of neighbouring tested rates: in between nothing was tried."""
        return tuple((one.lr, two.lr) for one, two in pairwise(self.cells))


def strip(table: TaskTable, series: int) -> Strip:
    """Return how a series went at every rate it was tested at."""
    seen = bracket(table, series)
    good = table.good[series]
    cells = []
    for at in np.flatnonzero(table.tested[series]).tolist():
        n, broke = int(table.count[series, at]), int(table.broke[series, at])
        state: State = "good" if good[at] else "broken" if 2 * broke >= n else "tested"
        cells.append(RateCell(float(table.rates[at]), state, n, broke))
    gap = None
    if seen.before is not None and seen.broken_from is not None:
        gap = (seen.before, seen.broken_from)
    sound = table.tested[series] & (2 * table.broke[series] < table.count[series])
    run = _run(cells, _best_of(table, series, good))
    return Strip(tuple(cells), _best_of(table, series, sound), run, gap)


def _best_of(table: TaskTable, series: int, allowed: Flags) -> float | None:
    """The allowed rate with the lowest mean that rates are chosen by."""
    if not allowed.any() or not table.known[series]:
        return None
    at = int(np.where(allowed, table.chooser[series, 0], np.inf).argmin())
    return float(table.rates[at])


def _run(cells: list[RateCell], best: float | None) -> tuple[float, ...]:
    if best is None:
        return ()
    at = next(i for i, cell in enumerate(cells) if cell.lr == best)
    first = last = at
    while first > 0 and cells[first - 1].state == "good":
        first -= 1
    while last + 1 < len(cells) and cells[last + 1].state == "good":
        last += 1
    return tuple(cell.lr for cell in cells[first : last + 1])


def good_range(table: TaskTable, series: int, found: Strip) -> Number:
    """Return the best good rate, with the run of good rates around it as `low` and `high`."""
    n = table.fewest(series)
    if not table.known[series]:
        return unknown(n, "The initial loss was not recorded for every trial.")
    if not found.run:
        return unknown(n, "No tested rate is good.")
    n = _seeds(found, found.run)
    best = _best_of(table, series, table.good[series])
    note = f"Tested in it: {listed(found.run)}."
    return Number(best, found.run[0], found.run[-1], n=n, note=note)


def _seeds(found: Strip, rates: tuple[float, ...]) -> int:
    return min(cell.n for cell in found.cells if cell.lr in rates)


def start_at(table: TaskTable, series: int, found: Strip, edge: Number) -> Number:
    """Return the best good rate at most half the lower end of the edge's interval.

    Else the best good one, with the note that its margin is thin. Below three seeds none.
    """
    if not found.run:
        return unknown(table.fewest(series), what_to_run(found))
    enough = table.good[series] & (table.count[series] >= LEAST_SEEDS)
    if not enough.any():
        return unknown(_seeds(found, found.run), what_to_run(found))
    safe = enough & (table.rates <= (edge.low or 0.0) / 2)
    rate = _best_of(table, series, safe if safe.any() else enough)
    assert rate is not None
    note = joined("" if safe.any() else THIN, _broke_below(found, rate))
    return Number(rate, n=_seeds(found, (rate,)), note=note)


def _broke_below(found: Strip, rate: float) -> str:
    below = [cell.lr for cell in found.cells if cell.lr < rate and cell.broke]
    return f"Seeds broke below it, at {rate_text(below[-1])}." if below else ""


def what_to_run(found: Strip) -> str:
    """Return what has to be run before any rate can be advised."""
    if found.run:
        many = f"{LEAST_SEEDS} or more, better {ADVISED_SEEDS},"
        return f"Too few seeds for advice: run {many} at {listed(found.run)}."
    rates = [cell.lr for cell in found.cells]
    if all(cell.state == "broken" for cell in found.cells):
        return f"Every tested rate broke: run lower ones than {rate_text(rates[0])}."
    if found.best is None:
        return "The initial loss was not recorded for every trial."
    at = rates.index(found.best)
    where = "" if at == 0 else f"above {rate_text(rates[at - 1])}"
    if at + 1 < len(rates):
        where += f"{' and ' if where else ''}below {rate_text(rates[at + 1])}"
    best = rate_text(found.best)
    return (
        f"No tested rate is good: run more {where}, around its best, {best}."
        if where
        else (f"No tested rate is good: run others than {best}.")
    )
