"""The study a newcomer finds: on an empty history, once, whoever asks first."""

from concurrent.futures import ThreadPoolExecutor

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient

from backend.client import Client, calls
from backend.db import get_engine, transaction
from backend.operations.launcher import welcome
from backend.schemas import StudyCreate
from backend.services import studies
from backend.services.start import FIRST_STUDY, FIRST_STUDY_TAG
from backend.settings import Settings
from tests.backend.conftest import NotedQueue


@pytest.fixture
def client(api: TestClient) -> Client:
    return Client(http=api)


def begin(client: Client) -> int | None:
    return client.send(calls.begin_first_study()).study_id


def test_newcomer_gets_two_methods_nine_rates_and_three_seeds(
    client: Client, queue: NotedQueue
) -> None:
    study = begin(client)

    assert study is not None
    [sweep_id] = client.study(study).sweep_ids
    spec = client.sweep(sweep_id).spec
    assert {"eb", "ib"} <= set(spec["methods"])
    assert len(spec["learning_rates"]) >= 9
    assert len(spec["seeds"]) >= 3
    assert queue.shard_ids


def test_its_notes_say_the_numbers_of_its_grid(client: Client) -> None:
    study = client.study(begin(client) or 0)
    spec = client.sweep(study.sweep_ids[0]).spec
    assert f"{len(spec['learning_rates'])} learning rates" in study.notes
    assert f"{len(spec['seeds'])} seeds" in study.notes


def test_it_is_begun_once_and_named_ever_after(client: Client) -> None:
    first = begin(client)

    assert begin(client) == first
    [study] = client.studies()
    assert (study.id, len(study.sweep_ids)) == (first, 1)


def test_ten_browsers_at_once_begin_one(client: Client) -> None:
    with ThreadPoolExecutor(10) as pool:
        found = set(pool.map(lambda _: begin(client), range(10)))

    assert len(found) == 1
    [study] = client.studies()
    assert len(study.sweep_ids) == 1


def test_archiving_it_does_not_bring_it_back(client: Client, api: TestClient) -> None:
    study = begin(client)
    api.patch(f"/api/studies/{study}", json={"archived": True})

    assert begin(client) == study
    assert list(client.studies()) == []


def test_a_history_of_ones_own_is_left_alone(client: Client) -> None:
    client.create_study("Mine")

    assert begin(client) is None
    assert [study.name for study in client.studies()] == ["Mine"]


def test_attempt_that_was_cut_off_is_completed(client: Client) -> None:
    with transaction(get_engine()) as session:
        payload = StudyCreate(name=FIRST_STUDY, tags=[FIRST_STUDY_TAG])
        cut_off = studies.create(session, payload=payload, owner_id=None).id

    assert begin(client) == cut_off
    assert len(client.study(cut_off).sweep_ids) == 1


def test_it_is_not_begun_where_nobody_wants_it(app: FastAPI, client: Client) -> None:
    app.state.settings = Settings(first_study=False)

    assert begin(client) is None
    assert list(client.studies()) == []


# --- What `up` does about it ------------------------------------------------------------------


class Told(list[int]):
    """Notes what would be said, and ends the study that is waited for."""

    def __init__(self, client: Client) -> None:
        self.client = client

    def __call__(self, study: int) -> None:
        self.append(study)
        for sweep in self.client.study(study).sweep_ids:
            self.client.send(calls.cancel(sweep))


@pytest.fixture
def loads(app: FastAPI, monkeypatch: pytest.MonkeyPatch) -> list[Settings]:
    """Notes what would be loaded, instead of ten seconds of loading it."""
    asked: list[Settings] = []
    monkeypatch.setattr(app.state.loading, "begin", asked.append)
    return asked


def test_without_a_browser_it_begins_by_itself_and_the_paper_follows_its_end(
    client: Client, loads: list[Settings]
) -> None:
    told = Told(client)
    welcome(client, paper=True, say=told, patience=0.0, look=0.0)

    [study] = client.studies()
    assert (told, study.tags) == ([study.id], [FIRST_STUDY_TAG])
    assert len(loads) == 1


def test_a_browser_that_opens_first_is_noticed_at_once(
    client: Client, loads: list[Settings]
) -> None:
    begun = begin(client)
    told = Told(client)
    welcome(client, paper=False, say=told, patience=600.0, look=0.0)

    assert told == [begun]
    assert loads == []


def test_an_installation_stopped_in_between_still_gets_the_paper(
    client: Client, loads: list[Settings]
) -> None:
    Told(client)(begin(client) or 0)
    told = Told(client)
    welcome(client, paper=True, say=told, patience=600.0, look=0.0)

    assert told == []
    assert len(loads) == 1


def test_a_history_with_studies_of_its_own_is_not_touched(
    client: Client, loads: list[Settings]
) -> None:
    client.create_study("Mine")
    welcome(client, paper=True, say=pytest.fail, patience=600.0, look=0.0)

    assert loads == []
    assert [study.name for study in client.studies()] == ["Mine"]
