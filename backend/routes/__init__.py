"""Routes, by noun. A route only translates: it parses, calls a service, commits, then enqueues."""

from fastapi import APIRouter

from backend.routes import (
    analysis,
    catalog,
    events,
    illustrations,
    studies,
    sweeps,
    system,
    transfer,
    trials,
)

#: In the order of the documentation.
ROUTERS: tuple[APIRouter, ...] = (
    system.router,
    catalog.router,
    studies.router,
    sweeps.router,
    events.router,
    trials.router,
    analysis.router,
    transfer.router,
    illustrations.router,
)
