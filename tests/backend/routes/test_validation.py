"""Held-out losses stored, answered, exported, imported; rates and epochs chosen by them.

Through both databases.
"""

import csv
import io
import math
from collections.abc import Callable
from typing import Any

import pyarrow.parquet as pq
import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient

from backend.app import create_app
from backend.queue import get_queue
from backend.services.trials import stored_results
from ib_core.sweep.result import CurvePoint, Outcome
from tests import factories
from tests.backend.conftest import NotedQueue

NAN = math.nan
#: By rate, at steps 0, 5 and 10: the test loss is lowest where the validation loss is not.
TEST = {0.1: (1.0, 0.6, 0.5), 1.0: (1.0, 0.3, 0.2), 3.0: (1.0, NAN)}
VALIDATION = {0.1: (1.0, 0.2, 0.3), 1.0: (1.0, 0.5, 0.4), 3.0: (1.0, NAN)}

Submit = Callable[..., dict[str, Any]]
Train = Callable[..., None]


@pytest.fixture
def app(database: str, queue: NotedQueue) -> FastAPI:
    del database
    app = create_app()
    app.dependency_overrides[get_queue] = lambda: queue
    return app


def judged(trial: Any) -> Any:
    lr = trial.spec["lr"]
    held_out = VALIDATION[lr] if trial.spec["options"].get("validation") else (None,) * 3
    curve = tuple(
        CurvePoint(5 * i, i / 2, test, test, validation_loss=validation)
        for i, (test, validation) in enumerate(zip(TEST[lr], held_out, strict=False))
    )
    lost = lr == 3.0
    return factories.result(
        trial,
        outcome=Outcome.DIVERGED if lost else Outcome.COMPLETED,
        loss=TEST[lr][-1],
        curve=curve,
        validation_loss=curve[-1].validation_loss,
    )


@pytest.fixture
def held_out(submit: Submit, train: Train, study: int) -> int:
    """A study whose trials have validation losses."""
    submit(options={"validation": 0.1}, seeds=3)
    train(judged)
    return study


@pytest.fixture
def all_rows(submit: Submit, train: Train, study: int) -> int:
    """The same without any."""
    submit(seeds=3)
    train(judged)
    return study


def scores(api: TestClient, study: int, **asked: str) -> dict[str, Any]:
    answer = api.get(f"/api/studies/{study}/scorecard", params={"metric": "test_loss", **asked})
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()["rows"][0]["metrics"]
    return found


def means(api: TestClient, study: int, **asked: str) -> tuple[list[float | None], str | None]:
    answer = api.get(f"/api/studies/{study}/sensitivity", params=asked)
    assert answer.status_code == 200, answer.text
    line = answer.json()["series"][0]
    return [point["mean"] for point in line["points"]], line["chosen_on"]


def test_the_rate_is_chosen_on_validation_and_test_is_reported(
    api: TestClient, held_out: int
) -> None:
    found = scores(api, held_out)
    assert found["best_rate"]["value"] == 0.1
    assert found["best_mean"]["value"] == pytest.approx(0.5)
    for name in ("best_rate", "best_mean"):
        assert "Chosen on validation." in found[name]["note"]
    at_best = scores(api, held_out, reducer="best")
    assert at_best["best_rate"]["value"] == 0.1
    assert at_best["best_mean"]["value"] == pytest.approx(0.6)


def test_choosing_on_test_is_labelled(api: TestClient, all_rows: int) -> None:
    found = scores(api, all_rows)
    assert found["best_rate"]["value"] == 1.0
    assert "Chosen on test." in found["best_rate"]["note"]
    asked = {"metric": "test_loss", "reducer": "best"}
    assert means(api, all_rows, **asked) == (pytest.approx([0.5, 0.2, None]), "test")
    assert means(api, all_rows, metric="test_loss")[1] is None
    assert means(api, all_rows, reducer="best")[1] is None


