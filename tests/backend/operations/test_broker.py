"""The embedded broker, run for real with every server that this machine has."""

import importlib.util
import os
import shutil
import signal
import socket
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
import redis

from backend.operations import broker as module
from backend.operations.broker import EmbeddedBroker, find_server
from backend.operations.programs import Child, LaunchError


@pytest.fixture
def home() -> Iterator[Path]:
    """A folder whose path leaves room for a socket's 108 bytes; pytest's own may not."""
    with tempfile.TemporaryDirectory(prefix="eta", dir="/tmp") as folder:
        yield Path(folder)


@pytest.fixture
def broker(home: Path) -> EmbeddedBroker:
    """A broker that has not been started."""
    return EmbeddedBroker(home=home, socket=home / "broker" / "b.sock", server=find_server())


@pytest.fixture
def running(broker: EmbeddedBroker) -> Iterator[Child]:
    child = broker.child()
    child.start()
    broker.wait(child)
    yield child
    child.kill()


def connect(broker: EmbeddedBroker) -> redis.Redis:
    return redis.Redis(unix_socket_path=str(broker.socket), decode_responses=True)


def listening_ports(pid: int) -> list[int]:
    found = psutil.Process(pid).net_connections(kind="inet")
    return [line.laddr.port for line in found if line.status == psutil.CONN_LISTEN]


def test_queued_work_survives_kill_9(broker: EmbeddedBroker, running: Child) -> None:
    with connect(broker) as client:
        client.rpush("celery", *(f"shard {i}" for i in range(500)))

    os.kill(running.pid, signal.SIGKILL)
    running.kill()
    running.start()
    broker.wait(running)

    with connect(broker) as client:
        assert client.llen("celery") == 500


def test_nobody_else_can_reach_it(broker: EmbeddedBroker, running: Child) -> None:
    assert listening_ports(running.pid) == []
    assert stat.S_IMODE(broker.socket.parent.stat().st_mode) == 0o700
    assert stat.S_IMODE(broker.socket.stat().st_mode) == 0o600


def test_a_full_broker_refuses_instead_of_forgetting(
    broker: EmbeddedBroker, running: Child
) -> None:
    with connect(broker) as client:
        assert client.config_get("maxmemory-policy") == {"maxmemory-policy": "noeviction"}


def test_server_left_by_an_earlier_start_is_ended_and_its_queue_kept(
    broker: EmbeddedBroker, running: Child
) -> None:
    with connect(broker) as client:
        client.rpush("celery", "a shard")
    earlier = running.pid

    later = broker.child()
    later.start()
    broker.wait(later)

    try:
        assert running.ending() == "exit code 0"
        assert later.pid != earlier
        with connect(broker) as client:
            assert client.llen("celery") == 1
    finally:
        later.kill()


def test_hung_server_is_killed(
    broker: EmbeddedBroker, running: Child, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "STOP_SECONDS", 0.2)
    os.kill(running.pid, signal.SIGSTOP)

    broker.prepare()

    assert not psutil.pid_exists(running.pid)
    assert not broker.socket.exists()


def test_stale_socket_and_foreign_process_id_are_cleared(broker: EmbeddedBroker) -> None:
    broker.socket.parent.mkdir()
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(broker.socket))
    broker.pid_file.write_text(str(os.getpid()))  # ours, which must survive this

    broker.prepare()

    assert not broker.socket.exists()
    assert not broker.pid_file.exists()


def test_unreadable_queue_is_set_aside_because_the_database_knows_all(
    broker: EmbeddedBroker, running: Child
) -> None:
    running.kill()
    for file in (broker.folder / "appendonlydir").glob("*.rdb"):
        file.write_bytes(b"from the future")

    running.start()
    broker.wait(running)

    assert broker.answers()
    assert len(list(broker.folder.glob("appendonlydir.unreadable-*"))) == 1


def test_server_that_cannot_start_is_reported_with_its_log(home: Path) -> None:
    false = EmbeddedBroker(home=home, socket=home / "b.sock", server=Path("/bin/false"))
    child = false.child()
    child.start()
    with pytest.raises(LaunchError, match=r"exit code 1.*ETASCOPE_BROKER_URL"):
        false.wait(child)


def test_folder_planted_by_somebody_else_is_refused(broker: EmbeddedBroker, home: Path) -> None:
    (home / "elsewhere").mkdir()
    broker.folder.symlink_to(home / "elsewhere")

    with pytest.raises(LaunchError, match="belongs to somebody else"):
        broker.prepare()


def test_wheel_serves_where_no_server_is_installed(
    monkeypatch: pytest.MonkeyPatch, home: Path
) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: None)
    server = find_server()
    assert server.name == "valkey-server"

    broker = EmbeddedBroker(home=home, socket=home / "broker" / "b.sock", server=server)
    child = broker.child()
    child.start()
    try:
        broker.wait(child)
        assert broker.answers()
    finally:
        child.kill()


def test_machine_without_any_server_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: None)
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(LaunchError, match="Install redis-server or valkey-server"):
        find_server()
