"""Smooth numbers of the mean capped losses: the best, its price, sensitivity, the best of k."""

from dataclasses import dataclass, replace
from functools import cached_property, lru_cache

import numpy as np

from ib_core.metrics.number import (
    AT_FARTHEST,
    Bounds,
    Number,
    joined,
    log_ends,
    seeds_note,
    smooth,
    unknown,
    widened,
)
from ib_core.metrics.reading import Floats, number_text
from ib_core.metrics.task_table import CommonRange, TaskTable

NO_START = "The initial loss was not recorded for every trial."
NO_RANGE = "No common range."
NO_GAIN = "No tested rate of any series brought the mean loss below its initial value."
#: Points of the common range at which rates are drawn for the best of k.
POINTS = 512
MOST_TRIES = 20
_SHARE = Bounds(0.0, 1.0)


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
    value = float(np.log(best[0] / rest[0]))
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
        if ends is None:
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
