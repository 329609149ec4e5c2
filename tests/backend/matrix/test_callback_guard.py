"""No body and no path makes Dash answer 500, and strangers' bodies are never read whole."""

import json
from typing import Any

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient

from backend.app import LARGEST_JSON
from tests.backend.matrix.world import World

JSON = {"Content-Type": "application/json"}
EMPTY: dict[str, Any] = {"outputs": [], "inputs": [], "state": [], "changedPropIds": []}
CALLBACKS = "/_dash-update-component"

BODIES: dict[str, bytes] = {
    "nothing": b"",
    "null": b"null",
    "a list": b"[]",
    "an empty object": b"{}",
    "no JSON": b"{",
    "no text": b"\xff\xfe",
    "an unknown output": json.dumps(EMPTY | {"output": "nobody.children"}).encode(),
    "a number as output": json.dumps(EMPTY | {"output": 5}).encode(),
    "an object as output": json.dumps(EMPTY | {"output": {"a": 1}}).encode(),
    "half a pair as output": b'{"output": "\\ud800"}',
    "lists in lists": b"[" * 5000 + b"]" * 5000,
    "lists in lists in an object": b'{"output": ' + b"[" * 900 + b"]" * 900 + b"}",
}


@pytest.mark.parametrize("name", BODIES)
def test_a_bogus_callback_is_a_plain_refusal(client: TestClient, world: World, name: str) -> None:
    answer = client.post(CALLBACKS, content=BODIES[name], headers=JSON | world.headers["owner"])
    assert answer.status_code == 400, answer.text
    assert "no callback of ours" in answer.json()["error"]["message"]


def test_no_callback_breaks_at_arguments_it_does_not_take(
    client: TestClient, world: World, pages: Any
) -> None:
    headers = JSON | world.headers["owner"]
    wrong: list[Any] = []
    for output in pages.callback_map:
        for change in (
            {},
            {"inputs": "x"},
            {"inputs": [1] * 20},
            {"inputs": None, "state": None},
            {"outputs": None},
            {"changedPropIds": [{}]},
        ):
            body = EMPTY | {"output": output} | change
            status = client.post(CALLBACKS, json=body, headers=headers).status_code
            if status != 400:
                wrong.append((output, change, status))
    assert wrong == []


@pytest.mark.parametrize(
    "path",
    ["..%2f..%2fx", "dash/..%2f..%2fx.js", "nope/x.js", "dash/nope.js", "dash/%00", "%2e%2e/x"],
)
def test_a_script_that_is_none_is_not_found(client: TestClient, world: World, path: str) -> None:
    answer = client.get(f"/_dash-component-suites/{path}", headers=world.headers["viewer"])
    assert answer.status_code == 404


@pytest.mark.parametrize("path", ["/", CALLBACKS, "/_dash-layout"])
def test_a_stranger_s_body_is_not_read(
    site: FastAPI, client: TestClient, world: World, path: str
) -> None:
    taken = 0

    def endless() -> Any:
        nonlocal taken
        for _ in range(20 * LARGEST_JSON // 65536):
            taken += 65536
            yield b" " * 65536

    answer = client.post(path, content=endless(), headers=JSON)
    assert answer.status_code in (401, 413)
    names = [layer.cls.__name__ for layer in site.user_middleware]
    assert names.index("Intake") < names.index("AccountGate") < names.index("CallbackGuard")
    assert names[-1] == "_Inner"


def test_a_callback_above_the_limit_is_told_so(client: TestClient, world: World) -> None:
    body = b'{"output": "' + b"x" * LARGEST_JSON + b'"}'
    headers = JSON | world.headers["owner"]
    assert client.post(CALLBACKS, content=body, headers=headers).status_code == 413
    assert client.post(CALLBACKS, content=iter([body]), headers=headers).status_code == 413
