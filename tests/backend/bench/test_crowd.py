"""The crowd's bench: real streams and bodies against a real process, in miniature."""

import pytest

from backend.app import LARGEST_JSON, create_app
from backend.bench import crowd
from backend.settings import Settings


def test_bodies_are_legal_in_size_and_meant_for_routes_that_exist() -> None:
    most = Settings().max_body_bytes
    bodies = list(crowd._nasty())
    assert {path for _, path, _, _ in bodies} == {
        "/api/import",
        "/api/studies",
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
