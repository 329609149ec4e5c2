"""Routes, by noun. A route only translates: it parses, calls a service, commits, then enqueues."""

from fastapi import APIRouter

from backend.routes import (
    analysis,
    auth,
    catalog,
    events,
    illustrations,
    paper,
    start,
    studies,
    sweeps,
    system,
    team,
    tokens,
    transfer,
    trials,
    users,
)

#: In the order of the documentation.
ROUTERS: tuple[APIRouter, ...] = (
    system.router,
    auth.router,
    tokens.router,
    users.router,
    catalog.router,
    studies.router,
    sweeps.router,
    events.router,
    trials.router,
    analysis.router,
    paper.router,
    start.router,
    transfer.router,
    team.router,
    illustrations.router,
)
