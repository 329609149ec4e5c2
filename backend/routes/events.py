"""The event stream of a sweep."""

import asyncio
import time
from collections.abc import AsyncIterator
from typing import Annotated

from anyio import to_thread
from fastapi import APIRouter, Header, Response
from fastapi.responses import StreamingResponse
from sqlalchemy import Engine

from backend.db import PASSING_FAULTS, reading
from backend.deps import CallerDep, EngineDep
from backend.errors import NotFound, Unauthorized
from backend.routes.documented import SweepId, errors
from backend.services import events, sweeps
from backend.services.accounts.caller import Caller
from backend.services.accounts.sessions import still_holds
from backend.services.events import DONE, News, Position

router = APIRouter(prefix="/api", tags=["sweeps"])

POLL_SECONDS = 0.5
#: A comment so often keeps proxies from closing a quiet stream.
KEEP_ALIVE_SECONDS = 10.0
KEEP_ALIVE = ": still here\n\n"

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


@router.get(
    "/sweeps/{sweep_id}/events",
    response_class=StreamingResponse,
    responses={
        **errors(404),
        200: {
            "description": "`progress` and `done` carry the sweep, `trial` a trial that has ended.",
            "content": {"text/event-stream": {"schema": EVENT_SCHEMA}},
        },
        204: {"description": "The sweep has ended and the listener knows it."},
    },
)
async def sweep_events(
    sweep_id: SweepId, engine: EngineDep, caller: CallerDep, last_event_id: LastEventId = None
) -> Response:
    """Tell what happens in a sweep until it has ended.

    Begins with every trial that has ended already, or after a `Last-Event-ID` with those that
    ended since. Ends after `done`, and as soon as the login or token it was opened with does.
    """
    position = Position.read(last_event_id or "")
    first = await to_thread.run_sync(_begin, engine, sweep_id, position)
    if first.done and not first.trials and (last_event_id or "").startswith(DONE):
        return Response(status_code=204)  # what tells a browser not to come back
    return StreamingResponse(
        _stream(engine, sweep_id, position, first, caller),
        media_type="text/event-stream",
        headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"},
    )


def _begin(engine: Engine, sweep_id: int, position: Position) -> News:
    with reading(engine) as session:
        sweeps.get(session, sweep_id=sweep_id)
        events.resume(session, sweep_id=sweep_id, position=position)
        return events.look(session, sweep_id=sweep_id, position=position)


def _look(engine: Engine, sweep_id: int, position: Position, caller: Caller) -> News | None:
    """Return what is new; None while the database is away."""
    try:
        with reading(engine) as session:
            if not still_holds(session, caller=caller):
                raise Unauthorized("This login has ended.")
            return events.look(session, sweep_id=sweep_id, position=position)
    except PASSING_FAULTS:
        return None


async def _stream(
    engine: Engine, sweep_id: int, position: Position, first: News, caller: Caller
) -> AsyncIterator[str]:
    news: News | None = first
    told = ""
    spoke = time.monotonic()
    while True:
        text, told = _tell(news, position, told) if news else ("", told)
        if text or time.monotonic() - spoke > KEEP_ALIVE_SECONDS:
            spoke = time.monotonic()
            yield text or KEEP_ALIVE
        if news and news.done:
            return
        if not (news and news.more):
            await asyncio.sleep(POLL_SECONDS)
        try:
            news = await to_thread.run_sync(_look, engine, sweep_id, position, caller)
        except (NotFound, Unauthorized):  # the sweep was deleted, or the listener's login ended
            return


def _tell(news: News, position: Position, told: str) -> tuple[str, str]:
    """Return the events of one look, and what the last `progress` said."""
    # Only the last trial has an id: a stream cut off before it repeats the others.
    ids = [""] * (len(news.trials) - 1) + [position.write()]
    parts = [
        _event("trial", trial.model_dump_json(), event_id)
        for trial, event_id in zip(news.trials, ids, strict=False)
    ]
    # The forecast alone moves all the time and is no news.
    now = news.sweep.model_dump_json(exclude={"eta_seconds"})
    if news.done:
        whole = news.sweep.model_dump_json()
        parts.append(_event("progress", whole, position.write()))
        parts.append(_event("done", whole, f"{DONE}{position.write()}"))
    elif now != told:
        parts.append(_event("progress", news.sweep.model_dump_json(), position.write()))
    return "".join(parts), now


def _event(name: str, data: str, event_id: str) -> str:
    identity = f"id: {event_id}\n" if event_id else ""
    return f"event: {name}\n{identity}data: {data}\n\n"
