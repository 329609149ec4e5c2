"""Sweeps: grids of trials on one task, as people submit them.

| module | for |
| --- | --- |
| `submitting` | what people do to a sweep: submit, forecast, cancel, retry |
| `searched` | what a search knows and has found |
| `searching` | the next round of a search, planned when the last has ended |
| `following` | a sweep on its way: how far, until when, what happened since somebody looked |

From a request's body to sweeps: `backend.services.submission`.
"""

from backend.services.sweeps.following import (
    DONE,
    News,
    Position,
    Progress,
    ended_ids,
    get,
    is_cancelled,
    is_searching,
    news,
    page,
    progress_of,
    resume,
    state_of,
)
from backend.services.sweeps.searching import due_rounds, end_search, plan_round
from backend.services.sweeps.submitting import (
    Submitted,
    cancel,
    dry_run,
    forecast_cells,
    retry,
    submit,
    submit_cells,
)

__all__ = [
    "DONE",
    "News",
    "Position",
    "Progress",
    "Submitted",
    "cancel",
    "dry_run",
    "due_rounds",
    "end_search",
    "ended_ids",
    "forecast_cells",
    "get",
    "is_cancelled",
    "is_searching",
    "news",
    "page",
    "plan_round",
    "progress_of",
    "resume",
    "retry",
    "state_of",
    "submit",
    "submit_cells",
]
