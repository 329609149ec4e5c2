"""Alive, ready, who works, who asks, what Prometheus sees."""

import errno
import subprocess
from contextlib import suppress
from pathlib import Path

import pytest
from fastapi.testclient import TestClient
from sqlalchemy import text

from backend.db import build_engine, get_engine, needed_revision, transaction
from backend.operations.database import newest
from backend.routes import system
from backend.services import maintenance, workers
from backend.services.workers import Worker
from tests.backend.conftest import NotedQueue


def start_worker() -> None:
    with transaction() as session:
        workers.register(session, worker=Worker("w1", "here", 1, "cpu", queues=("cpu",)))


def test_health_needs_nothing(api: TestClient) -> None:
    assert api.get("/api/health").json()["status"] == "ok"


def test_ready_names_what_is_missing(api: TestClient, queue: NotedQueue) -> None:
    queue.away = "The broker does not answer."
    answer = api.get("/api/ready")
    checks = answer.json()["checks"]
    assert answer.status_code == 503
    assert checks["database"]["ready"]
    assert checks["broker"] == {"ready": False, "reason": "The broker does not answer."}
    assert "etascope worker" in checks["workers"]["reason"]


def test_ready_names_tables_that_are_too_old_or_too_new(api: TestClient) -> None:
    start_worker()
    for found, advice in (("0001", "etascope db upgrade"), ("9999", "newer version")):
        with transaction() as session:
            session.execute(text("UPDATE alembic_version SET version_num = :at"), {"at": found})
        answer = api.get("/api/ready")
        assert answer.status_code == 503
        assert advice in answer.json()["checks"]["database"]["reason"]
    with transaction() as session:
        session.execute(text("DROP TABLE alembic_version"))
    assert "db upgrade" in api.get("/api/ready").json()["checks"]["database"]["reason"]


def test_a_ready_server_needs_the_revision_that_alembic_would_make() -> None:
    assert needed_revision() == newest()


def test_ready_once_a_worker_lives(api: TestClient) -> None:
    start_worker()
    answer = api.get("/api/ready")
    assert answer.status_code == 200
    assert answer.json()["ready"]


def test_a_full_disk_is_not_ready_and_is_named(
    api: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    start_worker()

    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("tempfile.TemporaryFile", full)
    answer = api.get("/api/ready")
    assert answer.status_code == 503
    reason = answer.json()["checks"]["database"]["reason"]
    assert reason == "It cannot be written to: No space left on device."
    assert api.get("/api/health").status_code == 200


def test_a_disk_that_is_really_full_is_noticed(tmp_path: Path) -> None:
    mount = ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(tmp_path)]
    if subprocess.run(mount, capture_output=True).returncode != 0:
        pytest.skip("only root may mount a small disk")
    try:
        assert maintenance.why_not_writable(tmp_path) is None
        with suppress(OSError):
            (tmp_path / "all").write_bytes(bytes(2 * 1024 * 1024))
        assert maintenance.why_not_writable(tmp_path) == "No space left on device"
    finally:
        subprocess.run(["umount", str(tmp_path)], check=True)
    assert maintenance.why_not_writable(tmp_path / "missing") == "No such file or directory"


def test_a_database_that_only_reads_is_not_ready(
    postgresql_database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert system._why_not_written(get_engine()) is None
    engine = build_engine(f"{postgresql_database}&options=-cdefault_transaction_read_only%3Don")
    assert "read-only" in (system._why_not_written(engine) or "")
    engine.dispose()


def test_workers_and_queue_tell_who_works_and_what_waits(
    api: TestClient, submit, queue: NotedQueue
) -> None:
    submit()
    start_worker()
    worker = api.get("/api/workers").json()["items"][0]
    assert (worker["name"], worker["alive"], worker["state"]) == ("w1", True, "idle")
    depth = api.get("/api/queue").json()
    assert (depth["depth"], depth["trials_queued"]) == (len(queue.shard_ids), 12)
    assert depth["broker"]["ready"]


def test_without_accounts_everybody_is_the_local_owner(api: TestClient) -> None:
    me = {"username": "local", "role": "admin", "auth": False, "scope": "admin"}
    assert api.get("/api/me").json() == me


def test_prometheus_sees_requests_and_trials(api: TestClient, trained: int) -> None:
    api.get(f"/api/studies/{trained}")
    text = api.get("/metrics").text
    assert 'etascope_trials{state="completed"} 10.0' in text
    assert 'etascope_trials{state="diverged"} 2.0' in text
    assert 'etascope_queue_depth{queue="cpu"} 0.0' in text
    assert 'route="/api/studies/{study_id}",status="200"' in text


def test_storage_tells_what_takes_room(api: TestClient, trained: int) -> None:
    found = api.get("/api/storage").json()
    places = {place["name"]: place["used_bytes"] for place in found["places"]}
    assert set(places) == {"database", "logs", "broker", "data sets"}
    assert places["database"] > found["curve_bytes"] > 0
    assert found["trials"] == 12
    assert found["free_bytes"] > 0
