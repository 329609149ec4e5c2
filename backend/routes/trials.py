"""Trials: outcomes, curves, replays; a sweep's events as they end; cells trained elsewhere."""

import time
from collections.abc import AsyncIterator, Callable, Iterable
from datetime import datetime
from functools import partial
from typing import Annotated, Any

from anyio import to_thread
from fastapi import APIRouter, Header, Request, Response
from fastapi import Query as QueryParameters
from fastapi.responses import StreamingResponse
from fastapi.sse import EventSourceResponse, format_sse_event
from pydantic import Field
from sqlalchemy import Engine
from sqlalchemy.orm import Session
from starlette.types import Receive, Scope, Send

from backend.db import PASSING_FAULTS, reading, transaction
from backend.deps import (
    CallerDep,
    EngineDep,
    Query,
    QueueDep,
    ReadDep,
    ReporterDep,
    SweepId,
    TrialId,
    WriterDep,
    errors,
)
from backend.errors import NotFound
from backend.routes.sweeps import BROKER_AWAY, announce_errands
from backend.schemas import (
    CellAnswer,
    CellClaim,
    CellClaimed,
    CellRead,
    CellReport,
    CurveRead,
    RecordingRead,
    ReplayCreate,
    RunCreate,
    TrialRead,
    TrialState,
)
from backend.services import accounts, errands, shards, studies, submission, sweeps, trials
from backend.services.accounts import Caller
from backend.services.sweeps import DONE, News, Position
from backend.web import Watch, Watches

router = APIRouter(prefix="/api/trials", tags=["trials"])


class CurveQuery(Query):
    """How much of a curve to show."""

    after: int | None = Field(
        None, ge=-1, le=2**53, description="Only points after this step; for following live."
    )
    max_points: int | None = Field(
        None,
        ge=8,
        le=10_000,
        description="Thin to so many points; ends, extremes and the first loss that is not "
        "finite stay.",
    )


@router.get("/{trial_id}", responses=errors(404))
def get_trial(trial_id: TrialId, session: ReadDep, _: CallerDep) -> TrialRead:
    """Return a trial with its outcome and its reproducibility record."""
    return trials.get(session, trial_id=trial_id)


@router.get("/{trial_id}/curve", responses=errors(404))
def get_curve(
    trial_id: TrialId,
    query: Annotated[CurveQuery, QueryParameters()],
    session: ReadDep,
    _: CallerDep,
) -> CurveRead:
    """Return a trial's losses by step, also while it runs."""
    return trials.curve(session, trial_id=trial_id, after=query.after, points=query.max_points)


class RecordingQuery(Query):
    """How much of a recording to show."""

    rows: int | None = Field(
        None,
        ge=16,
        le=10_000,
        description="Thin to so many rows, half of them next to the break.",
    )


@router.get("/{trial_id}/recording", responses=errors(404))
def get_recording(
    trial_id: TrialId,
    query: Annotated[RecordingQuery, QueryParameters()],
    session: ReadDep,
    _: CallerDep,
) -> RecordingRead:
    """Return a trial's losses, norms and sharpness by step, and why it broke, in words."""
    return trials.recording(session, trial_id=trial_id, rows=query.rows)


@router.get(
    "/{trial_id}/recording/export",
    response_class=Response,
    responses={
        **errors(404),
        200: {"content": {"text/csv": {}}, "description": "One line a step, all of them."},
    },
)
def export_recording(trial_id: TrialId, session: ReadDep, _: CallerDep) -> Response:
    """Return a trial's whole recording as a table."""
    text = "".join(trials.export_recording(session, trial_id=trial_id))
    name = f'attachment; filename="trial-{trial_id}-recording.csv"'
    return Response(text, media_type="text/csv", headers={"Content-Disposition": name})


@router.post(
    "/{trial_id}/replay",
    status_code=202,
    responses={
        **errors(400, 404, 409),
        202: {"description": "Stored; a worker trains it again and records it."},
    },
)
def replay_trial(
    trial_id: TrialId,
    payload: ReplayCreate,
    engine: EngineDep,
    queue: QueueDep,
    caller: WriterDep,
) -> RecordingRead:
    """Have a worker train a trial again alone, recording every step around its break.

    What comes of it is compared with the stored numbers, which stay as they are.
    """
    with transaction(engine) as session:
        new = errands.request_replay(
            session, trial_id=trial_id, device=payload.device, owner_id=caller.user_id
        )
        if new:
            accounts.audit(session, by=caller, action="trial.replay", trial_id=trial_id)
    told = not new or announce_errands(queue.announce_replays)
    with reading(engine) as session:
        found = trials.recording(session, trial_id=trial_id, rows=100)
    if not told and not found.messages:  # what nobody could replay is announced to nobody
        found.messages.append(BROKER_AWAY.replace("the sweep", "the replay"))
    return found


