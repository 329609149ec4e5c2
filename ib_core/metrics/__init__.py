"""Robustness numbers: functions from losses to numbers, each with its definition.

Nothing here trains, and nothing needs torch. Give it losses from anywhere::

    from ib_core.metrics import RateCurve, SeedResult, answer, score_task

    eb = RateCurve.from_results((lr, SeedResult(seed, loss, initial_loss)) for ...)
    score = score_task({"eb": eb, "ib": ib})
    score.rows["ib"]["edge"]       # Number(value=1.73, low=1.1, high=2.7, n=5, ...)
    answer(score)                  # "IB holds to 1.7, EB to 0.55: 3.2 times higher ..."

================== ========================================================================
module             owns
================== ========================================================================
`number`           `Number`: value, interval, n, definition; jackknife; how it is written
`scoring`          `NUMBERS`, the one list; `score_task()`: every number of every series
`task_table`       all series of a task as arrays: broken, capped, good, common range
`edge`             where half the seeds break; headroom; the strip: good, tested, broken
`compared`         best, price, sensitivity, best of k; paired rates and seeds
`words`            `advice()`, `answer()`: the numbers of a task in sentences
`choosing`         `which_method()`, `counts_told()`, `ranks_told()`: what many tasks say about
                   methods, in sentences
`across`           many tasks: ranks, profiles, chances
`curve`            `SeedResult`, `RatePoint`, `RateCurve`: results; means and bands to draw
`paired`           capped differences by (rate, seed) with Wilcoxon's test
`learning`         losses over training: the seeds of one rate together, time to target
`paper`            its threshold and divergence rate, headroom, probability; the flop bound
                   on IB's overhead, and what the paper prints
================== ========================================================================

Three rules hold everywhere. A mean over seeds of which one is not finite is no number and counts
as above every threshold. A number that the grid cuts off is a bound and says on which side. A
number that is undefined is None and says why.
"""

from ib_core.metrics.across import (
    CHANCE,
    MIDDLE_HALF,
    RankTest,
    chance_over_tasks,
    interquartile_mean,
    performance_profiles,
    rank_test,
)
from ib_core.metrics.choosing import Said, counts_told, ranks_told, which_method
from ib_core.metrics.curve import (
    BAND_DEFINITIONS,
    Band,
    BandKind,
    RateCurve,
    RatePoint,
    SeedResult,
)
from ib_core.metrics.edge import RateCell, Strip
from ib_core.metrics.learning import (
    LEARNING,
    LearningCurve,
    SeedCurve,
    learning_curve,
    time_to_target,
)
from ib_core.metrics.number import Number, NumberKind, number_text, rate_text, smooth
from ib_core.metrics.paired import (
    DIFFERENCE,
    WILCOXON,
    Pair,
    PairedComparison,
    PairedDifference,
    paired_differences,
)
from ib_core.metrics.paper import (
    ALPHA_FLOPS,
    PAPER,
    PRINTED_OVERHEADS,
    LayerShape,
    OverheadBound,
    Proportion,
    divergence_probability,
    overhead_bound,
    paper_threshold,
    sensible_threshold,
)
from ib_core.metrics.scoring import (
    KINDS,
    NUMBERS,
    TaskScore,
    score_table,
    score_task,
    score_tasks,
)
from ib_core.metrics.task_table import TaskTable
from ib_core.metrics.words import advice, answer

__all__ = [
    "ALPHA_FLOPS",
    "BAND_DEFINITIONS",
    "CHANCE",
    "DIFFERENCE",
    "KINDS",
    "LEARNING",
    "MIDDLE_HALF",
    "NUMBERS",
    "PAPER",
    "PRINTED_OVERHEADS",
    "WILCOXON",
    "Band",
    "BandKind",
    "LayerShape",
    "LearningCurve",
    "Number",
    "NumberKind",
    "OverheadBound",
    "Pair",
    "PairedComparison",
    "PairedDifference",
    "Proportion",
    "RankTest",
    "RateCell",
    "RateCurve",
    "RatePoint",
    "Said",
    "SeedCurve",
    "SeedResult",
    "Strip",
    "TaskScore",
    "TaskTable",
    "advice",
    "answer",
    "chance_over_tasks",
    "counts_told",
    "divergence_probability",
    "interquartile_mean",
    "learning_curve",
    "number_text",
    "overhead_bound",
    "paired_differences",
    "paper_threshold",
    "performance_profiles",
    "rank_test",
    "ranks_told",
    "rate_text",
    "score_table",
    "score_task",
    "score_tasks",
    "sensible_threshold",
    "smooth",
    "time_to_target",
    "which_method",
]
