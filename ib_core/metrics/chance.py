"""Two series cell by cell, a cell being one rate and seed that both have."""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy.special import ndtr, ndtri, stdtrit

from ib_core.metrics.number import (
    LEAST_SEEDS,
    LEVEL,
    Number,
    seeds_note,
    smooth,
    unknown,
)
from ib_core.metrics.reading import Flags, Floats
from ib_core.metrics.task_table import TaskTable

RESAMPLES = 2000
#: Cells that the imagined seeds of `chance_interval` win more or less than the average one.
APART = 1.5
NO_PAIRS = "It shares no rate and seed with what it is compared with."


@dataclass(frozen=True, slots=True)
class Cells:
    """Sums over the paired cells of each seed that has any.

    Attributes:
        wins: Cells in which the method's loss is lower, ties half, [seeds].
        count: Cells, [seeds].
        difference: Sum of capped differences; NaN where an initial loss is missing, [seeds].
    """

    wins: Floats
    count: Floats
    difference: Floats


def paired_cells(table: TaskTable, series: int, other: int) -> Cells:
    """Compare two series at the rates and seeds both have; a loss not finite is the worst."""
    both: Flags = table.present[series] & table.present[other]
    ours, theirs = table.loss[series], table.loss[other]
    with np.errstate(invalid="ignore"):
        lower = (ours < theirs) + 0.5 * (ours == theirs)
    apart = table.capped[series] - table.capped[other]
    paired = both.any(axis=0)
    return Cells(
        wins=np.where(both, lower, 0).sum(axis=0)[paired],
        count=both.sum(axis=0)[paired].astype(np.float64),
        difference=np.where(both, apart, 0).sum(axis=0)[paired],
    )


def chance_better(table: TaskTable, series: int, other: int) -> Number:
    """Return the share of paired cells in which the loss is lower than the other's."""
    cells = paired_cells(table, series, other)
    n = cells.count.size
    if n == 0:
        return unknown(0, NO_PAIRS)
    value = float(cells.wins.sum() / cells.count.sum())
    low, high = chance_interval(cells.wins, cells.count) if n >= LEAST_SEEDS else (None, None)
    return Number(value, low, high, n=n, note=seeds_note(n))


def mean_difference(table: TaskTable, series: int, other: int) -> Number:
    """Return the mean over the paired cells of the capped loss minus the other's."""
    cells = paired_cells(table, series, other)
    n = cells.count.size
    if n == 0:
        return unknown(0, NO_PAIRS)
    if np.isnan(cells.difference).any():
        return unknown(n, "The initial loss was not recorded for every trial.")
    total, count = cells.difference.sum(), cells.count.sum()
    left = np.maximum(count - cells.count, 1)
    without = np.where(count > cells.count, (total - cells.difference) / left, total / count)
    value = float(total / count)
    unseen = [value + change for change in _unseen_changes(table, series, other)]
    return smooth(np.concatenate([[value], without]), n, unseen=unseen)


def _unseen_changes(table: TaskTable, series: int, other: int) -> list[float]:
    """How breaks and repairs that no seed shows would change the mean over the paired cells."""
    both = table.present[series] & table.present[other]
    weights = both.sum(axis=1) / both.sum()
    return [
        sign * float(np.nansum(weights * (rows[one] - table.means[one, 0])))
        for sign, one in ((1, series), (-1, other))
        for rows in table.unseen
    ]


def chance_interval(wins: Floats, count: Floats) -> tuple[float, float]:
    """Return a chance's interval: seeds resampled, bias-corrected, widened for few seeds.

    Percentiles are moved by `z0`, the normal quantile of the share of resampled chances below the
    one seen, and are those of Student's t, `Phi(sqrt(n/(n-1)) t)` instead of `Phi(z)`: a plain
    percentile interval of a mean is too narrow by just that. Where all seeds agree, resampling them
    would say that every seed must; so one more takes part, half of it a seed that wins 1.5 cells
    more than the average seed, half one that wins as many less.

    Args:
        wins: Cells won by each seed, ties half.
        count: Cells of each seed.
    """
    n = wins.size
    value, cells = wins.sum() / count.sum(), count.mean()
    imagined = np.clip(value * cells + np.array([-APART, APART]), 0, cells)
    weights = _resamples(n)
    won, played = np.concatenate([wins, imagined]), np.concatenate([count, [cells, cells]])
    drawn = np.sort((weights @ won) / (weights @ played))
    below = np.mean(drawn < value - 1e-12) + np.mean(np.abs(drawn - value) <= 1e-12) / 2
    shift = ndtri(np.clip(below, 1 / RESAMPLES, 1 - 1 / RESAMPLES))
    reach = np.sqrt(n / (n - 1)) * stdtrit(n - 1, (1 + LEVEL) / 2)
    low, high = np.quantile(drawn, ndtr([2 * shift - reach, 2 * shift + reach]))
    return float(min(low, value)), float(max(high, value))


@lru_cache(maxsize=32)
def _resamples(n: int) -> Floats:
    """How often each seed is drawn, the two imaginary ones last, [resamples, n + 2]."""
    chances = np.concatenate([np.ones(n), [0.5, 0.5]]) / (n + 1)
    drawn = np.random.default_rng(0).multinomial(n, chances, size=RESAMPLES)
    return drawn.astype(np.float64)
