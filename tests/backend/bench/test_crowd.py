"""The crowd's bench: real streams and bodies against a real process, in miniature."""

import json

import pytest
from fastapi.testclient import TestClient

from backend.app import LARGEST_JSON, create_app
from backend.bench import crowd
from backend.settings import Settings


def test_bodies_are_legal_in_size_and_meant_for_routes_that_exist() -> None:
    most = Settings().max_body_bytes
    bodies = list(crowd._nasty())
    assert {path for _, path, _, _ in bodies} == {
        "/api/import",
        "/api/studies",
        "/api/sweeps",
        "/api/forecast",
        "/_dash-update-component",
    }
    assert all(len(body) <= most for _, _, body, _ in bodies)


def test_every_route_that_takes_json_gets_its_nastiest_bodies() -> None:
    document = create_app(Settings(reaper=False)).openapi()
    bodies = crowd.nasty_bodies(document)
    taking = [
        (method.upper(), path)
        for path, calls in document["paths"].items()
        for method, call in calls.items()
        if "application/json" in call.get("requestBody", {}).get("content", {})
    ]
    assert sorted(bodies) == sorted(taking)
    assert all(len(body) <= LARGEST_JSON for nasty in bodies.values() for body in nasty)
    assert any(
        body.startswith(b'{"learning_rates":[0,0') for nasty in bodies.values() for body in nasty
    )


def test_every_read_of_a_study_is_measured() -> None:
    document = create_app(Settings(reaper=False)).openapi()
    places = crowd.reads_of(document, {"study_id": 7, "sweep_ids": [8]})
    reads = {path for path, calls in document["paths"].items() if "get" in calls}
    of_study = {path for path in reads if "{study_id}" in path or "{sweep_id}" in path}
    assert len(places) == len(of_study) + 5
    assert {"/api/studies/7/scorecard", "/api/sweeps/8/events", "/api/publish?study=7"} < {*places}
    assert not any("{" in place for place in places)


def test_the_largest_sweeps_are_ones_that_are_taken(api: TestClient) -> None:
    bodies = {path: body for _, path, body, _ in crowd._nasty() if path in LARGEST}
    for path, body in bodies.items():
        size = api.post("/api/forecast", json=json.loads(body).get("sweep", json.loads(body)))
        assert size.status_code == 200, size.text
        assert LARGEST[path] == size.json()["trials"]


LARGEST = {"/api/sweeps": 20_000, "/api/forecast": 27**3}


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_a_small_crowd_is_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(crowd, "STREAMS", (0, 5))
    monkeypatch.setattr(crowd, "UNFINISHED", 5)
    told: list[str] = []
    rows = crowd.measure_crowd(rounds=1, tell=told.append)
    assert len(rows) == len(told) > 3 + len(list(crowd._nasty()))
    assert all(0 < row["p50 ms"] <= row["p99 ms"] <= row["worst ms"] for row in rows)
    assert all(row["worst ms"] < 1000 for row in rows), "nobody waits for a second"
