"""From trials to findings: curves, robustness numbers, differences, comparisons.

Every function loads a study by a fixed number of queries and hands arrays to `ib_core.metrics`,
which owns every definition.
"""

from backend.services.analysis.compare import compare
from backend.services.analysis.differences import differences
from backend.services.analysis.scorecard import scorecard
from backend.services.analysis.sensitivity import sensitivity
from backend.services.analysis.version import studies_version

__all__ = ["compare", "differences", "scorecard", "sensitivity", "studies_version"]
