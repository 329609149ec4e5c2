"""The study a newcomer finds: on an empty history, once."""

import pytest
from fastapi.testclient import TestClient

from backend.client import ApiError, Client
from backend.first_study import NAME, TAG, submit_first_study


@pytest.fixture
def client(api: TestClient) -> Client:
    return Client(http=api)


def test_newcomer_gets_two_methods_nine_rates_and_three_seeds(client: Client) -> None:
    study = submit_first_study(client)

    assert study is not None
    [sweep_id] = client.study(study).sweep_ids
    spec = client.sweep(sweep_id).spec
    assert {"eb", "ib"} <= set(spec["methods"])
    assert len(spec["learning_rates"]) >= 9
    assert len(spec["seeds"]) >= 3


def test_it_is_submitted_once(client: Client) -> None:
    submit_first_study(client)

    assert submit_first_study(client) is None
    [study] = client.studies()
    assert len(study.sweep_ids) == 1


def test_archiving_it_does_not_bring_it_back(client: Client, api: TestClient) -> None:
    study = submit_first_study(client)
    api.patch(f"/api/studies/{study}", json={"archived": True})

    assert submit_first_study(client) is None


def test_a_history_of_ones_own_is_left_alone(client: Client) -> None:
    client.create_study("Mine")

    assert submit_first_study(client) is None
    assert [study.name for study in client.studies()] == ["Mine"]


def test_attempt_that_was_cut_off_is_completed(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    def cut_off(*_: object, **__: object) -> None:
        raise ApiError(503, "unavailable", "The server went away.")

    with monkeypatch.context() as patch:
        patch.setattr(Client, "submit", cut_off)
        with pytest.raises(ApiError):
            submit_first_study(client)
    assert [study.sweep_ids for study in client.studies()] == [[]]

    study = submit_first_study(client)

    [found] = client.studies()
    assert (found.id, found.name, found.tags) == (study, NAME, [TAG])
    assert len(found.sweep_ids) == 1
