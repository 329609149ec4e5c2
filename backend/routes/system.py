"""The service itself: alive, ready, who works, what can be run, what it begins with and shows."""

from pathlib import Path
from typing import Annotated

from fastapi import APIRouter, Depends, Request, Response
from fastapi import Query as QueryParameters
from pydantic import Field
from sqlalchemy import Engine, text
from sqlalchemy.exc import SQLAlchemyError

from backend.db import reading, transaction, why_unusable
from backend.db import reason as reason_of
from backend.deps import (
    CallerDep,
    EngineDep,
    Query,
    QueueDep,
    ReadDep,
    SettingsDep,
    ShortPage,
    Word,
    WriterDep,
    errors,
)
from backend.queue import Queue
from backend.routes.sweeps import announce
from backend.schemas import (
    BundleRead,
    CatalogRead,
    CheckRead,
    FirstStudyRead,
    HealthRead,
    Loss,
    Page,
    QuadraticRead,
    QueueRead,
    RaceRead,
    ReadyRead,
    StorageRead,
    TablesRead,
    UpdateRead,
    WorkerRead,
)
from backend.services import (
    accounts,
    catalog,
    cut,
    illustrations,
    maintenance,
    shards,
    start,
    workers,
)
from backend.services.analysis import stored_tables
from backend.services.start import BundleLoading
from backend.settings import VERSION
from ib_core.datasets import data_dir

router = APIRouter(tags=["system"])
catalog_router = APIRouter(prefix="/api/catalog", tags=["catalog"])
#: Of what follows from its parameters alone, or from the program.
CACHE = "private, max-age=86400"
NO_WORKER = "No worker is alive. Start one with: etascope worker"
UNKNOWN_WORKERS = "Whether a worker is alive cannot be known without the database."
#: How long a probe waits for somebody else's write.
PROBE_MILLISECONDS = 2000
PROBE_TABLE = "CREATE TEMPORARY TABLE probe ON COMMIT DROP AS SELECT repeat('x', 65536) AS x"


@router.get("/api/health")
async def get_health() -> HealthRead:
    """Say that the process answers; asks nothing of anything else, not even a free thread."""
    return HealthRead(version=VERSION)


@router.get("/api/ready", responses={503: {"model": ReadyRead, "description": "Not ready."}})
def get_ready(engine: EngineDep, queue: QueueDep, response: Response) -> ReadyRead:
    """Say whether a sweep would be run now, and if not, what is missing."""
    database, alive = _database(engine)
    # Who lives is known by what they write: while nothing can be written, nobody seems to.
    absent = NO_WORKER if database.ready else UNKNOWN_WORKERS
    checks = {
        "database": database,
        "broker": _broker(queue),
        "workers": CheckRead(ready=bool(alive), reason=None if alive else absent),
    }
    ready = all(check.ready for check in checks.values())
    response.status_code = 200 if ready else 503
    return ReadyRead(ready=ready, checks=checks)


def _database(engine: Engine) -> tuple[CheckRead, dict[str, int]]:
    """Return how the database is, and how many workers live on each device."""
    try:
        with reading(engine) as session:
            session.execute(text("SELECT 1"))
            reason = why_unusable(session)
        with reading(engine) as session:
            alive = {} if reason else workers.live_by_device(session)
        reason = reason or _why_not_written(engine)
    except SQLAlchemyError as error:
        # Its own text may hold the address with the password.
        return CheckRead(ready=False, reason=f"It does not answer ({type(error).__name__})."), {}
    return CheckRead(ready=reason is None, reason=reason), alive


def _why_not_written(engine: Engine) -> str | None:
    """Return why a result could not be stored now; a database on a full disk still reads well."""
    if engine.dialect.name == "sqlite":
        # Beside the file, not into it: there a probe would wait for whoever writes.
        found = maintenance.why_not_writable(Path(engine.url.database or ".").parent)
        return found and f"It cannot be written to: {found}."
    try:
        with transaction(engine) as session:
            session.execute(text(f"SET LOCAL lock_timeout = {PROBE_MILLISECONDS}"))
            session.execute(text("UPDATE alembic_version SET version_num = version_num"))
            session.execute(text(PROBE_TABLE))
    except SQLAlchemyError as error:
        return f"It cannot be written to: {reason_of(error)}."
    return None


def _broker(queue: Queue) -> CheckRead:
    reason = queue.why_unavailable()
    return CheckRead(ready=reason is None, reason=reason)


@router.get("/api/workers", responses=errors())
def list_workers(session: ReadDep, _: CallerDep, page: ShortPage) -> Page[WorkerRead]:
    """Return every worker heard of within a day, the living first."""
    return cut(
        workers.list_all(session),
        key=lambda worker: (int(not worker.alive), worker.name),
        limit=page.limit,
        cursor=page.cursor,
    )


@router.get("/api/queue", responses=errors())
def get_queue_depth(session: ReadDep, queue: QueueDep, _: CallerDep) -> QueueRead:
    """Return how much work waits, and whether the broker answers."""
    return shards.queue_state(session).model_copy(update={"broker": _broker(queue)})


@router.get("/api/storage", responses=errors())
def get_storage(session: ReadDep, settings: SettingsDep, _: CallerDep) -> StorageRead:
    """Return how much room results, logs and data sets take, and how much is left."""
    return maintenance.storage(session, settings=settings, data=data_dir())


