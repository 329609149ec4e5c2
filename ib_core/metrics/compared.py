"""Smooth numbers of the mean capped losses, and two series cell by cell.

Of the means: the best, its price, sensitivity, the best of k. A cell is one rate and seed that both
series have: the chance to be better, the mean difference.
"""

from dataclasses import dataclass, replace
from functools import cached_property, lru_cache

import numpy as np

from ib_core.metrics.number import (
    AT_FARTHEST,
    LEAST_SEEDS,
    LEVEL,
    Bounds,
    Flags,
    Floats,
    Number,
    joined,
    log_ends,
    number_text,
    seeds_note,
    smooth,
    unknown,
    widened,
)
from ib_core.metrics.task_table import CommonRange, TaskTable

NO_START = "The initial loss was not recorded for every trial."
NO_RANGE = "No common range."
NO_GAIN = "No tested rate of any series brought the mean loss below its initial value."
#: Points of the common range at which rates are drawn for the best of k.
POINTS = 512
MOST_TRIES = 20
_SHARE = Bounds(0.0, 1.0)
RESAMPLES = 2000
#: Cells that the imagined seeds of `chance_interval` win more or less than the average one.
APART = 1.5
NO_PAIRS = "It shares no rate and seed with what it is compared with."


def chosen_note(table: TaskTable, series: int) -> str:
    """Return by what the best rate was chosen, where that is not the loss shown."""
    tested = table.present[series]
    if not np.isnan(table.validation[series][tested]).any():
        return "Chosen on validation."
    return "Chosen on test." if table.on_test else ""


def best_rate(table: TaskTable, series: int) -> Number:
    """Return the tested rate with the lowest mean capped loss, chosen on validation if it can."""
    if not table.known[series]:
        return unknown(table.fewest(series), NO_START)
    at = int(table.chosen[series, 0])
    n, broke = int(table.count[series, at]), int(table.broke[series, at])
    if not table.best[series, 0] < table.start[series, 0]:
        return unknown(n, "No tested rate brought the mean loss below its initial value.")
    rates = table.rates_of(series)
    rate = float(table.rates[at])
    ends = {rates[0]: "lowest", rates[-1]: "highest"}
    end = f"It is the {ends[rate]} rate tried." if rate in ends else ""
    lost = f"{broke} of {n} seeds broke there." if broke else ""
    return Number(rate, n=n, note=joined(end, lost, chosen_note(table, series)))


def best_mean(table: TaskTable, series: int) -> Number:
    """Return the mean capped loss at the best rate, with the interval of its logarithm."""
    if not table.known[series]:
        return unknown(table.fewest(series), NO_START)
    n = int(table.count[series, table.chosen[series, 0]])
    value, highest = float(table.best[series, 0]), float(table.start[series, 0])
    found = Number(value, n=n, note=joined(chosen_note(table, series), seeds_note(n)))
    ends = log_ends(table.best[series], n)
    if ends is None:
        return found
    low, high = (float(np.exp(min(end, np.log(highest)))) for end in ends)
    return replace(found, low=min(low, value), high=max(high, value))


def price(table: TaskTable, series: int) -> Number:
    """Return by which share the own best mean is above the best of all series.

    With own best `a` and the best of the *others* `b`, the interval of `log a - log b` is put
    together from both: downwards it reaches as far as the root of the squares of how far `log a`
    reaches down and `log b` up. It is cut off at 0: the best of all is at most the own one.
    """
    n = table.fewest(series)
    others = [i for i in np.flatnonzero(table.known).tolist() if i != series]
    if not table.known[series]:
        return unknown(n, NO_START)
    if not others:
        return unknown(n, "There is no other series on this task.")
    best, rest = table.best[series], table.best[others].min(axis=0)
    if not (best > 0).all() or not (rest > 0).all():
        return unknown(n, "A best mean of 0 has no percentage.")
    n = int(table.count[series, table.chosen[series, 0]])
    # Of logarithms, because a quotient of two far losses overflows.
    value = float(np.log(best[0]) - np.log(rest[0]))
    found = Number(_above_best(value), n=n, note=joined(chosen_note(table, series), seeds_note(n)))
    ours, theirs = (log_ends(rows, n, beyond=AT_FARTHEST) for rows in (best, rest))
    if ours is None or theirs is None:
        return found
    down = np.hypot(np.log(best[0]) - ours[0], theirs[1] - np.log(rest[0]))
    up = np.hypot(ours[1] - np.log(best[0]), np.log(rest[0]) - theirs[0])
    return replace(found, low=_above_best(value - down), high=_above_best(value + up))


def _above_best(log_ratio: float) -> float:
    return max(0.0, float(np.expm1(min(log_ratio, 700.0))))


def lr_sensitivity(table: TaskTable, series: int) -> Number:
    """Return the mean over the common range of (lc - l*)/(l0 - l*), l* of all series."""
    return _mean_loss_given_up(table, series, table.lowest)


def flatness(table: TaskTable, series: int) -> Number:
    """Return the same as `lr_sensitivity` with the series' own lowest mean capped loss."""
    return _mean_loss_given_up(table, series, None)


def _mean_loss_given_up(table: TaskTable, series: int, lowest: Floats | None) -> Number:
    """Mean over the range of what is lost against `lowest`, or against the own lowest mean."""
    within = table.common_range
    why = _why_not(table, series, within)
    if why or within is None:
        return unknown(table.fewest(series), why)
    n = table.fewest(series, within)
    tested = table.tested[series]
    extra = [rows[series] for rows in table.unseen]
    means = np.vstack([table.means[series], *extra])[:, tested]
    start = _prolonged(table.start[series])
    best = means.min(axis=1) if lowest is None else _prolonged(lowest)
    if not (start > best).all():
        return unknown(n, NO_GAIN)
    lost = (means @ range_weights(table.rates[tested], within) - best) / (start - best)
    *values, spoilt, mended = np.clip(lost, 0.0, 1.0).tolist()
    note = _range_note(within)
    return smooth(np.array(values), n, unseen=(spoilt, mended), bounds=_SHARE, note=note)


