"""Every call that has SQL of its own, on SQLite and on PostgreSQL."""

import io
import json
from collections.abc import Callable
from typing import Any

import pyarrow.parquet as pq
import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient

from backend.app import create_app
from backend.db import reading
from backend.queue import get_queue
from backend.services import maintenance
from backend.services.accounts import passwords
from backend.services.analysis import stored
from tests.backend.accounts import CHEAP, team_settings
from tests.backend.conftest import ADDRESS, NotedQueue


@pytest.fixture
def app(database: str, queue: NotedQueue) -> FastAPI:
    del database
    app = create_app()
    app.dependency_overrides[get_queue] = lambda: queue
    return app


def ok(answer: Any) -> Any:
    assert answer.status_code < 300, answer.text
    return answer.json()


def test_a_study_reads_the_same(
    api: TestClient,
    study: int,
    submit: Callable[..., dict[str, Any]],
    train: Callable[..., None],
) -> None:
    sweep = submit(clip=[None, 1.0])["id"]
    train()
    path = f"/api/studies/{study}"
    final = ok(api.get(f"{path}/sensitivity"))
    assert [line["label"] for line in final["series"]][:2] == ["eb, no clip", "ib, no clip"]
    assert final["series"][0]["points"][-1]["mean"] is None
    best = ok(api.get(f"{path}/sensitivity", params={"reducer": "best"}))
    assert [dot["value"] for dot in best["series"][0]["points"][-1]["seeds"]] == [None, 20.5]
    assert len(ok(api.get(f"{path}/scorecard", params={"metric": "test_loss"}))["rows"]) == 4
    assert len(ok(api.get(f"{path}/differences", params={"kind": "clip"}))["items"]) == 2
    assert len(ok(api.get("/api/compare", params={"study": study}))["series"]) == 4
    etag = api.get(f"{path}/sensitivity").headers["etag"]
    unchanged = api.get(f"{path}/sensitivity", headers={"If-None-Match": etag})
    assert unchanged.status_code == 304
    assert "event: done" in api.get(f"/api/sweeps/{sweep}/events").text


def test_files_go_out_and_come_in(
    api: TestClient, trained: int, submit: Callable[..., dict[str, Any]]
) -> None:
    submit(seeds=3)
    files = {
        format: api.get(f"/api/studies/{trained}/export", params={"format": format}).content
        for format in ("csv", "json", "parquet")
    }
    assert files["csv"].count(b"\r\n") == 1 + 18
    assert pq.read_table(io.BytesIO(files["parquet"])).num_rows == 18
    for format in ("csv", "json"):
        found = ok(api.post("/api/import", content=files[format]))
        assert found["imported"] + found["reused"] == 12
        assert found["skipped"] == 6


def test_history_and_counts_read_the_same(
    api: TestClient, trained: int, submit: Callable[..., dict[str, Any]]
) -> None:
    submit(seeds=3)
    query = {"q": "study", "state": "queued", "spark": "true", "task": "toy/quadratic"}
    (found,) = ok(api.get("/api/studies", params=query))["items"]
    assert {one["method"] for one in found["spark"]} == {"eb", "ib"}
    assert ok(api.get("/api/queue"))["trials_queued"] == 6
    assert 'etascope_trials{state="queued"} 6.0' in api.get("/metrics").text
    assert len(ok(api.get(f"/api/studies/{trained}/sweeps"))["items"]) == 2


