"""Sweeps and their trials: submit, follow, cancel, retry."""

import logging
from collections.abc import Callable
from typing import Annotated

from fastapi import APIRouter, Header, Response
from fastapi import Query as QueryParameters
from fastapi.responses import JSONResponse
from pydantic import Field
from sqlalchemy import Engine
from sqlalchemy.orm import Session

from backend.db import reading, transaction
from backend.deps import (
    CallerDep,
    EngineDep,
    Paging,
    Query,
    QueueDep,
    ReadDep,
    SettingsDep,
    StudyId,
    SweepId,
    Word,
    WriterDep,
    errors,
)
from backend.queue import Queue
from backend.schemas import (
    DryRunRead,
    NewStudySweep,
    Page,
    SweepCreate,
    SweepRead,
    SweepSubmitted,
    TimingCreate,
    TimingsRead,
    TrialRead,
    TrialState,
)
from backend.services import (
    accounts,
    analysis,
    importing,
    offers,
    studies,
    submission,
    sweeps,
    timings,
    trials,
)
from backend.services.accounts import Caller

log = logging.getLogger(__name__)
router = APIRouter(prefix="/api", tags=["sweeps"])

BROKER_AWAY = "The queue's broker does not answer; the sweep starts by itself once it does."

#: Ends early enough to leave room for a number: a preset's sweeps have one key each.
IdempotencyKey = Annotated[
    str | None,
    Header(
        alias="Idempotency-Key",
        min_length=1,
        max_length=190,
        pattern=r"^[!-~]+$",
        description="Sending the same key and body again returns the first answer's sweep.",
    ),
]


class SubmitQuery(Query):
    """How to submit."""

    dry_run: bool = Field(False, description="Only forecast; nothing is stored.")


class TrialsQuery(Paging):
    """Which trials of a sweep to show."""

    limit: int = Field(100, ge=1, le=500, description="Most items to return.")
    method: Word | None = None
    state: TrialState | None = None
    lr: float | None = Field(None, gt=0, le=1e12)
    seed: int | None = Field(None, ge=0, le=2**31 - 1)


@router.post(
    "/studies/{study_id}/sweeps",
    status_code=202,
    response_model=SweepSubmitted,
    responses={
        **errors(400, 404, 409, 413),
        200: {"model": DryRunRead, "description": "What submitting would mean (dry_run)."},
        202: {"description": "Stored; workers train it. `Location` is the sweep's address."},
    },
)
def submit_sweep(
    study_id: StudyId,
    payload: SweepCreate,
    query: Annotated[SubmitQuery, QueryParameters()],
    engine: EngineDep,
    queue: QueueDep,
    caller: WriterDep,
    response: Response,
    idempotency_key: IdempotencyKey = None,
) -> SweepSubmitted | Response:
    """Store a sweep and hand its trials to the workers.

    A preset may make several sweeps: the answer is the first, and `sweep_ids` names all.
    """
    if query.dry_run:
        with reading(engine) as session:
            studies.owner_of(session, study_id=study_id)  # raises if there is no such study
            forecast = submission.forecast(session, body=payload.given())
        return JSONResponse(forecast.model_dump(mode="json"))
    request = _prepared(engine, payload)
    with transaction(engine) as session:
        caller.check_owner(studies.owner_of(session, study_id=study_id))
        found = submission.submit(
            session,
            study_id=study_id,
            request=request,
            by=caller,
            idempotency_key=idempotency_key,
        )
    return _submitted(found, queue, response)


@router.post(
    "/sweeps",
    status_code=202,
    responses={
        **errors(400, 404, 409, 413),
        202: {"description": "Stored; workers train it. `Location` is the sweep's address."},
    },
)
def submit_into_new_study(
    payload: NewStudySweep,
    engine: EngineDep,
    queue: QueueDep,
    caller: WriterDep,
    response: Response,
    idempotency_key: IdempotencyKey = None,
) -> SweepSubmitted:
    """Store a sweep in a study that is made for it: both, or neither.

    With `reuse`, the newest study of that name that the caller may change is taken instead.
    """
    request = _prepared(engine, payload.sweep)
    with transaction(engine) as session:
        found = submission.submit_into(
            session,
            study=payload.study,
            request=request,
            by=caller,
            reuse=payload.reuse,
            idempotency_key=idempotency_key,
        )
    return _submitted(found, queue, response)


def _prepared(engine: Engine, payload: SweepCreate) -> submission.Request:
    """Read a body with what workers bring along; their code is not here, and never runs here."""
    with reading(engine) as session:
        known = offers.known_to(session, payload.given())
    return submission.prepare(payload.given(), known)


def _submitted(found: submission.Submission, queue: Queue, response: Response) -> SweepSubmitted:
    if not announce(queue, found.shard_ids):
        found.sweep.messages.append(BROKER_AWAY)
    if found.records:
        announce_errands(queue.announce_replays)
    response.headers["Location"] = f"/api/sweeps/{found.sweep.id}"
    return found.sweep


@router.post("/forecast", responses=errors(400, 413))
def forecast_sweep(payload: SweepCreate, session: ReadDep, _: WriterDep) -> DryRunRead:
    """Return what submitting a sweep would mean; nothing is stored."""
    return submission.forecast(session, body=payload.given())


