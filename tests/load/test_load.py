"""200 clients at once: no error, no long wait, nothing lost or done twice, memory flat."""

from collections.abc import Iterator
from pathlib import Path

import httpx
import psutil
import pytest

from backend.bench.installation import finish_everything
from backend.db import get_engine, reading
from backend.services import maintenance, sweeps
from tests.coroutines import run
from tests.installation import Installation
from tests.load.clients import Crowd, Notes
from tests.servers import BrokerServer, wait_for

CLIENTS = 200
#: A study worth reading: 2 methods x 20 rates x 10 seeds.
STUDY = {
    "task": "toy/quadratic",
    "methods": ["eb", "ib"],
    "learning_rates": {"from": 0.01, "to": 10, "count": 20},
    "seeds": 10,
    "epochs": 1,
}
#: How much a web process may grow once it is warm.
GROWTH_MB = 60.0


@pytest.fixture
def team(postgresql_database: str, broker: BrokerServer, tmp_path: Path) -> Iterator[Installation]:
    with Installation(tmp_path) as team:
        yield team


def megabytes(team: Installation) -> float:
    pids = [web.process.pid for web in team.webs if web.process]
    return max(psutil.Process(pid).memory_info().rss / 1e6 for pid in pids)


def load(team: Installation, seconds: float, *, p99: float = float("inf")) -> None:
    with httpx.Client(base_url=team.door.url, trust_env=False, timeout=60) as http:
        study = int(http.post("/api/studies", json={"name": "Read by many"}).json()["id"])
        sweep = int(http.post(f"/api/studies/{study}/sweeps", json=STUDY).json()["id"])
    finish_everything(get_engine())
    crowd = Crowd(team.door.url, study, sweep)
    run(crowd.run(CLIENTS, seconds / 4))  # warms up
    warm, accepted = megabytes(team), list(crowd.notes.accepted)
    crowd.notes = Notes(accepted=accepted)
    found = run(crowd.run(CLIENTS, seconds))
    print(  # noqa: T201 - the figures of a long run are worth keeping
        f"\n{len(found.reads)} reads, p99 {found.p99() * 1000:.0f} ms, "
        f"{len(found.accepted)} sweeps, {found.events} events, {dict(found.statuses)}, "
        f"memory {warm:.0f} -> {megabytes(team):.0f} MB, slowest {found.slowest()} ms"
    )
    assert found.broken == []
    assert set(found.statuses) <= {200, 201, 202}
    assert found.p99() < p99
    assert megabytes(team) - warm < GROWTH_MB
    _everything_is_done_once(found.accepted)


def _everything_is_done_once(sweep_ids: list[int]) -> None:
    assert sweep_ids
    wait_for(lambda: not _unfinished(sweep_ids), seconds=300, what="every sweep", every=1.0)
    with reading() as session:
        found = [sweeps.get(session, sweep_id=id) for id in sweep_ids]
        assert {sweep.state.value for sweep in found} == {"completed"}
        assert maintenance.check(session) == []


def _unfinished(sweep_ids: list[int]) -> list[int]:
    with reading() as session:
        states = {id: sweeps.get(session, sweep_id=id).state.value for id in sweep_ids}
    return [id for id, state in states.items() if state in ("queued", "running")]


def test_many_clients_for_a_little_while(team: Installation) -> None:
    load(team, 10.0)  # beside other tests no time means anything


@pytest.mark.slow
def test_many_clients_for_two_minutes(team: Installation) -> None:
    load(team, 120.0, p99=1.0)
