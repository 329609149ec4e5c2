"""The reporter: nothing is lost while the database cannot be written, and training never waits."""

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
from worker import reporter as module
from worker.reporter import LeaseLost, Reporter, StopFlag, Stopped


@pytest.fixture
def taken(database: str) -> Claim:
    with transaction() as session:
        return claim(session, submit(session).shard_ids[0])


@pytest.fixture
def stopping() -> StopFlag:
    return StopFlag()


@pytest.fixture
def reporter(taken: Claim, stopping: StopFlag) -> Iterator[Reporter]:
    reporter = Reporter(taken, stopping=stopping, flush_seconds=0.05).start()
    yield reporter
    if not reporter.closing:
        reporter.close()


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


def test_points_appear_while_training_goes_on(reporter: Reporter, taken: Claim) -> None:
    first, second = taken.trials[:2]
    for number, point in enumerate(curve(5)):
        reporter.points({0: point} if number < 3 else {0: point, 1: point})
    wait_for(lambda: read_curve(first.id) == 5, what="the curve")
    assert read_curve(second.id) == 2


def test_a_point_that_arrives_during_a_write_is_in_the_next_one(
    taken: Claim, stopping: StopFlag, monkeypatch: pytest.MonkeyPatch
) -> None:
    reporter = Reporter(taken, stopping=stopping, flush_seconds=0.05)
    first, second = curve(2)
    write, writes = shards.report, []

    def interrupted(*given, **options):
        stored = write(*given, **options)
        writes.append(1)
        if len(writes) == 1:
            reporter.points({0: second})
        return stored

    monkeypatch.setattr(shards, "report", interrupted)
    reporter.points({0: first})
    reporter.start()
    wait_for(lambda: read_curve(taken.trials[0].id) == 2, what="the second point", seconds=20)
    reporter.close()


def test_a_result_is_stored_before_the_shard_ends(reporter: Reporter, taken: Claim) -> None:
    first = taken.trials[0]
    reporter.points({0: curve(1)[0]})
    reporter.finished(0, result(first, points=7))
    wait_for(lambda: state(first.id) is TrialState.COMPLETED, what="the result")
    assert read_curve(first.id) == 7
    assert reporter.stored == {first.id}


def test_closing_writes_what_is_left(reporter: Reporter, taken: Claim) -> None:
    for index, trial in enumerate(taken.trials):
        reporter.finished(index, result(trial))
    reporter.close()
    assert reporter.stored == {trial.id for trial in taken.trials}


def test_trials_nobody_wants_are_reported_and_cancelled(reporter: Reporter, taken: Claim) -> None:
    reporter.finished(0, result(taken.trials[0]))
    wait_for(lambda: reporter.stored, what="the result")
    with transaction() as session:
        sweeps.cancel(session, sweep_id=1)
    wait_for(lambda: set(range(1, 12)) <= set(reporter.progress(0.5)), what="the news", seconds=5)
    reporter.close()
    with transaction() as session:
        assert shards.finish(session, claim=taken)
        assert sweeps.get(session, sweep_id=1).progress["cancelled"] == 11
        assert maintenance.check(session) == []


def test_exactly_the_trials_nobody_wants_any_more_are_reported(
    reporter: Reporter, taken: Claim
) -> None:
    time.sleep(0.3)  # it has asked a few times
    assert reporter.progress(0.1) == frozenset()
    with transaction() as session:
        assert submit(session, seeds=(2,)).shard_ids == []  # another sweep wants half of them
        sweeps.cancel(session, sweep_id=1)
    mine = frozenset(i for i, trial in enumerate(taken.trials) if trial.spec["seed"] == 1)
    assert len(mine) == 6
    wait_for(lambda: reporter.progress(0.5) == mine, what="the news", seconds=20)


def test_while_the_disk_is_full_everything_waits_in_memory(
    reporter: Reporter, taken: Claim, fault: Fault
) -> None:
    for point in curve(4):
        reporter.points({0: point, 1: point})
    reporter.finished(1, result(taken.trials[1]))
    wait_for(lambda: fault.met >= 2, what="two failures")
    assert reporter.progress(0.5) == frozenset()  # training goes on
    assert reporter.trouble is not None
    assert "disk is full" in reporter.trouble
    reporter.points({0: curve(5)[-1]})
    fault.on = False
    reporter.close()
    assert reporter.trouble is None
    assert (read_curve(taken.trials[0].id), state(taken.trials[1].id)) == (5, "completed")


def test_closing_waits_until_there_is_space_again(
    reporter: Reporter, taken: Claim, fault: Fault
) -> None:
    reporter.finished(0, result(taken.trials[0]))
    closing = threading.Thread(target=reporter.close)
    closing.start()
    closing.join(0.5)
    assert closing.is_alive()
    fault.on = False
    closing.join(5)
    assert not closing.is_alive()
    assert state(taken.trials[0].id) is TrialState.COMPLETED


def test_a_stopping_worker_does_not_wait_for_ever(
    reporter: Reporter, taken: Claim, fault: Fault, stopping: StopFlag, monkeypatch
) -> None:
    monkeypatch.setattr(module, "STOPPING_SECONDS", 0.2)
    reporter.finished(0, result(taken.trials[0]))
    stopping.set()
    with pytest.raises(OperationalError):
        reporter.close()


def test_a_fault_of_our_own_ends_the_shard_instead_of_repeating_for_ever(
    reporter: Reporter, taken: Claim
) -> None:
    reporter.finished(0, "not a result")  # type: ignore[arg-type]
    with pytest.raises(AttributeError):
        wait_for(lambda: reporter.progress(0.5) and False, what="the fault", seconds=5)
    with pytest.raises(AttributeError):
        reporter.close()


def test_a_lost_lease_ends_training(reporter: Reporter) -> None:
    reporter.lost = True
    with pytest.raises(LeaseLost):
        reporter.progress(0.1)


def test_a_stopping_worker_drops_a_long_shard_and_finishes_a_short_one(
    reporter: Reporter, stopping: StopFlag
) -> None:
    reporter._began = time.monotonic() - 100
    stopping.set()
    assert reporter.progress(0.99) == frozenset()  # a second is left
    with pytest.raises(Stopped):
        reporter.progress(0.5)
    reporter.fraction = 0.0
    with pytest.raises(Stopped):
        reporter.progress(0.0)


def test_an_idle_reporter_writes_nothing(reporter: Reporter) -> None:
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
    reporter = Reporter(taken, stopping=StopFlag(), flush_seconds=0.05).start()
    with transaction() as blocker:
        blocker.execute(text("UPDATE shards SET message = 'busy'"))
        for index, trial in enumerate(taken.trials):
            reporter.finished(index, result(trial))
        time.sleep(1.0)
        began = time.perf_counter()
        assert reporter.progress(1.0) == frozenset()
        assert time.perf_counter() - began < 3  # not until the other one ends
    reporter.close()
    assert len(reporter.stored) == 12


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
    reporter = Reporter(taken, stopping=StopFlag(), flush_seconds=0.05).start()
    for index, trial in enumerate(taken.trials):
        reporter.finished(index, result(trial, points=3000, record={"x": "y" * 5000}))
    wait_for(lambda: reporter.trouble, what="the database to refuse")
    assert words in str(reporter.trouble)
    assert reporter.stored == set()
    pragma[0] = whole
    reporter.close()
    event.remove(get_engine(), "checkout", limit)
    assert len(reporter.stored) == 12
