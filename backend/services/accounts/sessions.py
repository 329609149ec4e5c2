"""Logins: a random key in a cookie, its digest in the database, gone when either is.

The digests are keyed with the installation's secret: who reads the database cannot log in, and
a new secret ends every login.
"""

import hashlib
import hmac
import secrets
from collections.abc import Collection
from typing import cast

from sqlalchemy import ColumnElement, delete, select, update
from sqlalchemy.orm import Session

from backend.db import clock
from backend.models import SessionRow, UserRow
from backend.schemas import Role
from backend.services.accounts import tokens
from backend.services.accounts.caller import Caller

LONGEST_KEY = 100


def begin(session: Session, *, user_id: int, secret: str, hours: float) -> str:
    """Store a new login and return its key; the key is new whatever the browser brought."""
    session.execute(delete(SessionRow).where(SessionRow.expires_at <= clock()))
    key = secrets.token_urlsafe(32)
    expires = clock(hours * 3600)
    session.add(SessionRow(user_id=user_id, key_hash=_digest(secret, key), expires_at=expires))
    session.execute(update(UserRow).where(UserRow.id == user_id).values(last_login_at=clock()))
    return key


def find(session: Session, *, key: str, secret: str) -> Caller | None:
    """Return whose login a key belongs to, if it has not ended."""
    if len(key) > LONGEST_KEY:
        return None
    query = (
        select(SessionRow.id, UserRow.id, UserRow.name, UserRow.role)
        .join(UserRow, UserRow.id == SessionRow.user_id)
        .where(SessionRow.key_hash == _digest(secret, key), *_alive())
    )
    found = session.execute(query).one_or_none()
    if found is None:
        return None
    session_id, user_id, name, role = found
    return Caller(name, cast(Role, role), user_id, session_id=session_id)


def end(session: Session, *, session_id: int) -> None:
    """End a login."""
    session.execute(delete(SessionRow).where(SessionRow.id == session_id))


def still_hold(session: Session, *, callers: Collection[Caller]) -> set[Caller]:
    """Return those whom what they came with minutes ago would still let in."""
    logins = {caller.session_id for caller in callers if caller.session_id is not None}
    own = (SessionRow.id.in_(logins), SessionRow.user_id == UserRow.id)
    alive = set(session.scalars(select(SessionRow.id).where(*own, *_alive()))) if logins else set()
    shown = {caller.token_id for caller in callers if caller.token_id is not None}
    good = tokens.still_good(session, token_ids=shown)
    return {
        caller
        for caller in callers
        if caller.user_id is None or caller.session_id in alive or caller.token_id in good
    }


def csrf_token(key: str, *, secret: str) -> str:
    """Return what a page of ours has to show besides the cookie, which any page would send."""
    return hmac.new(secret.encode(), f"csrf {key}".encode(), hashlib.sha256).hexdigest()


def _alive() -> tuple[ColumnElement[bool], ...]:
    return (SessionRow.expires_at > clock(), UserRow.disabled_at.is_(None))


def _digest(secret: str, key: str) -> str:
    return hmac.new(secret.encode(), f"session {key}".encode(), hashlib.sha256).hexdigest()
