"""Everything is killed at random while work keeps coming; afterwards all of it is done, once."""

import contextlib
import math
import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pytest
from sqlalchemy import func, select

from backend.db import PASSING_FAULTS, dispose_engines, reading
from backend.models import ShardRow, TrialRow
from backend.operations.database import upgrade
from backend.services import maintenance, sweeps
from backend.services.trials import UNFINISHED
from backend.settings import Settings, get_settings
from tests.installation import Installation, Part
from tests.servers import BrokerServer, PostgresServer, wait_for

SUBMITTERS = 3
#: Seconds between two kills, and how long the dead stay dead.
PAUSES, ABSENCES = (1.0, 4.0), (0.5, 3.0)
#: With everybody alive something has to end within this time.
STUCK_SECONDS = 60.0
#: A shard may be unlucky more often than in earnest, where nobody kills every few seconds.
ATTEMPTS = "25"


@pytest.fixture
def database(home: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[PostgresServer]:
    """A server that is killed, and so must keep what it said it stored."""
    server = PostgresServer(durable=True)
    server.start()
    server.execute("CREATE DATABASE chaos")
    monkeypatch.setenv("ETASCOPE_DATABASE_URL", server.url("chaos"))
    get_settings.cache_clear()
    upgrade(Settings())
    yield server
    dispose_engines()
    server.remove()


class Submitter(threading.Thread):
    """Submits one small sweep after the other; each is sent until it is accepted."""

    def __init__(self, url: str, study: int, number: int) -> None:
        super().__init__(daemon=True)
        self._url, self._study, self._number = url, study, number
        self.accepted: list[int] = []
        self.refused: list[str] = []
        self.ended = threading.Event()

    def run(self) -> None:
        count = 0
        while not self.ended.is_set():
            count += 1
            self._submit(f"{self._number}-{count}", seed=self._number * 100_000 + count)

    def _submit(self, key: str, seed: int) -> None:
        body = {
            "task": "toy/quadratic",
            "methods": ["eb", "ib"],
            "learning_rates": [0.1, 1.0],
            "seeds": [seed],
            "epochs": 30,
        }
        while not self.ended.is_set():
            with contextlib.suppress(httpx.HTTPError):
                answer = httpx.post(
                    f"{self._url}/api/studies/{self._study}/sweeps",
                    json=body,
                    headers={"Idempotency-Key": key},
                    trust_env=False,
                    timeout=20,
                )
                if answer.status_code == 202:
                    self.accepted.append(int(answer.json()["id"]))
                    self.ended.wait(1.0)
                    return
                if answer.status_code != 503:
                    self.refused.append(f"{answer.status_code} {answer.text[:200]}")
            self.ended.wait(0.5)


class Reaper:
    """Kills a part at random, and brings it back after a while."""

    def __init__(
        self, team: Installation, database: PostgresServer, broker: BrokerServer, seed: int
    ) -> None:
        self._chance = random.Random(seed)
        self.kills: Counter[str] = Counter()
        self._victims: list[tuple[str, Callable[[], None], Callable[[], object]]] = [
            *(("web", *_both(web)) for web in team.webs),
            *(("worker", *_both(worker)) for worker in team.workers),
            ("broker", broker.kill, broker.start),
            ("database", database.kill, database.start),
        ]

    def run(self, seconds: float) -> None:
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            time.sleep(self._chance.uniform(*PAUSES))
            name, kill, start = self._chance.choice(self._victims)
            self.kills[name] += 1
            kill()
            time.sleep(self._chance.uniform(*ABSENCES))
            start()


def _both(part: Part) -> tuple[Callable[[], None], Callable[[], object]]:
    return part.kill, part.start


def survive(tmp_path: Path, database: PostgresServer, broker: BrokerServer, seconds: float) -> None:
    with Installation(tmp_path, ETASCOPE_MAX_ATTEMPTS=ATTEMPTS) as team:
        made = httpx.post(
            f"{team.door.url}/api/studies", json={"name": "Chaos"}, trust_env=False, timeout=20
        )
        study = int(made.json()["id"])
        crowd = [Submitter(team.door.url, study, n) for n in range(SUBMITTERS)]
        for submitter in crowd:
            submitter.start()
        reaper = Reaper(team, database, broker, seed=int(seconds))
        reaper.run(seconds)
        for submitter in crowd:
            submitter.ended.set()
        for submitter in crowd:
            submitter.join(60)
        accepted = [id for submitter in crowd for id in submitter.accepted]
        began = time.monotonic()
        wait_for(team.ready, seconds=120, what="everybody to be back", every=0.5)
        _drain()
        print(  # noqa: T201 - the figures of a long run are worth keeping
            f"\n{len(accepted)} sweeps accepted, {dict(reaper.kills)} killed, "
            f"all done {time.monotonic() - began:.0f} s after the last kill"
        )
        assert [refused for submitter in crowd for refused in submitter.refused] == []
        _is_whole(accepted)


def _drain() -> None:
    """Wait until nothing waits; however much that is, it must keep becoming less."""
    fewest, since = math.inf, time.monotonic()
    while left := _unfinished():
        if left < fewest:
            fewest, since = left, time.monotonic()
        if time.monotonic() - since > STUCK_SECONDS:
            pytest.fail(f"{left} trials are stuck: {_open_shards()}")
        time.sleep(1.0)


def _unfinished() -> float:
    try:
        with reading() as session:
            waiting = select(func.count()).select_from(TrialRow)
            return session.scalars(waiting.where(TrialRow.state.in_(UNFINISHED))).one()
    except PASSING_FAULTS:  # connections from before the last kill
        return math.inf


def _open_shards() -> list[tuple[object, ...]]:
    """Return what is known of some shards that do not end."""
    told = ("id", "state", "attempts", "worker", "lease_until", "not_before", "sent_at", "message")
    columns = [getattr(ShardRow, name) for name in told]
    with reading() as session:
        query = select(*columns).where(ShardRow.state.in_(("queued", "running"))).limit(5)
        return [tuple(row) for row in session.execute(query)]


def _is_whole(sweep_ids: list[int]) -> None:
    assert len(sweep_ids) == len(set(sweep_ids)) > 0
    with reading() as session:
        found = [sweeps.get(session, sweep_id=id) for id in sweep_ids]
        assert {sweep.state.value for sweep in found} == {"completed"}, Counter(
            message for sweep in found for message in sweep.messages
        )
        assert sum(sweep.total for sweep in found) == 4 * len(sweep_ids)
        # A sweep may have been stored although its answer was lost: then it was sent again, with
        # the same key, and is in the list. So there is no trial that nobody knows of.
        stored = session.scalars(select(func.count()).select_from(TrialRow)).one()
        assert 4 * len(sweep_ids) <= stored <= 4 * (len(sweep_ids) + SUBMITTERS)
        assert maintenance.check(session) == []


def test_twenty_seconds_of_kills(
    tmp_path: Path, database: PostgresServer, broker: BrokerServer
) -> None:
    survive(tmp_path, database, broker, 20.0)


@pytest.mark.slow
@pytest.mark.timeout(1500)
def test_ten_minutes_of_kills(
    tmp_path: Path, database: PostgresServer, broker: BrokerServer
) -> None:
    survive(tmp_path, database, broker, 600.0)
