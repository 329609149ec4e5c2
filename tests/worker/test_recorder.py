"""The recorder: nothing is lost while the database cannot be written, and training never waits."""

import threading
import time
from collections.abc import Iterator

import pytest
from sqlalchemy import event, text
from sqlalchemy.exc import OperationalError

from backend.db import get_engine, reading, transaction
from backend.schemas import TrialState
from backend.services import maintenance, shards, sweeps, trials
from backend.services.shards import Claim
from tests.factories import claim, curve, result, submit
from tests.servers import wait_for
from worker import recorder as module
from worker.recorder import LeaseLost, Recorder, Stopped
from worker.stopping import StopFlag


@pytest.fixture
def taken(database: str) -> Claim:
    with transaction() as session:
        return claim(session, submit(session).shard_ids[0])


@pytest.fixture
def stopping() -> StopFlag:
    return StopFlag()


@pytest.fixture
def recorder(taken: Claim, stopping: StopFlag) -> Iterator[Recorder]:
    recorder = Recorder(taken, stopping=stopping, flush_seconds=0.05).start()
    yield recorder
    if not recorder.closing:
        recorder.close()


def read_curve(trial_id: int) -> int:
    with reading() as session:
        return len(trials.curve(session, trial_id=trial_id).points)


def state(trial_id: int) -> TrialState:
    with reading() as session:
        return trials.get(session, trial_id=trial_id).state


class Fault:
    """Makes every write fail while it is on."""

    def __init__(self, message: str = "database or disk is full") -> None:
        self.message, self.on, self.met = message, True, 0
        event.listen(get_engine(), "before_cursor_execute", self)

    def __call__(self, _connection, _cursor, statement: str, *_rest) -> None:
        if self.on and statement.startswith(("INSERT", "UPDATE")):
            self.met += 1
            raise OperationalError(statement, {}, Exception(self.message))


@pytest.fixture
def fault(taken: Claim, monkeypatch: pytest.MonkeyPatch) -> Iterator[Fault]:
    monkeypatch.setattr(module, "backoff", lambda failures: 0.05)
    fault = Fault()
    yield fault
    event.remove(get_engine(), "before_cursor_execute", fault)


def test_points_appear_while_training_goes_on(recorder: Recorder, taken: Claim) -> None:
    first, second = taken.trials[:2]
    for number, point in enumerate(curve(5)):
        recorder.points({0: point} if number < 3 else {0: point, 1: point})
    wait_for(lambda: read_curve(first.id) == 5, what="the curve")
    assert read_curve(second.id) == 2


def test_a_point_that_arrives_during_a_write_is_in_the_next_one(
    taken: Claim, stopping: StopFlag, monkeypatch: pytest.MonkeyPatch
) -> None:
    recorder = Recorder(taken, stopping=stopping, flush_seconds=0.05)
    first, second = curve(2)
    write, writes = shards.record, []

    def interrupted(*given, **options):
        stored = write(*given, **options)
        writes.append(1)
        if len(writes) == 1:
            recorder.points({0: second})
        return stored

    monkeypatch.setattr(shards, "record", interrupted)
    recorder.points({0: first})
    recorder.start()
    wait_for(lambda: read_curve(taken.trials[0].id) == 2, what="the second point", seconds=20)
    recorder.close()


def test_a_result_is_stored_before_the_shard_ends(recorder: Recorder, taken: Claim) -> None:
    first = taken.trials[0]
    recorder.points({0: curve(1)[0]})
    recorder.finished(0, result(first, points=7))
    wait_for(lambda: state(first.id) is TrialState.COMPLETED, what="the result")
    assert read_curve(first.id) == 7
    assert recorder.stored == {first.id}


def test_closing_writes_what_is_left(recorder: Recorder, taken: Claim) -> None:
    for index, trial in enumerate(taken.trials):
        recorder.finished(index, result(trial))
    recorder.close()
    assert recorder.stored == {trial.id for trial in taken.trials}


def test_trials_nobody_wants_are_reported_and_cancelled(recorder: Recorder, taken: Claim) -> None:
    recorder.finished(0, result(taken.trials[0]))
    wait_for(lambda: recorder.stored, what="the result")
    with transaction() as session:
        sweeps.cancel(session, sweep_id=1)
    wait_for(lambda: set(range(1, 12)) <= set(recorder.progress(0.5)), what="the news", seconds=5)
    recorder.close()
    with transaction() as session:
        assert shards.finish(session, claim=taken)
        assert sweeps.get(session, sweep_id=1).progress["cancelled"] == 11
        assert maintenance.check(session) == []


def test_exactly_the_trials_nobody_wants_any_more_are_reported(
    recorder: Recorder, taken: Claim
) -> None:
    time.sleep(0.3)  # it has asked a few times
    assert recorder.progress(0.1) == frozenset()
    with transaction() as session:
        assert submit(session, seeds=(2,)).shard_ids == []  # another sweep wants half of them
        sweeps.cancel(session, sweep_id=1)
    mine = frozenset(i for i, trial in enumerate(taken.trials) if trial.spec["seed"] == 1)
    assert len(mine) == 6
    wait_for(lambda: recorder.progress(0.5) == mine, what="the news", seconds=20)


