"""The paper's numbers: its divergence rule, headroom and probability, and what IB may cost more.

The paper's rule follows the grid's end (a grid that ends higher explodes higher, and the mid-point
with it), so `PaperRule`, under the paper's name, is for the paper's own studies only, and says
something only where the threshold is not above the initial loss.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import isnan, sqrt
from statistics import NormalDist

import numpy as np

from ib_core.errors import InvalidSpec, lookup
from ib_core.metrics.curve import RateCurve
from ib_core.metrics.means import ROUNDING, MeanCurves, mean_curves
from ib_core.metrics.number import SIDES, Flags, Floats, Ints, Number, Reading, unknown


@dataclass(frozen=True, slots=True)
class Crossing:
    """First crossing of each curve, [curves].

    Attributes:
        found: Whether the curve crosses at all before the grid ends.
        index: First grid point above the bound; the last point where none is.
        position: The crossing between that point and the one before; the last x where none is.
    """

    found: Flags
    index: Ints
    position: Floats


def first_above(x: Floats, values: Floats, bound: Floats, start: Ints) -> Crossing:
    """Walk up from each curve's start to the first value above the bound.

    The crossing is interpolated linearly in `x`. NaN lies above every bound and gives nothing to
    interpolate with: there the grid point itself is the crossing. The value at the start must
    not be above the bound. To walk down instead, reverse `x` and `values`.

    Args:
        x: Grid positions, [points].
        values: [curves, points].
        bound: [curves].
        start: Index from which to walk, [curves].
    """
    last = x.size - 1
    with np.errstate(invalid="ignore"):
        within = values <= (bound + ROUNDING * np.abs(bound))[:, None]
    above = ~within & (np.arange(x.size) > start[:, None])
    found: Flags = above.sum(axis=1) > 0
    index = np.where(found, above.argmax(axis=1), last)
    before = np.maximum(index - 1, 0)
    rows = np.arange(len(values))
    share = _share(values[rows, before], values[rows, index], bound)
    position = x[before] + share * (x[index] - x[before])
    return Crossing(found, index, np.where(found, position, x[last]))


def _share(lower: Floats, upper: Floats, bound: Floats) -> Floats:
    """How far between two values the bound lies, in [0, 1]; 1 where the upper is NaN."""
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        share = (bound - lower) / (upper - lower)
    return np.where(np.isfinite(share), np.clip(share, 0.0, 1.0), 1.0)


def divergence_threshold(eb: MeanCurves) -> Floats:
    """Return the mean loss above which a method counts as diverged, [curves].

    Mid-point of EB's lowest and highest finite mean loss over the grid.

    Means that are not finite are left out: with one the threshold would be infinite and nothing
    would ever diverge. NaN where EB has no finite mean. If EB's highest mean is at its smallest
    rate (too slow, not too fast), the rule may never fire; the paper's Piano-midi is such a case.
    """
    highest = np.where(np.isnan(eb.mean), -np.inf, eb.mean).max(axis=1)
    # Halves first: the sum of two huge losses would overflow.
    middle: Floats = eb.best_mean / 2 + np.where(np.isinf(highest), np.nan, highest) / 2
    return middle


def paper_threshold(eb: RateCurve) -> float | None:
    """Return the divergence threshold of EB's curve as one number, None if there is none."""
    threshold = float(divergence_threshold(mean_curves(eb))[0])
    return None if isnan(threshold) else threshold


@dataclass(frozen=True, slots=True)
class DivergenceRate:
    """Where a method diverges: on the grid, and interpolated in log lr."""

    grid: Reading
    interpolated: Reading


def divergence_rate(curves: MeanCurves, threshold: Floats) -> DivergenceRate:
    """Return the rate at which a method diverges.

    The first grid learning rate above the method's best one whose mean loss exceeds the
    divergence threshold or is not finite.

    No such rate: "at least" the highest rate tried. Every mean above the threshold: "at most" the
    lowest rate tried.

    Args:
        curves: The method's means.
        threshold: From `divergence_threshold`, [curves].

    Returns:
        That grid rate; and, interpolated: The learning rate above the method's best one at which
        its mean loss crosses the divergence threshold, interpolated in log lr; the grid rate
        itself where the mean is not finite.
    """
    if np.isnan(threshold[0]):
        undefined = Reading.undefined(
            curves.shape, "There is no threshold: no mean loss of EB is finite."
        )
        return DivergenceRate(undefined, undefined)
    crossing = first_above(curves.log_lrs, curves.mean, threshold, curves.best_index)
    with np.errstate(invalid="ignore"):
        ever_below = curves.best_mean <= threshold + ROUNDING * np.abs(threshold)
    side = np.where(ever_below, np.where(crossing.found, 0, 1), -1)
    lost = np.isnan(threshold)

    def reading(rate: Floats) -> Reading:
        known = np.where(ever_below, rate, curves.lrs[0])
        return Reading.of(np.where(lost, np.nan, known), side, _divergence_note(int(side[0])))

    at_grid = curves.lrs[crossing.index]
    between = np.where(crossing.found, 10**crossing.position, at_grid)
    return DivergenceRate(reading(at_grid), reading(between))


