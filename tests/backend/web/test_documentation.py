"""The documentation works offline and knows every call."""

import re
from collections.abc import Iterator
from typing import Any

from fastapi.testclient import TestClient

from backend.web.intake import MOST_PARAMETERS

CALLS = {
    "/api/health": {"get"},
    "/api/ready": {"get"},
    "/api/catalog": {"get"},
    "/api/studies": {"get", "post"},
    "/api/studies/{study_id}": {"get", "patch", "delete"},
    "/api/studies/{study_id}/sweeps": {"get", "post"},
    "/api/sweeps/{sweep_id}": {"get"},
    "/api/sweeps/{sweep_id}/cancel": {"post"},
    "/api/sweeps/{sweep_id}/retry": {"post"},
    "/api/sweeps/{sweep_id}/events": {"get"},
    "/api/sweeps/{sweep_id}/trials": {"get"},
    "/api/trials/{trial_id}": {"get"},
    "/api/trials/{trial_id}/curve": {"get"},
    "/api/studies/{study_id}/sensitivity": {"get"},
    "/api/studies/{study_id}/scorecard": {"get"},
    "/api/compare": {"get"},
    "/api/studies/{study_id}/export": {"get"},
    "/api/import": {"post"},
    "/api/illustrations/quadratic": {"get"},
    "/api/illustrations/update": {"get"},
    "/api/illustrations/race": {"get"},
    "/api/first-study": {"post"},
    "/api/bundle": {"get", "post"},
    "/api/bundle/tables": {"get"},
    "/api/me": {"get"},
    "/api/workers": {"get"},
    "/api/queue": {"get"},
    "/metrics": {"get"},
}


def test_every_promised_call_is_documented(api: TestClient) -> None:
    paths = api.get("/api/openapi.json").json()["paths"]
    assert {
        path: methods for path, methods in CALLS.items() if not methods <= set(paths[path])
    } == {}
    page = api.get("/api/docs").text
    assert [path for path in CALLS if f"<code>{path}</code>" not in page] == []


def test_the_page_asks_nothing_of_other_hosts(api: TestClient) -> None:
    answer = api.get("/api/docs")
    assert re.findall(r'(?:src|href)="(?!#|openapi\.json)[^"]*"', answer.text) == []
    assert "<script" not in answer.text
    assert answer.headers["content-security-policy"].startswith("default-src 'none'")


def test_every_error_in_the_document_has_the_one_shape(api: TestClient) -> None:
    paths = api.get("/api/openapi.json").json()["paths"]
    shapes = {
        (path, method, status): answer["content"]["application/json"]["schema"]["$ref"]
        for path, operations in paths.items()
        for method, operation in operations.items()
        for status, answer in operation["responses"].items()
        if status.startswith(("4", "5")) and path != "/api/ready"
    }
    assert shapes
    assert set(shapes.values()) == {"#/components/schemas/ErrorRead"}


def test_the_document_tells_every_limit_in_words_of_a_schema(api: TestClient) -> None:
    """What pydantic cannot say as a schema it says as `ge`, which no client understands."""

    def unsaid(part: Any, where: str) -> Iterator[str]:
        if isinstance(part, dict):
            yield from (f"{where}.{name}" for name in {"ge", "gt", "le", "lt"} & part.keys())
            for name, inner in part.items():
                yield from unsaid(inner, f"{where}.{name}")
        if isinstance(part, list):
            for inner in part:
                yield from unsaid(inner, where)

    document = api.get("/api/openapi.json").json()
    assert list(unsaid(document, "")) == []
    calls = [call for methods in document["paths"].values() for call in methods.values()]
    lists = [one["schema"].get("maxItems", 0) for c in calls for one in c.get("parameters", ())]
    assert max(lists) < MOST_PARAMETERS, "all of a list's items may be asked for"
