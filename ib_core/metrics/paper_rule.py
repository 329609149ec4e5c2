"""The paper's own rule, under the paper's name: the mid-point threshold and what follows from it.

It follows the grid's end (a grid that ends higher explodes higher, and the mid-point with it), so
it is computed for the paper's own studies only, and only where the threshold is not above the
initial loss.
"""

from dataclasses import dataclass

import numpy as np

from ib_core.metrics.curve import RateCurve
from ib_core.metrics.divergence import divergence_rate, divergence_threshold, headroom
from ib_core.metrics.means import MeanCurves, mean_curves
from ib_core.metrics.number import Number, unknown
from ib_core.metrics.reading import SIDES, Floats, Reading


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


def paper_threshold(rule: PaperRule, n: int) -> Number:
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
