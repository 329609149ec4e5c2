"""An installation with accounts, and people in it."""

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient

from backend.app import create_app
from backend.queue import get_queue
from backend.services.accounts import passwords
from tests.backend.accounts import CHEAP, Person, person, team_settings
from tests.backend.conftest import ADDRESS, NotedQueue


@pytest.fixture(autouse=True)
def _cheap_digests(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(passwords, "HASHER", CHEAP)


@pytest.fixture
def team_app(sqlite_database: str, queue: NotedQueue) -> FastAPI:
    del sqlite_database
    app = create_app(team_settings())
    app.dependency_overrides[get_queue] = lambda: queue
    return app


@pytest.fixture
def team(team_app: FastAPI) -> TestClient:
    """A client that nobody is logged in with."""
    return TestClient(
        team_app, base_url=ADDRESS, raise_server_exceptions=False, follow_redirects=False
    )


@pytest.fixture
def root(team_app: FastAPI) -> Person:
    return person("root", "admin")


@pytest.fixture
def ada(root: Person) -> Person:
    return person("ada")
