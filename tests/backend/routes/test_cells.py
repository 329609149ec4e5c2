"""Cells: claimed by one program at a time, believed while it holds them, never stored twice."""

from collections.abc import Callable
from typing import Any

import pytest
from fastapi.testclient import TestClient
from sqlalchemy import delete, update

from backend.db import clock, reading, transaction
from backend.models import ShardRow
from backend.services import maintenance, shards

BODY: dict[str, Any] = {
    "where": "agents",
    "task": "somebody's network",
    "methods": ["sgd"],
    "learning_rates": [0.1, 1.0],
    "seeds": 2,
    "settings": {"layers": 12},
}
ME = {"agent": "me"}


@pytest.fixture
def sweep(api: TestClient, study: int) -> int:
    answer = api.post(f"/api/studies/{study}/sweeps", json=BODY)
    assert answer.status_code == 202, answer.text
    return int(answer.json()["id"])


@pytest.fixture
def claim(api: TestClient, sweep: int) -> Callable[[], dict[str, Any]]:
    return lambda: api.post(f"/api/sweeps/{sweep}/cells", json=ME).json()["cell"]


@pytest.fixture
def tell(api: TestClient) -> Callable[..., dict[str, Any]]:
    """Report on a cell; returns the answer with its status."""

    def tell(cell: dict[str, Any], **report: Any) -> dict[str, Any]:
        path = f"/api/sweeps/{cell['sweep_id']}/cells/{cell['trial_id']}"
        answer = api.post(path, json={"lease": cell["lease"], **report})
        return {**answer.json(), "status": answer.status_code}

    return tell


def expire() -> None:
    """End every lease, as silence does, and let what is lost be tried again at once."""
    with transaction() as session:
        session.execute(update(ShardRow).values(lease_until=clock(-1)))
        shards.expire(session)
        session.execute(update(ShardRow).values(not_before=None))


def state(api: TestClient, cell: dict[str, Any]) -> dict[str, Any]:
    return dict(api.get(f"/api/trials/{cell['trial_id']}").json())


def test_a_search_of_agents_goes_on_by_itself_with_their_reports(
    api: TestClient, study: int, tell: Callable[..., dict[str, Any]]
) -> None:
    search = {"find": "edge", "from": 0.1, "to": 10, "within": 1.5}
    body = {**BODY, "learning_rates": search, "seeds": 1}
    sweep = api.post(f"/api/studies/{study}/sweeps", json=body).json()["id"]
    rates = []
    while True:
        claimed = api.post(f"/api/sweeps/{sweep}/cells", json=ME).json()
        if claimed["cell"] is None:
            break
        rates.append(claimed["cell"]["lr"])
        loss = 9.0 if rates[-1] >= 2 else 0.5
        told = {"result": {"train_loss": loss, "initial_loss": 1.0}}
        tell(claimed["cell"], **told)
        assert tell(claimed["cell"], **told)["held"] is False, "the same report again"
    assert claimed["state"] == "completed"
    found = api.get(f"/api/sweeps/{sweep}").json()
    assert (found["total"], found["search"]["trials"]) == (len(rates), len(rates))
    (seed,) = found["search"]["series"][0]["seeds"]
    assert seed["low"] < 2 <= seed["high"] <= 1.5 * seed["low"]
    assert found["search"]["done"]
    refused = api.post(
        f"/api/studies/{study}/sweeps", json={**body, "learning_rates": {"find": "edge"}}
    )
    assert refused.json()["error"]["message"] == "A search of agents needs from and to."


def test_a_sweep_of_agents_waits_and_says_for_whom(api: TestClient, sweep: int, queue: Any) -> None:
    found = api.get(f"/api/sweeps/{sweep}").json()
    assert found["progress"]["queued"] == 4
    assert "etascope agent" in found["messages"][0]
    assert queue.shard_ids == []
    with transaction() as session:
        assert shards.due(session) == []
        assert not shards.pending(session).waiting
        assert shards.queue_state(session).depth == 0


def test_every_cell_is_claimed_once_and_holds_what_to_train(
    api: TestClient, sweep: int, claim: Callable[[], dict[str, Any]]
) -> None:
    cells = [claim() for _ in range(4)]
    assert claim() is None
    assert sorted((one["lr"], one["seed"]) for one in cells) == [
        (0.1, 1),
        (0.1, 2),
        (1.0, 1),
        (1.0, 2),
    ]
    assert {one["settings"]["layers"] for one in cells} == {12}
    again = api.post(f"/api/sweeps/{sweep}/cells", json=ME).json()
    assert (again["cell"], again["unfinished"], again["state"]) == (None, 4, "running")