def _divergence_note(side: int) -> str:
    notes = {
        0: "",
        1: "Above the grid: no rate beyond the best one exceeds the threshold.",
        -1: "Below the grid: every mean exceeds the threshold or is not finite.",
    }
    return notes[side]


def headroom(method: Reading, eb: Reading) -> Reading:
    """Return how many times higher a method's learning rate can be than EB's.

    The method's divergence rate divided by EB's.

    "At least" where only the method outlasts the grid, "at most" where only EB does; undefined
    where both do, because two bounds of the same side bound no ratio.
    """
    side = np.sign(method.side - eb.side)
    unbounded = (method.side == eb.side) & (method.side != 0)
    value = np.where(unbounded, np.nan, method.value / eb.value)
    note = ""
    if np.isnan(value[0]):
        note = method.note or eb.note
        if unbounded[0]:
            note = "Neither this method nor EB diverges on the grid."
    return Reading.of(value, side, note)


def largest_stable_lr(curves: MeanCurves, stable_share: float = 1.0) -> Reading:
    """Return the highest learning rate that is safe together with every lower one.

    The largest grid learning rate such that at it and at every lower one the share of diverged
    seeds is at most 1 - q, q = 1.

    "At least" if that is the highest rate tried; "at most" the lowest rate if already that one
    is unstable.

    Args:
        curves: The method's shares of diverged seeds.
        stable_share: q, the share of seeds that must not diverge.
    """
    if not 0 < stable_share <= 1:
        raise InvalidSpec(f"q is a share in (0, 1], not {stable_share}.", field="stable_share")
    unstable = curves.diverged > 1 - stable_share + ROUNDING
    last = curves.lrs.size - 1
    first_unstable = np.where(unstable.any(axis=1), unstable.argmax(axis=1), last + 1)
    side = np.where(first_unstable == 0, -1, np.where(first_unstable > last, 1, 0))
    return Reading.of(curves.lrs[np.maximum(first_unstable - 1, 0)], side)


@dataclass(frozen=True, slots=True)
class Proportion:
    """A share with its confidence interval."""

    value: float
    low: float
    high: float


def divergence_probability(diverged: int, n: int, level: float = 0.95) -> Proportion:
    """Return how likely a seed is to diverge at one learning rate.

    Share of the seeds that diverged at a learning rate, with the Wilson score interval.

    Unlike mean plus and minus a standard error, that interval is sound for few seeds and for none
    or all of them: 0 of 5 gives 0 to 0.43, not "never".
    """
    if not 0 <= diverged <= n or n < 1:
        raise InvalidSpec(f"{diverged} of {n} seeds is not a share.", field="diverged")
    z = NormalDist().inv_cdf((1 + level) / 2)
    share = diverged / n
    centre = (share + z * z / (2 * n)) / (1 + z * z / n)
    half = z * sqrt(share * (1 - share) / n + (z / (2 * n)) ** 2) / (1 + z * z / n)
    # At the ends centre and half agree up to rounding only.
    low = 0.0 if diverged == 0 else centre - half
    high = 1.0 if diverged == n else centre + half
    return Proportion(share, low, high)


@dataclass(frozen=True, slots=True)
class PaperRule:
    """EB's curve and its threshold.

    Attributes:
        eb: EB's means.
        threshold: Mid-point of its lowest and highest finite mean, [1].
        refusal: Why nothing follows from it; empty if something does.
    """

    eb: MeanCurves
    threshold: Floats
    refusal: str


def paper_rule(eb: RateCurve) -> PaperRule:
    """Return the paper's rule for methods compared with this curve."""
    means = mean_curves(eb)
    threshold = divergence_threshold(means)
    refusal = ""
    if np.isnan(threshold[0]):
        refusal = "There is no threshold: no mean loss of EB is finite."
    elif threshold[0] > means.initial[0]:
        refusal = "The mid-point is above the initial loss: the rule says nothing here."
    return PaperRule(means, threshold, refusal)


def sensible_threshold(eb: RateCurve) -> float | None:
    """Return EB's threshold where the paper's rule says something, else None."""
    rule = paper_rule(eb)
    return None if rule.refusal else float(rule.threshold[0])


def paper_divergence_threshold(rule: PaperRule, n: int) -> Number:
    """Return the mid-point of EB's lowest and highest finite mean loss."""
    if rule.refusal:
        return unknown(n, rule.refusal)
    return Number(float(rule.threshold[0]), n=n)


