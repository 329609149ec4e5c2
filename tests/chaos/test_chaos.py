"""Everything is killed at random while work keeps coming; afterwards all of it is done, once."""

import os
import random
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path

import httpx
import pytest
from sqlalchemy import func, select

from backend.db import dispose_engines, get_engine, reading
from backend.models import TrialRow
from backend.operations.database import upgrade
from backend.operations.programs import find_clock, missing_for_faults
from backend.services import maintenance, sweeps
from backend.settings import Settings, get_settings
from tests.chaos.faults import KINDS, schedule
from tests.chaos.judging import drain
from tests.chaos.stage import LEASE_SECONDS, Clock
from tests.chaos.submitters import Submitter
from tests.installation import Installation, Part
from tests.servers import BrokerServer, PostgresServer, missing, wait_for

SUBMITTERS = 3
#: Seconds between two kills, and how long the dead stay dead.
PAUSES, ABSENCES = (1.0, 4.0), (0.5, 3.0)
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
        drain(get_engine(), pytest.fail)
        print(  # noqa: T201 - the figures of a long run are worth keeping
            f"\n{len(accepted)} sweeps accepted, {dict(reaper.kills)} killed, "
            f"all done {time.monotonic() - began:.0f} s after the last kill"
        )
        assert [refused for submitter in crowd for refused in submitter.refused] == []
        _is_whole(accepted)


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
@pytest.mark.timeout(3600)
def test_faults_of_every_kind_lose_double_and_change_nothing(tmp_path: Path) -> None:
    """Clocks, disks and networks, too: see `python -m tests.chaos --help`."""
    if lacking := missing_for_faults():
        missing(lacking[0].part, lacking[0].advice)
    if os.geteuid() != 0:
        pytest.skip("Namespaces need root.")
    command = [sys.executable, "-m", "tests.chaos", "--faults", "40", "--log", tmp_path / "log"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-5000:] + done.stderr[-2000:]


def test_a_process_whose_clock_was_moved_still_sleeps(tmp_path: Path) -> None:
    """Else all it shows is what a program does whose every pause fails."""
    if find_clock() is None:
        missing("libfaketime", "apt-get install faketime")
    clock = Clock(tmp_path / "clock")
    clock.set(86_400)
    code = "import time; print(time.time()); time.sleep(0.01)"
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, **clock.environment()},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert 80_000 < float(done.stdout) - time.time() < 90_000


def test_every_kind_comes_before_any_comes_again() -> None:
    first = list(islice(schedule(seed=1), 2 * len(KINDS)))
    assert Counter(fault.kind.title for fault in first) == dict.fromkeys(
        (kind.title for kind in KINDS), 2
    )
    assert first == list(islice(schedule(seed=1), 2 * len(KINDS))), "the seed decides"
    assert all(fault.seconds > LEASE_SECONDS for fault in first if fault.kind.long)