def test_what_a_program_reports_is_stored_as_a_workers_trial_is(
    api: TestClient, study: int, claim: Callable[[], dict[str, Any]], tell: Callable[..., Any]
) -> None:
    for loss in (0.5, None, 0.4, 0.3):
        cell = claim()
        tell(cell, points=[{"step": 0, "train_loss": 2.0}, {"step": 1, "train_loss": loss}])
        assert tell(cell, result={"train_loss": loss})["yours"]
    found = api.get(f"/api/studies/{study}").json()
    assert found["progress"] == {
        "queued": 0,
        "running": 0,
        "completed": 3,
        "diverged": 1,
        "failed": 0,
        "cancelled": 0,
    }
    (series,) = api.get(f"/api/studies/{study}/sensitivity").json()["series"]
    assert [point["diverged"] for point in series["points"]] == [1, 0]
    assert state(api, cell)["initial_loss"] == 2.0
    assert len(api.get(f"/api/trials/{cell['trial_id']}/curve").json()["points"]) == 2
    with reading() as session:
        assert maintenance.check(session) == []


def test_a_loss_five_times_the_first_has_diverged_unless_its_program_says_otherwise(
    api: TestClient, claim: Callable[[], dict[str, Any]], tell: Callable[..., Any]
) -> None:
    for said, found in ((None, "diverged"), ("completed", "completed")):
        cell = claim()
        tell(cell, points=[{"step": 0, "train_loss": 1.0}])
        tell(cell, result={"train_loss": 6.0, "outcome": said})
        assert state(api, cell)["state"] == found


@pytest.mark.parametrize(
    ("logged", "told", "found"),
    [
        ([(1, 1.0), (2, 6.0)], {"train_loss": 6.0}, "diverged"),
        ([(50, 1.0)], {"train_loss": 6.0}, "diverged"),
        ([(1, None), (2, 1.0)], {"train_loss": 6.0}, "diverged"),  # a test loss came first
        ([(1, 1.0)], {"train_loss": 4.0}, "completed"),
        ([(1, 1.0)], {"train_loss": 6.0, "initial_loss": 2.0}, "completed"),
        ([], {"train_loss": 6.0}, "completed"),
        ([(0, -1.0)], {"train_loss": -2.0}, "completed"),
        ([(0, 0.0)], {"train_loss": 1.0}, "completed"),
        ([], {"train_loss": -2.0, "initial_loss": -1.0}, "completed"),
    ],
)
def test_without_a_step_zero_a_loss_is_held_against_the_first_if_that_is_positive(
    api: TestClient,
    claim: Callable[[], dict[str, Any]],
    tell: Callable[..., Any],
    logged: list[tuple[int, float | None]],
    told: dict[str, float],
    found: str,
) -> None:
    cell = claim()
    tell(cell, points=[{"step": step, "train_loss": loss} for step, loss in logged])
    tell(cell, result=told)
    stored = state(api, cell)
    assert stored["state"] == found
    start = dict(logged).get(0)  # what is stored as initial was measured before training
    assert stored["initial_loss"] == told.get("initial_loss", start)


def test_a_cells_lease_cannot_be_guessed(
    api: TestClient, claim: Callable[[], dict[str, Any]], tell: Callable[..., Any]
) -> None:
    cell = claim()
    for guess in (1, 2, claim()["lease"]):
        assert not tell(cell, lease=guess, result={"train_loss": 7.0})["yours"]
    assert state(api, cell)["state"] == "running"
    assert tell(cell, result={"train_loss": 0.1})["yours"]


def test_a_report_sent_again_changes_nothing(
    api: TestClient, claim: Callable[[], dict[str, Any]], tell: Callable[..., Any]
) -> None:
    cell = claim()
    points = [{"step": step, "train_loss": 1.0} for step in range(3)]
    assert tell(cell, points=points)["points"] == 3
    assert tell(cell, points=points)["points"] == 3
    more = [{"step": 2, "train_loss": 9.0}, {"step": 3, "train_loss": 0.5}]
    assert tell(cell, start=2, points=more)["points"] == 4
    curve = api.get(f"/api/trials/{cell['trial_id']}/curve").json()["points"]
    assert [point["train_loss"] for point in curve] == [1.0, 1.0, 1.0, 0.5]
    first = tell(cell, result={"train_loss": 0.5})
    again = tell(cell, result={"train_loss": 0.1})
    assert first == again
    assert (again["yours"], again["held"], again["state"]) == (True, False, "completed")
    assert state(api, cell)["train_loss"] == 0.5


