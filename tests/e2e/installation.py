"""`etascope up` in a home of its own, for tests and for pictures."""

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from backend.operations.programs import die_with_parent
from ib_core.reproduction.bundle import SHIPPED_NAMES, shipped_folder
from ib_core.reproduction.studies import read_studies
from tests.servers import wait_for

ROOT = Path(__file__).resolve().parents[2]
# A machine may be busy with much else; how fast things are is measured elsewhere.
START_SECONDS = 480.0
STUDY_SECONDS = 900.0


#: Studies of the bundles that come with the program.
SHIPPED = sum(len(read_studies(shipped_folder(name) / "studies.json")) for name in SHIPPED_NAMES)


def free_port() -> int:
    with socket.socket() as line:
        line.bind(("127.0.0.1", 0))
        return line.getsockname()[1]


@dataclass(frozen=True)
class Installation:
    """Where it answers, what it was started with, and what it prints."""

    url: str
    environment: dict[str, str]
    log: Path


@contextmanager
def installation(home: Path, *options: str, **settings: str) -> Iterator[Installation]:
    """Start everything and wait until it is ready.

    Args:
        home: Its folder.
        options: Of `etascope up`.
        settings: As in the environment, without their prefix.
    """
    port = free_port()
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith("ETASCOPE_")},
        "PYTHONPATH": str(ROOT),
        "ETASCOPE_HOME": str(home),
        "ETASCOPE_PORT": str(port),
        **{f"ETASCOPE_{name}": value for name, value in settings.items()},
    }
    started = Installation(f"http://127.0.0.1:{port}", environment, home / "up.log")
    ready = f"{started.url}/api/ready"
    command = [sys.executable, "-P", "-m", "backend.cli", "up", *options]
    with started.log.open("wb") as log:
        process = subprocess.Popen(
            command, env=environment, stdout=log, stderr=log, cwd=home,
            preexec_fn=die_with_parent(signal.SIGINT),  # a killed run leaves nothing
        )  # fmt: skip
        try:
            wait_for(lambda: answers(ready), seconds=START_SECONDS, what="etascope up")
            yield started
        finally:
            process.send_signal(signal.SIGINT)
            try:
                process.wait(30)
            except subprocess.TimeoutExpired:
                process.kill()


def begin_first_study(url: str) -> None:
    """Do what the first browser does that opens the start page."""
    httpx.post(f"{url}/api/first-study", trust_env=False, timeout=60).raise_for_status()


def wait_for_study(url: str, study_id: int = 1) -> None:
    """Wait until a study has ended well; the first one is an installation's own."""
    wait_for(
        lambda: study_state(url, study_id) == "completed",
        seconds=STUDY_SECONDS, every=0.3, what=f"study {study_id}",
    )  # fmt: skip


def submit(url: str, name: str, sweep: dict[str, Any], **about: Any) -> int:
    """Begin a study with one sweep; return its id."""
    with httpx.Client(base_url=url, trust_env=False, timeout=30) as http:
        made = http.post("/api/studies", json={"name": name, **about}).raise_for_status()
        study = int(made.json()["id"])
        http.post(f"/api/studies/{study}/sweeps", json=sweep).raise_for_status()
    return study


def answers(url: str) -> bool:
    try:
        return httpx.get(url, trust_env=False, timeout=5).is_success
    except httpx.TransportError:
        return False


def study_state(url: str, study_id: int) -> str | None:
    answer = httpx.get(f"{url}/api/studies/{study_id}", trust_env=False, timeout=10)
    return answer.json().get("state") if answer.is_success else None
