"""The history, and one study's life."""

from typing import Any

import pytest
from fastapi.testclient import TestClient

from tests import factories


def create(api: TestClient, name: str, **fields: object) -> int:
    answer = api.post("/api/studies", json={"name": name, **fields})
    assert answer.status_code == 201, answer.text
    assert answer.headers["location"] == f"/api/studies/{answer.json()['id']}"
    return int(answer.json()["id"])


def names(api: TestClient, **query: object) -> list[str]:
    answer = api.get("/api/studies", params=query)
    assert answer.status_code == 200, answer.text
    return [study["name"] for study in answer.json()["items"]]


def test_what_is_created_can_be_read_renamed_and_deleted(api: TestClient) -> None:
    study = create(api, "One", tags=["b", "a"], notes="# Why")
    read = api.get(f"/api/studies/{study}").json()
    assert (read["name"], read["tags"], read["notes"]) == ("One", ["a", "b"], "# Why")
    assert (read["state"], read["total"], read["sweep_ids"]) == (None, 0, [])
    changed = api.patch(f"/api/studies/{study}", json={"name": "Two"}).json()
    assert (changed["name"], changed["notes"]) == ("Two", "# Why")
    assert api.delete(f"/api/studies/{study}").status_code == 204
    assert api.get(f"/api/studies/{study}").status_code == 404


def test_archived_studies_hide_until_asked_for(api: TestClient) -> None:
    create(api, "kept")
    api.patch(f"/api/studies/{create(api, 'old')}", json={"archived": True})
    assert names(api) == ["kept"]
    assert names(api, archived="true") == ["old"]
    assert sorted(names(api, archived="any")) == ["kept", "old"]


def test_pages_cover_the_history_once(api: TestClient) -> None:
    for number in range(5):
        create(api, f"study {number}")
    seen, cursor = [], None
    while True:
        query = {"limit": 2, "sort": "name"} | ({"cursor": cursor} if cursor else {})
        page = api.get("/api/studies", params=query).json()
        seen += [study["name"] for study in page["items"]]
        cursor = page["next_cursor"]
        if cursor is None:
            break
    assert seen == [f"study {number}" for number in range(5)]


def test_filters_narrow_the_history(api: TestClient, study: int, submit) -> None:
    submit()
    create(api, "Other", tags=["music"])
    assert names(api, tag="music") == ["Other"]
    assert names(api, q="study a") == ["A study"]
    assert names(api, task="toy/quadratic") == ["A study"]
    assert names(api, state="queued") == ["A study"]
    assert names(api, state="completed") == []
    assert names(api, until="2000-01-01T00:00:00Z") == []
    assert len(names(api, since="2000-01-01")) == 2


@pytest.mark.parametrize(
    "query", [{"limit": 0}, {"limit": 501}, {"sort": "owner"}, {"cursor": "%%"}, {"sord": "name"}]
)
def test_nonsense_in_the_query_is_refused(api: TestClient, query: dict[str, object]) -> None:
    answer = api.get("/api/studies", params=query)
    assert answer.status_code == 422
    assert answer.json()["error"]["field"] == next(iter(query))


@pytest.mark.parametrize(
    "body",
    [{}, {"name": ""}, {"name": "   "}, {"name": "a\nb"}, {"name": 5}, {"name": "x" * 201}],
)
def test_a_study_needs_a_name_of_one_line(api: TestClient, body: dict[str, object]) -> None:
    answer = api.post("/api/studies", json=body)
    assert answer.status_code == 422
    assert answer.json()["error"]["field"] == "name"


def test_small_curves_come_on_request(api: TestClient, trained: int) -> None:
    plain, spark = (
        api.get("/api/studies", params=query).json()["items"][0]["spark"]
        for query in ({}, {"spark": "true"})
    )
    assert plain == []
    curves = {one["method"]: [point["mean"] for point in one["points"]] for one in spark}
    assert curves["eb"][2] is None, "a seed that is not finite makes its mean null"
    assert curves["ib"] == pytest.approx([0.515, 0.115, 0.215])


def test_small_curves_of_different_settings_are_never_averaged(
    api: TestClient, study: int, submit, train
) -> None:
    submit(clip=[None, 1.0], methods=["ib"])
    submit(batch_rule="share", methods=["ib"])
    submit(epochs=7, methods=["ib"])

    def judged(trial: Any) -> Any:
        changed = {"share": 1.0}.get(trial.spec["batch_rule"], 0.0) + (trial.spec["epochs"] == 7)
        return factories.result(trial, loss=2.0 + changed + (trial.spec["clip"] or 0.0))

    train(judged)
    spark = api.get("/api/studies", params={"spark": "true"}).json()["items"][0]["spark"]
    means = {one["label"]: {point["mean"] for point in one["points"]} for one in spark}
    assert len(means) == 4
    assert sorted(means.values()) == [{2.0}, {3.0}, {3.0}, {3.0}]
    assert all(label.startswith("ib, ") for label in means)
