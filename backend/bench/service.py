"""How long the service takes for what it promises, how much memory, and what watchers cost it.

Submitting 2,000 trials, repeating and extending them; then reading a study of 10,000 finished
trials. Reads are measured as they are while a sweep runs: before each, one trial of the study
ends, so that nothing kept from the last answer can be given again.

A real browser opens the study once, and what it asks is noted. Five watchers then ask the same at
the page's own pace, without browsers of their own: people who watch bring their own machines.
Sweeps with and without watchers take turns, so that a slow minute slows both.
"""

import json
import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from statistics import median
from typing import Any

import httpx

from backend.bench import open_browser
from backend.bench.installation import (
    WebProcess,
    finish_everything,
    touch,
    web_process,
)

#: What is promised, in the unit of the row.
SUBMISSION_MS, READ_MS, MEMORY_MB = 1000.0, 300.0, 400.0

TASK = "digits_mlp"
SUBMITTED_ROUNDS = 3
#: 2 methods x 20 rates x 50 seeds.
SWEEP = {"task": TASK, "methods": ["eb", "ib"], "epochs": 5}
RATES = {"from": 0.01, "to": 100, "count": 20}
TRIALS = 2000
#: 2 methods x 50 rates x 100 seeds.
LARGE_RATES, LARGE_SEEDS, LARGE_TRIALS = {"from": 0.001, "to": 100, "count": 50}, 100, 10_000

READS: dict[str, tuple[str, dict[str, Any]]] = {
    "sensitivity": ("/api/studies/{study}/sensitivity", {}),
    "sensitivity, best": ("/api/studies/{study}/sensitivity", {"reducer": "best"}),
    "sensitivity, test loss, quantiles": (
        "/api/studies/{study}/sensitivity",
        {"metric": "test_loss", "band": "quantile"},
    ),
    "scorecard": ("/api/studies/{study}/scorecard", {}),
    "scorecard, best test loss": (
        "/api/studies/{study}/scorecard",
        {"metric": "test_loss", "reducer": "best"},
    ),
    "differences": ("/api/studies/{study}/differences", {}),
    "compare with a study of 2,000": ("/api/compare", {}),
    "history page": ("/api/studies", {"spark": "true", "limit": 50}),
    "trials page": ("/api/sweeps/{sweep}/trials", {"limit": 100}),
}


@dataclass(frozen=True, slots=True)
class Row:
    """One measured thing.

    Attributes:
        what: Its name.
        values: Every measurement.
        unit: `ms` or `MB`.
        target: What is promised of the 95th percentile, None where nothing is.
    """

    what: str
    values: tuple[float, ...]
    unit: str
    target: float | None

    @property
    def p95(self) -> float:
        """The 95th percentile, the highest of few."""
        ordered = sorted(self.values)
        return ordered[min(len(ordered) - 1, round(0.95 * len(ordered)))]

    @property
    def met(self) -> bool:
        """Whether the promise is kept."""
        return self.target is None or self.p95 < self.target

    def cells(self) -> dict[str, Any]:
        """Return the row as it is printed and written."""
        return {
            "what": self.what,
            "unit": self.unit,
            "p50": round(median(self.values), 1),
            "p95": round(self.p95, 1),
            "lowest": round(min(self.values), 1),
            "highest": round(max(self.values), 1),
            "n": len(self.values),
            "target": self.target,
            "met": self.met,
        }


def measure_service(*, rounds: int = 10, tell: Callable[[str], None] = lambda _: None) -> list[Row]:
    """Return every row, measured on an installation of its own.

    Args:
        rounds: How often each read is measured.
        tell: Called with what is being done.
    """
    tell("the start of a web process")
    with web_process() as web:
        rows = [_memory("memory at start", web)]
        rows += _submissions(web, tell)
        tell(f"{LARGE_TRIALS:,} finished trials")
        study, sweep = _large_study(web)
        rows += _reads(web, study, sweep, rounds, tell)
        rows.append(_memory("memory after the reads", web))
        rows.append(Row("memory at its highest", (web.most_megabytes(),), "MB", MEMORY_MB))
        # The one answer that needs torch, which stays.
        web.http.get("/api/illustrations/update").raise_for_status()
        rows.append(_memory("memory after the picture of an update", web))
    return rows


def _memory(what: str, web: WebProcess) -> Row:
    return Row(what, (web.megabytes(),), "MB", MEMORY_MB)


