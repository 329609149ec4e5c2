"""Every reading route and every page x every state a trial can be in x both databases."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient

from backend.db import transaction
from backend.schemas import TrialState
from backend.services import sweeps, trials
from ib_core.sweep.result import Outcome
from tests import factories
from tests.backend.matrix.conftest import serving
from tests.backend.matrix.page_table import PAGES
from tests.backend.matrix.route_table import RULES
from tests.backend.matrix.test_pages import callbacks, outputs, press
from tests.backend.matrix.world import World, build_world
from tests.conftest import empty_postgresql

__all__ = ["callbacks"]  # the fixture, here for this module's site

DATABASES = ("sqlite", "postgresql")
STATES = (*(state.value for state in TrialState), "imported")
READING = [path for method, path in RULES if method == "GET"]
#: Further ways to ask the same route, each with SQL of its own.
VARIANTS: dict[str, list[dict[str, str]]] = {
    "/api/studies": [
        {"spark": "true"},
        *({"state": state} for state in ("queued", "running", "completed", "failed", "cancelled")),
        *({"sort": sort} for sort in ("name", "-created_at")),
        {"q": "a study", "tag": "x", "owner": "ada", "task": "toy/quadratic", "archived": "any"},
    ],
    "/api/studies/{study_id}/sensitivity": [
        {"reducer": "best"},
        {"metric": "test_accuracy", "band": "quantile"},
        {"metric": "seconds"},
    ],
    "/api/studies/{study_id}/scorecard": [{"reducer": "best", "metric": "test_loss"}],
    "/api/studies/{study_id}/learning": [{"metric": "test_accuracy", "smooth": "3"}],
    "/api/studies/{study_id}/differences": [{"kind": "clip"}, {"kind": "engine"}],
    "/api/studies/{study_id}/export": [
        {"format": "json"},
        {"format": "parquet"},
        {"content": "scorecard"},
    ],
    "/api/compare": [{"metric": "test_accuracy", "reducer": "best"}],
    "/api/publish": [{"format": "zip"}],
    "/api/trials/{trial_id}/curve": [{"max_points": "8"}],
    "/api/trials/{trial_id}/recording": [{"rows": "16"}],
    "/api/sweeps/{sweep_id}/trials": [{"state": "failed"}],
}
CSV = b"""experiment,dataset,method,lr,seed,train_loss,test_loss,epochs,outcome,error,options
uci,iris,eb,0.1,1,0.5,0.5,1,completed,,"{""momentum"": 0.9}"
uci,iris,eb,1.0,1,,,1,diverged,,
uci,iris,eb,3.0,1,,,1,failed,It broke there.,
"""


@dataclass(frozen=True)
class Target:
    """A study whose trials are all in one state, its sweep and one of its trials."""

    study_id: int
    sweep_id: int
    trial_id: int

    def fill(self, path: str, world: World) -> str:
        for name in ("study_id", "sweep_id", "trial_id"):
            path = path.replace("{" + name + "}", str(getattr(self, name)))
        return world.fill(path)


def ways() -> list[tuple[str, dict[str, str]]]:
    """Return every reading route in every way it is asked."""
    return [(path, query) for path in READING for query in ({}, *VARIANTS.get(path, ()))]


def counted() -> list[tuple[str, int, int, int, int]]:
    """Return the cells of the matrix: what is asked, how many, by states, by databases, in all."""
    kinds = {"reading routes, each in every way": len(ways()), "pages": len(PAGES)}
    around = len(STATES), len(DATABASES)
    return [(what, n, *around, n * around[0] * around[1]) for what, n in kinds.items()]


@pytest.fixture(scope="module", params=DATABASES)
def site(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[FastAPI]:
    home = tmp_path_factory.mktemp("states")
    url = None
    if request.param == "postgresql":
        url = request.getfixturevalue("postgresql_url")
        empty_postgresql(request.getfixturevalue("postgres_server"))
    else:
        file: Path = request.getfixturevalue("sqlite_template")
        (home / "etascope.db").write_bytes(file.read_bytes())
    with serving(home, url) as app:
        yield app


@pytest.fixture(scope="module")
def people(site: FastAPI) -> World:
    return build_world()


@pytest.fixture(scope="module")
def targets(site: FastAPI, people: World, client: TestClient) -> dict[str, Target]:
    """One study for every state; settings differ, or they would share trials."""
    made = {
        state.value: _study(people, number, state)
        for number, state in enumerate(TrialState, start=1)
    }
    answer = client.post("/api/import", content=CSV, headers=people.headers["owner"])
    assert answer.status_code == 201, answer.text
    found = answer.json()
    made["imported"] = _target(found["study_id"], found["sweep_ids"][0])
    return made


def _study(people: World, number: int, state: TrialState) -> Target:
    study_id = people.study_id()
    with transaction() as session:
        submitted = factories.submit(session, study_id=study_id, seeds=(2 * number, 2 * number + 1))
    for shard_id in submitted.shard_ids if state is not TrialState.QUEUED else ():
        with transaction() as session:
            if state in (TrialState.COMPLETED, TrialState.DIVERGED, TrialState.FAILED):
                factories.train(session, shard_id, outcome=Outcome(state.value))
            elif state is TrialState.RUNNING:
                factories.claim(session, shard_id)
    if state is TrialState.CANCELLED:
        with transaction() as session:
            sweeps.cancel(session, sweep_id=submitted.sweep.id)
    return _target(study_id, submitted.sweep.id)


def _target(study_id: int, sweep_id: int) -> Target:
    with transaction() as session:
        first = trials.page(session, sweep_id=sweep_id, limit=1).items[0]
    return Target(study_id, sweep_id, first.id)


def test_trials_are_in_the_states_the_tables_below_speak_of(
    client: TestClient, people: World, targets: dict[str, Target]
) -> None:
    for state in TrialState:
        target = targets[state.value]
        found = client.get(f"/api/sweeps/{target.sweep_id}", headers=people.headers["viewer"])
        assert {kind for kind, n in found.json()["progress"].items() if n} == {state.value}


@pytest.mark.parametrize("state", STATES)
def test_every_reading_route_answers(
    client: TestClient,
    people: World,
    targets: dict[str, Target],
    state: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # A stream of what has not ended would not end either.
    monkeypatch.setattr(sweeps.News, "done", property(lambda _: True))
    wrong = {}
    for path, query in ways():
        asked: dict[str, Any] = query
        if path in ("/api/compare", "/api/publish"):
            asked = {**query, "study": [target.study_id for target in targets.values()]}
        address = targets[state].fill(path, people)
        answer = client.get(address, params=asked, headers=people.headers["admin"])
        if answer.status_code != RULES["GET", path].ok:
            wrong[address, str(query)] = (answer.status_code, answer.text[:200])
    assert wrong == {}


def values_in(tree: Any) -> dict[str, dict[str, Any]]:
    """Return the properties of every component of a drawn page, by id."""
    parts = tree if isinstance(tree, list) else tree.values() if isinstance(tree, dict) else ()
    found = {id: own for part in parts for id, own in values_in(part).items()}
    own = tree.get("props") if isinstance(tree, dict) else None
    if isinstance(own, dict) and isinstance(own.get("id"), str):
        found[own["id"]] = own
    return found


def follow(
    client: TestClient, callbacks: dict[str, Any], tree: Any, headers: dict[str, str]
) -> dict[str, int]:
    """Run what a browser asks for as soon as it has a page; return the statuses by callback."""
    known = values_in(tree)
    statuses = {}
    for name, one in callbacks.items():
        plain = [each for each in one["inputs"] if not each["id"].startswith("{")]
        if one["prevent_initial_call"] or not any(each["id"] in known for each in plain):
            continue

        def argument(each: dict[str, Any]) -> Any:
            value = known.get(each["id"], {}).get(each["property"])
            return [] if each["id"].startswith("{") else {**each, "value": value}

        body = {
            "output": one["output"],
            "outputs": outputs(one["output"]),
            "inputs": [argument(each) for each in one["inputs"]],
            "state": [argument(each) for each in one["state"]],
            "changedPropIds": [],
        }
        answer = client.post("/_dash-update-component", json=body, headers=headers)
        statuses[name] = answer.status_code
    return statuses


@pytest.mark.parametrize("state", STATES)
def test_every_page_can_be_shown(
    client: TestClient,
    people: World,
    targets: dict[str, Target],
    callbacks: dict[str, Any],
    state: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    wrong = {}
    for page in PAGES:
        address = targets[state].fill(page.replace("<", "{").replace(">", "}"), people)
        search = f"?studies={targets[state].study_id}" if page == "/compare" else ""
        shown = press(
            client,
            callbacks["router.show"],
            ("location", "pathname", address),
            {"recoveries": 0, "location": search},
            people.headers["admin"],
        )
        if shown.status_code != 200 or "cannot be shown" in shown.text:
            wrong[address] = (shown.status_code, shown.text[:300])
            continue
        tree = shown.json()["response"]
        followed = follow(client, callbacks, tree, people.headers["admin"])
        if "/<" in page:
            assert followed, address
        if bad := {name: status for name, status in followed.items() if status not in (200, 204)}:
            wrong[address] = bad
        assert not caplog.records, (address, caplog.text[-2000:])
    assert wrong == {}
