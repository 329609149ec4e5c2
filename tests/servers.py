"""Real servers for tests: a throw-away PostgreSQL and a throw-away broker."""

import contextlib
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path
from typing import NoReturn

import psutil
import psycopg
import pytest
import redis

from backend.operations.programs import find_broker, find_postgres

#: Durability costs time and is not what the tests are about.
POSTGRES_OPTIONS = {
    "listen_addresses": "",
    "fsync": "off",
    "synchronous_commit": "off",
    "full_page_writes": "off",
    "max_connections": "200",
}
START_SECONDS = 30.0


def missing(what: str, how: str) -> NoReturn:
    """Fail where everything could be installed, skip elsewhere."""
    sentence = f"{what} is not installed; {how}."
    if os.geteuid() == 0 and shutil.which("apt-get"):
        pytest.fail(sentence)
    pytest.skip(sentence)


def wait_for(condition, *, seconds: float = 60.0, what: str = "a condition", every: float = 0.02):
    """Return the condition's first true value."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if found := condition():
            return found
        time.sleep(every)
    pytest.fail(f"waited {seconds:g} s for {what}")


def private_folder(prefix: str, process: str) -> Path:
    """Return a new folder for a server, short enough for a socket's address.

    Servers of test runs that were killed are ended first: nobody else would.

    Args:
        prefix: Start of the folder's name.
        process: File below the folder whose first line is the server's process id.
    """
    for folder in Path("/tmp").glob(f"{prefix}*"):
        try:
            owner = int((folder / "owner").read_text())
        except (OSError, ValueError):
            continue
        if not psutil.pid_exists(owner):
            with contextlib.suppress(OSError, ValueError, IndexError):
                os.kill(int((folder / process).read_text().split()[0]), signal.SIGQUIT)
            shutil.rmtree(folder, ignore_errors=True)
    made = Path(tempfile.mkdtemp(prefix=prefix, dir="/tmp"))
    (made / "owner").write_text(str(os.getpid()))
    return made


class PostgresServer:
    """A server of its own on a unix socket in a folder of its own."""

    def __init__(self, *, durable: bool = False) -> None:
        """Prepare a server; a durable one has lost nothing it said was stored when it is killed."""
        self.options = POSTGRES_OPTIONS | ({"synchronous_commit": "on"} if durable else {})
        self.bin = find_postgres() or missing("PostgreSQL", "install the package postgresql")
        self.folder = private_folder("eta-pg-", "data/postmaster.pid")
        self.data = self.folder / "data"
        self.prefix: list[str] = []
        if os.geteuid() == 0:  # PostgreSQL refuses to run as root
            self.prefix = ["runuser", "-u", "postgres", "--"]
            os.chown(self.folder, pwd.getpwnam("postgres").pw_uid, -1)
        self._run("initdb", "-D", str(self.data), "-U", "postgres", "-A", "trust", "--no-sync")
        self.process: subprocess.Popen[bytes] | None = None

    def _run(self, program: str, *options: str) -> None:
        command = [*self.prefix, str(self.bin / program), *options]
        subprocess.run(command, check=True, capture_output=True, cwd=self.folder)

    def url(self, database: str) -> str:
        return f"postgresql+psycopg://postgres@/{database}?host={self.folder}"

    def execute(self, statement: str, database: str = "postgres") -> None:
        place = f"host={self.folder} user=postgres dbname={database}"
        with psycopg.connect(place, autocommit=True) as connection:
            connection.execute(statement)  # type: ignore[call-overload]

    def start(self) -> None:
        options = [f"-c{name}={value}" for name, value in self.options.items()]
        places = ["-D", str(self.data), "-k", str(self.folder)]
        self.process = subprocess.Popen(
            [*self.prefix, str(self.bin / "postgres"), *places, *options],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd=self.folder,
        )
        wait_for(self._answers, seconds=START_SECONDS, what="PostgreSQL to start")

    def _answers(self) -> bool:
        try:
            self.execute("SELECT 1")
        except psycopg.OperationalError:
            return False
        return True

    def stop(self) -> None:
        """End every session at once, as `systemctl restart` does."""
        assert self.process is not None
        pid = int((self.data / "postmaster.pid").read_text().split()[0])
        os.kill(pid, signal.SIGINT)
        self.process.wait(START_SECONDS)

    def kill(self) -> None:
        """End the server and every process of it without warning."""
        assert self.process is not None
        pid = int((self.data / "postmaster.pid").read_text().split()[0])
        family = psutil.Process(pid)
        for process in (family, *family.children(recursive=True)):
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()
        self.process.wait(START_SECONDS)

    def remove(self) -> None:
        if self.process is not None and self.process.poll() is None:
            self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)


class BrokerServer:
    """A Redis or Valkey server on a unix socket; `kill` and `start` lose what it held."""

    def __init__(self) -> None:
        program = find_broker() or missing("A broker", "install the package redis-server")
        self.program = str(program)
        self.folder = private_folder("eta-br-", "broker.pid")
        self.socket = self.folder / "broker.sock"
        self.process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"redis+socket://{self.socket}"

    def start(self) -> "BrokerServer":
        places = ["--unixsocket", str(self.socket), "--dir", str(self.folder)]
        places += ["--pidfile", str(self.folder / "broker.pid")]
        self.process = subprocess.Popen(
            [self.program, "--port", "0", *places, "--save", "", "--appendonly", "no"],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        wait_for(self._answers, seconds=START_SECONDS, what="the broker to start")
        return self

    def client(self) -> "redis.Redis[bytes]":
        return redis.Redis(unix_socket_path=str(self.socket))

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
