"""Routes, by noun. A route only translates: it parses, calls a service, commits, then enqueues.

| module | what it is about |
| --- | --- |
| `parameters` | what several routes share: ids, paging, documented errors |
| `system` | the service itself, and what can be run |
| `accounts` | logins, one's own tokens, everybody's accounts |
| `studies`, `sweeps`, `trials` | the nouns themselves |
| `cells` | cells that programs elsewhere claim, and runs that they log |
| `events` | what happens in a sweep, as it happens |
| `analysis` | curves, numbers, comparisons, the paper's verdicts |
| `start` | what a new installation begins with |
| `transfer` | files out and in |
| `team` | notes, who did what, saved views |
| `illustrations` | numbers behind the toy pictures |
"""

from fastapi import APIRouter

from backend.routes import (
    accounts,
    analysis,
    cells,
    events,
    illustrations,
    start,
    studies,
    sweeps,
    system,
    team,
    transfer,
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
    cells.router,
    events.router,
    trials.router,
    analysis.router,
    analysis.paper_router,
    start.router,
    transfer.router,
    team.router,
    illustrations.router,
)
