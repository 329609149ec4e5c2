"""The API in this process, on an empty SQLite database, with a queue that only takes notes."""

import socket
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pytest
import uvicorn
from fastapi import FastAPI
from fastapi.testclient import TestClient

from backend.app import create_app
from backend.db import transaction
from backend.queue import get_queue
from backend.services.errands import REPLAYS
from backend.services.timings import RACES
from backend.web import ImpatientProtocol
from ib_core.sweep.result import Outcome
from tests import factories
from tests.servers import wait_for

ADDRESS = "http://127.0.0.1:8050"


class NotedQueue:
    """Takes announcements without a broker; `away` makes it one that does not answer."""

    def __init__(self) -> None:
        self.shard_ids: list[int] = []
        self.timing_ids: list[int] = []
        self.replay_ids: list[int] = []
        self.away: str | None = None

    def enqueue(self, shard_ids: Sequence[int]) -> int:
        if self.away:
            return 0
        self.shard_ids += shard_ids
        return len(shard_ids)

    def announce_timings(self) -> int:
        if self.away:
            return 0
        with transaction() as session:
            found = RACES.due(session)
        self.timing_ids += [timing_id for timing_id, _ in found]
        return len(found)

    def announce_replays(self) -> int:
        if self.away:
            return 0
        with transaction() as session:
            found = REPLAYS.due(session)
        self.replay_ids += [trial_id for trial_id, _ in found]
        return len(found)

    def why_unavailable(self) -> str | None:
        return self.away


@pytest.fixture
def queue() -> NotedQueue:
    return NotedQueue()


@pytest.fixture
def app(sqlite_database: str, queue: NotedQueue) -> FastAPI:
    del sqlite_database
    app = create_app()
    app.dependency_overrides[get_queue] = lambda: queue
    return app


@pytest.fixture
def api(app: FastAPI) -> TestClient:
    # Without the lifespan: no test here needs the reaper's thread.
    return TestClient(app, base_url=ADDRESS, raise_server_exceptions=False)


@contextmanager
def listening(app: FastAPI) -> Iterator[str]:
    """Serve an app on a real port, as `etascope api` does."""
    with socket.socket() as place:
        place.bind(("127.0.0.1", 0))
        config = uvicorn.Config(
            app,
            lifespan="off",
            log_config=None,
            timeout_graceful_shutdown=1,
            http=ImpatientProtocol,
        )
        running = uvicorn.Server(config)
        thread = threading.Thread(target=running.run, kwargs={"sockets": [place]})
        thread.start()
        try:
            wait_for(lambda: running.started, what="the server")
            yield f"http://127.0.0.1:{place.getsockname()[1]}"
        finally:  # a thread that goes on would keep the whole run from ending
            running.should_exit = True
            thread.join()


@pytest.fixture
def server(app: FastAPI) -> Iterator[str]:
    """The app on a real port."""
    with listening(app) as address:
        yield address


#: The grid most tests submit: 2 methods x 3 rates x 2 seeds.
BODY: dict[str, Any] = {
    "task": "toy/quadratic",
    "methods": ["eb", "ib"],
    "learning_rates": [0.1, 1.0, 3.0],
    "seeds": 2,
}


@pytest.fixture
def study(api: TestClient) -> int:
    """A study without sweeps."""
    return int(api.post("/api/studies", json={"name": "A study"}).json()["id"])


@pytest.fixture
def submit(api: TestClient, study: int) -> Callable[..., dict[str, Any]]:
    """Submit the usual grid, with changes; returns the sweep."""

    def submit(**changes: Any) -> dict[str, Any]:
        answer = api.post(f"/api/studies/{study}/sweeps", json=BODY | changes)
        assert answer.status_code == 202, answer.text
        return dict(answer.json())

    return submit


#: What the trials of `trained` come to: EB diverges at 3 (one seed loses its numbers), IB never.
def toy_result(trial: Any) -> Any:
    method, lr, seed = (trial.spec[name] for name in ("method", "lr", "seed"))
    if method == "eb" and lr == 3.0:
        loss = float("nan") if seed == 1 else 40.0
        return factories.result(trial, outcome=Outcome.DIVERGED, loss=loss)
    losses = {0.1: 0.5, 1.0: 0.1, 3.0: 0.2}
    return factories.result(trial, loss=losses[lr] + 0.01 * seed)


@pytest.fixture
def train(queue: NotedQueue) -> Callable[..., None]:
    """Finish everything that was announced."""

    def train(judge: Callable[[Any], Any] = toy_result) -> None:
        from backend.services import shards

        while queue.shard_ids:
            with transaction() as session:
                claim = factories.claim(session, queue.shard_ids.pop(0))
                finished = {trial.id: judge(trial) for trial in claim.trials}
                shards.report(session, claim=claim, finished=finished)
                shards.finish(session, claim=claim)

    return train


@pytest.fixture
def trained(submit: Callable[..., dict[str, Any]], train: Callable[..., None], study: int) -> int:
    """A study whose one sweep has ended."""
    submit()
    train()
    return study
