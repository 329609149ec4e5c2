"""2,000 trials through the API: accepted, counted upwards, stopped and shared."""

from collections.abc import Callable
from typing import Any

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient

from backend.app import create_app
from backend.db import reading
from backend.services import maintenance
from tests.servers import BrokerServer, wait_for

ADDRESS = "http://127.0.0.1:8050"
#: 2 methods x 20 rates x 50 seeds, a few seconds of training on one core.
BODY: dict[str, Any] = {
    "task": "toy/quadratic",
    "methods": ["eb", "ib"],
    "learning_rates": {"from": 0.01, "to": 10, "count": 20},
    "seeds": 50,
    "epochs": 2,
}
FINISHED = ("completed", "diverged", "failed", "cancelled")


@pytest.fixture
def api(sqlite_database: str, broker: BrokerServer) -> TestClient:
    app: FastAPI = create_app()
    return TestClient(app, base_url=ADDRESS)


def submit(api: TestClient, study: int, **changes: Any) -> dict[str, Any]:
    answer = api.post(f"/api/studies/{study}/sweeps", json=BODY | changes)
    assert answer.status_code == 202, answer.text
    return dict(answer.json())


def look(api: TestClient, sweep: int) -> dict[str, Any]:
    return dict(api.get(f"/api/sweeps/{sweep}").json())


def test_two_thousand_trials(api: TestClient, start_worker: Callable[..., Any]) -> None:
    study = int(api.post("/api/studies", json={"name": "Large"}).json()["id"])
    sweep = submit(api, study)
    assert sweep["total"] == 2000
    start_worker()
    done = [0]

    def ended() -> bool:
        seen = look(api, sweep["id"])
        done.append(sum(seen["progress"][state] for state in FINISHED))
        return bool(seen["state"] == "completed")

    wait_for(ended, seconds=180, what="2,000 trials", every=0.05)
    assert done == sorted(done), "progress never goes back"
    assert len(set(done)) > 3, "and is seen on its way"

    again = submit(api, study)
    assert (again["total"], again["reused"], again["state"]) == (2000, 2000, "completed")
    longer = submit(api, study, seeds=51)
    assert (longer["total"], longer["reused"]) == (2040, 2000)

    other = submit(api, study, seeds=[1000 + n for n in range(50)], epochs=300)
    wait_for(lambda: look(api, other["id"])["progress"]["running"], seconds=60, what="a start")
    assert api.post(f"/api/sweeps/{other['id']}/cancel").status_code == 200
    quiet = lambda: not look(api, other["id"])["progress"]["running"]  # noqa: E731
    wait_for(quiet, seconds=60, what="training to stop")
    assert look(api, other["id"])["state"] == "cancelled"
    wait_for(lambda: look(api, longer["id"])["state"] == "completed", seconds=60, what="the rest")
    with reading() as session:
        assert maintenance.check(session) == []
