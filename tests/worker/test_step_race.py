"""Steps timed by a worker for real: claimed, raced in turn, stored; users' code under guard."""

from collections.abc import Iterator
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from backend.db import reading, transaction
from backend.models import TimingRow
from backend.services import timings
from backend.services.workers import Worker
from backend.settings import get_settings
from ib_core import own
from ib_core.methods import OWN_METHODS
from ib_core.tasks import OWN_TASKS
from tests.announced import arrive, submit_body
from tests.factories import new_study, submit, train_all
from tests.servers import wait_for
from tests.worker.own_files import decent, hostile
from worker import training
from worker.own_files import load
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


def renewed_since(timing_id: int, moment: datetime) -> bool:
    return stored(timing_id).lease_until > moment


def test_a_race_that_outlasts_its_lease_stays_its_workers(timing_id, monkeypatch) -> None:
    race = training.race_methods
    monkeypatch.setattr(training, "RENEW_RACE_SECONDS", 0.05)

    def longer_than_its_lease(*args, **options):
        for _ in range(2):
            with transaction() as session:
                row = session.get_one(TimingRow, timing_id)
                over = row.lease_until = row.created_at
            wait_for(partial(renewed_since, timing_id, over), what="a renewal")
        return race(*args, **options, seconds=0.1)

    monkeypatch.setattr(training, "race_methods", longer_than_its_lease)
    training.measure(timing_id, worker=WORKER, stopping=StopFlag())
    row = stored(timing_id)
    assert (row.state.value, row.attempts, row.error) == ("done", 1, None)


@pytest.fixture
def quickly(database: str, quick: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Short races, one attempt; what a test loaded is forgotten."""
    monkeypatch.setenv("ETASCOPE_MAX_ATTEMPTS", "1")
    get_settings.cache_clear()
    monkeypatch.setattr(training, "race", partial(training.race, seconds=0.1))
    yield
    OWN_TASKS.clear()
    OWN_METHODS.clear()
    own._files.clear()


def asked_for(file: Path, **body: Any) -> tuple[Worker, int]:
    """Return a worker that has the file, and the race of a study that trains its task."""
    with transaction() as session:
        worker = arrive(session, "one", *load([str(file)]))
        study = submit_body(session, task=f"{file.name}:task", **body).sweep.study_id
        _, new = timings.request(session, study_id=study, device="auto", owner_id=None)
    return worker, new[0]


def test_a_users_code_is_timed_by_a_worker_that_has_it_and_by_no_other(
    quickly: None, tmp_path: Path
) -> None:
    file = decent(tmp_path)
    worker, timing_id = asked_for(file, methods=["eb", "my_file.py:adamw"])
    training.measure(timing_id, worker=WORKER, stopping=StopFlag())
    assert stored(timing_id).attempts == 0  # not this worker's to time
    training.measure(timing_id, worker=worker, stopping=StopFlag(), own=[str(file)])
    row = stored(timing_id)
    assert (row.state.value, row.error) == ("done", None)
    assert {name.partition(" ")[0] for name in row.results} == {"eb", "my_file.py:adamw"}


def test_a_file_changed_since_is_not_timed_as_what_it_was(quickly: None, tmp_path: Path) -> None:
    file = decent(tmp_path)
    worker, timing_id = asked_for(file)
    decent(tmp_path, factor=2.0)
    training.measure(timing_id, worker=worker, stopping=StopFlag(), own=[str(file)])
    row = stored(timing_id)
    assert (row.state.value, row.results) == ("failed", None)
    assert "changed after the worker started" in str(row.error)


@pytest.mark.parametrize(
    ("how", "words"),
    [
        ("raises", "hostile.py, line 19, in forward: ValueError: no luck"),
        ("leaves", "hostile.py, line 25, in forward: SystemExit: 3"),
        ("eats", "hostile.py, line 27, in forward"),
        ("ends", "exit code 3"),
        ("hangs", "was not over after 6 s and was stopped"),
    ],
)
def test_what_a_file_does_wrong_while_it_is_timed_ends_the_race_alone(
    quickly: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str, words: str
) -> None:
    if how == "hangs":
        monkeypatch.setenv("ETASCOPE_STALL_SECONDS", "2")
        monkeypatch.setattr(training, "STARTING_SECONDS", 4.0)
        get_settings.cache_clear()
    file = hostile(tmp_path)
    worker, timing_id = asked_for(file, vary={"how": [how]})
    training.measure(timing_id, worker=worker, stopping=StopFlag(), own=[str(file)])
    row = stored(timing_id)
    assert row.state.value == "failed"
    assert words in str(row.error)
