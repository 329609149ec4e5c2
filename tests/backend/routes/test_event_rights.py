"""An event stream ends when the login or token it was opened with does."""

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from backend import web
from backend.db import get_engine, transaction
from backend.routes import trials
from backend.services import accounts
from backend.services.accounts import Caller, passwords
from backend.services.sweeps import Position
from tests import factories
from tests.backend.accounts import CHEAP, SECRET, new_user, token_of
from tests.coroutines import run


@pytest.fixture
def ada(sqlite_database: str, monkeypatch: pytest.MonkeyPatch) -> Caller:
    del sqlite_database
    monkeypatch.setattr(passwords, "HASHER", CHEAP)
    monkeypatch.setattr(web, "POLL_SECONDS", 0.02)
    with transaction() as session:
        new_user(session, "root", "admin")
        user = new_user(session, "ada").id
        key = accounts.begin_login(session, user_id=user, secret=SECRET, hours=1)
        found = accounts.login_caller(session, key=key, secret=SECRET)
    assert found is not None
    return found


async def listen(caller: Caller, ending: Callable[[], None]) -> list[bytes]:
    """Return what a stream of a sweep that nobody trains says until it ends."""
    with transaction() as session:
        sweep = factories.submit(session).sweep.id
    position, engine = Position(), get_engine()
    first = trials._begin(engine, sweep, position)
    desk = web.Watches().desk()
    watch = desk.enter(engine, sweep, caller)
    look = partial(trials._look, engine, sweep)
    stream = trials._stream(look, position, first, watch, caller)
    heard = [await anext(stream)]
    ending()
    async with asyncio.timeout(5):
        heard += [text async for text in stream]
    desk.leave(watch, sweep, caller)
    return heard


def log_out(caller: Caller) -> None:
    with transaction() as session:
        accounts.end_login(session, session_id=caller.session_id or 0)


def lock_out(caller: Caller) -> None:
    with transaction() as session:
        accounts.change_user(session, user_id=caller.user_id or 0, disabled=True)


def delete(caller: Caller) -> None:
    with transaction() as session:
        accounts.delete_user(session, user_id=caller.user_id or 0)


@pytest.mark.parametrize("ending", [log_out, lock_out, delete])
def test_a_login_s_stream_ends_with_it(ada: Caller, ending: Any) -> None:
    heard = run(listen(ada, lambda: ending(ada)))
    assert len(heard) == 1
    assert b"event: progress" in heard[0]


def test_a_token_s_stream_ends_when_it_is_revoked(ada: Caller) -> None:
    token_id, text = token_of(ada.user_id or 0)
    with transaction() as session:
        caller = accounts.token_caller(session, text=text)
    assert caller is not None

    def revoke() -> None:
        with transaction() as session:
            accounts.revoke_token(session, token_id=token_id, user_id=None)

    assert len(run(listen(caller, revoke))) == 1
