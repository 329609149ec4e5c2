"""Sweeps: grids of trials on one task, as people submit them.

| module | for |
| --- | --- |
| `submitting` | what people do to a sweep: submit, forecast, cancel, retry |
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
    news,
    page,
    progress_of,
    resume,
    state_of,
)
from backend.services.sweeps.submitting import Submitted, cancel, dry_run, retry, submit

__all__ = [
    "DONE",
    "News",
    "Position",
    "Progress",
    "Submitted",
    "cancel",
    "dry_run",
    "ended_ids",
    "get",
    "news",
    "page",
    "progress_of",
    "resume",
    "retry",
    "state_of",
    "submit",
]
