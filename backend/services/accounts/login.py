"""Logging in: throttled, slow for guessers, the same words whatever was wrong."""

from dataclasses import dataclass

from sqlalchemy import Engine, select
from sqlalchemy.orm import Session

from backend.db import reading, transaction
from backend.errors import Unauthorized
from backend.models import UserRow
from backend.services.accounts import passwords, sessions, throttle
from backend.services.accounts.caller import Caller

LONGEST_NAME = 100


@dataclass(frozen=True, slots=True)
class Login:
    """A login that has just begun, and the key that proves it."""

    caller: Caller
    key: str


def log_in(
    engine: Engine, *, username: str, password: str, address: str, secret: str, hours: float
) -> Login:
    """Begin a login.

    In transactions of its own: looking at a password takes a tenth of a second, during which no
    other writer may have to wait.

    Raises:
        TooManyAttempts: Too many failed lately, for this account or from this address.
        Unauthorized: Name or password is wrong, or the account is locked.
    """
    # No name of ours has such characters, and PostgreSQL takes no NUL to look for.
    given = username.strip().casefold()[:LONGEST_NAME]
    name = "".join(one if one.isprintable() else "\ufffd" for one in given)
    if not check_password(engine, username=name, password=password, address=address):
        raise Unauthorized("The name or the password is wrong.", field="password")
    with transaction(engine) as session:
        row = _enabled(session, name)
        if row is None:  # locked out or deleted a moment ago
            raise Unauthorized("The name or the password is wrong.", field="password")
        key = sessions.begin(session, user_id=row.id, secret=secret, hours=hours)
        caller = sessions.find(session, key=key, secret=secret)
        assert caller is not None
    return Login(caller, key)


def check_password(engine: Engine, *, username: str, password: str, address: str) -> bool:
    """Return whether a password is an account's; wrong ones are counted, and soon refused."""
    with transaction(engine) as session:
        throttle.count(session, username=username, address=address)
    with reading(engine) as session:
        row = _enabled(session, username)
    if not passwords.matches(password, row.password_hash if row else None):
        return False
    with transaction(engine) as session:
        throttle.forgive(session, username=username, address=address)
    return True


def _enabled(session: Session, name: str) -> UserRow | None:
    query = select(UserRow).where(UserRow.name == name, UserRow.disabled_at.is_(None))
    return session.scalars(query).one_or_none()
