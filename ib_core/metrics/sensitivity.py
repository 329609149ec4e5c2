"""How much the choice of learning rate matters: sensitivity, robust range, what to recommend.

Also what a search over a few random rates can be expected to find.
"""

from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal

import numpy as np

from ib_core.errors import InvalidSpec
from ib_core.metrics.means import MeanCurves
from ib_core.metrics.number import Censored, Floats, MetricValue, Reading, number_text
from ib_core.metrics.paper import first_above

# Rounded grids (1, 3, 10, ...) still count as evenly spaced.
EVEN_SPACING = 0.05
_NO_FINITE_MEAN = "At every learning rate some seed's loss is not finite."


def best_lr(curves: MeanCurves) -> Reading:
    """Return the rate one would pick.

    The grid learning rate with the lowest mean loss, the lowest such rate if several tie.

    The note says when it lies at an end of the grid, where a wider grid may hold a better one.
    """
    index = curves.best_index
    best = np.where(np.isnan(curves.best_mean), np.nan, curves.lrs[index])
    if np.isnan(best[0]):
        return Reading.undefined(curves.shape, _NO_FINITE_MEAN)
    ends = {0: "lowest", curves.lrs.size - 1: "highest"}
    end = ends.get(int(index[0])) if curves.lrs.size > 1 else "only"
    return Reading.of(best, note=f"It is the {end} rate tried." if end else "")


def best_mean(curves: MeanCurves) -> Reading:
    """Return the loss at the rate one would pick, l*.

    The lowest mean loss over the grid, leaving out rates with a seed that is not finite.
    """
    best = curves.best_mean
    return Reading.of(best, note=_NO_FINITE_MEAN if np.isnan(best[0]) else "")


def rate_weights(lrs: Floats) -> Floats:
    """Weights of the rates in a mean over log lr: equal if evenly spaced, else trapezoid."""
    gaps = np.diff(np.log10(lrs))
    if not gaps.size:
        return np.ones(1)
    if np.all(np.abs(gaps / gaps.mean() - 1) <= EVEN_SPACING):
        return np.full(lrs.size, 1 / lrs.size)
    weights = np.zeros(lrs.size)
    weights[:-1] += gaps / 2
    weights[1:] += gaps / 2
    weights /= weights.sum()
    return weights


def lr_sensitivity(curves: MeanCurves) -> Reading:
    """Return the loss given up, on average, by not knowing the best learning rate.

    Mean over the log-spaced range of learning rates of lc - l*, where lc = min(loss, initial
    loss), the initial loss if not finite, averaged over the seeds, and l* is the best mean loss.

    Equal weights on an evenly spaced grid, trapezoid weights in log lr on any other. A rate whose
    capped mean falls below l* counts 0. Only numbers over one range compare; the note names it.
    """
    note = _why_undefined(curves)
    if not note and curves.lrs.size < 2:
        note = "A sensitivity needs at least two learning rates."
    if note:
        return Reading.undefined(curves.shape, note)
    lost = np.maximum(curves.capped - curves.best_mean[:, None], 0) @ rate_weights(curves.lrs)
    low, high = (number_text(float(lr)) for lr in curves.lrs[[0, -1]])
    return Reading.of(np.where(_gain(curves) > 0, lost, np.nan), note=f"Over {low} to {high}.")


def lr_sensitivity_normalised(curves: MeanCurves) -> Reading:
    """Return the sensitivity as a share of all there was to gain.

    LR sensitivity divided by l0 - l*, initial loss minus best mean loss: 0 if every learning rate
    does as well as the best, near 1 if hardly any other one learns.
    """
    raw = lr_sensitivity(curves)
    with np.errstate(invalid="ignore"):
        share = np.where(np.isnan(raw.value), np.nan, raw.value / _positive_gain(curves))
    return Reading.of(np.minimum(share, 1), note=raw.note)


@dataclass(frozen=True, slots=True)
class RobustRange:
    """The interval of good rates around the best, and its width in decades."""

    low: Reading
    high: Reading
    decades: Reading


