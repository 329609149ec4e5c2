"""What five people who watch a running study cost its worker.

A real browser opens the study once, and what it asks is noted. Five watchers then ask the same at
the page's own pace, without browsers of their own: people who watch bring their own machines.
Sweeps with and without watchers take turns, so that a slow minute slows both.
"""

import json
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import httpx

from backend.bench.installation import WebProcess, open_browser, web_process
from backend.bench.service import Row

WATCHERS = 5
#: What is promised: so many per cent longer at most.
SLOWER_PERCENT = 5.0
#: As the page does it: how far the study is, and whether anybody is there.
TICK_SECONDS, PULSE_SECONDS = 1.5, 6.0
SWEEP = {
    "task": "digits_mlp",
    "methods": ["eb", "ib"],
    "learning_rates": {"from": 0.01, "to": 100, "count": 13},
    "epochs": 8,
}
SEEDS = 4
CALLBACK = "/_dash-update-component"
#: The callbacks of a live page by one of their outputs: the first is asked at every tick, the
#: others when its answer tells of a new version.
FOLLOW = "study-status.children"
AFTERWARDS = ("study-drawn.data", "study-scores.data", "study-grid.getRowsResponse")

Question = dict[str, Any]


def measure_watchers(*, rounds: int = 3, tell: Callable[[str], None] = lambda _: None) -> list[Row]:
    """Return how much longer sweeps take while five people watch, in per cent.

    Args:
        rounds: Of one sweep with and one without watchers each.
        tell: Called with what is being done.
    """
    with web_process(worker=True) as web:
        tell("what a page asks")
        questions = _questions(web)
        seconds: dict[bool, list[float]] = {False: [], True: []}
        shares: list[float] = []
        for number in range(rounds):
            for watched in (False, True) if number % 2 else (True, False):
                tell(f"round {number + 1} of {rounds}, {'watched' if watched else 'unwatched'}")
                used = web.processor_seconds()
                seconds[watched].append(_sweep(web, questions if watched else None))
                if watched:
                    used = web.processor_seconds() - used
                    shares.append(100 * used / seconds[True][-1] / (os.cpu_count() or 1))
    # Whatever else a machine does only adds to a time: the fastest of each is what they take.
    slower = 100 * (min(seconds[True]) / min(seconds[False]) - 1)
    return [
        Row("a sweep nobody watches", tuple(seconds[False]), "s", None),
        Row("the same with five watchers", tuple(seconds[True]), "s", None),
        # Sharper than the clock, which neighbours on the machine move by more than this.
        Row("of the processors, for five watchers", tuple(shares), "%", SLOWER_PERCENT),
        Row("longer with five watchers, fastest of each", (slower,), "%", SLOWER_PERCENT),
    ]


_used_seeds = iter(range(1, 1_000_000, SEEDS))


def _sweep(web: WebProcess, questions: dict[str, Question] | None) -> float:
    """Return how long a fresh sweep takes, in seconds."""
    first = next(_used_seeds)
    began = time.perf_counter()
    study, sweep = web.submit({**SWEEP, "seeds": list(range(first, first + SEEDS))})
    if questions is None:
        return web.wait_for(sweep) - began
    with _watching(str(web.http.base_url), study, questions):
        return web.wait_for(sweep) - began


def _questions(web: WebProcess) -> dict[str, Question]:
    """Return what a page asks while a study runs, by output, as a real browser sent it."""
    first = next(_used_seeds)
    study, sweep = web.submit({**SWEEP, "seeds": list(range(first, first + SEEDS))})
    found: dict[str, Question] = {}

    def note(request: Any) -> None:
        if request.url.endswith(CALLBACK) or CALLBACK + "?" in request.url:
            body = json.loads(request.post_data or "{}")
            for output in (FOLLOW, *AFTERWARDS):
                if output in body.get("output", ""):
                    found[output] = body

    with open_browser() as browser:
        page = browser.new_page()
        page.on("request", note)
        page.goto(f"{web.http.base_url}/studies/{study}")
        page.locator("#study-grid .ag-row").first.wait_for(timeout=60_000)
        web.wait_for(sweep)
        page.wait_for_timeout(3000)  # two ticks: the end has been noticed
    missing = [output for output in (FOLLOW, *AFTERWARDS) if output not in found]
    if missing:
        raise RuntimeError(f"The page never asked for {', '.join(missing)}.")
    return found


def about(question: Question, values: dict[str, Any]) -> Question:
    """Return a question with other values of some components, by id."""

    def changed(part: dict[str, Any]) -> dict[str, Any]:
        known = isinstance(part, dict) and part.get("id") in values
        return {**part, "value": values[part["id"]]} if known else part

    return {
        **question,
        "inputs": [changed(part) for part in question["inputs"]],
        "state": [changed(part) for part in question.get("state", ())],
    }


@contextmanager
def _watching(address: str, study: int, questions: dict[str, Question]) -> Iterator[None]:
    over = threading.Event()
    arguments = (address, study, questions, over)
    watchers = [threading.Thread(target=_watch, args=arguments) for _ in range(WATCHERS)]
    for watcher in watchers:
        watcher.start()
        time.sleep(TICK_SECONDS / WATCHERS)  # people do not open pages in the same moment
    try:
        yield
    finally:
        over.set()
        for watcher in watchers:
            watcher.join()


def _watch(address: str, study: int, questions: dict[str, Question], over: threading.Event) -> None:
    """Ask what an open page asks, until it is over."""
    version, pulse = "", 0.0
    with httpx.Client(base_url=address, timeout=60, trust_env=False) as http:
        while not over.wait(TICK_SECONDS):
            values = {"study-id": study, "study-version": version}
            answer = http.post(CALLBACK, json=about(questions[FOLLOW], values)).raise_for_status()
            told = answer.json()["response"].get("study-version", {}).get("data", version)
            if told != version:
                version = told
                values["study-version"] = version
                for output in AFTERWARDS:
                    http.post(CALLBACK, json=about(questions[output], values)).raise_for_status()
            if time.monotonic() - pulse > PULSE_SECONDS:
                http.get("/dashboard/pulse", params={"studies": study}).raise_for_status()
                pulse = time.monotonic()