def test_a_late_report_of_a_lost_lease_changes_nothing(
    api: TestClient, claim: Callable[[], dict[str, Any]], tell: Callable[..., Any]
) -> None:
    lost = claim()
    tell(lost, points=[{"step": 0, "train_loss": 7.0}])
    expire()
    late = tell(lost, start=1, points=[{"step": 1}], result={"train_loss": 7.0})
    assert (late["held"], late["yours"]) == (False, False)
    assert state(api, lost)["state"] == "queued"
    won = claim()
    assert won["trial_id"] == lost["trial_id"]
    assert won["lease"] != lost["lease"]
    assert won["points"] == 0  # what the lost one logged is gone
    assert not tell(lost, result={"train_loss": 7.0})["yours"]
    assert tell(won, result={"train_loss": 0.2})["yours"]
    assert not tell(lost, result={"train_loss": 7.0})["yours"]
    assert state(api, won)["train_loss"] == 0.2


def test_a_cell_that_keeps_breaking_fails_with_its_last_words_and_can_be_retried(
    api: TestClient,
    sweep: int,
    claim: Callable[[], dict[str, Any]],
    tell: Callable[..., Any],
) -> None:
    for _ in range(3):
        cell = claim()
        tell(cell, fault="CUDA out of memory")
        with transaction() as session:
            session.execute(update(ShardRow).values(not_before=None))
    found = state(api, cell)
    assert (found["state"], found["error"]) == ("failed", "CUDA out of memory")
    assert api.post(f"/api/sweeps/{sweep}/retry").status_code == 200
    assert claim() is not None
    with reading() as session:
        assert maintenance.check(session) == []


def test_giving_a_cell_back_burns_no_attempt(
    claim: Callable[[], dict[str, Any]], tell: Callable[..., Any]
) -> None:
    for _ in range(5):
        cell = claim()
        assert cell["attempt"] == 1
        tell(cell, release=True)


def test_a_cancelled_sweep_tells_the_program_and_hands_out_nothing(
    api: TestClient,
    sweep: int,
    claim: Callable[[], dict[str, Any]],
    tell: Callable[..., Any],
) -> None:
    cell = claim()
    api.post(f"/api/sweeps/{sweep}/cancel")
    told = tell(cell)
    assert (told["held"], told["state"]) == (False, "cancelled")
    answer = api.post(f"/api/sweeps/{sweep}/cells", json=ME).json()
    assert (answer["cell"], answer["unfinished"], answer["state"]) == (None, 0, "cancelled")
    with reading() as session:
        assert maintenance.check(session) == []


@pytest.mark.parametrize(
    ("report", "status"),
    [
        ({"points": [{"step": 0, "__class__": 1.0}]}, 422),
        ({"points": [{"step": 0, "train_loss; DROP TABLE": 1.0}]}, 422),
        ({"points": [{"step": 0, "train_loss": "1"}]}, 422),
        ({"points": [{"step": -1}]}, 422),
        ({"points": [{"step": 0.5}]}, 422),
        ({"points": [{"step": 1e300}]}, 422),
        ({"points": [{"step": True}]}, 422),
        ({"points": [{"step": 1}, {"step": 1}]}, 422),
        ({"points": [{"step": 2}, {"step": 1}]}, 422),
        ({"start": 5, "points": [{"step": 6}]}, 409),
        ({"points": [{"step": step} for step in range(1001)]}, 422),
        ({"result": {"outcome": "completed"}}, 422),
        ({"result": {"outcome": "excellent", "train_loss": 1.0}}, 422),
        ({"result": {"train_loss": 1.0, "error": "x" * 100_001}}, 422),
    ],
)
def test_what_makes_no_sense_is_refused_and_the_cell_stays_held(
    claim: Callable[[], dict[str, Any]],
    tell: Callable[..., Any],
    report: dict[str, Any],
    status: int,
) -> None:
    cell = claim()
    answer = tell(cell, **report)
    assert answer["status"] == status
    assert answer["error"]["message"]
    assert tell(cell) == {
        "held": True,
        "yours": True,
        "state": "running",
        "points": 0,
        "status": 200,
    }


