"""Passwords: argon2 digests, which ones are too weak to have, and the slowing down of guesses.

Guesses are counted by account and by address, in the database: an attempt is counted before it is
made and forgiven if it succeeds. So guesses that come all at once are slowed down like those that
come one by one, and a restart forgets nothing.
"""

import hashlib
import ipaddress
import math
import secrets
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import lru_cache
from threading import BoundedSemaphore

from pwdlib import PasswordHash
from pwdlib.hashers.argon2 import Argon2Hasher
from sqlalchemy import case, delete, select, update
from sqlalchemy.orm import Session

from backend.db import clock, database_time, insert_for
from backend.errors import InvalidInput, TooManyAttempts
from backend.models import LoginAttemptsRow

HASHER = PasswordHash((Argon2Hasher(),))
SHORTEST = 10
LONGEST = 200
FEWEST_DIFFERENT = 5
#: Each digest takes 64 MB: strangers must not be able to ask for many at once.
_AT_ONCE = BoundedSemaphore(2)
FREE_PER_ACCOUNT = 5
#: People behind one router share an address.
FREE_PER_ADDRESS = 30
FIRST_WAIT_SECONDS = 30.0
LONGEST_WAIT_SECONDS = 900.0
FORGOTTEN_AFTER_SECONDS = 3600.0


@dataclass(frozen=True, slots=True)
class Password:
    """A password that may be used: as its owner types it, and as it is stored."""

    text: str
    digest: str


def choose_password(username: str, wish: str | None = None) -> Password:
    """Return a password with its digest; one is made up where none is wished for.

    To be called outside transactions: a digest takes a tenth of a second on purpose.

    Raises:
        InvalidInput: It would be guessed too easily.
    """
    text = secrets.token_urlsafe(12) if wish is None else wish
    _refuse_weak(text, username)
    with _AT_ONCE:
        return Password(text, HASHER.hash(text))


def password_matches(text: str, digest: str | None) -> bool:
    """Return whether a password is the one of a digest.

    Takes as long without a digest: how long a refusal takes must not tell which accounts exist.
    """
    if len(text) > LONGEST:
        return False
    with _AT_ONCE:
        same = HASHER.verify(text, digest or _decoy())
    return same and digest is not None


@lru_cache(maxsize=1)
def _decoy() -> str:
    return HASHER.hash(secrets.token_urlsafe(12))


def _refuse_weak(text: str, username: str) -> None:
    if not SHORTEST <= len(text) <= LONGEST:
        raise InvalidInput(
            f"A password has {SHORTEST} to {LONGEST} characters; this one has {len(text)}.",
            field="password",
        )
    folded = text.casefold()
    if len(set(folded)) < FEWEST_DIFFERENT or folded in (username, username * 2):
        raise InvalidInput(
            "This password would be guessed at once.",
            field="password",
            hint="Take a few words that nobody else would put together.",
        )


@dataclass(frozen=True, slots=True)
class _Limit:
    """Whose failures are counted, and how many are free."""

    key: str
    free: int


def count_attempt(session: Session, *, username: str, address: str) -> None:
    """Count an attempt as failed, before its password is looked at.

    Raises:
        TooManyAttempts: Too many failed lately; says how long to wait. Counts nothing then.
    """
    limits = _limits(username, address)
    _refuse_blocked(session, limits)
    forgotten = LoginAttemptsRow.last_at < clock(-FORGOTTEN_AFTER_SECONDS)
    session.execute(
        update(LoginAttemptsRow)
        .where(LoginAttemptsRow.key.in_([limit.key for limit in limits]))
        .values(failures=case((forgotten, 1), else_=LoginAttemptsRow.failures + 1), last_at=clock())
    )


def forgive_attempt(session: Session, *, username: str, address: str) -> None:
    """Take back what `count` counted, after the right password; drop what is long past."""
    account, place = (limit.key for limit in _limits(username, address))
    long_past = LoginAttemptsRow.last_at < clock(-24 * FORGOTTEN_AFTER_SECONDS)
    session.execute(delete(LoginAttemptsRow).where((LoginAttemptsRow.key == account) | long_past))
    session.execute(
        update(LoginAttemptsRow)
        .where(LoginAttemptsRow.key == place, LoginAttemptsRow.failures > 0)
        .values(failures=LoginAttemptsRow.failures - 1)
    )


def _refuse_blocked(session: Session, limits: tuple[_Limit, ...]) -> None:
    free = {limit.key: limit.free for limit in limits}
    # A row that is not there cannot be locked, and first guesses would all be the first.
    for key in sorted(free):
        row = insert_for(session, LoginAttemptsRow).values(key=key, failures=0, last_at=clock())
        session.execute(row.on_conflict_do_nothing(index_elements=["key"]))
    rows = session.scalars(
        select(LoginAttemptsRow)
        .where(LoginAttemptsRow.key.in_(free))
        .order_by(LoginAttemptsRow.key)
        .with_for_update(),
        execution_options={"populate_existing": True},
    ).all()
    now = database_time(session)
    seconds = max((_left(row, free[row.key], now) for row in rows), default=0.0)
    if seconds > 0:
        raise TooManyAttempts(
            f"Too many failed logins. Try again in {_words(seconds)}.", math.ceil(seconds)
        )


def _left(row: LoginAttemptsRow, free: int, now: datetime) -> float:
    """Return the seconds until the next attempt; the wait doubles with every failure."""
    over = row.failures - free
    if over < 0 or now - row.last_at > timedelta(seconds=FORGOTTEN_AFTER_SECONDS):
        return 0.0
    wait = min(LONGEST_WAIT_SECONDS, FIRST_WAIT_SECONDS * 2.0 ** min(over, 10))
    return wait - (now - row.last_at).total_seconds()


def _words(seconds: float) -> str:
    whole = math.ceil(seconds)
    return f"{whole} seconds" if whole < 90 else f"{math.ceil(whole / 60)} minutes"


def _limits(username: str, address: str) -> tuple[_Limit, _Limit]:
    return (
        _Limit(_attempt_key(f"account {username}"), FREE_PER_ACCOUNT),
        _Limit(_attempt_key(f"address {_network(address)}"), FREE_PER_ADDRESS),
    )


def _network(address: str) -> str:
    """Return what one household has: an IPv4 address, or a whole /64 of IPv6."""
    try:
        found = ipaddress.ip_address(address)
    except ValueError:
        return address
    if found.version == 4:
        return str(found)
    return str(ipaddress.ip_network((int(found), 64), strict=False))


def _attempt_key(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
