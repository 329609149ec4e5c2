"""`etascope up` in a home of its own, for tests and for pictures."""

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx

from tests.servers import wait_for

ROOT = Path(__file__).resolve().parents[2]
START_SECONDS = 180.0
STUDY_SECONDS = 240.0


def free_port() -> int:
    with socket.socket() as line:
        line.bind(("127.0.0.1", 0))
        return line.getsockname()[1]


@contextmanager
def installation(home: Path) -> Iterator[str]:
    """Start everything and return its address once it is ready; its first study runs."""
    port = free_port()
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith("ETASCOPE_")},
        "PYTHONPATH": str(ROOT),
        "ETASCOPE_HOME": str(home),
        "ETASCOPE_PORT": str(port),
    }
    log = (home / "up.log").open("wb")
    command = [sys.executable, "-P", "-m", "backend.cli", "up", "--no-paper"]
    process = subprocess.Popen(command, env=environment, stdout=log, stderr=log, cwd=home)
    url = f"http://127.0.0.1:{port}"
    try:
        wait_for(lambda: answers(f"{url}/api/ready"), seconds=START_SECONDS, what="etascope up")
        yield url
    finally:
        process.send_signal(signal.SIGINT)
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            process.kill()
        log.close()


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
