"""Real servers for tests: a throw-away PostgreSQL and a throw-away broker."""

import os
import shutil
import subprocess
import time
from pathlib import Path
from typing import NoReturn

import pytest
import redis

from backend.bench.installation import ThrowawayPostgres, private_folder
from backend.operations.programs import find_broker, find_postgres

START_SECONDS = 30.0


def missing(what: str, how: str) -> NoReturn:
    """Fail where everything could be installed, skip elsewhere."""
    sentence = f"{what} is not installed; {how}."
    if os.geteuid() == 0 and shutil.which("apt-get"):
        pytest.fail(sentence)
    pytest.skip(sentence)


def wait_for(condition, *, seconds: float = 180.0, what: str = "a condition", every: float = 0.02):
    """Return the condition's first true value."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if found := condition():
            return found
        time.sleep(every)
    pytest.fail(f"waited {seconds:g} s for {what}")


class PostgresServer(ThrowawayPostgres):
    """A server of its own; where there is none, the test is skipped or fails."""

    def __init__(self, *, durable: bool = False, folder: Path | None = None) -> None:
        if find_postgres() is None:
            missing("PostgreSQL", "install the package postgresql")
        super().__init__(durable=durable, folder=folder)


class BrokerServer:
    """A Redis or Valkey server on a unix socket; `kill` and `start` lose what it held."""

    def __init__(self, folder: Path | None = None) -> None:
        program = find_broker() or missing("A broker", "install the package redis-server")
        self.program = str(program)
        self.folder = folder or private_folder("eta-br-", "broker.pid")
        self.socket = self.folder / "broker.sock"
        self.options: list[str] = []
        self.password: str | None = None
        self.process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"redis+socket://{self.socket}"

    def start(self) -> "BrokerServer":
        places = ["--unixsocket", str(self.socket), "--dir", str(self.folder)]
        places += ["--pidfile", str(self.folder / "broker.pid")]
        self.process = subprocess.Popen(
            [
                self.program,
                "--port",
                "0",
                *places,
                "--save",
                "",
                "--appendonly",
                "no",
                *self.options,
            ],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        wait_for(self._answers, seconds=START_SECONDS, what="the broker to start")
        return self

    def client(self) -> "redis.Redis[bytes]":
        return redis.Redis(unix_socket_path=str(self.socket), password=self.password)

    def _answers(self) -> bool:
        try:
            with self.client() as client:
                return bool(client.ping())
        except redis.RedisError:
            return False

    def kill(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None
        self.socket.unlink(missing_ok=True)

    def remove(self) -> None:
        self.kill()
        shutil.rmtree(self.folder, ignore_errors=True)
