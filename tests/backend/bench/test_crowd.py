"""The crowd's bench: real streams and bodies against a real process, in miniature."""

import pytest

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


@pytest.mark.slow
def test_a_small_crowd_is_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(crowd, "STREAMS", (0, 5))
    monkeypatch.setattr(crowd, "UNFINISHED", 5)
    told: list[str] = []
    rows = crowd.measure_crowd(rounds=1, tell=told.append)
    assert len(rows) == len(told) == 3 + len(list(crowd._nasty()))
    assert all(0 < row["p50 ms"] <= row["p99 ms"] <= row["worst ms"] for row in rows)
    assert all(row["worst ms"] < 1000 for row in rows), "nobody waits for a second"
