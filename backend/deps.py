"""What routes are given: a session, the queue, the settings, who is asking; ids and pages.

Also the error answers that they have in the OpenAPI document.
"""

from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Annotated, Any

from fastapi import Depends, Path, Request
from fastapi import Query as QueryParameters
from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    StringConstraints,
    WithJsonSchema,
)
from sqlalchemy import Engine
from sqlalchemy.orm import Session

from backend.db import get_engine, reading
from backend.errors import Conflict, InvalidInput, Unauthorized
from backend.queue import Queue, get_queue
from backend.schemas import ErrorRead, Identifier
from backend.services.accounts import LOCAL_OWNER, Caller
from backend.settings import Settings


def get_app_settings(request: Request) -> Settings:
    """Return the settings the app was created with."""
    settings: Settings = request.app.state.settings
    return settings


#: Where in a request's scope the gate says who is asking.
CALLER = "etascope.caller"

SettingsDep = Annotated[Settings, Depends(get_app_settings)]
EngineDep = Annotated[Engine, Depends(get_engine)]
QueueDep = Annotated[Queue, Depends(get_queue)]


def _read(engine: EngineDep) -> Iterator[Session]:
    with reading(engine) as session:
        yield session


#: For reading only; closed before the answer is sent, so that slow readers hold no connection.
ReadDep = Annotated[Session, Depends(_read, scope="function")]


def require_accounts(settings: SettingsDep) -> None:
    """Refuse what makes no sense without accounts."""
    if not settings.auth:
        raise Conflict(
            "Accounts are off here: there is one owner, and nothing to log in to.",
            hint="ETASCOPE_AUTH=on turns them on.",
        )


#: Query parameters of which there may be several: studies to compare, series to draw.
REPEATABLE = frozenset({"study", "series"})


async def refuse_repeated(request: Request) -> None:
    """Refuse a query parameter that is there twice where one is meant: which should count?

    Here, and not in a thread as plain functions are: every call depends on it.
    """
    if not request.scope["route"].dependant.query_params:
        return  # it reads none, so none can be misread
    for name, times in Counter(name for name, _ in request.query_params.multi_items()).items():
        if times > 1 and name not in REPEATABLE:
            raise InvalidInput(f"{name} was given {times} times; give it once.", field=name)


def client_address(request: Request) -> str:
    """Return where a request came from, as the web server tells it."""
    return request.client.host if request.client else ""


def get_caller(request: Request, settings: SettingsDep) -> Caller:
    """Return who is asking; `backend.web.gate` has found out, and sent strangers away."""
    if not settings.auth:
        return LOCAL_OWNER
    caller: Caller | None = request.scope.get(CALLER)
    if caller is None:
        raise Unauthorized("Log in, or send a token.", hint="Authorization: Bearer <token>")
    return caller


CallerDep = Annotated[Caller, Depends(get_caller)]


def get_writer(caller: CallerDep) -> Caller:
    """Return who is asking, if they may write."""
    caller.check_writer()
    return caller


def get_reporter(caller: CallerDep) -> Caller:
    """Return who is asking, if they may report on cells of their own sweeps."""
    caller.check_reporter()
    return caller


def get_owner(caller: CallerDep) -> Caller:
    """Return who is asking, for things of their own: viewers too, but no token that only reads."""
    if caller.scope in ("read", "agent"):
        caller.check_writer()
    return caller


def get_admin(caller: CallerDep) -> Caller:
    """Return who is asking, if they run this installation."""
    caller.check_admin()
    return caller


WriterDep = Annotated[Caller, Depends(get_writer)]
ReporterDep = Annotated[Caller, Depends(get_reporter)]
OwnerDep = Annotated[Caller, Depends(get_owner)]
AdminDep = Annotated[Caller, Depends(get_admin)]


# --- Error answers for the OpenAPI document, and parameters that several routes share


MOST_PER_PAGE = 500

_DESCRIPTIONS = {
    400: "The body cannot be read.",
    401: "Needs a login or a token.",
    403: "Not allowed for this caller, or from this web site.",
    404: "There is no such thing.",
    409: "Not possible in the present state.",
    413: "Larger than the limit the message names.",
    429: "Too many failed logins or open streams; `Retry-After` says how long to wait.",
    422: "Not as it should be; the message says what came and what would work.",
    500: "A fault of ours; the message has the request's id.",
    503: "The database does not answer.",
}


def errors(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """Return the error answers of a route: these, and those every route may give."""
    return {
        status: {"model": ErrorRead, "description": _DESCRIPTIONS[status]}
        for status in sorted({401, 403, 422, 500, 503, *statuses})
    }


StudyId = Annotated[Identifier, Path(description="A study's id.")]
SweepId = Annotated[Identifier, Path(description="A sweep's id.")]
TrialId = Annotated[Identifier, Path(description="A trial's id.")]
UserId = Annotated[Identifier, Path(description="An account's id.")]
TokenId = Annotated[Identifier, Path(description="A token's id.")]
NoteId = Annotated[Identifier, Path(description="A note's id.")]
ViewId = Annotated[Identifier, Path(description="A saved view's id.")]

#: No NUL in what is searched for: PostgreSQL refuses it.
Word = Annotated[str, StringConstraints(min_length=1, max_length=200, pattern=r"^[^\x00]+$")]


def _read_moment(text: object) -> object:
    """Return a moment in UTC, which is also what one without a zone is taken to be in.

    Dates and times only: a bare number would otherwise be read as seconds since 1970.
    """
    if not isinstance(text, str):
        return text
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise ValueError("a date or time, as 2026-01-31 or 2026-01-31T12:00:00Z") from None
    try:
        return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    except OverflowError:  # the first or last day of the calendar, seen from elsewhere
        return moment.replace(tzinfo=UTC)


Moment = Annotated[
    datetime,
    BeforeValidator(_read_moment),
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "string", "format": "date-time"},
                {"type": "string", "format": "date"},
            ]
        }
    ),
]


class Query(BaseModel):
    """Base of query parameters: a misspelt one is refused instead of ignored."""

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False)


class ShortPaging(Query):
    """Which page of a list that is seldom longer than one."""

    limit: int = Field(MOST_PER_PAGE, ge=1, le=MOST_PER_PAGE, description="Most items to return.")
    cursor: Word | None = Field(None, description="`next_cursor` of the page before.")


#: As a route's parameter.
ShortPage = Annotated[ShortPaging, QueryParameters()]


class Paging(Query):
    """Which page of a list."""

    limit: int = Field(50, ge=1, le=MOST_PER_PAGE, description="Most items to return.")
    cursor: Word | None = Field(None, description="`next_cursor` of the page before.")
