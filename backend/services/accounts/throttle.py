"""Slows down guessing of passwords: by account and by address, in the database.

An attempt is counted before it is made and forgiven if it succeeds. So guesses that come all at
once are slowed down like those that come one by one, and a restart forgets nothing.
"""

import hashlib
import ipaddress
import math
from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import case, delete, select, update
from sqlalchemy.orm import Session

from backend.db import clock, database_time, insert_for
from backend.errors import TooManyAttempts
from backend.models import LoginAttemptsRow

FREE_PER_ACCOUNT = 5
#: People behind one router share an address.
FREE_PER_ADDRESS = 30
FIRST_WAIT_SECONDS = 30.0
LONGEST_WAIT_SECONDS = 900.0
FORGOTTEN_AFTER_SECONDS = 3600.0


@dataclass(frozen=True, slots=True)
class _Limit:
    """Whose failures are counted, and how many are free."""

    key: str
    free: int


def count(session: Session, *, username: str, address: str) -> None:
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


def forgive(session: Session, *, username: str, address: str) -> None:
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
        _Limit(_digest(f"account {username}"), FREE_PER_ACCOUNT),
        _Limit(_digest(f"address {_network(address)}"), FREE_PER_ADDRESS),
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


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
