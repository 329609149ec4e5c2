"""The robustness scorecard: every number of every method, with intervals and definitions."""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from ib_core.errors import InvalidSpec
from ib_core.metrics.budget import expected_best
from ib_core.metrics.curve import RateCurve
from ib_core.metrics.divergence import (
    divergence_rate,
    divergence_threshold,
    headroom,
    largest_stable_lr,
)
from ib_core.metrics.means import MeanCurves, draw_weights, mean_curves
from ib_core.metrics.paired import better_than
from ib_core.metrics.reading import SIDES, Floats, MetricValue, Reading, interval
from ib_core.metrics.registry import METRICS, Metric
from ib_core.metrics.sensitivity import (
    best_lr,
    best_mean,
    lr_sensitivity,
    lr_sensitivity_normalised,
    robust_range,
)

DEFAULT_TOLERANCE = 0.1
DEFAULT_STABLE_SHARE = 1.0
Row = dict[str, MetricValue]


def scorecard(
    curves: Mapping[str, RateCurve],
    *,
    baseline: str = "eb",
    tolerance: float = DEFAULT_TOLERANCE,
    k: int = 3,
    stable_share: float = DEFAULT_STABLE_SHARE,
    resamples: int = 400,
    level: float = 0.95,
    rng_seed: int = 0,
) -> dict[str, Row]:
    """Measure every method of a study.

    Intervals are percentile bootstraps over seeds. One draw of seeds serves all rates and
    methods, because trials with one seed share initial weights and batch order, so a number that
    involves two methods keeps their pairing. The same arguments give the same intervals.

    Args:
        curves: Each method's results, by label.
        baseline: Label of EB; without it the numbers relative to EB are None and say so.
        tolerance: d of the robust range.
        k: How many random rates `expected_best_of_<k>` tries.
        stable_share: q of the largest stable rate.
        resamples: Bootstrap draws; 0 for no intervals.
        level: Confidence level.
        rng_seed: Seed of the draws.

    Returns:
        By label, then by the names in `METRICS` (`expected_best` as `expected_best_of_<k>`).
    """
    if resamples < 0 or not 0 < level < 1:
        raise InvalidSpec(
            f"Intervals need 0 or more resamples and a level in (0, 1), not {resamples}, {level}.",
            field="resamples",
        )
    if not curves:
        return {}
    seeds = sorted({seed for curve in curves.values() for seed in curve.seeds})
    weights = draw_weights(len(seeds), resamples, rng_seed)
    means = {
        label: mean_curves(curve, seeds=seeds, weights=weights) for label, curve in curves.items()
    }
    eb = means.get(baseline)
    missing = f"There are no results of the baseline {baseline!r} to compare with."
    rows: dict[str, Row] = {}
    for label, method in means.items():
        readings = _own(method, tolerance, k, stable_share) | _against(method, eb, missing)
        rows[label] = {
            name: _value(METRICS.get(name, METRICS["expected_best"]), reading, method, level)
            for name, reading in readings.items()
        }
    return rows


def _own(method: MeanCurves, tolerance: float, k: int, stable_share: float) -> dict[str, Reading]:
    """The numbers that need no other method."""
    robust = robust_range(method, tolerance)
    stable = largest_stable_lr(method, stable_share)
    d = "" if tolerance == DEFAULT_TOLERANCE else f"d = {tolerance:g}."
    q = "" if stable_share == DEFAULT_STABLE_SHARE else f"q = {stable_share:g}."
    return {
        "best_lr": best_lr(method),
        "best_mean": best_mean(method),
        "lr_sensitivity": lr_sensitivity(method),
        "lr_sensitivity_normalised": lr_sensitivity_normalised(method),
        "robust_range": robust.decades.noted(d),
        "robust_low": robust.low.noted(d),
        "robust_high": robust.high.noted(d),
        "largest_stable_lr": stable.noted(q),
        f"expected_best_of_{k}": expected_best(method, k),
    }


def _against(method: MeanCurves, eb: MeanCurves | None, missing: str) -> dict[str, Reading]:
    """The numbers relative to EB."""
    names = ("divergence_rate", "divergence_rate_interpolated", "headroom", "better_than_eb")
    if eb is None:
        return dict.fromkeys(names, Reading.undefined(method.shape, missing))
    threshold: Floats = divergence_threshold(eb)
    rate = divergence_rate(method, threshold)
    ratio = headroom(rate.grid, divergence_rate(eb, threshold).grid)
    caveat = _caveat(eb, threshold)
    found = [
        reading if np.isnan(reading.value[0]) else reading.noted(caveat)
        for reading in (rate.grid, rate.interpolated, ratio)
    ]
    return dict(zip(names, (*found, better_than(method, eb)), strict=True))


def _caveat(eb: MeanCurves, threshold: Floats) -> str:
    """Return what to bear in mind where EB's losses have exploded before the grid ends."""
    if not threshold[0] > eb.initial[0]:  # nor if one of them is unknown
        return ""
    return (
        "EB's highest mean is so high that the mid-point exceeds the initial loss: EB has stopped "
        "learning well below this rate. A grid that ends sooner, or the robust range, says more."
    )


def _value(metric: Metric, reading: Reading, method: MeanCurves, level: float) -> MetricValue:
    known = not np.isnan(reading.value[0])
    found = MetricValue(
        value=float(reading.value[0]) if known else None,
        low=None,
        high=None,
        censored=SIDES[int(reading.side[0])],
        unit=metric.unit,
        definition=metric.definition,
        note=reading.note,
    )
    if not known:
        return found
    if method.most_seeds < 2:
        return replace(found, note=f"{reading.note} One seed gives no interval.".strip())
    low, high = interval(reading, level)
    return replace(found, low=low, high=high)