def test_a_whole_number_may_be_written_as_a_float(
    claim: Callable[[], dict[str, Any]], tell: Callable[..., Any]
) -> None:
    cell = claim()
    told = tell(cell, lease=float(cell["lease"]), points=[{"step": 2.0, "train_loss": 1.0}])
    assert (told["status"], told["points"]) == (200, 1)


def test_a_log_without_end_is_refused(
    claim: Callable[[], dict[str, Any]], tell: Callable[..., Any]
) -> None:
    cell = claim()
    for start in range(0, 10_000, 1000):
        steps = [{"step": step} for step in range(start, start + 1000)]
        assert tell(cell, start=start, points=steps)["points"] == start + 1000
    assert tell(cell, start=10_000, points=[{"step": 10_000}])["status"] == 413


def test_a_cell_of_another_sweep_is_not_found_and_a_workers_trial_is_no_cell(
    api: TestClient,
    claim: Callable[[], dict[str, Any]],
    submit: Callable[..., dict[str, Any]],
    sweep: int,
) -> None:
    cell, ours = claim(), submit()
    path = f"/api/sweeps/{ours['id']}/cells/{cell['trial_id']}"
    assert api.post(path, json={"lease": 1}).status_code == 404
    assert api.post(f"/api/sweeps/{ours['id']}/cells", json=ME).json()["cell"] is None
    trial = api.get(f"/api/sweeps/{ours['id']}/trials").json()["items"][0]["id"]
    path = f"/api/sweeps/{ours['id']}/cells/{trial}"
    assert api.post(path, json={"lease": 1, "result": {"train_loss": 0}}).status_code == 404


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"task": None}, "task"),
        ({"learning_rates": None}, "learning_rates"),
        ({"activation": "relu"}, "activation"),
        ({"methods": ["a", "a"]}, "methods"),
        ({"methods": ["x" * 33]}, "methods"),
        ({"task": "a\x07b"}, "task"),
        ({"settings": {"a": [1]}}, "settings.a"),
        ({"settings": {"a": "x" * 1001}}, "settings.a"),
        ({"settings": {str(n): n for n in range(51)}}, "settings"),
    ],
)
def test_a_grid_that_no_program_could_read_is_refused(
    api: TestClient, study: int, change: dict[str, Any], field: str
) -> None:
    answer = api.post(f"/api/studies/{study}/sweeps", json=BODY | change)
    assert (answer.status_code, answer.json()["error"]["field"]) == (422, field)


RUN = {"key": "a-run-of-mine", "study": "Tuning", "task": "cifar", "method": "adam", "lr": 0.1}


def test_a_live_run_is_known_by_its_key_and_goes_on_after_silence(
    api: TestClient, tell: Callable[..., Any]
) -> None:
    run = api.post("/api/runs", json=RUN).json()
    assert api.post("/api/runs", json=RUN).json()["trial_id"] == run["trial_id"]
    tell(run, points=[{"step": 0, "train_loss": 1.0}])
    expire()
    assert state(api, run)["state"] == "failed"
    again = api.post("/api/runs", json=RUN).json()
    assert (again["trial_id"], again["points"]) == (run["trial_id"], 0)
    assert tell(again, points=[{"step": 0, "train_loss": 1.0}], result={"train_loss": 0.5})["yours"]
    ended = api.post("/api/runs", json=RUN).json()
    assert ended["state"] == "completed"
    other = api.post("/api/runs", json=RUN | {"key": "another-run", "lr": 1.0}).json()
    assert other["sweep_id"] == run["sweep_id"]
    sweep = api.get(f"/api/sweeps/{run['sweep_id']}").json()
    assert (sweep["total"], sweep["spec"]["learning_rates"]) == (2, [0.1, 1.0])
    assert api.post(f"/api/sweeps/{run['sweep_id']}/cells", json=ME).json()["cell"] is None
    with reading() as session:
        assert maintenance.check(session) == []


def test_a_cancelled_run_takes_no_later_one_along(api: TestClient, tell: Callable) -> None:
    first = api.post("/api/runs", json=RUN).json()
    api.post(f"/api/sweeps/{first['sweep_id']}/cancel").raise_for_status()
    later = api.post("/api/runs", json=RUN | {"key": "a-later-run"}).json()
    assert tell(later, result={"train_loss": 0.5})["yours"]
    assert state(api, later)["state"] == "completed"
    with transaction() as session:
        session.execute(delete(ShardRow).where(ShardRow.state == "done"))  # as after thirty days
    again = api.post("/api/runs", json=RUN | {"key": "a-later-run"}).json()
    assert (again["trial_id"], again["state"]) == (later["trial_id"], "completed")
