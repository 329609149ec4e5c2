"""Robustness numbers: functions from losses to numbers, each with its definition.

Nothing here trains, and nothing needs torch. Give it losses from anywhere::

    from ib_core.metrics import RateCurve, SeedResult, recommendation, scorecard

    eb = RateCurve.from_results((lr, SeedResult(seed, loss, initial_loss)) for ...)
    rows = scorecard({"eb": eb, "ib": ib})
    rows["ib"]["headroom"].text                # "at least 2.5"
    recommendation(rows["ib"]["robust_low"], rows["ib"]["robust_high"])    # "Use 0.3 to 30."

================== ========================================================================
module             owns
================== ========================================================================
`curve`            `SeedResult`, `RatePoint`, `RateCurve`: results; means and bands to draw
`scorecard`        `scorecard()`: every number of every method with bootstrap intervals
`registry`         `METRICS`: names, titles, units, definitions, citations
`divergence`       the paper's threshold and divergence rate, headroom, probability
`sensitivity`      best rate, LR sensitivity, robust range, the recommendation in words
`budget`           expected best of k random rates
`paired`           differences by (rate, seed); better than EB    `wilcoxon`  its test
`cost`             the flop bound on IB's overhead, and what the paper prints
`means`            observed and resampled mean curves: what metrics are computed from
`crossing`         where a curve first exceeds a bound             `reading`  value or bound
================== ========================================================================

Three rules hold everywhere. A mean over seeds of which one is not finite is no number and counts
as above every threshold. A number that the grid cuts off is a bound and says on which side. A
number that is undefined is None and says why.
"""

from ib_core.metrics.cost import (
    ALPHA_FLOPS,
    PRINTED_OVERHEADS,
    LayerShape,
    OverheadBound,
    overhead_bound,
)
from ib_core.metrics.curve import (
    BAND_DEFINITIONS,
    Band,
    BandKind,
    RateCurve,
    RatePoint,
    SeedResult,
)
from ib_core.metrics.divergence import Proportion, divergence_probability, paper_threshold
from ib_core.metrics.paired import (
    Pair,
    PairedComparison,
    PairedDifference,
    paired_differences,
)
from ib_core.metrics.reading import MetricValue, number_text
from ib_core.metrics.registry import METRICS, PAPER, Metric
from ib_core.metrics.scorecard import scorecard
from ib_core.metrics.sensitivity import recommendation

__all__ = [
    "ALPHA_FLOPS",
    "BAND_DEFINITIONS",
    "METRICS",
    "PAPER",
    "PRINTED_OVERHEADS",
    "Band",
    "BandKind",
    "LayerShape",
    "Metric",
    "MetricValue",
    "OverheadBound",
    "Pair",
    "PairedComparison",
    "PairedDifference",
    "Proportion",
    "RateCurve",
    "RatePoint",
    "SeedResult",
    "divergence_probability",
    "number_text",
    "overhead_bound",
    "paired_differences",
    "paper_threshold",
    "recommendation",
    "scorecard",
]
