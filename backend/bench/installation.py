"""What is measured with: a real installation in a folder of its own, a throw-away PostgreSQL."""

import contextlib
import math
import os
import pwd
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import psutil
import psycopg
from sqlalchemy import Engine, func, select, update

from backend.db import build_engine, clock, reading, transaction
from backend.models import ShardRow, ShardState, SweepTrialRow, TrialRow
from backend.operations.broker import EmbeddedBroker, find_server
from backend.operations.database import upgrade
from backend.operations.launcher import address, free_port
from backend.operations.programs import (
    Child,
    LaunchError,
    environment,
    find_postgres,
    stop_all,
)
from backend.services import shards
from backend.services.shards import ClaimedTrial
from backend.services.trials import UNFINISHED
from backend.settings import Settings
from ib_core.sweep import CurvePoint, Divergence, Outcome, TrialResult, TrialSpec

START_SECONDS = 600.0
#: A measurement may be slower than it should be; it must still end.
ANSWER_SECONDS = 600.0


@dataclass(frozen=True, slots=True)
class WebProcess:
    """A running web process.

    Attributes:
        http: Asks it, over one kept connection.
        engine: Its database, from outside.
        pid: Its process id.
    """

    http: httpx.Client
    engine: Engine
    pid: int

    def submit(self, sweep: Mapping[str, Any]) -> tuple[int, int]:
        """Submit a sweep in a study of its own and return the ids of both."""
        made = self.http.post("/api/studies", json={"name": "Measured"}).raise_for_status()
        study = int(made.json()["id"])
        answer = self.http.post(f"/api/studies/{study}/sweeps", json=sweep).raise_for_status()
        return study, int(answer.json()["id"])

    def wait_for(self, sweep_id: int) -> float:
        """Return when a sweep's last trial had ended; asks the database, not the web process."""
        left = (
            select(func.count())
            .select_from(SweepTrialRow)
            .join(TrialRow, TrialRow.id == SweepTrialRow.trial_id)
            .where(SweepTrialRow.sweep_id == sweep_id, TrialRow.state.in_(UNFINISHED))
        )
        while True:
            with reading(self.engine) as session:
                if not session.scalar(left):
                    return time.perf_counter()
            time.sleep(0.05)

    def megabytes(self) -> float:
        """Return the memory it has in use (resident set)."""
        return float(psutil.Process(self.pid).memory_info().rss) / 1e6

    def processor_seconds(self) -> float:
        """Return the processor time it has used."""
        times = psutil.Process(self.pid).cpu_times()
        return float(times.user + times.system)

    def most_megabytes(self) -> float:
        """Return the most it has ever had in use; where only Linux would tell, what it has now."""
        try:
            status = Path(f"/proc/{self.pid}/status").read_text()
        except OSError:
            return self.megabytes()
        peak = next(line for line in status.splitlines() if line.startswith("VmHWM"))
        return int(peak.split()[1]) * 1024 / 1e6


@contextmanager
def web_process(*, worker: bool = False, database_url: str = "") -> Iterator[WebProcess]:
    """Start a broker and a web process, and leave nothing of them behind.

    Whatever this shell's settings name is left alone: only a temporary folder is written to.

    Args:
        worker: Whether a worker trains what is submitted.
        database_url: Its database; empty: an SQLite file of its own.
    """
    with ExitStack() as stack:
        home = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="etascope-bench-")))
        port = free_port("127.0.0.1", 0)
        settings = Settings(
            home=home,
            host="127.0.0.1",
            port=port,
            auth=False,
            database_url=database_url,
            broker_url="",
        )
        upgrade(settings)
        broker = EmbeddedBroker(home, settings.broker_socket, find_server())
        children = [broker.child(), _part("api", settings)]
        stack.callback(lambda: stop_all(children[::-1], grace=3.0))
        children[0].start()
        broker.wait(children[0])
        children[1].start()
        http = stack.enter_context(
            httpx.Client(base_url=address(settings), timeout=ANSWER_SECONDS, trust_env=False)
        )
        _wait(http, children[1])
        engine = build_engine(settings.database)
        stack.callback(engine.dispose)
        if worker:
            children.append(_part("worker", settings))
            children[2].start()
        yield WebProcess(http, engine, children[1].pid)


