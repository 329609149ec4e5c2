"""Bodies are counted as they arrive, whatever their headers say."""

from collections.abc import Iterator

import pytest
from fastapi.testclient import TestClient

from backend.main import LARGEST_JSON

JSON = {"Content-Type": "application/json"}


def pieces(size: int) -> Iterator[bytes]:
    """Return a body without a Content-Length."""
    for _ in range(size // 65536 + 1):
        yield b" " * 65536


@pytest.mark.parametrize("streamed", [False, True])
def test_a_body_above_the_limit_is_refused_with_the_limit(api: TestClient, streamed: bool) -> None:
    size = LARGEST_JSON + 1
    content = pieces(size) if streamed else b" " * size
    answer = api.post("/api/studies", content=content, headers=JSON)
    assert answer.status_code == 413
    assert f"{LARGEST_JSON:,}" in answer.json()["error"]["message"]


def test_a_content_length_that_lies_does_not_help(api: TestClient) -> None:
    headers = JSON | {"Content-Length": "10"}
    answer = api.post("/api/studies", content=pieces(LARGEST_JSON + 1), headers=headers)
    assert answer.status_code == 413


def test_files_may_be_larger_than_json(api: TestClient) -> None:
    header = b"task,method,lr,seed,train_loss\n"
    rows = b"".join(b"x,eb,1,%d,0.5%s\n" % (seed, b"0" * 2000) for seed in range(1200))
    assert len(rows) > LARGEST_JSON
    answer = api.post("/api/import", content=header + rows)
    assert answer.status_code == 201
    assert answer.json()["imported"] == 1200
