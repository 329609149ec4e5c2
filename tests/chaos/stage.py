"""A team's installation whose clocks, disks and network can be spoilt.

Everything runs in namespaces of its own (`__main__` sees to that), so nothing on the machine is
touched, and all of it is gone with the first process. PostgreSQL and the broker are reached as in
earnest: over TCP, with passwords and TLS. One worker is far away: it has another network, other
process ids, and nobody but its lease can tell that it died.
"""

import contextlib
import os
import shutil
import signal
import ssl
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import psutil
import psycopg
from sqlalchemy import NullPool, create_engine, text
from sqlalchemy.exc import SQLAlchemyError

from backend.bench.installation import POSTGRES_SECONDS
from backend.operations.database import upgrade
from backend.operations.programs import LaunchError, find_clock
from backend.settings import Settings
from tests.installation import FrontDoor, Installation, Part
from tests.servers import BrokerServer, PostgresServer

HERE, THERE, NETWORK = "10.78.0.1", "10.78.0.2", "far"
PASSWORD = "correct-horse-battery"
POSTGRES_PORT = 5433
LEASE_SECONDS = 4.0
WEBS, NEAR_WORKERS = 2, 2
#: Larger than the database becomes; small enough to be filled in a moment.
DATABASE_DISK, HOME_DISK = "768m", "64m"
SETTINGS = {
    "ETASCOPE_LEASE_SECONDS": f"{LEASE_SECONDS:g}",
    "ETASCOPE_RESEND_SECONDS": "10",
    # A shard is unlucky more often here than in earnest, where nobody spoils it every second.
    "ETASCOPE_MAX_ATTEMPTS": "100",
}


#: Shards whose workers have said so lately, whatever time it is.
AT_WORK = "SELECT 1 FROM shards WHERE state = 'running' AND lease_until > now() LIMIT 1"


def run(*command: str) -> None:
    """Run a program that must succeed."""
    subprocess.run(command, check=True, capture_output=True)


#: Since 3.11 Python sleeps until a moment of the monotonic clock, which libfaketime moves although
#: it was told not to: every sleep of a whole worker then fails with EINVAL. Waiting for nothing is
#: left alone. Python imports a module of this name when it starts.
SLEEP = """
import select, time
time.sleep = lambda seconds: (select.select((), (), (), seconds), None)[1]
"""


