"""A real browser for tests, and what must never be seen in one."""

from dataclasses import dataclass, field
from urllib.parse import urlsplit

from playwright.sync_api import Page

from backend.bench.installation import open_browser

__all__ = ["Watch", "open_browser", "rested", "settled", "watch"]

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


def settled(page: Page) -> None:
    """Wait until a page shows all it has."""
    page.wait_for_function(SETTLED, timeout=60_000)


def rested(page: Page, place: str) -> None:
    """Wait until a plot is not drawn anew any more."""
    page.evaluate(RESTED, place)