def _prolonged(rows: Floats) -> Floats:
    """Rows of a number that unseen breaks leave as it is."""
    return np.concatenate([rows, rows[:1], rows[:1]])


def _why_not(table: TaskTable, series: int, within: CommonRange | None) -> str:
    if not table.known[series]:
        return NO_START
    if within is None:
        return NO_RANGE
    rates = table.rates_of(series)
    return NO_RANGE if rates[0] > within.low or rates[-1] < within.high else ""


def _range_note(within: CommonRange) -> str:
    return f"Over {number_text(within.low)} to {number_text(within.high)}."


def range_weights(rates: Floats, within: CommonRange) -> Floats:
    """Return weights of a curve's points in its mean over a range of log rate.

    The curve runs straight between neighbouring points, and the range lies within them: the mean
    is exact (trapezoids), whether or not the range ends at tested rates.
    """
    return _weights(rates.tobytes(), within)


@lru_cache(maxsize=64)  # most series of a study share their rates
def _weights(rates: bytes, within: CommonRange) -> Floats:
    logs, (low, high) = np.log(np.frombuffer(rates)), np.log([within.low, within.high])
    inside = np.unique(np.concatenate([[low, high], logs[(logs > low) & (logs < high)]]))
    gaps = np.diff(inside)
    areas = np.zeros(inside.size)
    areas[:-1] += gaps / 2
    areas[1:] += gaps / 2
    weights: Floats = areas @ _interpolation(logs, inside) / (high - low)
    return weights


@lru_cache(maxsize=64)
def _points_between(rates: bytes, within: CommonRange) -> Floats:
    """Matrix that takes a curve to its values at evenly spaced log rates, [rates, points]."""
    low, high = np.log([within.low, within.high])
    points = low + (high - low) * (np.arange(POINTS) + 0.5) / POINTS
    return _interpolation(np.log(np.frombuffer(rates)), points).T


def _interpolation(logs: Floats, at: Floats) -> Floats:
    """Matrix that takes values at `logs` to the straight lines between them, [at, logs]."""
    return np.stack([np.interp(at, logs, row) for row in np.eye(logs.size)], axis=1)


@dataclass(frozen=True)
class BestOfK:
    """What trying k random rates brings, for k = 1 .. 20.

    Attributes:
        rows: Expected loss from all seeds, without each one, and with breaks and repairs that no
            seed shows, [1 + seeds + 2, 20]; None: there is none.
        n: Seeds behind it.
        start: The mean initial loss.
        note: Why there is none, or over which range, and by what the rate was chosen.
    """

    rows: Floats | None
    n: int
    start: float
    note: str

    def number(self, k: int) -> Number:
        """Return the expected loss of the best of k rates."""
        return self.curve[k - 1]

    @cached_property
    def curve(self) -> tuple[Number, ...]:
        """The expected loss for k = 1 .. 20, with the interval of its logarithm."""
        if self.rows is None:
            return (unknown(self.n, self.note),) * MOST_TRIES
        values, note = self.rows[0], joined(self.note, seeds_note(self.n))
        ends = log_ends(self.rows[:-2], self.n)
        if ends is None or not (self.rows > 0).all():
            return tuple(Number(value, n=self.n, note=note) for value in values.tolist())
        unseen = np.log(self.rows[-2:])
        low, high = np.exp(widened(ends, np.log(values), [*unseen]))
        high = np.maximum(np.minimum(high, self.start), values)
        found = zip(values.tolist(), np.minimum(low, values).tolist(), high.tolist(), strict=True)
        return tuple(Number(*three, n=self.n, note=note) for three in found)


def best_of_k(table: TaskTable, series: int) -> BestOfK:
    """Return what trying k rates, log-uniform on the common range, can be expected to bring.

    Mean capped losses are interpolated in log rate; of the k rates the one with the lowest
    validation loss is kept, or with the lowest loss where there is no validation.
    """
    within = table.common_range
    why = _why_not(table, series, within)
    start = float(table.start[series, 0])
    if why or within is None:
        return BestOfK(None, table.fewest(series), start, why)
    tested = table.tested[series]
    between = _points_between(table.rates[tested].tobytes(), within)
    extra = [rows[series] for rows in table.unseen]
    means = np.vstack([table.means[series], *extra])
    changes = np.array(extra) - table.means[series, 0]
    chooser = np.vstack([table.chooser[series], table.chooser[series, 0] + changes])
    order = np.argsort(chooser[:, tested] @ between, axis=1, kind="stable")
    ranked = np.take_along_axis(means[:, tested] @ between, order, axis=1)
    note = joined(_range_note(within), chosen_note(table, series))
    return BestOfK(ranked @ lowest_weights(POINTS), table.fewest(series, within), start, note)


@lru_cache(maxsize=2)
def lowest_weights(n: int) -> Floats:
    """Return the chance that the i-th of n ranked points is the best of k draws, [n, 20].

    `((n - i)/n)^k - ((n - i - 1)/n)^k`, i from 0: no draw is better, not all are worse.
    """
    at_least = (1 - np.arange(n + 1) / n)[:, None] ** np.arange(1, MOST_TRIES + 1)
    weights: Floats = at_least[:-1] - at_least[1:]
    return weights


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
        return unknown(n, NO_START)
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
    from scipy.special import ndtr, ndtri, stdtrit

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
