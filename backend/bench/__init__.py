"""What the service takes: time and memory of a real web process, for `etascope bench`.

| module | what it is for |
| --- | --- |
| `installation` | a real installation, finished trials without training, a throw-away PostgreSQL |
| `service` | submissions, reads and memory; what people who watch cost the worker |
| `ui` | how long a person waits at the dashboard |
| `crowd` | how long others wait: beside listeners, dawdlers, the worst bodies, and agents |
| `history` | what a million trials cost |

Here is the real browser that two of them look with.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from backend.operations.programs import find_browser
from ib_core.errors import IBError

if TYPE_CHECKING:  # comes with the test tools; `etascope` must start without it
    from playwright.sync_api import Browser

BROWSER_FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


class NoBrowser(IBError):
    """A measurement that needs a browser where there is none."""

    code = "no_browser"


@contextmanager
def open_browser() -> "Iterator[Browser]":
    """Start a browser, and end it.

    Raises:
        NoBrowser: If there is none, or nothing to drive it with.
    """
    try:
        from playwright.sync_api import Error, sync_playwright
    except ImportError:
        words = "This needs the test tools: python -m pip install -e '.[server,dev]'"
        raise NoBrowser(f"Playwright is not installed. {words}") from None
    with sync_playwright() as playwright:
        try:
            browser = playwright.chromium.launch(
                executable_path=find_browser(), args=list(BROWSER_FLAGS)
            )
        except Error as error:
            words = "Install the package chromium, or run: playwright install chromium"
            raise NoBrowser(f"No browser could be started. {words}") from error
        try:
            yield browser
        finally:
            browser.close()
