"""What routes are given: a session, the queue, the settings, and who is asking."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated

from fastapi import Depends, Request
from sqlalchemy import Engine
from sqlalchemy.orm import Session

from backend.db import get_engine, reading
from backend.errors import Forbidden, Unauthorized
from backend.queue import Queue, get_queue
from backend.schemas import Role
from backend.settings import Settings


def get_app_settings(request: Request) -> Settings:
    """Return the settings the app was created with."""
    settings: Settings = request.app.state.settings
    return settings


SettingsDep = Annotated[Settings, Depends(get_app_settings)]
EngineDep = Annotated[Engine, Depends(get_engine)]
QueueDep = Annotated[Queue, Depends(get_queue)]


def _read(engine: EngineDep) -> Iterator[Session]:
    with reading(engine) as session:
        yield session


#: For reading only; closed before the answer is sent, so that slow readers hold no connection.
ReadDep = Annotated[Session, Depends(_read, scope="function")]


@dataclass(frozen=True, slots=True)
class Caller:
    """Who is asking. Without accounts there is one owner, whose things have no owner's id."""

    name: str
    role: Role
    user_id: int | None = None

    @property
    def is_admin(self) -> bool:
        """Whether everything is allowed."""
        return self.role == "admin"


LOCAL_OWNER = Caller("local", "admin")


def get_caller(settings: SettingsDep) -> Caller:
    """Return who is asking; refuse strangers where accounts are on."""
    if settings.auth:
        raise Unauthorized("Log in, or send a token.", hint="Authorization: Bearer <token>")
    return LOCAL_OWNER


CallerDep = Annotated[Caller, Depends(get_caller)]


def get_writer(caller: CallerDep) -> Caller:
    """Return who is asking, if they may write."""
    if caller.role == "viewer":
        raise Forbidden("Viewers may read only; ask an admin for the role member.")
    return caller


WriterDep = Annotated[Caller, Depends(get_writer)]
