"""What a step costs: asked for once, measured by one worker at a time, shown wherever it holds."""

import json
from typing import Any

import pytest
import sqlalchemy as sa
from fastapi.testclient import TestClient

from backend.db import clock, reading, transaction
from backend.models import TimingRow
from backend.queue import Queue, Reaper
from backend.schemas import TimingsRead
from backend.services import analysis, timings
from backend.services.analysis.scorecards import step_costs
from backend.settings import get_settings
from ib_core.announced import offer_key
from ib_core.errors import CorruptData
from ib_core.reproduction import COMPARISON, THEORY, shipped_folder
from ib_core.sweep import specs_of
from tests.announced import METHOD, TASK, arrive, leave, method_manifest, submit_body, task_manifest

MEASURED = {
    "eb": {"value": 1.0, "low": 1.0, "high": 1.0, "rounds": 40},
    'ib {"batch_rule": "own"}': {"value": 1.33, "low": 1.3, "high": 1.4, "rounds": 40},
}


def ask(api: TestClient, study: int, **body: Any) -> dict[str, Any]:
    answer = api.post(f"/api/studies/{study}/timing", json=body)
    assert answer.status_code == 202, answer.text
    return dict(answer.json())


def measure(timing_id: int, worker: str = "one") -> bool:
    with transaction() as session:
        claim = timings.claim(session, timing_id=timing_id, worker=worker)
        if claim is None:
            return False
        return timings.finish(session, claim=claim, results=MEASURED, measured_on="cpu (old one)")


def cost(api: TestClient, study: int, label: str = "ib") -> dict[str, Any]:
    rows = api.get(f"/api/studies/{study}/scorecard").json()["rows"]
    return dict(next(row for row in rows if row["label"] == label)["metrics"]["step_cost"])


def test_what_was_measured_stands_in_every_scorecard_of_the_network(
    api: TestClient, study: int, submit, train, queue
) -> None:
    submit()
    train()
    path = f"/api/studies/{study}/scorecard"
    before = api.get(path).headers["etag"]
    asked = ask(api, study)
    assert [(one["state"], one["methods"]) for one in asked["items"]] == [("queued", ["eb", "ib"])]
    assert cost(api, study)["note"] == "Not measured."
    assert measure(queue.timing_ids.pop())
    assert api.get(path, headers={"If-None-Match": before}).status_code == 200
    found = cost(api, study)
    assert (found["value"], found["low"], found["high"], found["n"]) == (1.33, 1.3, 1.4, 40)
    assert (found["text"], found["interval"]) == ("1.33", "1.3 to 1.4")
    assert "cpu (old one)" in found["note"]
    assert cost(api, study, "eb")["value"] == 1.0
    other = api.post("/api/studies", json={"name": "The same network, longer"}).json()["id"]
    body = {"task": "toy/quadratic", "methods": ["ib"], "learning_rates": [1.0], "epochs": 7}
    api.post(f"/api/studies/{other}/sweeps", json=body)
    train()
    assert cost(api, other)["value"] == 1.33
    body |= {"batch_size": 3}
    api.post(f"/api/studies/{other}/sweeps", json=body)
    train()
    notes = {
        row["batch_size"]: row["metrics"]["step_cost"]["note"]
        for row in api.get(f"/api/studies/{other}/scorecard").json()["rows"]
    }
    assert notes[3] == "Not measured."


def test_the_same_race_is_not_asked_for_twice(api: TestClient, trained: int, queue) -> None:
    ask(api, trained)
    assert len(ask(api, trained)["items"]) == 1
    assert len(queue.timing_ids) == 1
    measure(queue.timing_ids.pop())
    ask(api, trained)  # measured, and wanted anew
    assert len(queue.timing_ids) == 1
    newest = api.get(f"/api/studies/{trained}/timing").json()["items"]
    assert [one["state"] for one in newest] == ["queued"]


