"""What `etascope up` does for an empty history: a first study, and then the paper's reproduction.

The first study begins when the first browser opens the start page, so that somebody sees its
curve grow; without a browser it begins after a minute. The reproduction comes when the study has
ended: reading ten thousand trials would slow it down.
"""

import threading
import time
from collections.abc import Callable

import httpx

from backend.client import Client, calls
from backend.client.synchronous import ENDED

#: So long a browser has the chance to open before the first study begins without one.
PATIENCE_SECONDS = 60.0
LOOK_SECONDS = 2.0

Say = Callable[[str], None]


def welcome_beside(url: str, *, paper: bool, say: Say, stopping: Callable[[], object]) -> None:
    """Welcome whoever comes, in a thread that ends with us.

    Args:
        url: Where the server listens.
        paper: Whether the reproduction is wanted.
        say: Called with sentences for the person at the terminal.
        stopping: True as soon as a server that does not answer is no news.
    """

    def run() -> None:
        # A proxy from the environment would not find our loopback address.
        http = httpx.Client(base_url=url, timeout=30.0, trust_env=False)
        try:
            with Client(http=http) as client:
                welcome(client, paper=paper, say=lambda study: say(_running(url, study)))
        except Exception as error:  # a picture to start with is not worth refusing to start
            if not stopping():
                say(f"The first study could not be prepared: {error}")

    threading.Thread(target=run, name="welcome", daemon=True).start()


def _running(url: str, study_id: int) -> str:
    return f"A first study is running: {url}/studies/{study_id}"


def welcome(
    client: Client,
    *,
    paper: bool,
    say: Callable[[int], None],
    patience: float = PATIENCE_SECONDS,
    look: float = LOOK_SECONDS,
) -> None:
    """Begin the first study unless a browser does, wait for its end, then load the paper's bundle.

    An installation that was stopped in between goes on where it was; one with studies of its own
    is left alone.

    Args:
        client: Of the server.
        paper: Whether the reproduction is wanted.
        say: Told the first study's id as soon as it runs.
        patience: Seconds to wait for a browser.
        look: Seconds between two looks.
    """
    deadline = time.monotonic() + patience
    while (study := _only_study(client)) == 0 and time.monotonic() < deadline:
        time.sleep(look)
    if study is None:
        return
    found = client.send(calls.begin_first_study()).study_id
    if found is None or found != (study or found):
        return
    if client.study(found).state not in ENDED:
        say(found)
    while client.study(found).state not in ENDED:
        time.sleep(look)
    if paper:
        client.send(calls.load_bundle())


def _only_study(client: Client) -> int | None:
    """Return the only study's id, 0 if there is none, None if there are several."""
    ids = [study.id for study in client.send(calls.studies(archived="any", limit=2)).items]
    return None if len(ids) > 1 else ids[0] if ids else 0
