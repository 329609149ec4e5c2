"""A sweep means the same, or is refused with the same words, through whichever door it comes."""

from typing import Any

import pytest
from fastapi.testclient import TestClient
from typer.testing import CliRunner

from backend.cli import app as command
from dashboard.pages.new_sweep.body import FIELDS, Refused, body_from
from ib_core.errors import IBError
from ib_core.sweep.bodies import specs_of

FORM = dict.fromkeys(FIELDS) | {"mode": "grid", "task": "toy/quadratic", "methods": ["eb", "ib"]}
FLAGS = {"learning_rates": "--lrs", "seeds": "--seeds", "clip": "--clip", "epochs": "--epochs"}
TYPED = {
    "learning_rates": "0.1:10:3",
    "seeds": "1,2",
    "clip": "none,1",
    "epochs": "2",
}


def by_form(said: dict[str, str]) -> dict[str, Any]:
    rates = {"rates_mode": "list", "rate_list": said["learning_rates"]}
    return body_from(FORM | {k: v for k, v in said.items() if k != "learning_rates"} | rates)


def by_api(api: TestClient, body: dict[str, Any]) -> Any:
    return api.post("/api/forecast", json=body)


def test_all_doors_ask_for_the_same_trials(api: TestClient) -> None:
    said = {"task": "toy/quadratic", "methods": "eb,ib", **TYPED}
    body = by_form(TYPED)
    assert specs_of(said, typed=True) == specs_of(body)
    as_json = {**said, "epochs": 2}
    assert by_api(api, as_json).json() == by_api(api, body).json()
    assert by_api(api, body).json()["trials"] == 2 * 3 * 2 * 2


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("learning_rates", "0.1:1"),
        ("learning_rates", "1,abc"),
        ("learning_rates", "0"),
        ("seeds", "1-5"),
        ("seeds", "0"),
        ("clip", "tight"),
    ],
)
def test_all_doors_refuse_with_one_sentence(api: TestClient, name: str, text: str) -> None:
    said = {**TYPED, name: text}
    with pytest.raises(Refused) as at_the_form:
        by_form(said)
    sentence = str(at_the_form.value)
    answer = by_api(api, {"task": "toy/quadratic", **said, "epochs": 2})
    assert answer.status_code == 422
    assert answer.json()["error"]["message"] == sentence
    assert answer.json()["error"]["field"].split(".")[0] == name
    flags = [word for key, flag in FLAGS.items() for word in (flag, said[key])]
    for verb in ("sweep", "submit"):
        refused = CliRunner().invoke(command, [verb, "toy/quadratic", *flags])
        assert isinstance(refused.exception, IBError)
        assert refused.exception.message == f"{FLAGS[name]}: {sentence}"


def test_a_task_beside_a_preset_is_refused_at_every_door(api: TestClient) -> None:
    sentence = "The preset 'first/digits' decides task; leave task out, or the preset."
    answer = by_api(api, {"preset": "first/digits", "task": "digits_mlp"})
    assert answer.json()["error"]["message"] == sentence
    for verb in ("sweep", "submit"):
        refused = CliRunner().invoke(command, [verb, "digits_mlp", "--preset", "first/digits"])
        assert isinstance(refused.exception, IBError)
        assert refused.exception.message == sentence
    with pytest.raises(IBError, match="decides task"):
        specs_of({"preset": "first/digits", "task": "digits_mlp"})


def test_a_sweep_and_its_study_are_stored_together_or_not_at_all(api: TestClient) -> None:
    study = {"name": "How far?", "tags": ["mine"]}
    sweep = {"task": "toy/quadratic", "learning_rates": "0.1,1", "seeds": 1}
    refused = api.post("/api/sweeps", json={"study": study, "sweep": {**sweep, "task": "nope"}})
    assert refused.status_code == 422
    assert refused.json()["error"]["field"] == "task"
    assert api.get("/api/studies").json()["items"] == []
    stored = api.post("/api/sweeps", json={"study": study, "sweep": sweep})
    assert stored.status_code == 202
    [found] = api.get("/api/studies").json()["items"]
    assert (found["name"], found["tags"]) == ("How far?", ["mine"])
    assert stored.json()["study_id"] == found["id"]
    assert stored.headers["Location"] == f"/api/sweeps/{stored.json()['id']}"


def test_the_same_key_twice_makes_one_study_and_one_sweep(api: TestClient) -> None:
    body = {"study": {"name": "Once"}, "sweep": {"task": "toy/quadratic", "seeds": 1}}
    answers = [
        api.post("/api/sweeps", json=body, headers={"Idempotency-Key": "click"}) for _ in range(2)
    ]
    assert answers[0].json()["id"] == answers[1].json()["id"]
    assert len(api.get("/api/studies").json()["items"]) == 1
    other = {**body, "sweep": {"task": "toy/quadratic", "seeds": 2}}
    clash = api.post("/api/sweeps", json=other, headers={"Idempotency-Key": "click"})
    assert clash.status_code == 409


def test_a_name_is_a_new_study_unless_reuse_is_asked_for(api: TestClient) -> None:
    body = {"study": {"name": "Mine"}, "sweep": {"task": "toy/quadratic", "seeds": 1}}
    first, second = (api.post("/api/sweeps", json=body).json()["study_id"] for _ in range(2))
    assert first != second
    again = api.post("/api/sweeps", json={**body, "reuse": True}).json()["study_id"]
    assert again == second, "the newest of that name"
