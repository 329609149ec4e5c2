"""`etascope up`, for real: everything starts, everything stops, whatever happens to it."""

import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import psutil
import pytest

from backend.operations.launcher import StopSignals, address, free_port, only_one, why_not_ready
from backend.operations.programs import LaunchError, die_with_parent
from backend.settings import Settings

ROOT = Path(__file__).resolve().parents[3]
START_SECONDS = 150.0  # longer than the launcher itself waits before it gives up


def until(reached: Callable[[], bool], seconds: float, what: str) -> None:
    deadline = time.monotonic() + seconds
    while not reached():
        assert time.monotonic() < deadline, f"{what} took more than {seconds} s"
        time.sleep(0.05)


@dataclass
class Up:
    """A running `etascope up`."""

    home: Path
    process: subprocess.Popen[bytes]
    log: Path

    @property
    def output(self) -> str:
        return self.log.read_text()

    @property
    def url(self) -> str:
        found = re.search(r"ready at (http://\S+)", self.output)
        assert found is not None, self.output
        return found[1]

    def family(self) -> list[psutil.Process]:
        """Return every process it has started."""
        return list(psutil.Process(self.process.pid).children(recursive=True))

    def child(self, command: str) -> psutil.Process:
        """Return the child that runs a subcommand."""
        children = psutil.Process(self.process.pid).children()
        [found] = [process for process in children if command in process.cmdline()]
        return found


def start(home: Path, **environment: str) -> Up:
    ours = {"ETASCOPE_HOME": str(home), "ETASCOPE_PORT": "0", "PYTHONPATH": str(ROOT)}
    log = home / f"output-{time.monotonic_ns()}"
    with log.open("wb") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", "backend.cli", "up", "--no-first-study"],
            env={**os.environ, **ours, **environment},
            stdout=output,
            stderr=subprocess.STDOUT,
            preexec_fn=die_with_parent(signal.SIGKILL),  # a stopped run leaves nothing
        )
    return Up(home, process, log)


@contextmanager
def running(home: Path) -> Iterator[Up]:
    """Yield an `etascope up` that is ready; whatever happens to it, nothing of it remains."""
    up = start(home)
    family: list[psutil.Process] = []
    try:
        until(
            lambda: "ready at" in up.output or up.process.poll() is not None,
            START_SECONDS,
            "starting",
        )
        assert up.process.poll() is None, up.output
        family = up.family()
        yield up
    finally:
        up.process.kill()
        up.process.wait()
        for process in family:
            if process.is_running():
                process.kill()


def gone(family: list[psutil.Process]) -> bool:
    living = [process for process in family if process.is_running()]
    return all(process.status() == psutil.STATUS_ZOMBIE for process in living)


@pytest.fixture
def home() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="eta", dir="/tmp") as folder:
        yield Path(folder)


@pytest.fixture(scope="module")
def shared() -> Iterator[Up]:
    """One `etascope up` for the tests that leave it running."""
    with (
        tempfile.TemporaryDirectory(prefix="eta", dir="/tmp") as folder,
        running(Path(folder)) as up,
    ):
        yield up


def test_second_up_is_told_where_the_first_one_listens(shared: Up) -> None:
    assert why_not_ready(shared.url) is None

    second = start(shared.home)

    assert second.process.wait(30) == 1
    assert f"already running with the home {shared.home}, at {shared.url}" in second.output


def test_crashed_worker_is_started_again_and_the_person_told(shared: Up) -> None:
    crashed = shared.child("worker")

    crashed.kill()

    until(lambda: "The worker is started again." in shared.output, 20, "the restart")
    assert "The worker ended (killed by SIGKILL)" in shared.output
    assert shared.child("worker").pid != crashed.pid


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="only Linux has PDEATHSIG")
def test_no_process_outlives_a_killed_launcher_nor_a_ctrl_c(home: Path) -> None:
    with running(home) as up:
        family = up.family()
        up.process.kill()
        up.process.wait()
        until(lambda: gone(family), 10, "the end of the children")

    with running(home) as up:  # nothing left behind is in its way
        family = up.family()
        assert len(family) >= 3
        up.process.send_signal(signal.SIGINT)
        assert up.process.wait(20) == 0
        assert gone(family)
        assert up.output.endswith("Stopped.\n")


def test_used_port_is_refused_with_one_that_works(home: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        refused = start(home, ETASCOPE_PORT=str(port))
        assert refused.process.wait(30) == 1
    sentence = refused.output.splitlines()[-1]
    assert f"Port {port} is used by another program" in sentence
    suggested = re.search(r"ETASCOPE_PORT=(\d+) etascope up", sentence)
    assert suggested is not None
    assert free_port("127.0.0.1", int(suggested[1])) == int(suggested[1])
    assert not (home / "logs").exists()


def test_foreign_address_is_refused_in_words() -> None:
    with pytest.raises(LaunchError, match=r"Cannot listen on 192\.0\.2\.1"):
        free_port("192.0.2.1", 8050)


def test_home_that_cannot_be_written_is_refused_in_words(home: Path) -> None:
    (home / "file").touch()
    with (
        pytest.raises(LaunchError, match="Set ETASCOPE_HOME to a folder you may write to"),
        only_one(home / "file" / "below"),
    ):
        pass


def test_home_is_free_again_afterwards(home: Path) -> None:
    for _ in range(2):
        with only_one(home) as announce:
            announce("http://127.0.0.1:1")
            with pytest.raises(LaunchError, match=r"127\.0\.0\.1:1"), only_one(home):
                pass


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        ("127.0.0.1", "http://127.0.0.1:8050"),
        ("0.0.0.0", "http://127.0.0.1:8050"),
        ("::1", "http://[::1]:8050"),
        ("localhost", "http://localhost:8050"),
    ],
)
def test_address_is_one_a_browser_here_can_open(host: str, expected: str) -> None:
    settings = Settings(host=host, port=8050, auth=True, secret="2fK8-vQ3nD5rT7wY9zA1cE4gH6jL0mP-")
    assert address(settings) == expected


def test_signals_are_counted_and_then_as_before() -> None:
    before = signal.getsignal(signal.SIGTERM)
    hangup = signal.signal(signal.SIGHUP, signal.SIG_DFL)  # under nohup it would be ignored
    try:
        with StopSignals() as stop:
            os.kill(os.getpid(), signal.SIGTERM)
            os.kill(os.getpid(), signal.SIGHUP)
            until(lambda: stop.count == 2, 5, "the signals")
    finally:
        signal.signal(signal.SIGHUP, hangup)
    assert signal.getsignal(signal.SIGTERM) is before


def test_nohup_is_respected() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with StopSignals() as stop:
            os.kill(os.getpid(), signal.SIGHUP)
            time.sleep(0.05)
            assert stop.count == 0
    finally:
        signal.signal(signal.SIGHUP, before)


def test_missing_part_is_named_while_waiting() -> None:
    class NotReady(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(503)
            self.end_headers()
            self.wfile.write(
                b'{"ready": false, "checks": {"database": {"ready": true, "reason": null},'
                b' "workers": {"ready": false, "reason": "no worker has been heard of"}}}'
            )

        def log_message(self, *_: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), NotReady) as server:
        threading.Thread(target=server.handle_request, daemon=True).start()
        reason = why_not_ready(f"http://127.0.0.1:{server.server_port}")
    assert reason == "workers: no worker has been heard of"
    assert why_not_ready("http://127.0.0.1:9") == "the web server does not answer yet"