class Clock:
    """What time some processes believe it is: so many seconds from the machine's own."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._sleep = file.parent / "sleep"
        self._sleep.mkdir(exist_ok=True)
        (self._sleep / "sitecustomize.py").write_text(SLEEP)
        self.set(0)

    def set(self, seconds: int) -> None:
        """Move it; processes notice within a second."""
        partial = self._file.with_suffix(".new")
        partial.write_text(f"{seconds:+d}\n")
        partial.chmod(0o644)
        partial.rename(self._file)

    def environment(self) -> dict[str, str]:
        """Return what lets a process see this clock; what it waits for is measured truly."""
        return {
            "LD_PRELOAD": str(find_clock()),
            "FAKETIME_TIMESTAMP_FILE": str(self._file),
            "FAKETIME_CACHE_DURATION": "1",
            "FAKETIME_DONT_FAKE_MONOTONIC": "1",
            "DONT_FAKE_MONOTONIC": "1",  # the same, as earlier versions call it
            "NO_FAKE_STAT": "1",
            "PYTHONPATH": f"{self._sleep}:{os.getcwd()}",
        }


class Disk:
    """A small disk of its own that can be filled to the last byte."""

    def __init__(self, folder: Path, size: str) -> None:
        folder.mkdir(exist_ok=True)
        run("mount", "-t", "tmpfs", "-o", f"size={size},mode=0777", "tmpfs", str(folder))
        self.folder, self._ballast = folder, folder / "ballast"

    def fill(self) -> None:
        """Leave no room at all."""
        with self._ballast.open("wb", buffering=0) as file, contextlib.suppress(OSError):
            while file.write(bytes(1 << 20)):
                pass

    def clear(self) -> None:
        """Give the room back."""
        self._ballast.unlink(missing_ok=True)


class Certificate:
    """A key, and a certificate that has been valid for a week for the address of this stage."""

    def __init__(self, folder: Path) -> None:
        self.key, self.file = folder / "server.key", folder / "server.crt"
        made = Clock(folder / "last-week")
        made.set(-7 * 24 * 3600)
        command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "60"]
        command += ["-subj", f"/CN={HERE}", "-addext", f"subjectAltName=IP:{HERE}"]
        command += ["-keyout", str(self.key), "-out", str(self.file)]
        surroundings = {**os.environ, **made.environment()}
        subprocess.run(command, check=True, capture_output=True, env=surroundings)
        self.key.chmod(0o600)

    def context(self) -> ssl.SSLContext:
        """Return what a server needs to speak TLS."""
        made = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        made.load_cert_chain(self.file, self.key)
        return made


class Database(PostgresServer):
    """PostgreSQL on a disk and a clock of its own, over TCP with passwords and TLS."""

    def __init__(self, folder: Path, certificate: Certificate, clock: Clock) -> None:
        folder.mkdir()
        super().__init__(durable=True, folder=folder)
        self.certificate, self.environment = certificate, clock.environment()
        key = self.folder / "server.key"
        shutil.copy(certificate.key, key)
        shutil.chown(key, "postgres")
        key.chmod(0o600)
        self.options |= {
            "listen_addresses": HERE,
            "port": str(POSTGRES_PORT),
            "ssl": "on",
            "ssl_cert_file": str(certificate.file),
            "ssl_key_file": str(key),
            "max_wal_size": "128MB",
        }
        rules = "local all all trust\nhostssl all all all scram-sha-256\n"
        (self.data / "pg_hba.conf").write_text(rules)
        self.start()
        self.execute(f"ALTER USER postgres PASSWORD '{PASSWORD}'")

    def prepare(self) -> None:
        """Put its files on a disk of their own."""
        self.data = self.folder / "disk" / "data"
        self.disk = Disk(self.folder / "disk", DATABASE_DISK)

    def recover(self) -> None:
        """Wait until it answers, and start it if it has ended, as a supervisor would.

        Raises:
            LaunchError: It does not come back.
        """
        end = time.monotonic() + POSTGRES_SECONDS
        while not self.answers():
            if self.process is None or self.process.poll() is not None:
                return self.start()
            if time.monotonic() > end:
                raise LaunchError("PostgreSQL does not come back.")
            time.sleep(0.1)
        return None

    def place(self, database: str) -> str:
        """Return where its owner finds a database, without a network."""
        return f"host={self.folder} port={POSTGRES_PORT} user=postgres dbname={database}"

    def execute(self, statement: str, database: str = "postgres") -> None:
        """Execute a statement as the server's owner, who needs no network."""
        with psycopg.connect(self.place(database), autocommit=True) as connection:
            connection.execute(statement)  # type: ignore[call-overload]

    def far_url(self, database: str) -> str:
        """Return a database's address as everybody else knows it."""
        trust = f"sslmode=verify-full&sslrootcert={self.certificate.file}"
        return f"postgresql://postgres:{PASSWORD}@{HERE}:{POSTGRES_PORT}/{database}?{trust}"


class Broker(BrokerServer):
    """A broker with a password, behind a door that speaks TLS."""

    def __init__(self, folder: Path, certificate: Certificate) -> None:
        folder.mkdir()
        super().__init__(folder)
        self.options = ["--requirepass", PASSWORD]
        self.password = PASSWORD
        self.start()
        self.door = FrontDoor([self.socket], address=HERE, tls=certificate.context())
        self._certificate = certificate

    @property
    def url(self) -> str:
        """Its address, as everybody knows it."""
        trust = f"ssl_cert_reqs=required&ssl_ca_certs={self._certificate.file}"
        return f"rediss://:{PASSWORD}@{HERE}:{self.door.port}/0?{trust}"

    def forget(self) -> None:
        """Lose every message."""
        with self.client() as client:
            client.flushall()


class FarWorker(Part):
    """A worker on what looks like another machine: other network, other process ids."""

    prefix = (
        *("ip", "netns", "exec", NETWORK),
        *("unshare", "--pid", "--fork", "--kill-child", "--mount-proc", "--uts"),
    )

    def cut(self, *, silently: bool) -> None:
        """Cut its network: its own plug is pulled, or packets vanish without a word."""
        if silently:
            run("ip", "link", "set", "far0", "down")
        else:
            run("ip", "-n", NETWORK, "link", "set", "far1", "down")

    def reconnect(self) -> None:
        """Give it its network back."""
        run("ip", "link", "set", "far0", "up")
        run("ip", "-n", NETWORK, "link", "set", "far1", "up")