@pytest.mark.parametrize("name", ["a\x00b", "\x00", "\ud800", "\u2028"])
@pytest.mark.parametrize("path", ["/login", "/api/auth/login"])
def test_no_name_or_password_breaks_the_entrance(
    database: str, path: str, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    del database
    monkeypatch.setattr(passwords, "HASHER", CHEAP)
    team = TestClient(create_app(team_settings()), base_url=ADDRESS, raise_server_exceptions=False)
    fields = {"username": name, "password": name}
    if path == "/login":
        form = {key: value.encode("utf-8", "surrogatepass") for key, value in fields.items()}
        answer = team.post(path, data=form)
    else:
        sent = {"Content-Type": "application/json"}
        answer = team.post(path, content=json.dumps(fields), headers=sent)
    assert answer.status_code in (401, 422), answer.text


def test_cells_and_live_runs(api: TestClient, study: int) -> None:
    body = {"where": "agents", "task": "t", "learning_rates": [0.1, 1.0], "seeds": 1}
    sweep = ok(api.post(f"/api/studies/{study}/sweeps", json=body))["id"]
    place = f"/api/sweeps/{sweep}/cells"
    one, two = (ok(api.post(place, json={"agent": "me"}))["cell"] for _ in range(2))
    assert ok(api.post(place, json={"agent": "me"}))["cell"] is None
    points = [{"step": 0, "train_loss": 1.0}, {"step": 1, "train_loss": None}]
    for _ in range(2):
        report = {"lease": one["lease"], "points": points}
        assert ok(api.post(f"{place}/{one['trial_id']}", json=report))["points"] == 2
    done = {"lease": one["lease"], "result": {"train_loss": 0.5}}
    assert ok(api.post(f"{place}/{one['trial_id']}", json=done))["state"] == "completed"
    fault = {"lease": two["lease"], "fault": "x"}
    assert ok(api.post(f"{place}/{two['trial_id']}", json=fault))["yours"]
    ok(api.post(f"/api/sweeps/{sweep}/cancel"))
    ok(api.post(f"/api/sweeps/{sweep}/retry"))
    again = ok(api.post(place, json={"agent": "me"}))["cell"]
    assert (again["trial_id"], again["attempt"]) == (two["trial_id"], 1)
    ok(api.post(f"{place}/{again['trial_id']}", json={"lease": again["lease"], "release": True}))
    run = {"key": "one-of-mine", "study": study, "task": "t", "method": "adam", "lr": 0.1}
    opened = [ok(api.post("/api/runs", json=run | {"key": f"run-number-{n}"})) for n in (1, 2, 2)]
    assert len({one["trial_id"] for one in opened}) == 2
    path = f"/api/sweeps/{opened[0]['sweep_id']}/cells/{opened[0]['trial_id']}"
    ok(api.post(path, json={"lease": opened[0]["lease"], "result": {"train_loss": 0.1}}))
    assert api.get("/api/publish", params={"study": study, "format": "zip"}).status_code == 200
    with reading() as session:
        assert maintenance.check(session) == []


def test_runs_without_seeds_that_come_later_are_numbered_on(api: TestClient) -> None:
    def send(*names: str) -> Any:
        rows = [
            {"task": "t", "method": "m", "lr": 0.1, "repeat": place, "train_loss": len(name)}
            | {"source": {"run": name}}
            for place, name in enumerate(names, start=1)
        ]
        content = json.dumps({"trials": rows})
        return ok(api.post("/api/import", content=content, params={"name": "N", "reuse": True}))

    study = send("bb", "a")["study_id"]
    assert send("ccc", "bb", "a")["imported"] == 1
    (line,) = ok(api.get(f"/api/studies/{study}/sensitivity"))["series"]
    (point,) = line["points"]
    assert [(dot["seed"], dot["value"]) for dot in point["seeds"]] == [(1, 2.0), (2, 1.0), (3, 3.0)]


def test_more_series_than_an_answer_has_room_for_are_counted(
    api: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = "".join(f"x,m{n},0.1,1,0.5\n" for n in range(5))
    made = api.post("/api/import", content="task,method,lr,seed,train_loss\n" + rows).json()
    study = f"/api/studies/{made['study_id']}"
    monkeypatch.setattr(stored, "MOST_SERIES", 3)
    places = (
        f"{study}/sensitivity",
        f"{study}/scorecard",
        f"/api/compare?study={made['study_id']}",
    )
    for place in places:
        answer = api.get(place).json()
        assert len(answer.get("series", answer.get("rows"))) == 3
        assert answer["left_out"] == 2
    assert len(api.get(f"{study}/export").text.splitlines()) == 1 + 5, "the export has them all"


def test_one_key_of_two_tasks_is_refused_and_leaves_no_empty_sweep(api: TestClient) -> None:
    body = {"key": "a-run-of-mine", "study": "Tuning", "task": "cifar", "method": "adam", "lr": 0.1}
    run = api.post("/api/runs", json=body).json()
    answer = api.post("/api/runs", json=body | {"task": "mnist"})
    assert (answer.status_code, answer.json()["error"]["field"]) == (422, "key")
    study = api.get("/api/studies").json()["items"][0]
    assert study["sweep_ids"] == [run["sweep_id"]]
    with reading() as session:
        assert maintenance.check(session) == []