# --- cells

cell_router = APIRouter(prefix="/api", tags=["cells"])

#: States after which a search may go on.
ENDED = (TrialState.COMPLETED, TrialState.DIVERGED, TrialState.FAILED)


@cell_router.post("/sweeps/{sweep_id}/cells", responses=errors(400, 404, 413))
def claim_cell(
    sweep_id: SweepId, payload: CellClaim, engine: EngineDep, caller: ReporterDep
) -> CellClaimed:
    """Claim the next waiting cell of a sweep that was submitted with `"where": "agents"`.

    Without a report for `lease_seconds` the cell is somebody else's.
    """
    with transaction(engine) as session:
        _check_owner(session, sweep_id, caller)
        taken = shards.claim_cell(session, sweep_id=sweep_id, agent=payload.agent)
        cell = shards.read_cell(session, trial_id=taken.trials[0].id) if taken else None
        progress = sweeps.progress_of(session, sweep_ids=[sweep_id])[sweep_id]
        cancelled = sweeps.is_cancelled(session, sweep_id=sweep_id)
        searching = sweeps.is_searching(session, sweep_id=sweep_id)
    return CellClaimed(
        cell=cell,
        state=sweeps.state_of(progress, cancelled=cancelled, searching=searching),
        # Between two rounds of a search nothing is unfinished, and yet more will come.
        unfinished=progress.unfinished or int(searching and not cancelled),
    )


@cell_router.post("/sweeps/{sweep_id}/cells/{trial_id}", responses=errors(400, 404, 409, 413))
def report_cell(
    sweep_id: SweepId,
    trial_id: TrialId,
    payload: CellReport,
    engine: EngineDep,
    caller: ReporterDep,
) -> CellAnswer:
    """Say that a cell's program lives, what it has logged, and how it ended.

    A report of a lost lease changes nothing, and the answer says so.
    """
    with transaction(engine) as session:
        _check_owner(session, sweep_id, caller)
        answer = shards.report_cell(session, sweep_id=sweep_id, trial_id=trial_id, report=payload)
        more = answer.state in ENDED and sweeps.is_searching(session, sweep_id=sweep_id)
    if more:  # apart: planning locks the study first, as cancelling does
        with transaction(engine) as session:
            sweeps.plan_round(session, sweep_id=sweep_id)
    return answer


def _check_owner(session: Session, sweep_id: int, caller: Caller) -> None:
    caller.check_owner(studies.of_sweep(session, sweep_id=sweep_id)[1])


@cell_router.post("/runs", status_code=201, responses=errors(400, 404, 413))
def open_run(payload: RunCreate, engine: EngineDep, caller: WriterDep) -> CellRead:
    """Begin to log a run as it happens, or go on with it; report on it as on a cell.

    A study that is given by a name is made if the caller has none of that name.
    """
    with transaction(engine) as session:
        trial_id = submission.open_run(session, run=payload, by=caller)
        return shards.read_cell(session, trial_id=trial_id)


# --- The event stream of a sweep

event_router = APIRouter(prefix="/api", tags=["sweeps"])

#: A comment so often keeps proxies from closing a quiet stream.
KEEP_ALIVE_SECONDS = 10.0
KEEP_ALIVE = format_sse_event(comment="still here")

EVENT_SCHEMA = {
    "type": "object",
    "properties": {
        "event": {"enum": ["progress", "trial", "done"]},
        "id": {"type": "string"},
        "data": {"type": "string", "contentMediaType": "application/json"},
    },
    "required": ["event", "data"],
}

LastEventId = Annotated[
    str | None,
    Header(alias="Last-Event-ID", max_length=200, description="Where a cut-off stream ended."),
]


