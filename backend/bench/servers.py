"""A throw-away PostgreSQL, for measurements and tests."""

import contextlib
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

import psutil
import psycopg

from backend.operations.programs import LaunchError, find_postgres

#: Durability costs time, and what is thrown away needs none.
POSTGRES_OPTIONS = {
    "listen_addresses": "",
    "fsync": "off",
    "synchronous_commit": "off",
    "full_page_writes": "off",
    "max_connections": "200",
}
START_SECONDS = 180.0
#: Others than this may be too long for a socket's address; folders in it are made private.
SHORT_PLACE = Path("/tmp")  # noqa: S108


def private_folder(prefix: str, process: str) -> Path:
    """Return a new folder for a server, short enough for a socket's address.

    Servers whose owners were killed are ended first: nobody else would.

    Args:
        prefix: Start of the folder's name.
        process: File below the folder whose first line is the server's process id.
    """
    for folder in SHORT_PLACE.glob(f"{prefix}*"):
        try:
            owner = int((folder / "owner").read_text())
        except (OSError, ValueError):
            continue
        if not psutil.pid_exists(owner):
            with contextlib.suppress(OSError, ValueError, IndexError):
                os.kill(int((folder / process).read_text().split()[0]), signal.SIGQUIT)
            shutil.rmtree(folder, ignore_errors=True)
    made = Path(tempfile.mkdtemp(prefix=prefix, dir=SHORT_PLACE))
    (made / "owner").write_text(str(os.getpid()))
    return made


class ThrowawayPostgres:
    """A server of its own on a unix socket in a folder of its own."""

    def __init__(self, *, durable: bool = False, folder: Path | None = None) -> None:
        """Prepare a server.

        Args:
            durable: Whether it has lost nothing it said was stored when it is killed.
            folder: Where; None: in a new folder, once those of dead owners are cleared away.

        Raises:
            LaunchError: PostgreSQL is not installed.
        """
        found = find_postgres()
        if found is None:
            raise LaunchError("PostgreSQL is not installed; install the package postgresql.")
        self.bin = found
        self.options = POSTGRES_OPTIONS | ({"synchronous_commit": "on"} if durable else {})
        self.environment: dict[str, str] = {}
        self.folder = folder or private_folder("eta-pg-", "data/postmaster.pid")
        self.data = self.folder / "data"
        self.user: dict[str, Any] = {}
        if os.geteuid() == 0:  # PostgreSQL refuses to run as root
            self.user = {"user": "postgres", "group": "postgres", "extra_groups": []}
            os.chown(self.folder, pwd.getpwnam("postgres").pw_uid, -1)
        self.prepare()
        self._run("initdb", "-D", str(self.data), "-U", "postgres", "-A", "trust", "--no-sync")
        self.process: subprocess.Popen[bytes] | None = None

    def prepare(self) -> None:
        """Do what must be done to the folder before the server's files are made in it."""

    def _run(self, program: str, *options: str) -> None:
        command = [str(self.bin / program), *options]
        subprocess.run(command, check=True, capture_output=True, cwd=self.folder, **self.user)

    def url(self, database: str) -> str:
        """Return a database's address."""
        return f"postgresql+psycopg://postgres@/{database}?host={self.folder}"

    def execute(self, statement: str, database: str = "postgres") -> None:
        """Execute a statement as the server's owner."""
        place = f"host={self.folder} user=postgres dbname={database}"
        with psycopg.connect(place, autocommit=True) as connection:
            connection.execute(statement)

    def start(self) -> None:
        """Start it, and wait until it answers.

        Raises:
            LaunchError: It does not.
        """
        options = [f"-c{name}={value}" for name, value in self.options.items()]
        places = ["-D", str(self.data), "-k", str(self.folder)]
        self.process = subprocess.Popen(
            [str(self.bin / "postgres"), *places, *options],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd=self.folder,
            env={**os.environ, **self.environment},
            **self.user,
        )
        end = time.monotonic() + START_SECONDS
        while not self.answers():
            if time.monotonic() > end or self.process.poll() is not None:
                raise LaunchError("PostgreSQL does not start.")
            time.sleep(0.02)

    def answers(self) -> bool:
        """Return whether it takes statements."""
        try:
            self.execute("SELECT 1")
        except psycopg.OperationalError:
            return False
        return True

    def family(self) -> list[psutil.Process]:
        """Return its processes, parents before children; empty if it does not run."""
        if self.process is None or self.process.poll() is not None:
            return []
        first = psutil.Process(self.process.pid)
        return [first, *first.children(recursive=True)]

    def stop(self) -> None:
        """End every session at once, as `systemctl restart` does."""
        assert self.process is not None
        self.process.send_signal(signal.SIGINT)
        self.process.wait(START_SECONDS)

    def kill(self) -> None:
        """End the server and every process of it without warning."""
        assert self.process is not None
        for process in self.family():
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()
        self.process.wait(START_SECONDS)

    def remove(self) -> None:
        """Stop it, and delete its files."""
        if self.process is not None and self.process.poll() is None:
            self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)
