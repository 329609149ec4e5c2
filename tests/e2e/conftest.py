"""A whole Etascope for the browser tests, and a dashboard whose API can go away."""

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest
import uvicorn
from fastapi import FastAPI
from playwright.sync_api import Browser, Page, expect

from dashboard.app import create_dash_app
from tests.dashboard.fake_api import FakeApi
from tests.e2e.browser import Watch, find_browser, open_browser, watch
from tests.servers import missing, wait_for

ROOT = Path(__file__).resolve().parents[2]
#: Machines are busy; a page that is slow is not a page that is wrong.
PATIENCE_MS = 60_000
START_SECONDS = 180.0
STUDY_SECONDS = 240.0
expect.set_options(timeout=20_000)  # two cores train, serve and draw at once


def free_port() -> int:
    with socket.socket() as line:
        line.bind(("127.0.0.1", 0))
        return line.getsockname()[1]


@pytest.fixture(scope="session")
def site(tmp_path_factory) -> Iterator[str]:
    """Run `etascope up` in a home of its own; its first study has ended."""
    home, port = tmp_path_factory.mktemp("home"), free_port()
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


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    if find_browser() is None:
        missing("A browser", "install the package chromium")
    with open_browser() as opened:
        yield opened


@dataclass
class Visit:
    """A page, where it is, and what it complained about."""

    page: Page
    url: str
    seen: Watch

    def open(self, path: str) -> Page:
        self.page.goto(self.url + path)
        return self.page


@pytest.fixture
def visit(browser, site) -> Iterator[Visit]:
    """Open a page of the real thing; whatever it complained about fails the test."""
    context = browser.new_context(viewport={"width": 1280, "height": 900}, color_scheme="light")
    context.set_default_timeout(PATIENCE_MS)
    page = context.new_page()
    seen = watch(page, site)
    yield Visit(page, site, seen)
    context.close()
    assert seen.complaints == []
    assert seen.foreign == []


@dataclass
class FakeSite:
    """A dashboard on a fake API."""

    url: str
    api: FakeApi


@pytest.fixture
def fake_site() -> Iterator[FakeSite]:
    """Serve a dashboard from a thread."""
    api, server = FakeApi(), FastAPI()
    create_dash_app(server, api)
    port = free_port()
    config = uvicorn.Config(server, host="127.0.0.1", port=port, log_level="error")
    running = uvicorn.Server(config)
    thread = threading.Thread(target=running.run, daemon=True)
    thread.start()
    while not running.started:
        time.sleep(0.02)
    yield FakeSite(f"http://127.0.0.1:{port}", api)
    running.should_exit = True
    thread.join(10)