def paper_divergence_rate(rule: PaperRule, curve: RateCurve, n: int) -> Number:
    """Return the first tested rate above the best one whose mean exceeds the threshold."""
    if rule.refusal:
        return unknown(n, rule.refusal)
    return _number(divergence_rate(mean_curves(curve), rule.threshold).grid, n)


def paper_headroom(rule: PaperRule, curve: RateCurve, n: int) -> Number:
    """Return that rate divided by EB's."""
    if rule.refusal:
        return unknown(n, rule.refusal)
    ours, theirs = (
        divergence_rate(means, rule.threshold).grid for means in (mean_curves(curve), rule.eb)
    )
    return _number(headroom(ours, theirs), n)


def _number(reading: Reading, n: int) -> Number:
    if np.isnan(reading.value[0]):
        return unknown(n, reading.note)
    side = SIDES[int(reading.side[0])]
    return Number(float(reading.value[0]), censored=side, n=n, note=reading.note)


# --- What IB costs more than EB, by the count of floating point operations (Sec. 4.5)


# Flops to find one alpha, c_sigma: the paper's upper bounds. A linear layer's alpha is
# b/(1 + lr*mu), which needs neither a solve nor |z|^2, so it costs nothing extra at all.
ALPHA_FLOPS: dict[str, int] = {
    "linear": 0,
    "relu": 10,
    "hardtanh": 15,
    "smoothstep": 25,
    "arctan": 100,
}


@dataclass(frozen=True, slots=True)
class LayerShape:
    """A layer as far as its cost goes.

    Attributes:
        inputs: n; for a convolution input channels times kernel area.
        outputs: m; for a convolution output channels.
        activation: A name in `ALPHA_FLOPS`, or None if the layer is trained explicitly.
        positions: How often the layer is applied per example: pixels, or time steps.
    """

    inputs: int
    outputs: int
    activation: str | None
    positions: int = 1

    def __post_init__(self) -> None:
        if min(self.inputs, self.outputs, self.positions) < 1:
            raise InvalidSpec(f"A layer's sizes are at least 1: {self}.", field="layers")

    @property
    def explicit_flops(self) -> int:
        """Flops of an EB step: three products of n by m."""
        return 3 * self.inputs * self.outputs * self.positions

    @property
    def extra_flops(self) -> int:
        """Flops that IB adds: |z|^2 once, and m times an alpha."""
        if self.activation is None or self.activation == "linear":
            return 0
        per_alpha = lookup("flop count for the activation", self.activation, ALPHA_FLOPS)
        return (2 * self.inputs + per_alpha * self.outputs) * self.positions


@dataclass(frozen=True, slots=True)
class OverheadBound:
    """Bounds on IB's run time over EB's, as shares: 0.1133 is 11.33%.

    Attributes:
        flop_weighted: Of the whole model, all extra flops over all explicit ones.
        plain_mean: The paper's number for its classifier: the mean of the layers' bounds.
        layers: Of each layer.
    """

    flop_weighted: float
    plain_mean: float
    layers: tuple[float, ...]


def overhead_bound(layers: Sequence[LayerShape]) -> OverheadBound:
    """Return how much longer an IB step may take than an EB step, counted in flops.

    (2n + c*m) / (3nm) per layer with n inputs and m outputs, c = 10 for relu, 100 arctan, 15
    hardtanh, 25 smoothstep; weighted by flops over the model, layers trained explicitly adding 0.
    """
    if not layers:
        raise InvalidSpec("A model needs at least one layer.", field="layers")
    each = tuple(layer.extra_flops / layer.explicit_flops for layer in layers)
    extra = sum(layer.extra_flops for layer in layers)
    explicit = sum(layer.explicit_flops for layer in layers)
    return OverheadBound(extra / explicit, sum(each) / len(each), each)


@dataclass(frozen=True, slots=True)
class PrintedOverhead:
    """A row of the paper's run time table, as shares.

    Attributes:
        bound: The printed bound; None where the table has a dash.
        measured: What the authors' code measured.
        origin: How the printed bound comes about.
    """

    bound: float | None
    measured: float
    origin: str


_MUSIC = "The bound of one arctan layer with n = m = 300."
PRINTED_OVERHEADS: dict[str, PrintedOverhead] = {
    "MNIST classification": PrintedOverhead(
        0.0627, 0.1682, "The plain mean over its 4 layers, the 2 convolutions counted 0."
    ),
    "MNIST autoencoder": PrintedOverhead(0.0060, 0.9968, "Could not be recomputed."),
    "JSB Chorales": PrintedOverhead(0.1133, 1.5251, _MUSIC),
    "MuseData": PrintedOverhead(0.1133, 2.0748, _MUSIC),
    "Nottingham": PrintedOverhead(0.1133, 2.1585, _MUSIC),
    "Piano-midi.de": PrintedOverhead(0.1133, 2.1398, _MUSIC),
    "UCI classification sum": PrintedOverhead(None, 0.5899, "None is printed."),
}
