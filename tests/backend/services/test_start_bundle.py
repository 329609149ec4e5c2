"""The bundle that comes with the program: loaded by one call, known as such ever after."""

from typing import Any

from fastapi import FastAPI
from fastapi.testclient import TestClient

from backend.schemas import BundleRead
from tests.servers import wait_for


def state(api: TestClient) -> dict[str, Any]:
    return dict(api.get("/api/bundle").json())


def names(api: TestClient, **query: Any) -> list[str]:
    found = api.get("/api/studies", params={"limit": 200, **query}).json()["items"]
    return [study["name"] for study in found]


def test_one_call_loads_it_and_a_second_changes_nothing(api: TestClient, study: int) -> None:
    assert state(api) == {"state": "absent", "studies": 0, "message": ""}
    answer = api.post("/api/bundle")
    assert (answer.status_code, answer.json()["state"]) == (202, "loading")
    assert api.post("/api/bundle").json()["state"] == "loading"
    wait_for(lambda: state(api)["state"] != "loading", seconds=240, what="the bundle")
    loaded = state(api)
    assert loaded["state"] == "loaded", loaded
    assert loaded["studies"] == len(names(api, bundle="true")) > 30
    assert names(api, bundle="false") == ["A study"]
    assert len(names(api)) == loaded["studies"] + 1
    assert api.get(f"/api/studies/{study}").json()["bundle"] is False


def test_nobody_s_own_study_counts_as_the_bundle_s(
    api: TestClient, study: int, submit: Any
) -> None:
    submit()
    api.patch(f"/api/studies/{study}", json={"tags": ["paper"], "name": "The paper"})
    assert state(api)["studies"] == 0
    assert names(api, bundle="false") == ["The paper"]


def test_a_load_that_fails_says_so_and_can_be_tried_again(
    app: FastAPI, api: TestClient, monkeypatch: Any
) -> None:
    monkeypatch.setenv("ETASCOPE_DATABASE_URL", "nonsense://")
    api.post("/api/bundle")
    wait_for(lambda: state(api)["state"] != "loading", seconds=120, what="the failure")
    found = BundleRead.model_validate(state(api))
    assert (found.state, found.studies) == ("failed", 0)
    assert "ETASCOPE_DATABASE_URL" in found.message
    monkeypatch.setattr(app.state.loading, "_load", lambda _: None)  # the next one is luckier
    assert api.post("/api/bundle").json()["message"] == ""