def test_the_epoch_is_chosen_on_validation(api: TestClient, held_out: int) -> None:
    chosen = (pytest.approx([0.6, 0.2, None]), "validation")
    assert means(api, held_out, metric="test_loss", reducer="best") == chosen
    assert means(api, held_out, metric="train_loss", reducer="best") == chosen
    asked = {"metric": "validation_loss"}
    assert means(api, held_out, **asked) == (pytest.approx([0.3, 0.4, None]), None)
    asked["reducer"] = "best"
    assert means(api, held_out, **asked)[0] == pytest.approx([0.2, 0.4, None])
    assert scores(api, held_out, **asked)["best_mean"]["value"] == pytest.approx(0.2)


def test_curves_and_results_come_back(api: TestClient, held_out: int) -> None:
    trials = api.get(f"/api/studies/{held_out}/export", params={"format": "json"}).json()["trials"]
    by_rate = {trial["lr"]: trial for trial in trials}
    assert [by_rate[lr]["validation_loss"] for lr in (0.1, 1.0, 3.0)] == [0.3, 0.4, None]
    points = api.get(f"/api/trials/{by_rate[0.1]['id']}/curve").json()["points"]
    assert [point["validation_loss"] for point in points] == [1.0, 0.2, 0.3]
    assert {point["validation_accuracy"] for point in points} == {None}
    for lr, result in (
        (trial["lr"], result)
        for trial in by_rate.values()
        for result in stored_results([trial["fingerprint"]]).values()
    ):
        found = [point.validation_loss for point in result.curve]
        assert found == pytest.approx(VALIDATION[lr], nan_ok=True)
        assert result.validation_loss == pytest.approx(found[-1], nan_ok=True)
        assert result.validation_accuracy is None


def test_files_go_out_and_come_in(api: TestClient, held_out: int) -> None:
    path = f"/api/studies/{held_out}/export"
    files = {
        format: api.get(path, params={"format": format}).content
        for format in ("csv", "json", "parquet")
    }
    rows = list(csv.DictReader(io.StringIO(files["csv"].decode())))
    assert {row["validation_loss"] for row in rows} == {"0.3", "0.4", ""}
    column = pq.read_table(io.BytesIO(files["parquet"]))["validation_loss"]
    assert str(column.type) == "double"
    assert set(column.to_pylist()) == {0.3, 0.4, None}
    for format in ("csv", "json"):
        answer = api.post("/api/import", content=files[format])
        assert answer.status_code == 201, answer.text
        again = answer.json()["study_id"]
        assert means(api, again, metric="validation_loss")[0] == pytest.approx([0.3, 0.4, None])
        assert scores(api, again, metric="train_loss")["best_rate"]["value"] == 0.1


def test_a_cell_reports_what_it_held_out(api: TestClient, study: int) -> None:
    body = {"where": "agents", "task": "mine", "learning_rates": [0.1], "seeds": 1}
    sweep = api.post(f"/api/studies/{study}/sweeps", json=body).json()["id"]
    claimed = api.post(f"/api/sweeps/{sweep}/cells", json={"agent": "here"})
    cell = claimed.json()["cell"]
    points = [{"step": i, "train_loss": 1.0, "validation_loss": 1.0 / (1 + i)} for i in range(3)]
    place = f"/api/sweeps/{sweep}/cells/{cell['trial_id']}"
    for start in (0, 1):
        report = {"lease": cell["lease"], "start": start, "points": points[start : start + 2]}
        assert api.post(place, json=report).status_code == 200
    result = {"train_loss": 1.0, "validation_loss": 0.25}
    assert api.post(place, json={"lease": cell["lease"], "result": result}).status_code == 200
    curve = api.get(f"/api/trials/{cell['trial_id']}/curve").json()["points"]
    assert [point["validation_loss"] for point in curve] == [1.0, 0.5, pytest.approx(1 / 3)]
    assert api.get(f"/api/trials/{cell['trial_id']}").json()["validation_loss"] == 0.25
