"""Many listeners of one sweep: looked for once, told each, once, everything; and not too many."""

import asyncio
import json
from collections.abc import Callable
from typing import Any

import httpx
import pytest

from backend import web
from backend.db import get_engine, transaction
from backend.errors import TooManyAttempts
from backend.services import sweeps
from backend.services.accounts import LOCAL_OWNER, Caller
from tests import factories
from tests.backend.conftest import BODY
from tests.coroutines import run

LISTENERS = 60


def test_each_of_many_hears_every_trial_once_and_the_database_is_asked_for_one(
    server: str, train: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    looks = 0
    real = sweeps.news

    def look(*args: Any, **kwargs: Any) -> Any:
        nonlocal looks
        looks += 1
        return real(*args, **kwargs)

    monkeypatch.setattr(sweeps, "news", look)
    monkeypatch.setattr(web, "POLL_SECONDS", 0.1)

    async def listen(http: httpx.AsyncClient, sweep: int, begun: asyncio.Event) -> list[int]:
        heard: list[int] = []
        async with http.stream("GET", f"/api/sweeps/{sweep}/events") as answer:
            name = ""
            async for line in answer.aiter_lines():
                begun.set()
                name = line.removeprefix("event: ") if line.startswith("event: ") else name
                if line.startswith("data: ") and name == "trial":
                    heard.append(json.loads(line.removeprefix("data: "))["id"])
        assert name == "done"
        return heard

    async def all_of_them() -> tuple[list[list[int]], int]:
        limits = httpx.Limits(max_connections=LISTENERS + 5)
        async with httpx.AsyncClient(
            base_url=server, limits=limits, trust_env=False, timeout=30
        ) as http:
            study = (await http.post("/api/studies", json={"name": "x"})).json()["id"]
            made = await http.post(f"/api/studies/{study}/sweeps", json=BODY)
            sweep = made.json()["id"]
            begun = [asyncio.Event() for _ in range(LISTENERS)]
            tasks = [asyncio.create_task(listen(http, sweep, one)) for one in begun[:-5]]
            await asyncio.gather(*(one.wait() for one in begun[:-5]))
            await asyncio.sleep(0.5)
            before = looks
            await asyncio.sleep(1.0)
            quiet = looks - before
            work = asyncio.to_thread(train)
            late = [asyncio.create_task(listen(http, sweep, one)) for one in begun[-5:]]
            await work
            return await asyncio.gather(*tasks, *late), quiet

    heard, quiet = run(all_of_them())
    assert [len(one) for one in heard] == [12] * LISTENERS
    assert [len(set(one)) for one in heard] == [12] * LISTENERS
    assert quiet <= 15, "one look a round, whoever listens"


def test_an_account_has_so_many_streams_and_gets_one_back_for_each_it_closes(
    sqlite_database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(web, "MOST_PER_ACCOUNT", 2)
    monkeypatch.setattr(web, "MOST_IN_ALL", 5)
    with transaction() as session:
        sweep = factories.submit(session).sweep.id

    async def crowd() -> None:
        desk, engine = web.Watches().desk(), get_engine()
        ada, bob = Caller("ada", "member", 1), Caller("bob", "member", 2)
        watches = {desk.enter(engine, sweep, one) for one in (ada, ada, bob)}
        assert len(watches) == 1, "one watch for all of them"
        (watch,) = watches
        with pytest.raises(TooManyAttempts, match="Your account has 2"):
            desk.enter(engine, sweep, ada)
        desk.leave(watch, sweep, ada)
        assert desk.enter(engine, sweep, ada) is watch
        for _ in range(2):  # without accounts there is nobody to be fair to
            desk.enter(engine, sweep, LOCAL_OWNER)
        with pytest.raises(TooManyAttempts, match="5 event streams"):
            desk.enter(engine, sweep, LOCAL_OWNER)
        for one in (ada, ada, bob, LOCAL_OWNER, LOCAL_OWNER):
            desk.leave(watch, sweep, one)
        other = desk.enter(engine, sweep, ada)
        assert other is not watch
        desk.leave(other, sweep, ada)

    run(crowd())
