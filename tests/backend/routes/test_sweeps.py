"""Sweeps from submission to the end, over HTTP."""

from typing import Any

import pytest
from fastapi.testclient import TestClient

from tests.backend.conftest import BODY, NotedQueue

FIELDS = {
    "id",
    "study_id",
    "state",
    "spec",
    "progress",
    "total",
    "reused",
    "eta_seconds",
    "messages",
}


def post(api: TestClient, study: int, body: dict[str, Any], **options: Any) -> Any:
    return api.post(f"/api/studies/{study}/sweeps", json=body, **options)


def test_a_sweep_is_accepted_located_and_announced(
    api: TestClient, study: int, queue: NotedQueue
) -> None:
    answer = post(api, study, BODY)
    sweep = answer.json()
    assert answer.status_code == 202
    assert answer.headers["location"] == f"/api/sweeps/{sweep['id']}"
    assert sweep.keys() >= FIELDS
    assert (sweep["state"], sweep["total"], sweep["reused"]) == ("queued", 12, 0)
    assert sweep["sweep_ids"] == [sweep["id"]]
    assert queue.shard_ids, "workers were told"
    assert api.get(f"/api/sweeps/{sweep['id']}").json()["spec"]["seeds"] == [1, 2]


def test_a_sweep_without_rates_or_seeds_gets_the_tasks_own(api: TestClient, study: int) -> None:
    spec = post(api, study, {"task": "toy/quadratic"}).json()["spec"]
    assert spec["methods"] == ["eb", "ib"]
    assert spec["learning_rates"] == [0.1, 0.5, 1.0, 1.5, 1.75, 2.0, 2.5, 3.0]
    assert spec["seeds"] == [1, 2, 3]


def test_grids_and_lists_of_rates_seeds_and_clips_are_read(api: TestClient, study: int) -> None:
    grid = {"from": 0.01, "to": 100, "count": 5}
    body = BODY | {"learning_rates": grid, "seeds": [7, 3], "clip": [None, 1.0]}
    sweep = post(api, study, body).json()
    assert sweep["spec"]["learning_rates"] == [0.01, 0.1, 1.0, 10.0, 100.0]
    assert (sweep["spec"]["seeds"], sweep["spec"]["clips"]) == ([7, 3], [None, 1.0])
    assert sweep["total"] == 2 * 5 * 2 * 2


def test_a_dry_run_forecasts_and_stores_nothing(
    api: TestClient, study: int, queue: NotedQueue
) -> None:
    answer = post(api, study, BODY, params={"dry_run": "true"})
    assert answer.status_code == 200
    forecast = answer.json()
    assert (forecast["trials"], forecast["reused"]) == (12, 0)
    assert forecast["shards"] >= 1
    assert forecast["cost_seconds"] > 0
    assert queue.shard_ids == []
    assert api.get(f"/api/studies/{study}").json()["total"] == 0


def test_the_same_key_submits_once_and_another_body_conflicts(api: TestClient, study: int) -> None:
    key = {"Idempotency-Key": "once"}
    first, again = (post(api, study, BODY, headers=key).json() for _ in range(2))
    assert first["id"] == again["id"]
    other = post(api, study, BODY | {"seeds": 3}, headers=key)
    assert other.status_code == 409
    assert other.json()["error"]["field"] == "Idempotency-Key"
    audit = api.get("/api/audit", params={"study_id": study}).json()["items"]
    submissions = [entry["detail"] for entry in audit if entry["action"] == "sweep.submit"]
    assert submissions == [{"sweeps": [first["id"]]}], "done once, remembered once"


def test_a_second_sweep_shares_the_trials_it_repeats(api: TestClient, study: int, submit) -> None:
    submit()
    wider = submit(seeds=3)
    assert (wider["total"], wider["reused"]) == (18, 12)
    assert api.get(f"/api/studies/{study}").json()["total"] == 18


def test_known_trials_are_replayed_where_a_sweep_wants_them_recorded(
    api: TestClient, trained: int, queue: NotedQueue
) -> None:
    body = BODY | {"record": ["norms"]}
    found = post(api, trained, body, params={"dry_run": True}).json()
    assert (found["reused"], found["replays"], found["shards"]) == (12, 12, 12)
    assert queue.replay_ids == []
    sweep = post(api, trained, body).json()
    assert sweep["messages"] == ["12 trials are still to be replayed to be recorded"]
    assert len(set(queue.replay_ids)) == len(queue.replay_ids) == 12
    assert post(api, trained, body, params={"dry_run": True}).json()["replays"] == 0


def test_a_broker_that_is_away_is_a_message_not_an_error(
    api: TestClient, study: int, queue: NotedQueue
) -> None:
    queue.away = "The broker does not answer."
    answer = post(api, study, BODY)
    assert answer.status_code == 202
    assert any("broker" in message for message in answer.json()["messages"])


