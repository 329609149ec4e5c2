"""Routes, by noun. A route only translates: it parses, calls a service, commits, then enqueues.

| module | what it is about |
| --- | --- |
| `system` | the service itself, what can be run, what it begins with; numbers behind toy pictures |
| `accounts` | logins, tokens, everybody's accounts; what people leave for each other |
| `studies` | studies; files of them out, and runs made elsewhere in |
| `sweeps` | sweeps |
| `trials` | a trial, its curve and replay; a sweep's events; cells that programs elsewhere claim |
| `analysis` | curves, numbers, comparisons, the paper's verdicts |

What several of them share, ids and paging and documented errors, is in `backend.deps`.
"""

from fastapi import APIRouter

from backend.routes import (
    accounts,
    analysis,
    studies,
    sweeps,
    system,
    trials,
)

__all__ = ["ROUTERS"]

#: In the order of the documentation.
ROUTERS: tuple[APIRouter, ...] = (
    system.router,
    accounts.login_router,
    accounts.token_router,
    accounts.user_router,
    system.catalog_router,
    studies.router,
    sweeps.router,
    trials.cell_router,
    trials.event_router,
    trials.router,
    analysis.router,
    analysis.paper_router,
    system.start_router,
    studies.transfer_router,
    accounts.team_router,
    system.illustration_router,
)
