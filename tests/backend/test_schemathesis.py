"""The whole OpenAPI document against the app: every check on, no failure, no 5xx."""

import os
from typing import Any

import pytest
import schemathesis
from fastapi.testclient import TestClient
from hypothesis import HealthCheck, Phase, settings

from backend.db import transaction
from backend.main import create_app
from backend.queue import get_queue
from backend.services import events, workers
from backend.services.workers import Worker
from backend.settings import Settings
from tests.backend.conftest import BODY, NotedQueue

#: A dozen examples a call in every run, many more in the full one.
EXAMPLES = 150 if os.environ.get("ETASCOPE_TEST_FULL") else 10

#: Calls whose values have a meaning no schema can express (a name in the catalogue, a grid that
#: rises, a cursor some page gave out, a file): there a refusal that explains itself is right.
BEYOND_A_SCHEMA = (
    "POST /api/studies/{study_id}/sweeps",
    "POST /api/import",
    "GET /api/studies",
    "GET /api/studies/{study_id}/sweeps",
    "GET /api/sweeps/{sweep_id}/trials",
    "GET /api/studies/{study_id}/notes",
    "GET /api/audit",
    "GET /api/illustrations/update",
)
ACCEPTED = ["2xx", "3xx", "401", "403", "404", "409", "429"]


#: Other hosts are refused in local mode.
LOOPBACK = {"Host": "127.0.0.1:8050"}


def config() -> schemathesis.Config:
    explained = {"positive_data_acceptance": {"expected-statuses": [*ACCEPTED, "422"]}}
    return schemathesis.Config.from_dict(
        {
            "headers": LOOPBACK,
            "operations": [{"include-name": name, "checks": explained} for name in BEYOND_A_SCHEMA],
        }
    )


app = create_app(Settings(reaper=False))
schema = schemathesis.openapi.from_asgi("/api/openapi.json", app, config=config(), headers=LOOPBACK)


@pytest.fixture(autouse=True)
def one_study(
    sqlite_database: str, queue: NotedQueue, train: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A database with a finished study, whose id is 1, and a service that is ready."""
    del sqlite_database
    monkeypatch.setitem(app.dependency_overrides, get_queue, lambda: queue)
    # A stream of a sweep that nobody trains would never end.
    monkeypatch.setattr(events.News, "done", property(lambda _: True))
    client = TestClient(app, headers=LOOPBACK)
    assert client.post("/api/studies", json={"name": "One"}).json()["id"] == 1
    assert client.post("/api/studies/1/sweeps", json=BODY).status_code == 202
    train()
    with transaction() as session:
        workers.register(session, worker=Worker("w1", "here", 1, "cpu"))


@schema.parametrize()
@settings(
    max_examples=EXAMPLES,
    deadline=None,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
    derandomize=True,
)
def test_the_api_does_what_its_document_says(case: schemathesis.Case) -> None:
    case.call_and_validate()
