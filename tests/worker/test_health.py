"""What the container's engine is told about a worker."""

import socket

import pytest
from sqlalchemy import update

from backend.db import clock, transaction
from backend.models import WorkerRow
from backend.services import workers
from backend.services.workers import Worker
from worker import is_healthy


def test_a_worker_is_healthy_while_it_beats(sqlite_database: str) -> None:
    assert not is_healthy()
    with transaction() as session:
        workers.register(session, worker=Worker("other", "elsewhere", 1, "cpu"))
    assert not is_healthy()
    with transaction() as session:
        workers.register(session, worker=Worker("w1", socket.gethostname(), 1, "cpu"))
    assert is_healthy()
    with transaction() as session:
        session.execute(update(WorkerRow).values(heartbeat_at=clock(-3600)))
    assert not is_healthy()


def test_a_worker_is_not_restarted_because_the_database_is_away(
    home: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    from backend.settings import get_settings

    monkeypatch.setenv("ETASCOPE_DATABASE_URL", "postgresql://nobody@127.0.0.1:1/nothing")
    get_settings.cache_clear()
    assert is_healthy()