def test_a_preset_fills_everything(api: TestClient, study: int) -> None:
    sweep = post(api, study, {"preset": "first/digits", "seeds": 1}).json()
    assert sweep["spec"]["task"] == "digits_mlp"
    assert sweep["spec"]["seeds"] == [1], "what stands beside a preset replaces the preset's"


def test_a_preset_decides_its_methods(api: TestClient, study: int) -> None:
    answer = post(api, study, {"preset": "first/digits", "methods": ["eb"]})
    assert answer.status_code == 422
    assert answer.json()["error"]["field"] == "methods"


@pytest.mark.parametrize(
    ("change", "field", "words"),
    [
        ({"task": "mnits"}, "task", "digits_mlp"),
        ({"preset": "paper/99", "task": None, "methods": None}, "preset", "paper/05_jsb_chorales"),
        ({"methods": ["sgd"]}, "methods", "momentum"),
        ({"activation": "swish"}, "activation", "arctan"),
        ({"methods": []}, "methods", "1 to 200 methods"),
        ({"learning_rates": [-1]}, "learning_rates.0", "-1"),
        ({"learning_rates": {"from": 1, "to": 10}}, "learning_rates.count", "needed"),
        ({"learning_rates": {"from": 10, "to": 1, "count": 3}}, "learning_rates", "rise"),
        ({"seeds": 0}, "seeds", "from 1 to 1,000"),
        ({"seeds": "1-5"}, "seeds", "Write 5 for seeds 1 to 5"),
        ({"epochs": 0}, "epochs", "0"),
        ({"device": "tpu"}, "device", "cuda"),
        ({"options": {"widht": 3}}, "options.widht", "widht"),
        ({"options": {"restart": True}}, "options.restart", "mu > 0"),
        ({"lerning_rates": [1]}, "lerning_rates", "learning_rates"),
        ({"learning_rates": {"from": 0.01, "to": 1, "count": 1000}, "seeds": 1000}, None, "20,000"),
    ],
)
def test_refusals_name_the_field_and_what_would_work(
    api: TestClient, study: int, change: dict[str, Any], field: str | None, words: str
) -> None:
    answer = post(api, study, BODY | change)
    error = answer.json()["error"]
    assert answer.status_code in (413, 422), answer.text
    assert set(error) == {"code", "message", "field", "hint"}
    assert field is None or error["field"] == field
    assert words in error["message"]


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e999"])
def test_numbers_that_are_not_finite_are_refused(api: TestClient, study: int, number: str) -> None:
    body = f'{{"task": "toy/quadratic", "learning_rates": [{number}]}}'
    answer = api.post(
        f"/api/studies/{study}/sweeps", content=body, headers={"Content-Type": "application/json"}
    )
    assert answer.status_code == 422
    assert answer.json()["error"]["field"] == "learning_rates.0"


def test_an_unknown_study_is_not_found_even_by_a_dry_run(api: TestClient) -> None:
    assert post(api, 99, BODY).status_code == 404
    assert post(api, 99, BODY, params={"dry_run": "true"}).status_code == 404


def test_cancel_stops_what_waits_and_retry_brings_it_back(
    api: TestClient, submit, queue: NotedQueue
) -> None:
    sweep = submit()["id"]
    queue.shard_ids.clear()
    cancelled = api.post(f"/api/sweeps/{sweep}/cancel").json()
    assert cancelled["state"] == "cancelled"
    assert cancelled["progress"]["cancelled"] == 12
    again = api.post(f"/api/sweeps/{sweep}/retry").json()
    assert again["progress"]["queued"] == 12
    assert queue.shard_ids


def test_a_sweep_that_succeeded_has_nothing_to_retry(api: TestClient, submit, train) -> None:
    sweep = submit()["id"]
    train()
    answer = api.post(f"/api/sweeps/{sweep}/retry")
    assert answer.status_code == 409


def test_trials_page_through_the_grid(api: TestClient, submit, train) -> None:
    sweep = submit()["id"]
    train()
    first = api.get(f"/api/sweeps/{sweep}/trials", params={"limit": 7}).json()
    rest = api.get(f"/api/sweeps/{sweep}/trials", params={"cursor": first["next_cursor"]}).json()
    assert (len(first["items"]), len(rest["items"]), rest["next_cursor"]) == (7, 5, None)
    diverged = api.get(f"/api/sweeps/{sweep}/trials", params={"state": "diverged"}).json()
    assert [(t["method"], t["lr"], t["train_loss"]) for t in diverged["items"]] == [
        ("eb", 3.0, None),
        ("eb", 3.0, 40.0),
    ]


def test_a_studys_sweeps_are_listed_in_order(api: TestClient, study: int, submit) -> None:
    ids = [submit(seeds=seeds)["id"] for seeds in (1, 2, 3)]
    page = api.get(f"/api/studies/{study}/sweeps", params={"limit": 2}).json()
    rest = api.get(
        f"/api/studies/{study}/sweeps", params={"limit": 2, "cursor": page["next_cursor"]}
    ).json()
    assert [sweep["id"] for sweep in page["items"] + rest["items"]] == ids
