"""Steps timed by a worker for real: claimed, raced in turn, stored."""

import pytest

from backend.db import reading, transaction
from backend.models import TimingRow
from backend.services import timings
from backend.services.workers import Worker
from tests.factories import new_study, submit, train_all
from worker import training
from worker.reporter import StopFlag

WORKER = Worker("one", "host", 1, "cpu")


@pytest.fixture
def timing_id(database: str, quick: None) -> int:
    with transaction() as session:
        study = new_study(session).id
        for changes in (
            {"task": "bundled/iris", "methods": ("eb", "ib", "ib_plus", "adam"), "seeds": (1,)},
            {"task": "bundled/iris", "methods": ("isgd",), "options": {"inner_steps": 3}},
        ):
            train_all(session, submit(session, study, **changes))
        _, new = timings.request(session, study_id=study, device="auto", owner_id=None)
    assert len(new) == 1  # one network
    return new[0]


def stored(timing_id: int) -> TimingRow:
    with reading() as session:
        row = session.get(TimingRow, timing_id)
        assert row is not None
        session.expunge(row)
        return row


def test_every_method_races_eb_on_the_studys_network(timing_id, monkeypatch) -> None:
    race = training.race_methods
    quickly = {"seconds": 0.2}
    monkeypatch.setattr(training, "race_methods", lambda *a, **k: race(*a, **k, **quickly))
    training.measure(timing_id, worker=WORKER, stopping=StopFlag())
    row = stored(timing_id)
    assert (row.state.value, row.error) == ("done", None)
    methods = {name.partition(" ")[0]: one for name, one in row.results.items()}
    assert set(methods) == {"eb", "ib", "ib_plus", "adam", "isgd"}
    assert methods["eb"]["value"] == 1.0
    for one in methods.values():
        assert 0 < one["low"] <= one["value"] <= one["high"]
        assert one["rounds"] >= 3
    assert row.measured_on == "cpu (host, 1 thread)"
    training.measure(timing_id, worker=WORKER, stopping=StopFlag())  # nothing left to claim
    assert stored(timing_id).attempts == 1


def test_a_race_that_breaks_is_given_back_with_its_reason(timing_id, monkeypatch) -> None:
    def broken(*_args, **_options):
        raise RuntimeError("no such thing")

    monkeypatch.setattr(training, "race_methods", broken)
    for attempt in (1, 2, 3):
        training.measure(timing_id, worker=WORKER, stopping=StopFlag())
        assert stored(timing_id).attempts == attempt
    row = stored(timing_id)
    assert (row.state.value, row.error) == ("failed", "RuntimeError: no such thing")
