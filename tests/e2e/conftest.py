"""A whole Etascope for the browser tests, and a dashboard whose API can go away."""

import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass

import pytest
import uvicorn
from fastapi import FastAPI
from playwright.sync_api import Browser, BrowserContext, Page, expect

from backend.operations.programs import missing_browser
from dashboard.app import create_dash_app
from tests.dashboard.fake_api import FakeApi
from tests.e2e.browser import PATIENCE_MS, Watch, open_browser, patient, watch
from tests.e2e.installation import begin_first_study, free_port, installation, wait_for_study
from tests.servers import missing

expect.set_options(timeout=PATIENCE_MS)  # two cores train, serve and draw at once


@pytest.fixture(scope="session")
def site(tmp_path_factory) -> Iterator[str]:
    """Run `etascope up` in a home of its own."""
    with installation(tmp_path_factory.mktemp("home"), "--no-paper") as started:
        begin_first_study(started.url)
        yield started.url


@pytest.fixture(scope="session")
def first_study(site: str) -> None:
    """Wait until the installation's own first study has ended."""
    wait_for_study(site)


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    if (lack := missing_browser()) is not None:
        missing(lack.part, lack.advice)
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


@pytest.fixture(scope="session")
def window(browser) -> Iterator[BrowserContext]:
    """Open a window whose pages have the large scripts in their cache, as a person's have."""
    looks = {"viewport": {"width": 1280, "height": 900}, "color_scheme": "light"}
    context = patient(browser.new_context(**looks))
    yield context
    context.close()


@pytest.fixture
def visit(window, site) -> Iterator[Visit]:
    """Open a page of the real thing; whatever it complained about fails the test."""
    page = window.new_page()
    seen = watch(page, site)
    yield Visit(page, site, seen)
    page.close()
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
