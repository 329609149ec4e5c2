"""A real browser for tests, and what must never be seen in one."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar
from urllib.parse import urlsplit

from playwright.sync_api import BrowserContext, Page

from backend.bench import open_browser
from tests.servers import wait_for

__all__ = [
    "PATIENCE_MS",
    "Watch",
    "insist",
    "open_browser",
    "patient",
    "rested",
    "settled",
    "watch",
]

#: Machines are busy; a page that is slow is not a page that is wrong.
PATIENCE_MS = 150_000

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


#: A page is there, everything on it that can be seen is drawn, and nothing moves any more.
SETTLED = """() => {
  const says = (note) => note.text && note.text !== 'Drawing…';
  const shows = (plot) => plot && plot.data && (plot.data.length > 0
    || (plot.layout.annotations || []).some(says));
  const drawn = (graph) => graph.offsetParent === null
    || shows(graph.querySelector('.js-plotly-plot'));
  const seen = (part) => part.offsetParent !== null;
  const near = (box) => box.bottom > 0 && box.top < window.innerHeight;
  const filled = (grid) => !near(grid.getBoundingClientRect())
    || (grid.querySelector('.ag-row') && grid.querySelector('.ag-header-cell'));
  const ends = (motion) => motion.effect.getComputedTiming().iterations !== Infinity;
  return document.querySelector('#page > *')
    && ![...document.querySelectorAll('.page-skeleton, .mantine-Skeleton-root')].some(seen)
    && !document.querySelector('.ag-row-loading')
    && !document.querySelector('.dash-graph--pending')
    && [...document.querySelectorAll('.dash-graph')].every(drawn)
    && [...document.querySelectorAll('.trial-grid')].every(filled)
    && document.getAnimations().filter(ends).length === 0;
}"""
#: Until a plot has been given nothing new for a second.
RESTED = """async (place) => {
  const plot = document.querySelector(place + ' .js-plotly-plot');
  let known = null;
  while (known !== plot.data) {
    known = plot.data;
    await new Promise((done) => setTimeout(done, 1000));
  }
}"""


Opened = TypeVar("Opened", Page, BrowserContext)


def patient(opened: Opened) -> Opened:
    """Let everything on a page, or on every page of a window, take its time."""
    opened.set_default_timeout(PATIENCE_MS)
    return opened


def settled(page: Page) -> None:
    """Wait until a page shows all it has."""
    page.wait_for_function(SETTLED, timeout=PATIENCE_MS)


def rested(page: Page, place: str) -> None:
    """Wait until a plot is not drawn anew any more."""
    page.evaluate(RESTED, place)


#: How long a touch may take to be seen; after it the touch counts as lost.
LOST_SECONDS = 40.0


def insist(act: Callable[[], object], seen: Callable[[], object], *, what: str) -> None:
    """Act until it is seen: a page that is drawn anew just then loses a touch, as a person's.

    Args:
        act: The touch.
        seen: Return whether it had its effect, without waiting for it.
        what: The effect, in words.
    """

    def had_effect() -> bool:
        act()
        end = time.monotonic() + LOST_SECONDS
        while not (found := bool(seen())) and time.monotonic() < end:
            time.sleep(0.05)
        return found

    wait_for(had_effect, what=what)
