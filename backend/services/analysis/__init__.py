"""From trials to findings: curves, robustness numbers, differences, comparisons.

Every answer about studies is made of a fixed number of queries; arrays go to `ib_core.metrics`,
which owns every definition.

| module | for |
| --- | --- |
| `series` | trials as series, and what tells these apart |
| `rate_curves` | which number a metric means, and its curve over the learning rates |
| `scorecards` | the numbers of every series, what a step of it costs among them |
| `task_answers` | what they say about every task, in words; unclipped partners of clipped series |
| `learning` | losses over training, by series and rate; what App. C's theorem bounds |
| `comparisons` | series against each other, seed by seed; over many tasks, by ranks and profiles |
| `stored` | what the database holds, as series, and the answers made of it |

What needs the database is imported when first used: `etascope sweep` groups and judges its trials
here as well, and needs none.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from backend.services.analysis.comparisons import ACROSS, to_across
from backend.services.analysis.rate_curves import Measure, to_plots, to_series
from backend.services.analysis.scorecards import (
    method_of,
    name_of,
    network_hash,
    network_of,
    score_plots,
    scorecard_csv,
    to_rows,
)
from backend.services.analysis.series import (
    Finished,
    Key,
    Series,
    canonical,
    labels,
    series_order,
    varied,
)
from backend.services.analysis.task_answers import difference_studies, to_answers

if TYPE_CHECKING:
    from backend.services.analysis.learning import learning_curves, theorem
    from backend.services.analysis.stored import (
        KEY_COLUMNS,
        compare,
        differences,
        key_of,
        scorecard,
        sensitivity,
        settings_of,
        studies_version,
    )

__all__ = [
    "ACROSS",
    "KEY_COLUMNS",
    "Finished",
    "Key",
    "Measure",
    "Series",
    "canonical",
    "compare",
    "difference_studies",
    "differences",
    "key_of",
    "labels",
    "learning_curves",
    "method_of",
    "name_of",
    "network_hash",
    "network_of",
    "score_plots",
    "scorecard",
    "scorecard_csv",
    "sensitivity",
    "series_order",
    "settings_of",
    "studies_version",
    "theorem",
    "to_across",
    "to_answers",
    "to_plots",
    "to_rows",
    "to_series",
    "varied",
]

#: What needs the database, by module: imported when first used.
_HOMES = {
    "stored": "KEY_COLUMNS compare differences key_of scorecard sensitivity settings_of "
    "studies_version",
    "learning": "learning_curves theorem",
}


def __getattr__(name: str) -> Any:
    for module, names in _HOMES.items():
        if name in names.split():
            return getattr(import_module(f"{__name__}.{module}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
