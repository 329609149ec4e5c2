"""The paper's numbers: its divergence rule, headroom and probability, and what IB may cost more.

The paper's rule follows the grid's end (a grid that ends higher explodes higher, and the mid-point
with it), so `PaperRule`, under the paper's name, is for the paper's own studies only, and says
something only where the threshold is not above the initial loss.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt
from statistics import NormalDist

import numpy as np

from ib_core.errors import InvalidSpec, lookup
from ib_core.metrics.curve import RateCurve
from ib_core.metrics.number import ROUNDING, Number, ratio_side, unknown

#: The paper itself, as it is cited.
PAPER = "Fagan & Iyengar 2018, Robust Implicit Backpropagation"


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


def paper_threshold(eb: RateCurve) -> float | None:
    """Return the mean loss above which a method counts as diverged; None if there is none.

    Mid-point of EB's lowest and highest finite mean loss over the grid.

    Means that are not finite are left out: with one the threshold would be infinite and nothing
    would ever diverge. If EB's highest mean is at its smallest rate (too slow, not too fast), the
    rule may never fire; the paper's Piano-midi is such a case.
    """
    means = [point.mean for point in eb.points if point.mean is not None]
    # Halves first: the sum of two huge losses would overflow.
    return min(means) / 2 + max(means) / 2 if means else None


@dataclass(frozen=True, slots=True)
class PaperRule:
    """EB's curve and its threshold.

    Attributes:
        eb: EB's results.
        threshold: Mid-point of its lowest and highest finite mean; None if nothing follows from it.
        refusal: Why nothing does; empty if something does.
    """

    eb: RateCurve
    threshold: float | None
    refusal: str = ""


def paper_rule(eb: RateCurve) -> PaperRule:
    """Return the paper's rule for methods compared with this curve."""
    threshold = paper_threshold(eb)
    if threshold is None:
        return PaperRule(eb, None, "There is no threshold: no mean loss of EB is finite.")
    if threshold > _mean_start(eb):
        refusal = "The mid-point is above the initial loss: the rule says nothing here."
        return PaperRule(eb, None, refusal)
    return PaperRule(eb, threshold)


def _mean_start(curve: RateCurve) -> float:
    """Mean initial loss, above which nothing lies where one is unknown or their sum too large."""
    starts = [result.initial_loss for point in curve.points for result in point.results]
    with np.errstate(over="ignore", invalid="ignore"):
        return float(np.mean(np.array(starts, dtype=np.float64)))


def sensible_threshold(eb: RateCurve) -> float | None:
    """Return EB's threshold where the paper's rule says something, else None."""
    return paper_rule(eb).threshold


def paper_divergence_threshold(rule: PaperRule, n: int) -> Number:
    """Return the mid-point of EB's lowest and highest finite mean loss."""
    return Number(rule.threshold, n=n, note=rule.refusal)


def paper_divergence_rate(rule: PaperRule, curve: RateCurve, n: int) -> Number:
    """Return the first tested rate above the best one whose mean exceeds the threshold.

    A mean that is not finite exceeds every threshold. No such rate: "at least" the highest rate
    tried. Every mean above the threshold: "at most" the lowest rate tried.
    """
    if rule.threshold is None:
        return unknown(n, rule.refusal)
    rates, means = curve.lrs, [point.mean for point in curve.points]
    bound = _about(rule.threshold)
    lowest = min((mean for mean in means if mean is not None), default=None)
    if lowest is None or lowest > bound:
        note = "Below the grid: every mean exceeds the threshold or is not finite."
        return Number(rates[0], censored="below", n=n, note=note)
    best = next(i for i, mean in enumerate(means) if mean is not None and mean <= _about(lowest))
    for lr, mean in zip(rates[best + 1 :], means[best + 1 :], strict=True):
        if mean is None or mean > bound:
            return Number(lr, n=n)
    note = "Above the grid: no rate beyond the best one exceeds the threshold."
    return Number(rates[-1], censored="above", n=n, note=note)


def _about(loss: float) -> float:
    """What rounding may make of a loss."""
    return loss + ROUNDING * abs(loss)


def paper_headroom(rule: PaperRule, curve: RateCurve, n: int) -> Number:
    """Return that rate divided by EB's.

    "At least" where only the method outlasts the grid, "at most" where only EB does; undefined
    where both do, because two bounds of the same side bound no ratio.
    """
    ours, theirs = (paper_divergence_rate(rule, one, n) for one in (curve, rule.eb))
    if ours.value is None or theirs.value is None:
        return unknown(n, rule.refusal)
    if ours.censored == theirs.censored != "none":
        return unknown(n, "Neither this method nor EB diverges on the grid.")
    side = ratio_side(ours.censored, theirs.censored)
    return Number(ours.value / theirs.value, censored=side, n=n)


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
