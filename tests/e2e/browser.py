"""A real browser for tests, and what must never be seen in one."""

from dataclasses import dataclass, field
from urllib.parse import urlsplit

from playwright.sync_api import Page

from backend.bench.browser import find_browser, open_browser

__all__ = ["Watch", "find_browser", "open_browser", "settled", "watch"]

#: Kinds of console message that our pages must not cause.
BAD = ("error", "warning")


@dataclass
class Watch:
    """What a page complained about, and whom it asked.

    Attributes:
        complaints: Console errors and warnings, and uncaught exceptions.
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
        lambda message: seen.complaints.append(message.text) if message.type in BAD else None,
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