def robust_range(curves: MeanCurves, tolerance: float = 0.1) -> RobustRange:
    """Return the interval of learning rates that do nearly as well as the best one.

    Decades of learning rate around the best one in which lc <= l* + d * (l0 - l*), d = 0.1, with
    lc = min(loss, initial loss) averaged over the seeds, l* the best mean loss and l0 the initial
    loss; the ends are interpolated in log lr.

    An end that meets the grid's is a bound, and so is then the width. The interval stops at the
    first rate that fails, even if a later one does well again.

    Args:
        curves: The method's means.
        tolerance: d, the share of the gain that may be lost, in (0, 1).

    Returns:
        low: Lower end of the interval behind the robust range, interpolated in log lr.
        high: Upper end of the interval behind the robust range, interpolated in log lr.
        decades: The robust range.
    """
    if not 0 < tolerance < 1:
        raise InvalidSpec(f"d is a share in (0, 1), not {tolerance}.", field="tolerance")
    note = _why_undefined(curves)
    if note:
        undefined = Reading.undefined(curves.shape, note)
        return RobustRange(undefined, undefined, undefined)
    gain = _positive_gain(curves)
    bound = curves.best_mean + tolerance * gain
    best, logs, last = curves.best_index, curves.log_lrs, curves.lrs.size - 1
    up = first_above(logs, curves.capped, bound, best)
    down = first_above(logs[::-1], curves.capped[:, ::-1], bound, last - best)
    lost = np.where(np.isnan(gain), np.nan, 0)
    return RobustRange(
        # Ends at the grid's are given as typed, not as 10**log10 of it.
        low=Reading.of(
            np.where(down.found, 10**down.position, curves.lrs[0]) + lost, down.found - 1
        ),
        high=Reading.of(np.where(up.found, 10**up.position, curves.lrs[-1]) + lost, 1 - up.found),
        decades=Reading.of(up.position - down.position + lost, 1 - (up.found & down.found)),
    )


def _gain(curves: MeanCurves) -> Floats:
    """l0 - l*, what training at the best rate gained."""
    return curves.initial - curves.best_mean


def _positive_gain(curves: MeanCurves) -> Floats:
    gain = _gain(curves)
    return np.where(gain > 0, gain, np.nan)


def _why_undefined(curves: MeanCurves) -> str:
    """Why the observed curve has no capped loss to speak of; empty if it has."""
    if np.isnan(curves.initial[0]):
        return "The initial loss was not recorded for every trial."
    if np.isnan(curves.best_mean[0]):
        return _NO_FINITE_MEAN
    if not _gain(curves)[0] > 0:
        return "No learning rate brought the mean loss below its initial value."
    return ""


def recommendation(low: MetricValue, high: MetricValue) -> str:
    """Put a robust range into words such as "Use 0.3 to 30.".

    Interpolated ends are rounded inwards to two digits, or as many as keep them apart.

    Args:
        low: The scorecard's ``robust_low``.
        high: The scorecard's ``robust_high``.
    """
    if low.value is None or high.value is None:
        return f"No recommendation. {low.note or high.note}"
    if low.value == high.value:
        return f"Use {number_text(low.value)}, the only rate tried."
    lower, upper = _inwards(low.value, high.value, low.censored, high.censored)
    caveats = {
        ("none", "none"): ".",
        ("below", "none"): "; lower rates were not tried.",
        ("none", "above"): "; higher rates were not tried.",
        ("below", "above"): ", every rate tried; the range may be wider.",
    }
    return f"Use {lower:.6g} to {upper:.6g}" + caveats[low.censored, high.censored]


def _inwards(
    low: float, high: float, low_censored: Censored, high_censored: Censored
) -> tuple[float, float]:
    """Round interpolated ends inwards; an end that is the grid's stays as it was typed."""
    lower, upper = low, high
    for digits in range(2, 12):
        lower = _rounded(low, digits, ROUND_CEILING) if low_censored == "none" else low
        upper = _rounded(high, digits, ROUND_FLOOR) if high_censored == "none" else high
        if lower < upper:
            break
    return lower, upper


def _rounded(value: float, digits: int, towards: str) -> float:
    """Round to significant digits in one direction, forgiving the last bits of a logarithm."""
    exact = Decimal(f"{value:.12g}")
    step = Decimal(1).scaleb(exact.adjusted() - digits + 1)
    return float(exact.quantize(step, rounding=towards))


def expected_lowest(values: Floats, k: int) -> Floats:
    """Expected lowest of k values drawn with replacement from each row, [curves]."""
    if k < 1:
        raise InvalidSpec(f"At least one rate has to be tried, not {k}.", field="k")
    n = values.shape[-1]
    # P(all k draws rank i or worse), i = 1 .. n+1; its drops are the weights of the sorted values.
    at_least = ((n - np.arange(n + 1)) / n) ** k
    expected: Floats = np.sort(values, axis=-1) @ (at_least[:-1] - at_least[1:])
    return expected


def expected_best(curves: MeanCurves, k: int = 3) -> Reading:
    """Return what trying a few learning rates at random brings.

    Expected lowest mean loss among k learning rates drawn at random, with replacement, from the
    grid, with losses capped at the initial loss where that is recorded.

    Without recorded initial losses the plain means stand in, and the number is undefined if one
    of them is not finite.
    """
    if not np.isnan(curves.initial[0]):
        return Reading.of(expected_lowest(curves.capped, k))
    note = ""
    if np.isnan(curves.mean[0]).any():
        note = "A mean loss is not finite, and without initial losses nothing can stand in for it."
    return Reading.of(expected_lowest(curves.mean, k), note=note)