def _part(command: str, settings: Settings) -> Child:
    surroundings = environment(settings)
    for name in ("DATABASE_URL", "BROKER_URL", "AUTH"):
        surroundings.pop(f"ETASCOPE_{name}", None)
    surroundings["ETASCOPE_DATABASE_URL"] = settings.database
    return Child(
        {"api": "The web server", "worker": "The worker"}[command],
        [sys.executable, "-P", "-m", "backend.cli", command],
        log=settings.home / "logs" / f"{command}.log",
        environment=surroundings,
    )


def _wait(http: httpx.Client, child: Child) -> None:
    deadline = time.monotonic() + START_SECONDS
    while child.running and time.monotonic() < deadline:
        try:
            http.get("/api/health").raise_for_status()
        except httpx.HTTPError:
            time.sleep(0.05)
        else:
            return
    raise LaunchError(f"The web server does not answer. The end of its log:\n{child.tail()}")


#: Where the made-up EB begins to break, and how many evaluations a trial reports.
BREAKING_RATE = 2.0
POINTS = 11


def finish_everything(engine: Engine) -> int:
    """Claim every waiting shard and record made-up results; return how many trials that were."""
    with transaction(engine) as session:
        waiting: Sequence[int] = session.scalars(
            select(ShardRow.id).where(ShardRow.state == ShardState.QUEUED)
        ).all()
    count = 0
    for shard_id in waiting:
        with transaction(engine) as session:
            claim = shards.claim(session, shard_id=shard_id, worker="bench")
            if claim is not None:
                finished = {trial.id: made_up(trial) for trial in claim.trials}
                count += len(shards.report(session, claim=claim, finished=finished))
                shards.finish(session, claim=claim)
    return count


def touch(engine: Engine, *, sweep_id: int) -> None:
    """Let one trial end once more, so that no kept answer about its study is true any longer."""
    with transaction(engine) as session:
        members = select(SweepTrialRow.trial_id).where(SweepTrialRow.sweep_id == sweep_id)
        found = session.scalars(members.limit(1)).one()
        session.execute(update(TrialRow).where(TrialRow.id == found).values(finished_at=clock()))


def made_up(trial: ClaimedTrial) -> TrialResult:
    """Return a result that depends on rate, method and seed roughly as real ones do."""
    spec = TrialSpec.from_dict(trial.spec)
    away = abs(math.log10(spec.lr))
    noise = (hash((spec.seed, spec.lr)) % 1000) / 10_000
    broken = spec.method == "eb" and spec.lr > BREAKING_RATE
    lost = broken and spec.seed % 3 == 0
    loss = math.nan if lost else 0.1 + 0.2 * away + noise + (50.0 if broken else 0.0)
    return TrialResult(
        spec=spec,
        outcome=Outcome.DIVERGED if broken else Outcome.COMPLETED,
        initial_loss=2.3,
        train_loss=loss,
        test_loss=loss * 1.05,
        train_accuracy=0.1 if broken else 0.9 - noise,
        test_accuracy=0.1 if broken else 0.88 - noise,
        divergence=Divergence(2, "loss") if broken else None,
        seconds=0.5 + noise,
        curve=_curve(loss),
        fingerprint=trial.fingerprint,
        record={"engine": "bench", "note": "made up by etascope bench, never trained"},
        error=None,
    )


def _curve(last: float) -> tuple[CurvePoint, ...]:
    end = last if math.isfinite(last) else 1e6
    return tuple(
        CurvePoint(step, step / 2, 2.3 + (end - 2.3) * step / (POINTS - 1), 2.4, 0.5, 0.5)
        for step in range(POINTS)
    )


# --- A throw-away PostgreSQL, for measurements and tests


#: Durability costs time, and what is thrown away needs none.
POSTGRES_OPTIONS = {
    "listen_addresses": "",
    "fsync": "off",
    "synchronous_commit": "off",
    "full_page_writes": "off",
    "max_connections": "200",
}
POSTGRES_SECONDS = 180.0
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
        end = time.monotonic() + POSTGRES_SECONDS
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
        self.process.wait(POSTGRES_SECONDS)

    def kill(self) -> None:
        """End the server and every process of it without warning."""
        assert self.process is not None
        for process in self.family():
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()
        self.process.wait(POSTGRES_SECONDS)

    def remove(self) -> None:
        """Stop it, and delete its files."""
        if self.process is not None and self.process.poll() is None:
            self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)