def test_a_study_without_a_network_cannot_be_timed(api: TestClient, study: int) -> None:
    answer = api.post(f"/api/studies/{study}/timing", json={})
    assert (answer.status_code, answer.json()["error"]["code"]) == (409, "conflict")


def test_a_second_delivery_finds_nothing_to_do(api: TestClient, trained: int, queue) -> None:
    ask(api, trained)
    (timing_id,) = queue.timing_ids
    with transaction() as session:
        assert timings.claim(session, timing_id=timing_id, worker="one")
    assert not measure(timing_id, worker="two")


def test_a_worker_that_lost_its_lease_stores_nothing(api: TestClient, trained: int, queue) -> None:
    ask(api, trained)
    (timing_id,) = queue.timing_ids
    with transaction() as session:
        late = timings.claim(session, timing_id=timing_id, worker="one")
        assert late is not None
        session.execute(sa.update(TimingRow).values(lease_until=clock(-1)))
    with transaction() as session:
        assert timings.RACES.due(session) == [(timing_id, "cpu")]  # taken back, and announced again
    with transaction() as session:
        second = timings.claim(session, timing_id=timing_id, worker="two")
        assert second is not None
        assert not timings.finish(session, claim=late, results={}, measured_on="")
        assert timings.finish(session, claim=second, results=MEASURED, measured_on="cpu")
    assert cost(api, trained)["value"] == 1.33


def test_a_race_that_always_breaks_fails_in_the_end(api: TestClient, trained: int, queue) -> None:
    ask(api, trained)
    (timing_id,) = queue.timing_ids
    for _ in range(get_settings().max_attempts):
        with transaction() as session:
            claim = timings.claim(session, timing_id=timing_id, worker="one")
            assert claim is not None
            assert timings.fail(session, claim=claim, error="It broke.")
    (one,) = api.get(f"/api/studies/{trained}/timing").json()["items"]
    assert (one["state"], one["error"]) == ("failed", "It broke.")
    assert cost(api, trained)["note"] == "Not measured."


class Unheard(Queue):
    """A broker that takes messages and loses them."""

    def __init__(self) -> None:
        self.sent: list[tuple[str, int]] = []

    def depths(self, *special: str) -> dict[str, int]:
        return dict.fromkeys(("cpu", "gpu", *special), 0)

    def _send(self, name: str, numbers: Any) -> None:
        self.sent += [(name, number) for number, _ in numbers]


def test_a_lost_message_is_sent_again(
    api: TestClient, trained: int, queue, monkeypatch: pytest.MonkeyPatch
) -> None:
    ask(api, trained)
    (timing_id,) = queue.timing_ids
    lost = Unheard()
    reaper = Reaper(get_settings(), lost)
    reaper.run_once()
    assert lost.sent == []  # it was sent a moment ago
    with transaction() as session:
        session.execute(sa.update(TimingRow).values(sent_at=clock(-6)))
    reaper.run_once()
    assert lost.sent == [("etascope.run_timing", timing_id)]


def test_a_dead_workers_race_is_taken_back_at_once(api: TestClient, trained: int, queue) -> None:
    ask(api, trained)
    (timing_id,) = queue.timing_ids
    with transaction() as session:
        timings.claim(session, timing_id=timing_id, worker="one")
        assert timings.RACES.abandon(session, workers=["two"]) == 0
        assert timings.RACES.abandon(session, workers=["one"]) == 1
    with reading() as session:
        assert timings.RACES.pending(session)
    assert measure(timing_id, worker="two")


def races_of(study: int) -> tuple[TimingsRead, list[tuple[set[str], str | None]]]:
    """Ask for a study's races; return the answer, and who races in each and needs what."""
    with transaction() as session:
        asked, new = timings.request(session, study_id=study, device="auto", owner_id=None)
        rows = [session.get_one(TimingRow, one) for one in new]
        return asked, [
            ({name.partition(" ")[0] for name in row.methods}, row.needs) for row in rows
        ]