@router.post(
    "/studies/{study_id}/timing",
    status_code=202,
    responses={
        **errors(400, 404, 409),
        202: {"description": "Stored; a worker measures it. Scorecards show it as `step_cost`."},
    },
)
def measure_steps(
    study_id: StudyId,
    payload: TimingCreate,
    engine: EngineDep,
    queue: QueueDep,
    caller: WriterDep,
) -> TimingsRead:
    """Have a worker measure what a step of every method costs on every network of a study.

    EB and the other methods take steps in turn, so that a busy machine slows them alike.
    """
    with transaction(engine) as session:
        caller.check_owner(studies.owner_of(session, study_id=study_id))
        found, new = timings.request(
            session, study_id=study_id, device=payload.device, owner_id=caller.user_id
        )
        accounts.audit(session, by=caller, action="study.time", study_id=study_id, timings=new)
    told = not new or announce_errands(queue.announce_timings)
    if not told and not found.messages:  # what nobody could measure is announced to nobody
        found.messages.append(BROKER_AWAY.replace("the sweep", "the measurement"))
    return found


def announce_errands(errands: Callable[[], int]) -> bool:
    """Tell the workers; never fails, since the reaper announces what was not."""
    try:
        return errands() > 0
    except Exception:
        log.exception("could not announce an errand")
        return False


@router.get("/studies/{study_id}/timing", responses=errors(404))
def get_timing(study_id: StudyId, session: ReadDep, _: CallerDep) -> TimingsRead:
    """Return how far the measuring of a study's step costs is."""
    studies.owner_of(session, study_id=study_id)
    return timings.of_study(session, study_id=study_id)


def announce(queue: Queue, shard_ids: list[int]) -> bool:
    """Tell the workers about committed shards; False if nobody could be told.

    Never fails: the shards are stored, and whatever was not announced is announced later.
    """
    try:
        return not shard_ids or queue.enqueue(shard_ids) > 0
    except Exception:
        log.exception("could not announce %d shards", len(shard_ids))
        return False


@router.get("/studies/{study_id}/sweeps", responses=errors(404))
def list_sweeps(
    study_id: StudyId,
    query: Annotated[Paging, QueryParameters()],
    session: ReadDep,
    settings: SettingsDep,
    _: CallerDep,
) -> Page[SweepRead]:
    """Return a study's sweeps, oldest first."""
    limit = min(query.limit, settings.page_limit)
    return sweeps.page(session, study_id=study_id, limit=limit, cursor=query.cursor)


@router.get("/sweeps/{sweep_id}", responses=errors(404))
def get_sweep(sweep_id: SweepId, session: ReadDep, _: CallerDep) -> SweepRead:
    """Return a sweep, how far it is, and what it waits for."""
    return sweeps.get(session, sweep_id=sweep_id)


@router.post("/sweeps/{sweep_id}/cancel", responses=errors(404))
def cancel_sweep(sweep_id: SweepId, engine: EngineDep, caller: WriterDep) -> SweepRead:
    """Stop a sweep: waiting trials at once, running ones within seconds."""
    with transaction(engine) as session:
        study_id = _own_study(session, sweep_id, caller)
        found = sweeps.cancel(session, sweep_id=sweep_id)
        accounts.audit(
            session, by=caller, action="sweep.cancel", study_id=study_id, sweeps=[sweep_id]
        )
    return found


def _own_study(session: Session, sweep_id: int, caller: Caller) -> int:
    study_id, owner_id = studies.of_sweep(session, sweep_id=sweep_id)
    caller.check_owner(owner_id)
    return study_id


@router.post("/sweeps/{sweep_id}/retry", responses=errors(404, 409))
def retry_sweep(
    sweep_id: SweepId, engine: EngineDep, queue: QueueDep, caller: WriterDep
) -> SweepRead:
    """Train a sweep's failed and cancelled trials again, and nothing else."""
    with transaction(engine) as session:
        study_id = _own_study(session, sweep_id, caller)
        importing.refuse_imported(session, sweep_id=sweep_id)
        found = sweeps.retry(session, sweep_id=sweep_id)
        accounts.audit(
            session, by=caller, action="sweep.retry", study_id=study_id, sweeps=[sweep_id]
        )
    if not announce(queue, found.shard_ids):
        found.sweep.messages.append(BROKER_AWAY)
    return found.sweep


@router.get("/sweeps/{sweep_id}/trials", responses=errors(404))
def list_trials(
    sweep_id: SweepId,
    query: Annotated[TrialsQuery, QueryParameters()],
    session: ReadDep,
    settings: SettingsDep,
    _: CallerDep,
) -> Page[TrialRead]:
    """Return a sweep's trials in the order of its grid."""
    found = trials.page(
        session,
        sweep_id=sweep_id,
        method=query.method,
        state=query.state,
        lr=query.lr,
        seed=query.seed,
        limit=min(query.limit, settings.page_limit),
        cursor=query.cursor,
    )
    study_id, _owner = studies.of_sweep(session, sweep_id=sweep_id)
    varied = analysis.settings_of(session, study_id=study_id)(
        session, [trial.id for trial in found.items]
    )
    for trial in found.items:
        trial.settings = varied[trial.id]
    return found
