"""The web app: routers, one error shape, guards and limits; `backend.cli` adds the dashboard."""

import gc
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fastapi import Depends, FastAPI
from fastapi.responses import HTMLResponse
from starlette.middleware.gzip import GZipMiddleware
from starlette.routing import Route

from backend.db import get_engine, reading
from backend.deps import refuse_repeated
from backend.queue import Reaper, get_queue
from backend.routes import ROUTERS
from backend.services import shards
from backend.services.shards import Counts
from backend.services.start import BundleLoading
from backend.settings import VERSION, Settings, get_settings
from backend.web import (
    AccountGate,
    AnswerCache,
    ApiFallback,
    Intake,
    LocalGuard,
    Monitor,
    RequestScope,
    Watches,
    add_failure_handlers,
    docs_page,
    document_tokens,
    entrance_router,
)

DESCRIPTION = """How far can the learning rate be turned before training breaks?

Lists are pages: pass `next_cursor` as `cursor` for the next one. Every error is
{"error": {"code", "message", "field", "hint"}} and says what came and what would work. A number
that is not finite is null beside its outcome; on input NaN and infinity are refused."""

#: JSON bodies are small; files are as large as the setting allows.
LARGEST_JSON = 2 * 1024 * 1024
#: Names and passwords; whoever sends them is not known yet.
LARGEST_ENTRANCE = 16 * 1024
ENTRANCES = ("/login", "/welcome", "/api/auth/login")
SMALLEST_COMPRESSED = 1024
#: New objects between two looks for garbage, and how often the older ones are looked through.
GARBAGE_THRESHOLDS = (20_000, 20, 50)


def create_app(settings: Settings | None = None) -> FastAPI:
    """Return the API; whoever adds the dashboard does so afterwards.

    Args:
        settings: How it listens and what it takes; by default this process's. The database and
            the broker are always this process's.
    """
    settings = settings or get_settings()
    app = FastAPI(
        title="Etascope",
        version=VERSION,
        description=DESCRIPTION,
        openapi_url="/api/openapi.json",
        docs_url=None,  # they would load scripts from elsewhere
        redoc_url=None,
        lifespan=_lifespan,
        redirect_slashes=False,
    )
    app.state.settings = settings
    app.state.answers = AnswerCache()
    app.state.loading = BundleLoading()
    app.state.watches = Watches()
    app.state.monitor = Monitor(_count)
    add_failure_handlers(app)
    for router in ROUTERS:
        app.include_router(router, dependencies=[Depends(refuse_repeated)])
    if settings.auth:
        app.include_router(entrance_router)
        document = app.openapi
        app.openapi = lambda: document_tokens(document())  # type: ignore[method-assign]
    _add_docs(app)
    # Last of the API's routes and before any page: unknown paths below /api are ours.
    fallback = ApiFallback(ROUTERS)
    app.router.routes += [Route("/api", fallback), Route("/api/{path:path}", fallback)]
    _add_layers(app, settings)
    return app


def _add_layers(app: FastAPI, settings: Settings) -> None:
    """Wrap the app; what is added last is outermost."""
    app.add_middleware(GZipMiddleware, minimum_size=SMALLEST_COMPRESSED, compresslevel=5)
    if settings.auth:
        app.add_middleware(AccountGate, settings=settings)
    else:
        app.add_middleware(LocalGuard)
    app.add_middleware(
        Intake,
        most=min(LARGEST_JSON, settings.max_body_bytes),
        exceptions=dict.fromkeys(ENTRANCES, LARGEST_ENTRANCE)
        | {"/api/import": settings.max_body_bytes},
    )
    app.add_middleware(RequestScope, monitor=app.state.monitor)


def _count() -> Counts:
    with reading(get_engine()) as session:
        return shards.count(session)


def _add_docs(app: FastAPI) -> None:
    @app.get("/api/docs", include_in_schema=False)
    def docs() -> HTMLResponse:
        page = docs_page(app.openapi())
        policy = "default-src 'none'; style-src 'unsafe-inline'"
        return HTMLResponse(page, headers={"Content-Security-Policy": policy})


@asynccontextmanager
async def _lifespan(app: FastAPI) -> AsyncIterator[None]:
    """Look for lost and unsent work for as long as the app runs."""
    # What is loaded by now stays, and one large answer is no reason to look for garbage again and
    # again: without both, an answer about ten thousand trials takes half as long again.
    gc.collect()
    gc.freeze()
    gc.set_threshold(*GARBAGE_THRESHOLDS)
    settings: Settings = app.state.settings
    reaper = Reaper(settings, get_queue()) if settings.reaper else None
    if reaper:
        reaper.start()
    yield
    if reaper:
        reaper.stop()