@router.get(
    "/metrics",
    response_class=Response,
    responses={
        **errors(),
        200: {
            "description": "Prometheus' text format.",
            "content": {"text/plain": {"schema": {"type": "string"}}},
        },
    },
)
def get_metrics(request: Request, _: CallerDep) -> Response:
    """Return numbers for Prometheus."""
    return Response(
        request.app.state.monitor.render(), media_type="text/plain; version=0.0.4; charset=utf-8"
    )


@catalog_router.get("", responses=errors())
def get_catalog(session: ReadDep, _: CallerDep) -> CatalogRead:
    """Return tasks, methods, activations, presets and the limits of a sweep."""
    return catalog.get(session)


start_router = APIRouter(prefix="/api", tags=["start"])


def _loading(request: Request) -> BundleLoading:
    found: BundleLoading = request.app.state.loading
    return found


LoadingDep = Annotated[BundleLoading, Depends(_loading)]


@start_router.post("/first-study", responses=errors())
def begin_first_study(
    engine: EngineDep, queue: QueueDep, settings: SettingsDep, caller: WriterDep
) -> FirstStudyRead:
    """Begin the first study if the history is empty, there are no accounts and it is wanted.

    However often and by whomever it is asked for, it is begun once. The answer names it also
    later.
    """
    with reading(engine) as session:
        known, due = start.find_first_study(session), start.first_study_is_due(session)
    if settings.auth or not settings.first_study or not due:
        return FirstStudyRead(study_id=known)
    request = start.prepare_first_study()
    with transaction(engine) as session:
        found = start.begin_first_study(session, request=request, by=caller)
    announce(queue, list(found.shard_ids))
    return FirstStudyRead(study_id=found.study_id)


@start_router.get("/bundle", responses=errors())
def get_bundle(session: ReadDep, loading: LoadingDep, _: CallerDep) -> BundleRead:
    """Return whether the paper's reproduction, which comes with the program, is loaded."""
    return loading.read(session)


@start_router.post("/bundle", status_code=202, responses=errors())
def load_bundle(
    engine: EngineDep, settings: SettingsDep, loading: LoadingDep, caller: WriterDep
) -> BundleRead:
    """Begin to load the paper's reproduction into the history; a second time changes nothing."""
    with transaction(engine) as session:
        if loading.read(session).state != "loaded":
            accounts.audit(session, by=caller, action="bundle.load")
    loading.begin(settings)
    with reading(engine) as session:
        return loading.read(session)


@start_router.get("/bundle/tables", responses=errors())
def get_tables(_: CallerDep, response: Response) -> TablesRead:
    """What every method does on every UCI table, from the comparison that comes along."""
    response.headers["Cache-Control"] = CACHE
    return stored_tables()


# --- Numbers behind the toy pictures


illustration_router = APIRouter(prefix="/api/illustrations", tags=["illustrations"])


class DescentQuery(Query):
    """What to descend, from where and how fast; the defaults are the paper's figure."""

    loss: Loss = "quadratic"
    curvature: float = Field(1.0, ge=1e-6, le=1e6, description="Second derivative at the minimum.")
    start: float = Field(2.0, ge=-1e6, le=1e6)
    lr: float = Field(1.75, ge=1e-6, le=1e6, description="Learning rate.")
    steps: int = Field(10, ge=1, le=200)


class UpdateQuery(Query):
    """The node and its step; the defaults are the paper's relu figure."""

    activation: Word = "relu"
    b: float = Field(1.0, ge=-1e6, le=1e6, description="Gradient at the node's output.")
    s: float = Field(0.3, ge=-1e6, le=1e6, description="Pre-activation before the step.")
    lr: float = Field(1.0, ge=1e-6, le=1e6, description="Learning rate.")
    z_sq: float = Field(1.0, ge=0, le=1e6, description="Squared norm of the layer's input.")
    mu: float = Field(0.0, ge=0, le=1e6, description="Ridge strength.")
    reach: float | None = Field(
        None, gt=0, le=1e12, description="Sample s from -reach to reach; by default all cases."
    )


@illustration_router.get("/quadratic", responses=errors())
def get_descent(
    query: Annotated[DescentQuery, QueryParameters()], response: Response, _: CallerDep
) -> QuadraticRead:
    """Return explicit and implicit descent on a one-dimensional loss."""
    response.headers["Cache-Control"] = CACHE
    return illustrations.descent(**query.model_dump())


@illustration_router.get("/update", responses=errors())
def get_update(
    query: Annotated[UpdateQuery, QueryParameters()], response: Response, _: CallerDep
) -> UpdateRead:
    """Return one node's explicit and implicit update, for both signs of b."""
    # With it comes torch, which takes half the memory of a web process and is needed nowhere else.
    from backend.services.illustrations import node_update

    response.headers["Cache-Control"] = CACHE
    return node_update(**query.model_dump())


@illustration_router.get("/race", responses=errors())
def get_race(response: Response, _: CallerDep) -> RaceRead:
    """Return the start page's race: explicit and implicit steps on digits, from stored trials."""
    response.headers["Cache-Control"] = CACHE
    return start.race()