def _make_network() -> None:
    names = Path("/run/netns")
    names.mkdir(exist_ok=True)
    run("mount", "-t", "tmpfs", "tmpfs", str(names))  # networks' names are files, and stay ours
    run("ip", "link", "set", "lo", "up")
    run("ip", "netns", "add", NETWORK)
    run("ip", "link", "add", "far0", "type", "veth", "peer", "name", "far1", "netns", NETWORK)
    run("ip", "address", "add", f"{HERE}/24", "dev", "far0")
    run("ip", "link", "set", "far0", "up")
    run("ip", "-n", NETWORK, "address", "add", f"{THERE}/24", "dev", "far1")
    run("ip", "-n", NETWORK, "link", "set", "far1", "up")
    run("ip", "-n", NETWORK, "link", "set", "lo", "up")


class Stage:
    """The installation, and everything that can be spoilt."""

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        _make_network()
        folder.chmod(0o755)
        names = ["database", "far", *(f"web-{n}" for n in range(WEBS))]
        names += [f"worker-{n}" for n in range(NEAR_WORKERS)]
        self.clocks = {name: Clock(folder / f"clock-{name}") for name in names}
        certificate = Certificate(folder)
        self.database = Database(folder / "pg", certificate, self.clocks["database"])
        self.broker = Broker(folder / "broker", certificate)
        self.home_disk = Disk(folder / "home", HOME_DISK)
        self.logs = folder / "logs"
        self.logs.mkdir()
        self.team = self.installation("chaos", workers=NEAR_WORKERS)
        self._engine = create_engine(self.url("chaos"), poolclass=NullPool)
        for number, web in enumerate(self.team.webs):
            web.environment |= self.clocks[f"web-{number}"].environment()
        for number, worker in enumerate(self.team.workers):
            worker.environment |= self.clocks[f"worker-{number}"].environment()
        near = self.team.workers[0]
        surroundings = {**near.environment, **self.clocks["far"].environment()}
        self.far = FarWorker("worker", self.logs / "far.log", surroundings)
        self.team.workers.append(self.far)
        for part in (*self.team.webs, *self.team.workers):
            part.bound = False  # threads that make faults start some; the namespace ends all
        stack.enter_context(self.team)

    def installation(self, database: str, *, workers: int) -> Installation:
        """Return an installation on a new database; not started yet."""
        self.database.execute(f"CREATE DATABASE {database}")
        upgrade(Settings(database_url=self.url(database)))
        return Installation(
            self.logs,
            webs=WEBS,
            workers=workers,
            **SETTINGS,
            ETASCOPE_HOME=str(self.home_disk.folder),
            ETASCOPE_DATABASE_URL=self.database.far_url(database),
            ETASCOPE_BROKER_URL=self.broker.url,
        )

    def url(self, database: str) -> str:
        """Return a database's address for this process, which no fault shall reach."""
        folder = self.database.folder
        return f"postgresql+psycopg://postgres@/{database}?host={folder}&port={POSTGRES_PORT}"

    def at_work(self) -> bool:
        """Return whether some worker trains; also if the database cannot tell."""
        try:
            with self._engine.connect() as connection:
                return connection.scalar(text(AT_WORK)) is not None
        except SQLAlchemyError:
            return True

    def parts(self) -> dict[str, Part]:
        """Return all processes of the product by name."""
        named: dict[str, Part] = {f"web {n}": part for n, part in enumerate(self.team.webs)}
        workers = self.team.workers[:NEAR_WORKERS]
        return named | {f"worker {n}": part for n, part in enumerate(workers)} | {"far": self.far}

    def revive(self, spoilt: set[str]) -> list[str]:
        """Start what has ended by itself, as a supervisor does; return the names of those."""
        found = []
        for name, part in self.parts().items():
            ended = part.process is not None and part.process.poll() is not None
            if name not in spoilt and ended:
                part.start()
                found.append(name)
        return found


@contextmanager
def build(folder: Path) -> Iterator[Stage]:
    """Build a stage in a folder and start everything on it; end all of it."""
    with ExitStack() as stack:
        yield Stage(folder, stack)


def processes(part: Part) -> list[psutil.Process]:
    """Return a part's processes, the first of all first."""
    if part.process is None or part.process.poll() is not None:
        return []
    with contextlib.suppress(psutil.NoSuchProcess):
        first = psutil.Process(part.process.pid)
        return [first, *first.children(recursive=True)]
    return []


def send(number: signal.Signals, to: list[psutil.Process]) -> None:
    """Send a signal to processes, some of which may have ended."""
    for process in to:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.send_signal(number)
