"""The service itself: alive, ready, who works, who asks."""

from fastapi import APIRouter, Request, Response
from sqlalchemy import Engine, text
from sqlalchemy.exc import SQLAlchemyError

from backend import schema_revision
from backend.db import reading
from backend.deps import CallerDep, EngineDep, QueueDep, ReadDep, SettingsDep
from backend.queue import Queue
from backend.routes.documented import ShortPage, errors
from backend.schemas import (
    CheckRead,
    HealthRead,
    Page,
    QueueRead,
    ReadyRead,
    StorageRead,
    WorkerRead,
)
from backend.services import dispatch, storage, workers
from backend.services.cursors import cut
from backend.version import VERSION
from ib_core.datasets import data_dir

router = APIRouter(tags=["system"])
NO_WORKER = "No worker is alive. Start one with: etascope worker"


@router.get("/api/health")
def get_health() -> HealthRead:
    """Say that the process answers; asks nothing of anything else."""
    return HealthRead(version=VERSION)


@router.get("/api/ready", responses={503: {"model": ReadyRead, "description": "Not ready."}})
def get_ready(engine: EngineDep, queue: QueueDep, response: Response) -> ReadyRead:
    """Say whether a sweep would be run now, and if not, what is missing."""
    database, alive = _database(engine)
    checks = {
        "database": database,
        "broker": _broker(queue),
        "workers": CheckRead(ready=bool(alive), reason=None if alive else NO_WORKER),
    }
    ready = all(check.ready for check in checks.values())
    response.status_code = 200 if ready else 503
    return ReadyRead(ready=ready, checks=checks)


def _database(engine: Engine) -> tuple[CheckRead, dict[str, int]]:
    """Return how the database is, and how many workers live on each device."""
    try:
        with reading(engine) as session:
            session.execute(text("SELECT 1"))
            reason = schema_revision.why_unusable(session)
        with reading(engine) as session:
            alive = {} if reason else workers.live_by_device(session)
    except SQLAlchemyError as error:
        # Its own text may hold the address with the password.
        return CheckRead(ready=False, reason=f"It does not answer ({type(error).__name__})."), {}
    return CheckRead(ready=reason is None, reason=reason), alive


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
    return dispatch.read(session).model_copy(update={"broker": _broker(queue)})


@router.get("/api/storage", responses=errors())
def get_storage(session: ReadDep, settings: SettingsDep, _: CallerDep) -> StorageRead:
    """Return how much room results, logs and data sets take, and how much is left."""
    return storage.read(session, settings=settings, data=data_dir())


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