def test_races_that_nobody_can_run_keep_no_other_waiting(database: str) -> None:
    row = {"state": "queued", "device": "auto", "network": {}, "methods": {}}
    ahead = {"sent_at": clock(86_400)}  # of a clock that was wrong
    with transaction() as session:
        for number in range(60):
            session.execute(
                sa.insert(TimingRow).values(**row, network_hash=f"{number:064}", needs="gone")
            )
        last = sa.insert(TimingRow).values(**row, network_hash="f" * 64, **ahead)
        wanted = session.scalars(last.returning(TimingRow.id)).one()
        assert timings.RACES.pending(session)
        assert timings.RACES.due(session, depths={"cpu": 0, "gpu": 0}) == [(wanted, "cpu")]
        assert not timings.RACES.pending(session), "those that nobody can run are no work"


def test_a_message_that_waits_in_its_queue_is_not_sent_again(database: str) -> None:
    """Also where a worker with somebody's code is busy for an hour: its queue is another one."""
    row = {"state": "queued", "device": "cpu", "network": {}, "methods": {}, "attempts": 0}
    with transaction() as session:
        one = arrive(session, "one", task_manifest())
        (key,) = one.offers
        for number, needs in enumerate((None, key)):
            values = {**row, "network_hash": f"{number:064}", "needs": needs}
            session.execute(sa.insert(TimingRow).values(values))
        plain, special = timings.RACES.due(session)
        assert (plain[1], special[1]) == ("cpu", f"cpu-{key}")
        assert timings.RACES.queues(session) == {"cpu", f"cpu-{key}"}
    full = {"cpu": 1, "gpu": 0, f"cpu-{key}": 1}

    def due(seconds: float, **beside: int) -> list[tuple[int, str]]:
        depths = {**full, **{name.replace("_", "-"): n for name, n in beside.items()}}
        with transaction() as session:
            session.execute(sa.update(TimingRow).values(sent_at=clock(-seconds)))
            return timings.RACES.due(session, depths=depths, beside={"cpu": 2})

    assert due(6, cpu=3) == []
    assert due(301, cpu=3) == []
    assert due(6, cpu=0) == [plain]
    assert due(6, **{f"cpu_{key}": 0}) == [special]
    assert due(6, cpu=2) == []
    assert due(301, cpu=2) == [plain], "one message of three has been lost"
    with transaction() as session:
        session.execute(sa.update(TimingRow).values(sent_at=clock(-301)))
        assert timings.RACES.due(session) == [], "without news of the broker nothing is repeated"


def test_the_reaper_asks_for_every_queue_that_errands_wait_in(database: str) -> None:
    asked: list[str] = []

    class Asked(Unheard):
        def depths(self, *special: str) -> dict[str, int]:
            asked.extend(special)
            return {**super().depths(), **dict.fromkeys(special, 1)}

    with transaction() as session:
        one = arrive(session, "one", task_manifest())
        row = {"state": "queued", "device": "cpu", "network": {}, "methods": {}}
        needing = {**row, "network_hash": "0" * 64, "needs": one.offers[0], "sent_at": clock(-6)}
        session.execute(sa.insert(TimingRow).values(needing))
    broker = Asked()
    Reaper(get_settings(), broker).run_once()
    assert (asked, broker.sent) == ([f"cpu-{one.offers[0]}"], [])


def test_a_race_of_somebodys_code_waits_for_a_worker_that_has_it(database: str) -> None:
    task = task_manifest()
    with transaction() as session:
        one = arrive(session, "one", task)
        study = submit_body(session, methods=["eb", "adam"]).sweep.study_id
        leave(session, "one")
    asked, races = races_of(study)
    assert races == [({"eb", "adam"}, offer_key(task))]
    assert f"waiting for a worker with {TASK}" in asked.messages[0]
    with transaction() as session:
        assert timings.RACES.due(session) == []
        arrive(session, "one", task)
        assert timings.of_study(session, study_id=study).messages == []
        ((timing_id, queue),) = timings.RACES.due(session)
        assert queue == f"cpu-{offer_key(task)}"
        assert timings.claim(session, timing_id=timing_id, worker="two") is None
        held = timings.claim(session, timing_id=timing_id, worker="one", offers=one.offers)
        assert held is not None
        assert held.needs == one.offers


