"""Sweeps on what workers bring along, over HTTP: waiting, refused, listed, cancelled."""

from fastapi.testclient import TestClient

from backend.db import transaction
from backend.services import shards
from tests.announced import METHOD, TASK, arrive, leave, method_manifest, submit_body, task_manifest
from tests.factories import result, submit, train_all

BODY = {"study": {"name": "Mine"}, "sweep": {"task": TASK, "methods": ["eb"], "seeds": 1}}


def announce() -> None:
    with transaction() as session:
        arrive(session, "one", task_manifest(), method_manifest(), host="anna.lab")


def gone() -> None:
    with transaction() as session:
        leave(session, "one")


def test_a_sweep_that_waits_says_for_whom_and_can_be_cancelled(api: TestClient) -> None:
    announce()
    gone()
    sent = api.post("/api/sweeps", json=BODY)
    assert sent.status_code == 202, sent.text
    path = f"/api/sweeps/{sent.json()['id']}"
    (missing,) = api.get(path).json()["waiting_for"]
    assert (missing["name"], missing["version"]) == (TASK, "aaaa0000")
    assert missing["last_host"] == "anna.lab"
    announce()
    assert api.get(path).json()["waiting_for"] == []
    gone()
    assert api.post(f"{path}/cancel").json()["state"] == "cancelled"
    assert api.get(path).json()["waiting_for"] == []


def test_a_value_that_is_not_taken_names_its_field(api: TestClient) -> None:
    announce()
    bad = {**BODY, "sweep": {**BODY["sweep"], "vary": {"width": [1]}}}
    answer = api.post("/api/sweeps", json=bad)
    assert answer.status_code in (400, 422)
    error = answer.json()["error"]
    assert error["field"] == "vary.width"
    assert error["message"] == "The option width must be a whole number from 4 to 512; got 1."


def test_the_catalogue_lists_what_workers_bring_along(api: TestClient) -> None:
    announce()
    found = api.get("/api/catalog").json()
    assert {one["name"]: one["workers"] for one in found["offers"]} == {
        TASK: ["anna.lab"],
        METHOD: ["anna.lab"],
    }
    (task,) = [one for one in found["tasks"] if one["version"]]
    assert task["options"]["properties"]["width"]["default"] == 32


def test_a_file_s_method_trains_the_catalogue_s_tasks(api: TestClient) -> None:
    announce()
    tasks = {one["name"]: one for one in api.get("/api/catalog").json()["tasks"]}
    assert METHOD in tasks["digits_mlp"]["methods"]
    body = {**BODY, "sweep": {**BODY["sweep"], "task": "digits_mlp", "methods": ["eb", METHOD]}}
    sent = api.post("/api/sweeps", json=body)
    assert sent.status_code == 202, sent.text


def test_a_forecast_reads_the_manifest_too(api: TestClient) -> None:
    announce()
    found = api.post("/api/forecast", json={**BODY["sweep"], "learning_rates": [0.1]})
    assert found.json()["trials"] == 1


def test_a_replay_that_nobody_can_do_says_who_is_missing(api: TestClient) -> None:
    with transaction() as session:
        worker = arrive(session, "one", task_manifest(), method_manifest())
        sent = submit_body(session, learning_rates=[0.1], seeds=1)
        taken = shards.claim(
            session, shard_id=sent.shard_ids[0], worker="one", offers=worker.offers
        )
        assert taken is not None
        (trial,) = taken.trials
        shards.report(session, claim=taken, finished={trial.id: result(trial)})
        assert shards.finish(session, claim=taken)
    gone()
    answer = api.post(f"/api/trials/{trial.id}/replay", json={})
    assert answer.status_code == 202, answer.text
    for told in (answer.json(), api.get(f"/api/trials/{trial.id}/recording").json()):
        (sentence,) = told["messages"]  # and not a word about the broker
        assert sentence.startswith(f"waiting for a worker with {TASK}, version aaaa0000")


def test_a_study_says_how_its_series_were_trained_and_why(api: TestClient) -> None:
    with transaction() as session:
        worker = arrive(session, "one", task_manifest(), method_manifest())
        sent = submit_body(session, methods=["eb", METHOD], seeds=2)
        for number, shard_id in enumerate(sent.shard_ids):
            taken = shards.claim(session, shard_id=shard_id, worker="one", offers=worker.offers)
            assert taken is not None
            way = {"way": "one by one", "why": "torch: no .item()"} if number else {}
            record = {"way": "stacked", "why": "faster", **way}
            found = {one.id: result(one, record=record) for one in taken.trials}
            shards.report(session, claim=taken, finished=found)
            assert shards.finish(session, claim=taken)
        other = train_all(session, submit(session))
    ways = api.get(f"/api/studies/{sent.sweep.study_id}").json()["ways"]
    assert sum(one["trials"] for one in ways) == sent.sweep.total
    assert {one["label"].partition(" ")[0] for one in ways} == {"eb", METHOD}
    told = {(one["task"], one["way"], one["why"]) for one in ways}
    assert told == {(TASK, "stacked", "faster"), (TASK, "one by one", "torch: no .item()")}
    # Stacks that were written by hand had no choice.
    assert api.get(f"/api/studies/{other.study_id}").json()["ways"] == []
