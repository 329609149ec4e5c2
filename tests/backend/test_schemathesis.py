"""The whole OpenAPI document against the app, without accounts and with them: every check on.

Call by call, and in chains in which an answer's id is part of the next question.
"""

import itertools
import os
import sqlite3
from collections.abc import Callable
from contextlib import closing
from typing import Any

import pytest
import schemathesis
from fastapi.testclient import TestClient
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test
from schemathesis.generation.stateful import APIStateMachine

from backend.app import create_app
from backend.db import get_engine, transaction
from backend.queue import get_queue
from backend.services import sweeps, workers
from backend.services.accounts import passwords
from backend.services.workers import Worker
from backend.settings import Settings
from tests.backend.accounts import CHEAP, bearer, new_user, team_settings, token_of
from tests.backend.conftest import BODY, NotedQueue

#: A few examples a call in every run, many more in the full one; there also chains of calls.
FULL = bool(os.environ.get("ETASCOPE_TEST_FULL"))
EXAMPLES = 150 if FULL else 6
CHAINS, LINKS = 150, 8

#: Calls whose values have a meaning no schema can express (a name in the catalogue, a grid that
#: rises, a cursor some page gave out, a file, a good password): there a refusal that explains
#: itself is right.
BEYOND_A_SCHEMA = (
    "POST /api/studies/{study_id}/sweeps",
    "POST /api/sweeps",
    "POST /api/forecast",
    "POST /api/runs",
    "POST /api/import",
    "GET /api/studies",
    "GET /api/studies/{study_id}/sweeps",
    "GET /api/sweeps/{sweep_id}/trials",
    "GET /api/studies/{study_id}/notes",
    "GET /api/audit",
    "GET /api/workers",
    "GET /api/people",
    "GET /api/users",
    "GET /api/tokens",
    "GET /api/views",
    "GET /api/illustrations/update",
    "POST /api/users",
    "POST /api/users/{user_id}/password",
    "POST /api/auth/password",
)
ACCEPTED = ["2xx", "3xx", "401", "403", "404", "409", "429"]


#: Other hosts are refused in local mode.
LOOPBACK = {"Host": "127.0.0.1:8050"}


def config(*, examples: bool = True) -> schemathesis.Config:
    """Return what is tried; `examples` are the document's own, made while tests are collected."""
    explained = {"positive_data_acceptance": {"expected-statuses": [*ACCEPTED, "422"]}}
    return schemathesis.Config.from_dict(
        {
            "headers": LOOPBACK,
            # Every limit of every field, made while tests are collected: minutes.
            "phases": {"coverage": {"enabled": FULL}, "examples": {"enabled": examples}},
            # The tests log in themselves: a call that lacked only the token would be a right one.
            "generation": {"with-security-parameters": False},
            "operations": [{"include-name": name, "checks": explained} for name in BEYOND_A_SCHEMA],
        }
    )


local_app = create_app(Settings(reaper=False))
local = schemathesis.openapi.from_asgi(
    "/api/openapi.json", local_app, config=config(), headers=LOOPBACK
)
team_app = create_app(team_settings())
# From the app itself: the document, too, is only for who has a token. Its examples are the same.
team = schemathesis.openapi.from_dict(team_app.openapi(), config=config(examples=FULL))
team.app = team_app

some_examples = settings(
    max_examples=EXAMPLES,
    deadline=None,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
    derandomize=True,
)


@pytest.fixture(autouse=True)
def one_study(
    request: pytest.FixtureRequest,
    queue: NotedQueue,
    train: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A database with a finished study, whose id is 1, and a service that is ready.

    A team's is PostgreSQL, which refuses what SQLite takes.
    """
    of_a_team = request.node.name.startswith("test_a_teams_api")
    request.getfixturevalue("postgresql_database" if of_a_team else "sqlite_database")
    monkeypatch.setattr(passwords, "HASHER", CHEAP)
    for app in (local_app, team_app):
        monkeypatch.setitem(app.dependency_overrides, get_queue, lambda: queue)
        monkeypatch.setattr(app.state.loading, "begin", lambda _: None)  # ten seconds a call
    # A stream of a sweep that nobody trains would never end.
    monkeypatch.setattr(sweeps.News, "done", property(lambda _: True))
    client = TestClient(local_app, headers=LOOPBACK)
    assert client.post("/api/studies", json={"name": "One"}).json()["id"] == 1
    assert client.post("/api/studies/1/sweeps", json=BODY).status_code == 202
    train()
    with transaction() as session:
        workers.register(session, worker=Worker("w1", "here", 1, "cpu"))


@pytest.fixture
def begin_again(one_study: None) -> Callable[[], None]:
    """Put the database back to one study: a chain that depends on the last cannot be repeated."""
    kept = sqlite3.connect(":memory:", check_same_thread=False)
    file = get_engine().url.database
    with closing(sqlite3.connect(str(file))) as now:
        now.backup(kept)

    def begin() -> None:
        global _numbers
        _numbers = itertools.count()
        with closing(sqlite3.connect(str(file))) as now:
            kept.backup(now)

    return begin


_numbers = itertools.count()


def admin() -> dict[str, str]:
    """Return who may do everything; somebody new each time, whom no earlier call took that from."""
    with transaction() as session:
        ada = new_user(session, f"ada{next(_numbers)}", "admin")
    return bearer(token_of(ada.id, "admin")[1])


def is_admin(headers: dict[str, str]) -> bool:
    """Return whether somebody may still do everything, whatever was called since."""
    return TestClient(team_app, headers=LOOPBACK | headers).get("/api/users").status_code == 200


@local.parametrize()
@some_examples
def test_the_api_does_what_its_document_says(case: schemathesis.Case) -> None:
    case.call_and_validate()


@team.parametrize()
@some_examples
def test_a_teams_api_does_what_its_document_says(case: schemathesis.Case) -> None:
    case.call_and_validate(headers=admin())


@pytest.mark.slow
@pytest.mark.parametrize(
    ("schema", "headers"), [(local, dict), (team, admin)], ids=["local", "team"]
)
def test_chains_of_calls_do_what_the_document_says(
    schema: Any, headers: Callable[[], dict[str, str]], begin_again: Callable[[], None]
) -> None:
    class Chain(schema.as_state_machine()):  # type: ignore[misc]
        def setup(self) -> None:
            begin_again()
            self.headers = headers()

        def get_call_kwargs(self, case: schemathesis.Case) -> dict[str, Any]:
            """Return who calls: one person as long as may be, for views are that person's own."""
            del case
            if self.headers and not is_admin(self.headers):
                self.headers = headers()
            return {"headers": LOOPBACK | self.headers}

    found: type[APIStateMachine] = Chain
    run_state_machine_as_test(
        found, settings=settings(some_examples, max_examples=CHAINS, stateful_step_count=LINKS)
    )
