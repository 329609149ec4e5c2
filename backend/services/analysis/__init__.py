"""From trials to findings: curves, robustness numbers, differences, comparisons.

Every answer about studies is made of a fixed number of queries; arrays go to `ib_core.metrics`,
which owns every definition.

| module | for |
| --- | --- |
| `series` | trials as series, and what tells these apart |
| `rate_curves` | which number a metric means, and its curve over the learning rates |
| `comparisons` | series against each other: scorecard, seed by seed |
| `stored` | what the database holds, as series, and the answers made of it |

What needs the database is imported when first used: `etascope sweep` groups and judges its trials
here as well, and needs none.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from backend.services.analysis.comparisons import time_metrics, to_rows
from backend.services.analysis.rate_curves import Measure, to_plots, to_series
from backend.services.analysis.series import (
    Finished,
    Key,
    Series,
    canonical,
    labels,
    series_order,
)

if TYPE_CHECKING:
    from backend.services.analysis.stored import (
        KEY_COLUMNS,
        compare,
        differences,
        key_of,
        scorecard,
        sensitivity,
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

_STORED = [
    "KEY_COLUMNS",
    "compare",
    "differences",
    "key_of",
    "scorecard",
    "sensitivity",
    "studies_version",
]


def __getattr__(name: str) -> Any:
    if name in _STORED:
        return getattr(import_module(f"{__name__}.stored"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
