"""One site with accounts for all rows of the tables: building one takes a second."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import dash._get_app
import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient

from backend.cli.server import create_site
from backend.db import dispose_engines
from backend.queue import get_queue
from backend.services.accounts import passwords
from backend.settings import get_settings
from tests.backend.accounts import CHEAP, SECRET
from tests.backend.conftest import ADDRESS, NotedQueue
from tests.backend.matrix.world import World, build_world


@pytest.fixture(scope="module")
def site(sqlite_template: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[FastAPI]:
    home = tmp_path_factory.mktemp("matrix")
    shutil.copy(sqlite_template, home / "etascope.db")
    with serving(home) as app:
        yield app


@contextmanager
def serving(home: Path, database_url: str | None = None) -> Iterator[FastAPI]:
    """Lend a site with accounts, by default on the SQLite file in its home."""
    before = dash._get_app.APP
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ETASCOPE_HOME", str(home))
        patch.setenv("ETASCOPE_AUTH", "on")
        patch.setenv("ETASCOPE_SECRET", SECRET)
        patch.setenv("ETASCOPE_REAPER", "off")
        patch.delenv("ETASCOPE_DATABASE_URL", raising=False)
        if database_url:
            patch.setenv("ETASCOPE_DATABASE_URL", database_url)
        patch.setattr(passwords, "HASHER", CHEAP)
        dispose_engines()
        get_settings.cache_clear()
        app = create_site()
        app.dependency_overrides[get_queue] = NotedQueue
        patch.setattr(app.state.loading, "begin", lambda _: None)  # ten seconds a click
        yield app
    dispose_engines()
    get_settings.cache_clear()
    dash._get_app.APP = before


@pytest.fixture(scope="module")
def pages(site: FastAPI) -> Any:
    """The dashboard of the site."""
    return dash._get_app.APP


@pytest.fixture(scope="module")
def client(site: FastAPI) -> Iterator[TestClient]:
    client = TestClient(
        site, base_url=ADDRESS, raise_server_exceptions=False, follow_redirects=False
    )
    with client:  # Dash serves deep links from the start of the server on
        yield client


@pytest.fixture
def world(site: FastAPI) -> World:
    """Everybody, anew: some rows end logins or take roles away."""
    from sqlalchemy import text

    from backend.db import Base, transaction

    with transaction() as session:
        for table in reversed(Base.metadata.sorted_tables):
            session.execute(text(f"DELETE FROM {table.name}"))
        session.execute(text("DELETE FROM sqlite_sequence"))
    return build_world()
