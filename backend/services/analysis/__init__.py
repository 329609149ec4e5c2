"""From trials to findings: curves, robustness numbers, differences, comparisons.

Every function loads a study by a fixed number of queries and hands arrays to `ib_core.metrics`,
which owns every definition.

| module | for |
| --- | --- |
| `series` | a study's trials as series, and what tells these apart |
| `rate_curves` | which number a metric means, and its curve over the learning rates |
| `comparisons` | series against each other: scorecard, seed by seed, several studies at once |
"""

from backend.services.analysis.comparisons import (
    compare,
    differences,
    scorecard,
    time_metrics,
    to_rows,
)
from backend.services.analysis.rate_curves import Measure, sensitivity, to_plots, to_series
from backend.services.analysis.series import (
    KEY_COLUMNS,
    Finished,
    Key,
    Series,
    canonical,
    key_of,
    labels,
    series_order,
    studies_version,
)

__all__ = [
    "KEY_COLUMNS",
    "Finished",
    "Key",
    "Measure",
    "Series",
    "canonical",
    "compare",
    "differences",
    "key_of",
    "labels",
    "scorecard",
    "sensitivity",
    "series_order",
    "studies_version",
    "time_metrics",
    "to_plots",
    "to_rows",
    "to_series",
]
