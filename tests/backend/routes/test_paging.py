"""Every list has pages."""

from fastapi.testclient import TestClient

from backend.app import create_app
from backend.db import transaction
from backend.services import workers
from backend.services.workers import Worker
from tests.backend.accounts import team_settings

JSON = "application/json"


def test_every_list_of_the_document_takes_a_limit_and_a_cursor() -> None:
    lists = {}
    for path, calls in create_app(team_settings()).openapi()["paths"].items():
        content = calls.get("get", {}).get("responses", {}).get("200", {}).get("content", {})
        if "/Page_" in content.get(JSON, {}).get("schema", {}).get("$ref", ""):
            lists[path] = {one["name"] for one in calls["get"]["parameters"]}
    assert len(lists) >= 10
    assert all({"limit", "cursor"} <= names for names in lists.values()), lists


def test_workers_come_in_pages_too(api: TestClient) -> None:
    with transaction() as session:
        for name in ("w3", "w1", "w2"):
            workers.register(session, worker=Worker(name, "here", 1, "cpu"))
    first = api.get("/api/workers?limit=2").json()
    rest = api.get("/api/workers", params={"limit": 2, "cursor": first["next_cursor"]}).json()
    assert [one["name"] for one in first["items"] + rest["items"]] == ["w1", "w2", "w3"]
    assert rest["next_cursor"] is None
    assert api.get("/api/workers?limit=0").status_code == 422
    assert api.get("/api/workers?cursor=nonsense").status_code == 422