def test_while_the_disk_is_full_everything_waits_in_memory(
    recorder: Recorder, taken: Claim, fault: Fault
) -> None:
    for point in curve(4):
        recorder.points({0: point, 1: point})
    recorder.finished(1, result(taken.trials[1]))
    wait_for(lambda: fault.met >= 2, what="two failures")
    assert recorder.progress(0.5) == frozenset()  # training goes on
    assert recorder.trouble is not None
    assert "disk is full" in recorder.trouble
    recorder.points({0: curve(5)[-1]})
    fault.on = False
    recorder.close()
    assert recorder.trouble is None
    assert (read_curve(taken.trials[0].id), state(taken.trials[1].id)) == (5, "completed")


def test_closing_waits_until_there_is_space_again(
    recorder: Recorder, taken: Claim, fault: Fault
) -> None:
    recorder.finished(0, result(taken.trials[0]))
    closing = threading.Thread(target=recorder.close)
    closing.start()
    closing.join(0.5)
    assert closing.is_alive()
    fault.on = False
    closing.join(5)
    assert not closing.is_alive()
    assert state(taken.trials[0].id) is TrialState.COMPLETED


def test_a_stopping_worker_does_not_wait_for_ever(
    recorder: Recorder, taken: Claim, fault: Fault, stopping: StopFlag, monkeypatch
) -> None:
    monkeypatch.setattr(module, "STOPPING_SECONDS", 0.2)
    recorder.finished(0, result(taken.trials[0]))
    stopping.set()
    with pytest.raises(OperationalError):
        recorder.close()


def test_a_fault_of_our_own_ends_the_shard_instead_of_repeating_for_ever(
    recorder: Recorder, taken: Claim
) -> None:
    recorder.finished(0, "not a result")  # type: ignore[arg-type]
    with pytest.raises(AttributeError):
        wait_for(lambda: recorder.progress(0.5) and False, what="the fault", seconds=5)
    with pytest.raises(AttributeError):
        recorder.close()


def test_a_lost_lease_ends_training(recorder: Recorder) -> None:
    recorder.lost = True
    with pytest.raises(LeaseLost):
        recorder.progress(0.1)


def test_a_stopping_worker_drops_a_long_shard_and_finishes_a_short_one(
    recorder: Recorder, stopping: StopFlag
) -> None:
    recorder._began = time.monotonic() - 100
    stopping.set()
    assert recorder.progress(0.99) == frozenset()  # a second is left
    with pytest.raises(Stopped):
        recorder.progress(0.5)
    recorder.fraction = 0.0
    with pytest.raises(Stopped):
        recorder.progress(0.0)


def test_an_idle_recorder_writes_nothing(recorder: Recorder) -> None:
    time.sleep(0.2)
    seen: list[str] = []

    def note(_connection, _cursor, statement: str, *_rest) -> None:
        seen.append(statement.split()[0])

    event.listen(get_engine(), "before_cursor_execute", note)
    time.sleep(0.3)
    event.remove(get_engine(), "before_cursor_execute", note)
    assert set(seen) == {"SELECT"} or set(seen) == {"SELECT", "BEGIN"}


def test_sqlite_locked_by_somebody_else_only_delays(sqlite_database: str) -> None:
    with transaction() as session:
        taken = claim(session, submit(session).shard_ids[0])
    recorder = Recorder(taken, stopping=StopFlag(), flush_seconds=0.05).start()
    with transaction() as blocker:
        blocker.execute(text("UPDATE shards SET message = 'busy'"))
        for index, trial in enumerate(taken.trials):
            recorder.finished(index, result(trial))
        time.sleep(1.0)
        began = time.perf_counter()
        assert recorder.progress(1.0) == frozenset()
        assert time.perf_counter() - began < 0.1
    recorder.close()
    assert len(recorder.stored) == 12


@pytest.mark.parametrize(
    ("broken", "whole", "words"),
    [
        ("max_page_count=1", "max_page_count=1000000", "disk is full"),
        ("query_only=ON", "query_only=OFF", "readonly database"),
    ],
)
def test_a_full_or_read_only_file_loses_nothing(
    sqlite_database: str, monkeypatch, broken: str, whole: str, words: str
) -> None:
    """SQLite itself refuses to write; then it lets us again."""
    monkeypatch.setattr(module, "backoff", lambda failures: 0.1)
    with transaction() as session:
        taken = claim(session, submit(session).shard_ids[0])
    pragma = [broken]

    def limit(connection, _record, _proxy) -> None:
        connection.execute(f"PRAGMA {pragma[0]}")

    event.listen(get_engine(), "checkout", limit)
    recorder = Recorder(taken, stopping=StopFlag(), flush_seconds=0.05).start()
    for index, trial in enumerate(taken.trials):
        recorder.finished(index, result(trial, points=3000, record={"x": "y" * 5000}))
    wait_for(lambda: recorder.trouble, what="the database to refuse")
    assert words in str(recorder.trouble)
    assert recorder.stored == set()
    pragma[0] = whole
    recorder.close()
    event.remove(get_engine(), "checkout", limit)
    assert len(recorder.stored) == 12
