"""Real workers in processes of their own, quick to notice everything."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from backend.db import reading
from backend.operations.programs import die_with_parent
from backend.services import workers
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
            preexec_fn=die_with_parent(signal.SIGKILL),  # a stopped run leaves nothing
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
