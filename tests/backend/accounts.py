"""People with accounts, and requests as each of them would make them."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from fastapi.testclient import TestClient
from pwdlib import PasswordHash
from pwdlib.hashers.argon2 import Argon2Hasher
from sqlalchemy.orm import Session

from backend.db import transaction
from backend.schemas import CSRF_COOKIE, CSRF_HEADER, Role, Scope, UserRead
from backend.services import accounts
from backend.settings import Settings
from backend.web.pages import SESSION_COOKIE

SECRET = "2fK8-vQ3nD5rT7wY9zA1cE4gH6jL0mP-"
PASSWORD = "a horse and a staple"
#: As slow as a real one would make the tests, and no safer for that.
CHEAP = PasswordHash((Argon2Hasher(time_cost=1, memory_cost=8, parallelism=1),))


def team_settings(**changes: Any) -> Settings:
    """Return settings of an installation with accounts."""
    return Settings(auth=True, secret=SECRET, reaper=False, **changes)


def new_user(session: Session, name: str, role: Role = "member") -> UserRead:
    """Store an account whose password is `PASSWORD`."""
    digest = accounts.choose_password(name, PASSWORD).digest
    return accounts.create_user(session, name=name, role=role, password_digest=digest)


@dataclass
class Person:
    """Somebody with an account."""

    id: int
    name: str
    headers: dict[str, str] = field(default_factory=dict)


def bearer(token: str) -> dict[str, str]:
    """Return the header that shows a token."""
    return {"Authorization": f"Bearer {token}"}


def person(name: str, role: Role = "member") -> Person:
    """Store an account that is logged in; `headers` are what its browser sends."""
    with transaction() as session:
        user = new_user(session, name, role)
        key = accounts.begin_login(session, user_id=user.id, secret=SECRET, hours=1)
    return Person(user.id, name, browser_headers(key))


def browser_headers(key: str) -> dict[str, str]:
    """Return what a page of ours sends along with a login."""
    csrf = accounts.csrf_token(key, secret=SECRET)
    return {
        "Cookie": f"{SESSION_COOKIE}={key}; {CSRF_COOKIE}={csrf}",
        CSRF_HEADER: csrf,
        "Sec-Fetch-Site": "same-origin",
    }


def token_of(user_id: int, scope: Scope = "read", days: float | None = 1) -> tuple[int, str]:
    """Return a new token's id and text."""
    with transaction() as session:
        made = accounts.create_token(
            session, user_id=user_id, name="a token", scope=scope, days=days
        )
    return made.id, made.token


@contextmanager
def fresh(api: TestClient) -> Iterator[TestClient]:
    """Lend a client that remembers no cookie, before and after."""
    api.cookies.clear()
    yield api
    api.cookies.clear()