def _submissions(web: WebProcess, tell: Callable[[str], None]) -> list[Row]:
    studies = [_new_study(web, f"Submissions {k}") for k in range(4)]
    tell(f"submissions of {TRIALS:,} trials")
    first = [_submit(web, studies[0], _seeds(0), reused=0)]
    rows = [Row("first submission of 2,000 trials", tuple(first), "ms", SUBMISSION_MS)]
    rows.append(_memory("memory after the first submission", web))
    fresh = [_submit(web, studies[k], _seeds(k), reused=0) for k in range(1, 4)]
    rows.append(Row("submission of 2,000 trials", tuple(fresh), "ms", SUBMISSION_MS))
    tell("made-up results")
    finish_everything(web.engine)
    tell("resubmissions and extensions")
    again = [_submit(web, studies[k], _seeds(k), reused=TRIALS) for k in range(4)]
    rows.append(Row("the same again, all reused", tuple(again), "ms", SUBMISSION_MS))
    # Each adds one new seed to the grid: 40 new cells.
    longer = [
        _submit(web, studies[k], [*_seeds(k), 9000 + k], reused=TRIALS, total=TRIALS + 40)
        for k in range(3)
    ]
    rows.append(Row("extension, 40 of 2,040 new", tuple(longer), "ms", SUBMISSION_MS))
    return rows


def _seeds(block: int) -> list[int]:
    return list(range(block * 50 + 1, block * 50 + 51))


def _submit(
    web: WebProcess, study: int, seeds: Sequence[int], *, reused: int, total: int = TRIALS
) -> float:
    body = {**SWEEP, "learning_rates": RATES, "seeds": list(seeds)}
    began = time.perf_counter()
    answer = web.http.post(f"/api/studies/{study}/sweeps", json=body)
    took = (time.perf_counter() - began) * 1000
    found = answer.raise_for_status().json()
    if (found["total"], found["reused"]) != (total, reused):
        raise RuntimeError(f"Expected {reused} of {total} reused; got {found}.")
    return took


def _new_study(web: WebProcess, name: str) -> int:
    return int(web.http.post("/api/studies", json={"name": name}).raise_for_status().json()["id"])


def _large_study(web: WebProcess) -> tuple[int, int]:
    study = _new_study(web, "Ten thousand")
    body = {**SWEEP, "learning_rates": LARGE_RATES, "seeds": LARGE_SEEDS}
    answer = web.http.post(f"/api/studies/{study}/sweeps", json=body).raise_for_status()
    finish_everything(web.engine)
    return study, int(answer.json()["id"])


def _reads(
    web: WebProcess, study: int, sweep: int, rounds: int, tell: Callable[[str], None]
) -> list[Row]:
    """Measure every read once a round, so that a slow minute slows all of them."""
    taken: dict[str, list[float]] = {name: [] for name in READS}
    places: Mapping[str, Any] = {"study": study, "sweep": sweep}
    for number in range(rounds + 1):
        tell(f"reads, round {number} of {rounds}")
        for name, (path, asked) in READS.items():
            query = {"study": [study, 1]} if path == "/api/compare" else asked
            touch(web.engine, sweep_id=sweep)
            began = time.perf_counter()
            web.http.get(path.format(**places), params=query).raise_for_status()
            if number:  # the first round warms up
                taken[name].append((time.perf_counter() - began) * 1000)
    return [Row(f"{name}, 10,000 trials", tuple(t), "ms", READ_MS) for name, t in taken.items()]


def submitted_seconds(sweep: dict[str, Any]) -> float:
    """Return the median time from a request to its last loss, by a worker that has trained before.

    Args:
        sweep: Its body; every round takes seeds of its own, so that nothing is known yet.
    """
    seeds, taken = list(sweep["seeds"]), []
    with web_process(worker=True) as web:
        for number in range(SUBMITTED_ROUNDS + 1):
            fresh = [seed + number * len(seeds) for seed in seeds]
            began = time.perf_counter()
            _, submitted = web.submit({**sweep, "seeds": fresh})
            taken.append(web.wait_for(submitted) - began)
    return median(taken[1:])  # the first waits for torch and the data


# --- people who watch


WATCHERS = 5
#: What is promised: so many per cent longer at most.
SLOWER_PERCENT = 5.0
#: As the page does it: how far the study is, and whether anybody is there.
TICK_SECONDS, PULSE_SECONDS = 1.5, 6.0
WATCHED_SWEEP = {
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
    study, sweep = web.submit({**WATCHED_SWEEP, "seeds": list(range(first, first + SEEDS))})
    if questions is None:
        return web.wait_for(sweep) - began
    with _watching(str(web.http.base_url), study, questions):
        return web.wait_for(sweep) - began


def _questions(web: WebProcess) -> dict[str, Question]:
    """Return what a page asks while a study runs, by output, as a real browser sent it."""
    first = next(_used_seeds)
    study, sweep = web.submit({**WATCHED_SWEEP, "seeds": list(range(first, first + SEEDS))})
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
