"""What routes are given: a session, the queue, the settings, and who is asking."""

from collections import Counter
from collections.abc import Iterator
from typing import Annotated

from fastapi import Depends, Request
from sqlalchemy import Engine
from sqlalchemy.orm import Session

from backend.db import get_engine, reading
from backend.errors import Conflict, InvalidInput, Unauthorized
from backend.queue import Queue, get_queue
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


def refuse_repeated(request: Request) -> None:
    """Refuse a query parameter that is there twice where one is meant: which should count?"""
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
