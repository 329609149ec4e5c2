"""What only a real server shows: streams while things happen, and requests beside slow ones."""

import json
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest

from backend.client import Client, read_events
from backend.services import studies, sweeps
from tests.backend.conftest import BODY
from tests.servers import wait_for


@pytest.fixture
def http(server: str) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=server, trust_env=False, timeout=20) as client:
        yield client


def submit(http: httpx.Client) -> int:
    study = http.post("/api/studies", json={"name": "Live"}).json()["id"]
    return int(http.post(f"/api/studies/{study}/sweeps", json=BODY).json()["id"])


def test_a_stream_tells_what_happens_while_it_happens(
    http: httpx.Client, train: Callable[..., None]
) -> None:
    sweep = submit(http)
    seen: list[str] = []
    with http.stream("GET", f"/api/sweeps/{sweep}/events") as answer:
        for event in read_events(answer.iter_lines()):
            seen.append(event.name)
            if len(seen) == 1:
                assert json.loads(event.data)["state"] == "queued"
                train()
    assert seen[0] == "progress"
    assert seen.count("trial") == 12
    assert seen[-1] == "done"


def test_a_quiet_stream_keeps_the_connection_alive(
    http: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("backend.routes.trials.KEEP_ALIVE_SECONDS", 0.1)
    monkeypatch.setattr("backend.web.POLL_SECONDS", 0.05)
    with http.stream("GET", f"/api/sweeps/{submit(http)}/events") as answer:
        lines = answer.iter_lines()
        assert any(line.startswith(":") for line in lines)


def test_a_listener_that_leaves_is_not_polled_for(
    http: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked: list[float] = []
    real = sweeps.news

    def look(*args: Any, **kwargs: Any) -> Any:
        looked.append(time.monotonic())
        return real(*args, **kwargs)

    monkeypatch.setattr(sweeps, "news", look)
    monkeypatch.setattr("backend.web.POLL_SECONDS", 0.05)
    with http.stream("GET", f"/api/sweeps/{submit(http)}/events") as answer:
        next(answer.iter_lines())
    wait_for(lambda: time.monotonic() - looked[-1] > 0.5, seconds=10, what="the polling to end")


def test_a_slow_request_does_not_hold_up_the_others(
    http: httpx.Client, server: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    entered, leave = threading.Event(), threading.Event()

    def slow(*_args: Any, **_kwargs: Any) -> None:
        entered.set()
        leave.wait(20)

    monkeypatch.setattr(studies, "get", slow)
    waiting = threading.Thread(target=lambda: httpx.get(f"{server}/api/studies/1", timeout=30))
    waiting.start()
    assert entered.wait(10)
    assert http.get("/api/health").status_code == 200
    assert waiting.is_alive(), "health answered while the other still waited"
    leave.set()
    waiting.join()


def test_the_client_follows_a_sweep_to_its_end(
    server: str, http: httpx.Client, train: Callable[..., None]
) -> None:
    sweep = submit(http)
    seen: list[str] = []

    def note(found: Any) -> None:
        seen.append(found.state)
        if len(seen) == 2:
            train()

    with Client(server) as client:
        assert client.wait(sweep, on_progress=note, timeout=20).state == "completed"
    assert seen[0] == "queued"
