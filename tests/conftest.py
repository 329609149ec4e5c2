"""Databases, brokers and hypothesis profiles for every test."""

import gc
import os
import shutil
import warnings
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck
from hypothesis import settings as hypothesis_settings
from sqlalchemy.orm import Session

from backend.db import Base, dispose_engines, transaction
from backend.operations.database import upgrade
from backend.queue import get_queue
from backend.settings import Settings, get_settings
from tests.lanes import Lanes, place_of
from tests.servers import BrokerServer, PostgresServer

with warnings.catch_warnings():
    # Imported here first: it would rather have httpx's successor, which nothing here uses yet.
    warnings.simplefilter("ignore")
    import fastapi.testclient  # noqa: F401

hypothesis_settings.register_profile(
    "default",
    max_examples=40,  # a thousand in the full run
    deadline=None,
    # The same examples each time: who changed nothing breaks nothing. The full run draws its own.
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
hypothesis_settings.register_profile(
    "full", hypothesis_settings.get_profile("default"), max_examples=1000, derandomize=False
)
hypothesis_settings.load_profile("full" if os.environ.get("ETASCOPE_TEST_FULL") else "default")


@pytest.fixture(autouse=True, scope="module")
def _what_stays() -> None:
    """Set apart what other modules left: to look through all of it for garbage takes seconds."""
    gc.collect()
    gc.freeze()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Lanes:
    """Hand out files in the order in which they are collected, not by the number of tests."""
    config.option.loadscopereorder = False
    return Lanes(config, log)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put what takes longest first; within that, everything stays as it was found.

    Lanes know a test by its id alone, and of several with one id they run one. Those made for every
    call of the API have names that tell them apart, and ids that do not.
    """
    for item in items:
        _, bracket, params = item.name.partition("[")
        if bracket and not item.nodeid.endswith("]"):
            item._id = item.id.with_params(params.removesuffix("]"))
    if double := [id for id, count in Counter(item.nodeid for item in items).items() if count > 1]:
        raise pytest.UsageError(f"Of several tests called {double[0]} lanes would run only one.")
    items.sort(key=lambda item: place_of(item.nodeid))


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[PostgresServer]:
    """One server a session; its databases are the tests' own."""
    server = PostgresServer()
    server.start()
    yield server
    server.remove()


@pytest.fixture(scope="session")
def postgresql_url(postgres_server: PostgresServer) -> str:
    """A migrated database that tests share one after another."""
    postgres_server.execute("CREATE DATABASE etascope")
    url = postgres_server.url("etascope")
    upgrade(Settings(database_url=url))
    return url


@pytest.fixture(scope="session")
def sqlite_template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A migrated, empty file to copy."""
    file = tmp_path_factory.mktemp("template") / "template.db"
    upgrade(Settings(database_url=f"sqlite:///{file}"))
    return file


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A private home; settings, engines and queues of earlier tests are forgotten."""
    monkeypatch.setenv("ETASCOPE_HOME", str(tmp_path))
    _forget()
    yield tmp_path
    _forget()


def _forget() -> None:
    dispose_engines()
    get_settings.cache_clear()
    get_queue.cache_clear()


@pytest.fixture
def sqlite_database(home: Path, sqlite_template: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """An empty SQLite database, configured as the service's."""
    file = home / "etascope.db"
    shutil.copy(sqlite_template, file)
    return _use(monkeypatch, f"sqlite:///{file}")


@pytest.fixture
def postgresql_database(
    home: Path,
    postgres_server: PostgresServer,
    postgresql_url: str,
    monkeypatch: pytest.MonkeyPatch,
) -> str:
    """An empty PostgreSQL database, configured as the service's."""
    del home
    empty_postgresql(postgres_server)
    return _use(monkeypatch, postgresql_url)


def empty_postgresql(server: PostgresServer) -> None:
    """Empty the database that tests share."""
    tables = ", ".join(Base.metadata.tables)
    server.execute(f"TRUNCATE {tables} RESTART IDENTITY CASCADE", "etascope")


def _use(monkeypatch: pytest.MonkeyPatch, url: str) -> str:
    monkeypatch.setenv("ETASCOPE_DATABASE_URL", url)
    get_settings.cache_clear()
    return url


@pytest.fixture(params=["sqlite", "postgresql"])
def database(request: pytest.FixtureRequest) -> str:
    """An empty database, once of each kind."""
    return str(request.getfixturevalue(f"{request.param}_database"))


@pytest.fixture
def session(database: str) -> Iterator[Session]:
    """One transaction on an empty database; commits at the end."""
    del database
    with transaction() as session:
        yield session


@pytest.fixture
def broker(home: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[BrokerServer]:
    """A running broker, configured as the service's."""
    del home
    server = BrokerServer()
    monkeypatch.setenv("ETASCOPE_BROKER_URL", server.url)
    get_settings.cache_clear()
    yield server.start()
    server.remove()
