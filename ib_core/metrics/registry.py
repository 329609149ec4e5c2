"""The scorecard on screens: every number's definition as data, and the numbers of every method."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from ib_core.errors import InvalidSpec
from ib_core.metrics.curve import RateCurve
from ib_core.metrics.means import MeanCurves, draw_weights, mean_curves
from ib_core.metrics.number import SIDES, Floats, MetricValue, Reading, interval
from ib_core.metrics.paired import (
    DIFFERENCE,
    WILCOXON,
    better_than,
    paired_differences,
    signed_rank,
)
from ib_core.metrics.paper import (
    divergence_probability,
    divergence_rate,
    divergence_threshold,
    headroom,
    largest_stable_lr,
    overhead_bound,
)
from ib_core.metrics.sensitivity import (
    best_lr,
    best_mean,
    expected_best,
    lr_sensitivity,
    lr_sensitivity_normalised,
    robust_range,
)

PAPER = "Fagan & Iyengar 2018, Robust Implicit Backpropagation"
OURS = "Etascope"


@dataclass(frozen=True, slots=True)
class Metric:
    """A number and what it means.

    Attributes:
        name: Stable name, the key in the API.
        title: What a screen calls it.
        unit: What it is counted in; empty for a plain number.
        better: Whether a higher or a lower number speaks for a method, or neither.
        definition: One or two sentences; the function's docstring quotes them.
        citation: Where the definition comes from.
        function: What computes it.
    """

    name: str
    title: str
    unit: str
    better: Literal["higher", "lower", "neither"]
    definition: str
    citation: str
    function: Callable[..., Any]


_ALL = (
    Metric(
        name="best_lr",
        title="Best rate",
        unit="learning rate",
        better="neither",
        definition=(
            "The grid learning rate with the lowest mean loss, the lowest such rate if several tie."
        ),
        citation=PAPER,
        function=best_lr,
    ),
    Metric(
        name="best_mean",
        title="Best mean loss",
        unit="loss",
        better="lower",
        definition=(
            "The lowest mean loss over the grid, leaving out rates with a seed that is not finite."
        ),
        citation=PAPER,
        function=best_mean,
    ),
    Metric(
        name="divergence_threshold",
        title="Divergence threshold",
        unit="loss",
        better="neither",
        definition="Mid-point of EB's lowest and highest finite mean loss over the grid.",
        citation=f"{PAPER}, Sec. 5, footnote",
        function=divergence_threshold,
    ),
    Metric(
        name="divergence_rate",
        title="Divergence rate",
        unit="learning rate",
        better="higher",
        definition=(
            "The first grid learning rate above the method's best one whose mean loss exceeds "
            "the divergence threshold or is not finite."
        ),
        citation=f"{PAPER}, Sec. 5, footnote",
        function=divergence_rate,
    ),
    Metric(
        name="divergence_rate_interpolated",
        title="Divergence rate, interpolated",
        unit="learning rate",
        better="higher",
        definition=(
            "The learning rate above the method's best one at which its mean loss crosses the "
            "divergence threshold, interpolated in log lr; the grid rate itself where the "
            "mean is not finite."
        ),
        citation=OURS,
        function=divergence_rate,
    ),
    Metric(
        name="headroom",
        title="Headroom over EB",
        unit="times",
        better="higher",
        definition="The method's divergence rate divided by EB's.",
        citation=f"{PAPER}, Sec. 5",
        function=headroom,
    ),
    Metric(
        name="lr_sensitivity",
        title="LR sensitivity",
        unit="loss",
        better="lower",
        definition=(
            "Mean over the log-spaced range of learning rates of lc - l*, where lc = "
            "min(loss, initial loss), the initial loss if not finite, averaged over the "
            "seeds, and l* is the best mean loss."
        ),
        citation="Wortsman et al. 2023, arXiv:2309.14322",
        function=lr_sensitivity,
    ),
    Metric(
        name="lr_sensitivity_normalised",
        title="LR sensitivity, normalised",
        unit="share",
        better="lower",
        definition=(
            "LR sensitivity divided by l0 - l*, initial loss minus best mean loss: 0 if every "
            "learning rate does as well as the best, near 1 if hardly any other one learns."
        ),
        citation=OURS,
        function=lr_sensitivity_normalised,
    ),
    Metric(
        name="robust_range",
        title="Robust range",
        unit="decades",
        better="higher",
        definition=(
            "Decades of learning rate around the best one in which lc <= l* + d * (l0 - l*), "
            "d = 0.1, with lc = min(loss, initial loss) averaged over the seeds, l* the best "
            "mean loss and l0 the initial loss; the ends are interpolated in log lr."
        ),
        citation=OURS,
        function=robust_range,
    ),
    Metric(
        name="robust_low",
        title="Robust range, lower end",
        unit="learning rate",
        better="lower",
        definition="Lower end of the interval behind the robust range, interpolated in log lr.",
        citation=OURS,
        function=robust_range,
    ),
    Metric(
        name="robust_high",
        title="Robust range, upper end",
        unit="learning rate",
        better="higher",
        definition="Upper end of the interval behind the robust range, interpolated in log lr.",
        citation=OURS,
        function=robust_range,
    ),
    Metric(
        name="largest_stable_lr",
        title="Largest stable rate",
        unit="learning rate",
        better="higher",
        definition=(
            "The largest grid learning rate such that at it and at every lower one the share "
            "of diverged seeds is at most 1 - q, q = 1."
        ),
        citation=OURS,
        function=largest_stable_lr,
    ),
    Metric(
        name="expected_best",
        title="Expected best of k rates",
        unit="loss",
        better="lower",
        definition=(
            "Expected lowest mean loss among k learning rates drawn at random, with "
            "replacement, from the grid, with losses capped at the initial loss where that is "
            "recorded."
        ),
        citation="Dodge et al. 2019, Show Your Work, arXiv:1909.03004",
        function=expected_best,
    ),
    Metric(
        name="better_than_eb",
        title="Better than EB",
        unit="yes (1) or no (0)",
        better="higher",
        definition=(
            "Whether the mean over the grid of the mean losses is lower than EB's (the "
            'paper\'s "15 of 17").'
        ),
        citation=f"{PAPER}, Sec. 5",
        function=better_than,
    ),
    Metric(
        name="divergence_probability",
        title="Divergence probability",
        unit="share",
        better="lower",
        definition=(
            "Share of the seeds that diverged at a learning rate, with the Wilson score interval."
        ),
        citation="Wilson 1927, J. Am. Stat. Assoc. 22",
        function=divergence_probability,
    ),
    Metric(
        name="paired_difference",
        title="Paired difference",
        unit="loss",
        better="lower",
        definition=DIFFERENCE,
        citation=OURS,
        function=paired_differences,
    ),
    Metric(
        name="wilcoxon_p",
        title="Wilcoxon p",
        unit="probability",
        better="neither",
        definition=WILCOXON,
        citation="Wilcoxon 1945, Biometrics Bulletin 1",
        function=signed_rank,
    ),
    Metric(
        name="overhead_bound",
        title="Flop bound on IB's extra time",
        unit="share",
        better="lower",
        definition=(
            "(2n + c*m) / (3nm) per layer with n inputs and m outputs, c = 10 for relu, 100 "
            "arctan, 15 hardtanh, 25 smoothstep; weighted by flops over the model, layers "
            "trained explicitly adding 0."
        ),
        citation=f"{PAPER}, Sec. 4.5",
        function=overhead_bound,
    ),
)

METRICS: dict[str, Metric] = {metric.name: metric for metric in _ALL}

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
