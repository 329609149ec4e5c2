"""`etascope up` in a home of its own, for tests and for pictures."""

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

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
    """Start everything and return its address once the first study has ended."""
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
        wait_for(lambda: study_state(url, 1) == "completed", seconds=STUDY_SECONDS, every=0.5)
        yield url
    finally:
        process.send_signal(signal.SIGINT)
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            process.kill()
        log.close()


def answers(url: str) -> bool:
    try:
        return httpx.get(url, trust_env=False, timeout=5).is_success
    except httpx.TransportError:
        return False


def study_state(url: str, study_id: int) -> str | None:
    answer = httpx.get(f"{url}/api/studies/{study_id}", trust_env=False, timeout=10)
    return answer.json().get("state") if answer.is_success else None