@event_router.get(
    "/sweeps/{sweep_id}/events",
    # Not EventSourceResponse, which would document the errors as event streams too.
    response_class=StreamingResponse,
    responses={
        **errors(404, 429),
        200: {
            "description": "`progress` and `done` carry the sweep, `trial` a trial that has ended.",
            "content": {"text/event-stream": {"schema": EVENT_SCHEMA}},
        },
        204: {"description": "The sweep has ended and the listener knows it."},
    },
)
async def sweep_events(
    request: Request,
    sweep_id: SweepId,
    engine: EngineDep,
    caller: CallerDep,
    last_event_id: LastEventId = None,
) -> Response:
    """Tell what happens in a sweep until it has ended.

    Begins with every trial that has ended already, or after a `Last-Event-ID` with those that
    ended since. Ends after `done`, and as soon as the login or token it was opened with does.
    """
    position = Position.read(last_event_id or "")
    watches: Watches = request.app.state.watches
    desk = watches.desk()
    first = await to_thread.run_sync(_begin, engine, sweep_id, position, limiter=desk.limiter)
    if first.done and not first.trials and (last_event_id or "").startswith(DONE):
        return Response(status_code=204)  # what tells a browser not to come back
    if first.done:
        whole = first.sweep.model_dump_json()
        return _Stream(iter([_tell(first, position) + _end(whole, position)]))
    watch = desk.enter(engine, sweep_id, caller)
    return _Stream(
        _stream(partial(_look, engine, sweep_id), position, first, watch, caller),
        leave=lambda: desk.leave(watch, sweep_id, caller),
    )


class _Stream(EventSourceResponse):
    """A stream that is missed by nobody: whoever goes away has left, however they went."""

    def __init__(self, content: Any, *, leave: Callable[[], None] = lambda: None) -> None:
        headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
        super().__init__(content, headers=headers)
        self._leave = leave

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._leave()


def _begin(engine: Engine, sweep_id: int, position: Position) -> News:
    with reading(engine) as session:
        sweeps.get(session, sweep_id=sweep_id)
        sweeps.resume(session, sweep_id=sweep_id, position=position)
        return sweeps.news(session, sweep_id=sweep_id, position=position)


def _look(engine: Engine, sweep_id: int, position: Position) -> News | None:
    """Return what is new; None while the database is away."""
    try:
        with reading(engine) as session:
            return sweeps.news(session, sweep_id=sweep_id, position=position)
    except PASSING_FAULTS:
        return None


async def _stream(
    look: Callable[[Position], News | None],
    position: Position,
    first: News,
    watch: Watch,
    caller: Caller,
) -> AsyncIterator[bytes]:
    """Tell what the listener has missed, then what the watch sees."""
    yield _tell(first, position) + _progress(first.sweep.model_dump_json(), position)
    told = first.sweep.model_dump_json(exclude={"eta_seconds"})
    await watch.begun()
    news: News | None = first
    while news is None or news.more or news is first:
        try:
            news = await to_thread.run_sync(look, position, limiter=watch.limiter)
        except NotFound:
            return
        if news is None:
            await watch.pause()
        elif news.trials:
            yield _tell(news, position)
    async for text in _follow(watch, position, told, caller):
        yield text


async def _follow(
    watch: Watch, position: Position, told: str, caller: Caller
) -> AsyncIterator[bytes]:
    heard, caught_up, spoke = 0, watch.rounds, time.monotonic()
    while not watch.gone and caller not in watch.sent_away:
        new = [one for one in watch.log[heard:] if one.id not in position.seen]
        heard = len(watch.log)
        if watch.rounds > caught_up + 1:
            # Whatever this listener found by itself has been seen by the watch too by now.
            position.seen.clear()
        text = _trials(((one.text, one.id, one.at) for one in new), position)
        if watch.done:
            yield text + _end(watch.whole, position)
            return
        if watch.plain not in ("", told):
            text += _progress(watch.whole, position)
            told = watch.plain
        if text or time.monotonic() - spoke > KEEP_ALIVE_SECONDS:
            spoke = time.monotonic()
            yield text or KEEP_ALIVE
        await watch.next_round(KEEP_ALIVE_SECONDS)


def _tell(news: News, position: Position) -> bytes:
    return _trials(((one.model_dump_json(), one.id, at) for one, at in news.timed()), position)


def _trials(found: Iterable[tuple[str, int, datetime | None]], position: Position) -> bytes:
    """Return the events of trials, and move the position past them.

    Only the last has an id: a stream cut off before it repeats the others.
    """
    texts = []
    for text, trial_id, at in found:
        position.move(trial_id, at)
        texts.append(text)
    parts = [_event("trial", text, "") for text in texts[:-1]]
    parts += [_event("trial", text, position.write()) for text in texts[-1:]]
    return b"".join(parts)


def _progress(whole: str, position: Position) -> bytes:
    return _event("progress", whole, position.write())


def _end(whole: str, position: Position) -> bytes:
    return _progress(whole, position) + _event("done", whole, f"{DONE}{position.write()}")


def _event(name: str, data: str, event_id: str) -> bytes:
    """Return an event, its id before its data, which may be long."""
    head = format_sse_event(event=name, id=event_id or None).removesuffix(b"\n")
    return head + format_sse_event(data_str=data)