def test_versions_that_no_worker_has_together_race_apart(database: str) -> None:
    old, new = method_manifest(), method_manifest("eeee0000eeee0000")
    with transaction() as session:
        study = None
        for lion in (old, new):
            arrive(session, "one", lion)
            body = {"task": "toy/quadratic", "methods": ["ib", METHOD], "study_id": study}
            study = submit_body(session, **body).sweep.study_id
            leave(session, "one")
        arrive(session, "one", new)
    asked, races = races_of(study or 0)
    assert sorted(races, key=str) == sorted(
        [
            ({"eb", "ib"}, None),
            ({"eb", METHOD}, offer_key(old)),
            ({"eb", METHOD}, offer_key(new)),
        ],
        key=str,
    )
    assert len(asked.items) == 3
    assert races_of(study or 0)[1] == []  # asked for already


SPEC = {"task": "toy/quadratic", "methods": ["eb", "ib"], "learning_rates": [0.1], "seeds": 1}


@pytest.fixture(scope="module")
def races() -> list[dict[str, Any]]:
    """Real races of the network that `submit` trains."""
    trials = [trial for spec in specs_of(SPEC) for trial in spec.expand()]
    found = timings.race_networks(trials, seconds=0.1)
    return list(json.loads(json.dumps(found)))  # as a file gives it back


def store(races: list[dict[str, Any]]) -> int:
    with transaction() as session:
        return timings.store_races(session, races, source="a bundle")


def test_what_a_bundle_brings_counts_until_it_is_measured_here(
    api: TestClient, study: int, submit, train, queue, races
) -> None:
    submit()
    train()
    (race,) = races
    assert store(races) == 1
    found = cost(api, study)
    assert found["value"] == race["results"]['ib {"batch_rule": "own"}']["value"]
    assert "as a bundle brought it" in found["note"]
    assert store(races) == 0  # twice is once
    ask(api, study)
    assert measure(queue.timing_ids.pop())
    assert store(races) == 0
    assert cost(api, study)["value"] == 1.33


@pytest.mark.parametrize(
    "wrong",
    [
        {"network": None},
        {"network": {"task": "toy/quadratic"}},
        {"methods": {"eb": {"nonsense": 1}}},
        {"results": {}},
        {"results": {"eb": {"value": "1", "low": 1, "high": 1, "rounds": 3}}},
        {"results": {"eb": {"value": float("nan"), "low": 1, "high": 1, "rounds": 3}}},
        {"results": {"eb": {"value": 1, "low": 1, "high": 1, "rounds": 0}}},
        {"results": {"muon": {"value": 1, "low": 1, "high": 1, "rounds": 3}}},
    ],
)
def test_what_is_no_race_is_refused_and_nothing_stored(database, races, wrong) -> None:
    with pytest.raises(CorruptData, match="A race of a bundle"):
        store([races[0], {**races[0], **wrong}])
    with reading() as session:
        assert session.scalar(sa.select(sa.func.count(TimingRow.id))) == 0


def test_the_shipped_comparison_says_what_every_method_costs(database) -> None:
    trials = [trial for study in (COMPARISON, THEORY) for _, trial in study.trials()]
    keys = {analysis.key_of_spec(trial) for trial in trials}
    assert len(keys) > 200
    # Its races alone: to read its trials takes seconds, and other tests do.
    races = json.loads((shipped_folder("methods") / "step_costs.json").read_text())["races"]
    assert store(races) == len({analysis.network_hash(key) for key in keys})
    with reading() as session:
        costs = step_costs(session, sorted(keys, key=analysis.series_order))
    assert {key for key in keys if key not in costs} == set()
    assert all(0.5 < one.value < 20 for one in costs.values() if one.value is not None)
