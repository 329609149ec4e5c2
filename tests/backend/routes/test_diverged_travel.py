"""NaN, infinity and huge losses: database, API, export, import and API again, all unchanged."""

import io
import json
import math
from collections.abc import Callable
from typing import Any

import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient

from backend.app import create_app
from backend.queue import get_queue
from ib_core.sweep.result import Outcome
from tests import factories
from tests.backend.conftest import NotedQueue

#: What the trials of `BODY` come to, by rate and seed; the outcome of each must survive.
ENDS: dict[tuple[float, int], tuple[Outcome, float]] = {
    (0.1, 1): (Outcome.COMPLETED, 0.1),
    (0.1, 2): (Outcome.COMPLETED, 5e-324),
    (1.0, 1): (Outcome.DIVERGED, math.nan),
    (1.0, 2): (Outcome.DIVERGED, math.inf),
    (3.0, 1): (Outcome.DIVERGED, 1.7976931348623157e308),
    (3.0, 2): (Outcome.DIVERGED, -math.inf),
}


@pytest.fixture
def app(database: str, queue: NotedQueue) -> FastAPI:
    del database
    app = create_app()
    app.dependency_overrides[get_queue] = lambda: queue
    return app


def extreme(trial: Any) -> Any:
    outcome, loss = ENDS[trial.spec["lr"], trial.spec["seed"]]
    return factories.result(trial, outcome=outcome, loss=loss, test_loss=-loss)


def seen(api: TestClient, study: int) -> dict[str, Any]:
    """Return what the API tells of a study, without what an import cannot know."""
    cells = {}
    for sweep in api.get(f"/api/studies/{study}/sweeps").json()["items"]:
        for trial in api.get(f"/api/sweeps/{sweep['id']}/trials").json()["items"]:
            key = f"{trial['method']} {trial['lr']} {trial['seed']}"
            names = ("outcome", "state", "train_loss", "test_loss", "diverged_at_step", "seconds")
            cells[key] = {name: trial[name] for name in names}
    sensitivity = api.get(f"/api/studies/{study}/sensitivity").json()
    for line in sensitivity["series"]:
        for point in line["points"]:
            shown = ("mean", "finite_mean", "low", "high", "n", "n_finite", "diverged")
            cells[f"{line['method']} at {point['lr']}"] = {name: point[name] for name in shown}
    return cells


@pytest.mark.parametrize("format", ["csv", "json", "parquet"])
def test_every_outcome_comes_back_as_it_was(
    api: TestClient,
    study: int,
    submit: Callable[..., dict[str, Any]],
    train: Callable[..., None],
    format: str,
) -> None:
    submit()
    train(extreme)
    before = seen(api, study)
    assert before["eb 3.0 1"]["train_loss"] == 1.7976931348623157e308
    assert before["eb 0.1 2"]["train_loss"] == 5e-324
    assert before["ib 1.0 2"] | {"seconds": None} == {
        "outcome": "diverged",
        "state": "diverged",
        "train_loss": None,
        "test_loss": None,
        "diverged_at_step": 2,
        "seconds": None,
    }
    content = api.get(f"/api/studies/{study}/export", params={"format": format}).content
    if format == "parquet":  # an import takes text; the numbers must survive the way there
        content = _as_csv(content)
    answer = api.post("/api/import", content=content)
    assert answer.status_code == 201, answer.text
    assert seen(api, answer.json()["study_id"]) == before


def _as_csv(parquet: bytes) -> bytes:
    table = pq.read_table(io.BytesIO(parquet))
    text = io.BytesIO()
    pyarrow.csv.write_csv(table, text)
    return text.getvalue()


def test_no_answer_holds_what_json_does_not_know(
    api: TestClient,
    study: int,
    submit: Callable[..., dict[str, Any]],
    train: Callable[..., None],
) -> None:
    submit()
    train(extreme)
    path = f"/api/studies/{study}"
    for place in (
        f"{path}/sensitivity?band=quantile",
        f"{path}/sensitivity?reducer=best",
        f"{path}/scorecard",
        f"{path}/differences",
        f"/api/compare?study={study}",
        f"{path}/export?format=json",
        "/api/studies?spark=true",
        "/api/trials/3/curve",
    ):
        answer = api.get(place)
        assert answer.status_code == 200, answer.text
        json.loads(answer.text, parse_constant=_refuse)


def _refuse(name: str) -> None:
    raise AssertionError(f"{name} is not JSON")
