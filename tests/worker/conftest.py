"""Real workers in processes of their own, quick to notice everything."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest
from sqlalchemy import select

from backend.db import reading
from backend.models import CurveRow
from backend.schemas import SweepRead
from backend.services import sweeps, workers
from backend.settings import get_settings
from tests.servers import wait_for

#: Everything that takes seconds in earnest takes fractions here.
QUICK = {
    "ETASCOPE_LEASE_SECONDS": "4",
    "ETASCOPE_HEARTBEAT_SECONDS": "0.4",
    "ETASCOPE_REAP_SECONDS": "0.3",
    "ETASCOPE_FLUSH_SECONDS": "0.2",
    "ETASCOPE_RETRY_SECONDS": "0.2",
    "ETASCOPE_THREADS": "1",
    "ETASCOPE_DEVICE": "cpu",
}
START_SECONDS = 90.0
ENDED = ("completed", "failed", "cancelled")


@pytest.fixture
def quick(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Settings for impatient tests, here and in every process started from here."""
    del home
    for name, value in QUICK.items():
        monkeypatch.setenv(name, value)
    get_settings.cache_clear()


class WorkerServer:
    """`etascope worker`: a parent that listens and a child that trains."""

    def __init__(self, log: Path, program: Sequence[str]) -> None:
        self.log = log
        self._file = log.open("ab")
        self.process = subprocess.Popen(
            [sys.executable, *program],
            stdout=self._file,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            env={**os.environ, "PYTHONPATH": os.getcwd()},
        )

    def child(self) -> int:
        """Return the process id of the training process."""
        found = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text()
        return int(found.split()[0])

    def kill(self) -> None:
        """End parent and child without warning."""
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        self._file.close()

    def stop(self, seconds: float = 30.0) -> None:
        """End politely, and insist that it does end."""
        self.process.terminate()
        self.process.wait(seconds)
        self._file.close()

    def says(self, text: str) -> bool:
        return text in self.log.read_text(errors="replace")


@pytest.fixture
def start_worker(quick: None, tmp_path: Path) -> Iterator[Callable[..., WorkerServer]]:
    """Start workers that end with the test."""
    started: list[WorkerServer] = []

    def start(*program: str) -> WorkerServer:
        before = names()
        log = tmp_path / f"worker-{len(started)}.log"
        worker = WorkerServer(log, program or ("-m", "worker.main"))
        started.append(worker)
        wait_for(lambda: names() - before, seconds=START_SECONDS, what="a worker to arrive")
        return worker

    yield start
    for worker in started:
        worker.kill()


def names() -> set[str]:
    with reading() as session:
        return {worker.name for worker in workers.list_all(session) if worker.alive}


def sweep(sweep_id: int) -> SweepRead:
    with reading() as session:
        return sweeps.get(session, sweep_id=sweep_id)


def wait_until_running(sweep_id: int) -> None:
    """Wait until trials are being trained and have shown a first point."""

    def begun() -> bool:
        with reading() as session:
            return session.scalar(select(CurveRow.trial_id).limit(1)) is not None

    wait_for(
        lambda: sweep(sweep_id).progress["running"] > 0 and begun(),
        seconds=START_SECONDS,
        what="training to begin",
    )


def wait_until_ended(sweep_id: int, seconds: float = 60.0) -> SweepRead:
    def ended() -> SweepRead | None:
        found = sweep(sweep_id)
        return found if found.state in ENDED and not found.progress["running"] else None

    return wait_for(ended, seconds=seconds, what=f"sweep {sweep_id} to end", every=0.1)
