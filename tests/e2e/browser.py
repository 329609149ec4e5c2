"""A real browser for tests, and what must never be seen in one."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from playwright.sync_api import Browser, Page, sync_playwright

FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
PROGRAMS = ("chromium", "chromium-browser", "google-chrome")


def find_browser() -> str | None:
    """Return the browser on PATH; None: playwright's own."""
    return next((found for name in PROGRAMS if (found := shutil.which(name))), None)


@contextmanager
def open_browser() -> Iterator[Browser]:
    """Start a browser, and end it."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=find_browser(), args=FLAGS)
        try:
            yield browser
        finally:
            browser.close()


@dataclass
class Watch:
    """What a page complained about, and whom it asked.

    Attributes:
        complaints: Console errors and uncaught exceptions.
        foreign: Requests to other hosts than the server's.
    """

    complaints: list[str] = field(default_factory=list)
    foreign: list[str] = field(default_factory=list)


def watch(page: Page, url: str) -> Watch:
    """Begin to note a page's complaints and its requests elsewhere."""
    seen, home = Watch(), urlsplit(url).netloc

    def note_request(address: str) -> None:
        parts = urlsplit(address)
        if parts.scheme in ("http", "https", "ws", "wss") and parts.netloc != home:
            seen.foreign.append(address)

    page.on(
        "console",
        lambda message: seen.complaints.append(message.text) if message.type == "error" else None,
    )
    page.on("pageerror", lambda error: seen.complaints.append(str(error)))
    page.on("request", lambda request: note_request(request.url))
    return seen


def settled(page: Page, pause: int = 300) -> None:
    """Wait until Dash has answered everything and plots are drawn."""
    page.wait_for_load_state("networkidle", timeout=60_000)
    page.wait_for_function(
        "() => !document.querySelector('.page-skeleton') && !document.title.startsWith('Updating')"
    )
    page.wait_for_timeout(pause)
