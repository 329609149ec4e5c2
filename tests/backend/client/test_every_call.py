"""The client knows every call of the API: its document is compared with what the client sends."""

import inspect
import re
from typing import Any

import httpx
import pytest
from fastapi.testclient import TestClient

from backend.client import Client, calls

#: What is no JSON call: streams and files, which these methods read, and Prometheus' page.
STREAMED = {
    ("GET", "/api/sweeps/{}/events"): "wait",
    ("GET", "/api/studies/{}/export"): "export",
    ("GET", "/api/publish"): "publish",
    ("GET", "/api/trials/{}/recording/export"): "export_recording",
    ("GET", "/metrics"): None,
}


class Body:
    """Stands for any body: whatever is asked of it, it gives."""

    def __getattr__(self, _name: str) -> Any:
        return lambda *_args, **_options: {}


def made(function: Any) -> calls.Call[Any]:
    """Make a call, with 7 for every id."""
    needed = [
        one
        for one in inspect.signature(function).parameters.values()
        if one.default is one.empty and one.kind is not one.VAR_KEYWORD
    ]
    values = {one.name: _value(one.name) for one in needed}
    return function(**values)


def _value(name: str) -> Any:
    if name.endswith("_ids"):
        return [7]
    if name.endswith("_id"):
        return 7
    return b"" if name == "content" else "x" if name == "filename" else Body()


def known() -> dict[tuple[str, str], str]:
    functions = {
        name: function
        for name, function in vars(calls).items()
        if inspect.isfunction(function) and not name.startswith("_") and name != "sends"
    }
    sent = {name: made(function) for name, function in functions.items()}
    return {(one.method, one.path.replace("7", "{}")): name for name, one in sent.items()}


def documented(api: TestClient) -> set[tuple[str, str]]:
    paths = api.get("/api/openapi.json").json()["paths"]
    return {
        (method.upper(), re.sub(r"\{\w+\}", "{}", path))
        for path, methods in paths.items()
        for method in methods
    }


def test_the_client_knows_every_call_of_the_api_and_no_other(api: TestClient) -> None:
    assert set(known()) | set(STREAMED) == documented(api)


def test_every_call_has_a_method() -> None:
    names = {*known().values(), *filter(None, STREAMED.values())}
    # A study that is made for a sweep is named where the sweep is submitted.
    assert sorted(name for name in names - {"submit_into"} if not hasattr(Client, name)) == []


@pytest.mark.parametrize("name", ["queue", "workers", "me", "catalog", "paper"])
def test_a_method_sends_its_call_and_reads_the_answer(api: TestClient, name: str) -> None:
    def hand_over(request: httpx.Request) -> httpx.Response:
        found = api.request(request.method, str(request.url.raw_path, "ascii"))
        return httpx.Response(found.status_code, content=found.content)

    http = httpx.Client(transport=httpx.MockTransport(hand_over), base_url="http://testserver")
    with Client(http=http) as client:
        answer = getattr(client, name)()
    assert isinstance(answer, getattr(calls, name)().answer)
