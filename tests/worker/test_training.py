"""A shard from claim to finish, trained for real."""

import sys
import threading
from collections.abc import Iterator

import pytest
import torch
from sqlalchemy import select

from backend.db import reading, transaction
from backend.models import ShardRow, ShardState
from backend.schemas import SweepState, TrialState
from backend.services import maintenance, sweeps, trials
from backend.services.sweeps import Submitted
from backend.services.workers import Worker
from backend.settings import get_settings
from ib_core import own
from ib_core.errors import MissingData
from ib_core.methods import OWN_METHODS
from ib_core.sweep import run_sweep, series_found
from ib_core.sweep.engine import run_trials
from ib_core.tasks import OWN_TASKS
from tests.factories import submit, sweep_spec
from tests.servers import wait_for
from tests.worker.own_files import DECENT, SPOILING
from worker import training
from worker.reporter import Heartbeat, StopFlag
from worker.training import train


@pytest.fixture
def stopping() -> StopFlag:
    return StopFlag()


@pytest.fixture
def heartbeat(database: str, quick: None, stopping: StopFlag) -> Iterator[Heartbeat]:
    heartbeat = Heartbeat(Worker("one", "host", 1, "cpu"), get_settings(), stopping=stopping)
    heartbeat.start()
    yield heartbeat
    heartbeat.stop()


def stored(**changes) -> Submitted:
    with transaction() as session:
        return submit(session, **changes)


def seen(submitted: Submitted):
    with reading() as session:
        assert maintenance.check(session) == []
        return sweeps.get(session, sweep_id=submitted.sweep.id)


def train_all(submitted: Submitted, heartbeat: Heartbeat, stopping: StopFlag) -> None:
    for shard_id in submitted.shard_ids:
        train(shard_id, heartbeat=heartbeat, stopping=stopping)


@pytest.mark.parametrize("task", ["toy/quadratic", "bundled/iris"])
def test_a_sweep_is_trained_and_stored_as_the_engine_says(heartbeat, stopping, task) -> None:
    changes = {"task": task, "seeds": (1,), "epochs": 2}
    submitted = stored(**changes)
    train_all(submitted, heartbeat, stopping)
    assert seen(submitted).state is SweepState.COMPLETED
    alone = {
        (r.spec.method, r.spec.lr): (r.train_loss, len(r.curve), r.record["initial_weights"])
        for r in run_trials(sweep_spec(**changes).expand())
        if r is not None
    }
    with reading() as session:
        for item in trials.page(session, sweep_id=submitted.sweep.id).items:
            loss, points, weights = alone[item.method, item.lr]
            assert item.train_loss == pytest.approx(loss, rel=1e-5)
            assert len(trials.curve(session, trial_id=item.id).points) == points
            assert item.record["initial_weights"] == weights
            assert item.record["data"]


def test_a_search_is_trained_round_by_round_without_anybody_planning(heartbeat, stopping) -> None:
    """And comes to what the same search comes to on the command line."""
    search = {"find": "edge", "from": 0.1, "to": 100, "within": 1.5}
    changes = {"methods": ("eb",), "seeds": (1, 2), "epochs": 2, "search": search}
    submitted = stored(**changes)
    trained: set[int] = set()
    while waiting := {*open_shards()} - trained:
        trained |= waiting
        for shard_id in sorted(waiting):
            train(shard_id, heartbeat=heartbeat, stopping=stopping)
    found = seen(submitted)
    assert (found.state, found.search.done) == (SweepState.COMPLETED, True)
    (here,) = run_sweep(sweep_spec(**changes), lanes=1).searches
    (alone,) = series_found(here.search, here.known)
    assert (found.search.trials, len(found.search.rounds)) == (here.trials, here.rounds)
    assert found.search.series[0].text == alone.text
    brackets = [(one.low, one.high) for one in found.search.series[0].seeds]
    assert brackets == [(one.low, one.high) for one in alone.seeds]


def open_shards() -> list[int]:
    with reading() as session:
        waiting = select(ShardRow.id).where(ShardRow.state == ShardState.QUEUED)
        return list(session.scalars(waiting))


def test_divergence_is_a_result(heartbeat, stopping) -> None:
    submitted = stored(methods=("eb",), learning_rates=(0.1, 1e12), epochs=20)
    train_all(submitted, heartbeat, stopping)
    found = seen(submitted)
    assert found.state is SweepState.COMPLETED
    assert found.progress["diverged"] == 2
    with reading() as session:
        diverged = trials.page(session, sweep_id=found.id, state=TrialState.DIVERGED).items
    assert all(item.diverged_at_step is not None for item in diverged)


def test_a_second_delivery_trains_nothing(heartbeat, stopping, monkeypatch) -> None:
    submitted = stored(seeds=(1,))
    train_all(submitted, heartbeat, stopping)
    monkeypatch.setattr(training, "run_trials", None)
    train_all(submitted, heartbeat, stopping)
    assert seen(submitted).progress["completed"] + seen(submitted).progress["diverged"] == 6


def test_a_fault_is_told_as_a_sentence_and_tried_again(heartbeat, stopping, monkeypatch) -> None:
    submitted = stored(seeds=(1,))
    calls = []

    def break_once(*args, **options):
        calls.append(1)
        if len(calls) == 1:
            raise MemoryError("no more")
        return run_trials(*args, **options)

    monkeypatch.setattr(training, "run_trials", break_once)
    train_all(submitted, heartbeat, stopping)
    assert seen(submitted).messages == ["Trying again: MemoryError: no more"]
    wait_for(
        lambda: train_all(submitted, heartbeat, stopping) or len(calls) == 2,
        what="the second attempt",
    )
    assert seen(submitted).state is SweepState.COMPLETED


def test_an_error_that_lasts_fails_the_trials_with_its_message(
    heartbeat, stopping, monkeypatch
) -> None:
    monkeypatch.setattr(get_settings(), "max_attempts", 1)
    submitted = stored(seeds=(1,))

    def break_always(*_args, **_options):
        raise MissingData("The data set is not here; run: etascope data fetch.")

    monkeypatch.setattr(training, "run_trials", break_always)
    train_all(submitted, heartbeat, stopping)
    assert seen(submitted).messages == [
        "6 trials failed: The data set is not here; run: etascope data fetch."
    ]


@pytest.mark.parametrize(
    ("error", "waiting"),
    [(MissingData("The data set is not here."), [6]), (RuntimeError("killed"), [1] * 6)],
    ids=["everybody's", "perhaps one trial's"],
)
def test_only_a_fault_that_may_be_one_trial_s_alone_parts_the_trials(
    heartbeat, stopping, monkeypatch, error, waiting
) -> None:
    monkeypatch.setattr(get_settings(), "max_attempts", 2)
    submitted = stored(seeds=(1,))

    def fail(*_args, **_options):
        raise error

    monkeypatch.setattr(training, "run_trials", fail)
    train_all(submitted, heartbeat, stopping)
    with reading() as session:
        queued = session.scalars(select(ShardRow).where(ShardRow.state == ShardState.QUEUED))
        assert [shard.trials for shard in queued] == waiting


def test_results_before_a_fault_are_kept(heartbeat, stopping, monkeypatch) -> None:
    submitted = stored(seeds=(1,))

    def break_late(specs, *, device, observer):
        for index, result in enumerate(run_trials(specs)[:4]):
            observer.finished(index, result)
        raise RuntimeError("late")

    monkeypatch.setattr(training, "run_trials", break_late)
    train_all(submitted, heartbeat, stopping)
    found = seen(submitted)
    assert found.progress["completed"] + found.progress["diverged"] == 4
    assert found.progress["queued"] == 2


def in_background(submitted: Submitted, heartbeat, stopping) -> threading.Thread:
    first = submitted.shard_ids[0]
    options = {"heartbeat": heartbeat, "stopping": stopping}
    thread = threading.Thread(target=train, args=(first,), kwargs=options)
    thread.start()
    wait_for(lambda: seen(submitted).progress["running"], what="training to begin", seconds=30)
    return thread


def test_cancelling_ends_training_within_seconds(heartbeat, stopping) -> None:
    submitted = stored(seeds=(1,), epochs=10_000)
    thread = in_background(submitted, heartbeat, stopping)
    with transaction() as session:
        sweeps.cancel(session, sweep_id=submitted.sweep.id)
    thread.join(5)
    assert not thread.is_alive()
    found = seen(submitted)
    assert found.progress["running"] == 0
    assert found.progress["cancelled"] >= 1


def test_a_cancelled_sweep_does_not_stop_what_another_one_wants(heartbeat, stopping) -> None:
    grid = {"methods": ("ib",), "seeds": (1,), "epochs": 200}
    submitted = stored(learning_rates=(0.1, 0.5, 1.0), **grid)
    other = stored(learning_rates=(1.0,), **grid)
    assert other.shard_ids == []
    thread = in_background(submitted, heartbeat, stopping)
    with transaction() as session:
        sweeps.cancel(session, sweep_id=submitted.sweep.id)
    thread.join(60)
    assert seen(other).state is SweepState.COMPLETED
    assert (seen(submitted).progress["cancelled"], seen(submitted).progress["completed"]) == (2, 1)


def test_a_worker_that_is_to_stop_gives_its_shard_back(heartbeat, stopping) -> None:
    submitted = stored(seeds=(1,), epochs=10_000)
    thread = in_background(submitted, heartbeat, stopping)
    stopping.set()
    thread.join(8)
    assert not thread.is_alive()
    with reading() as session:
        shard = session.get_one(ShardRow, submitted.shard_ids[0])
    assert (shard.state, shard.attempts, shard.sent_at) == (ShardState.QUEUED, 0, None)


def test_a_worker_that_lost_its_lease_stops_and_leaves_the_shard_alone(heartbeat, stopping) -> None:
    submitted = stored(seeds=(1,), epochs=10_000)
    thread = in_background(submitted, heartbeat, stopping)
    with transaction() as session:
        session.query(ShardRow).update({"lease": ShardRow.lease + 1, "worker": "another"})
    thread.join(8)
    assert not thread.is_alive()
    with reading() as session:
        shard = session.get_one(ShardRow, submitted.shard_ids[0])
    assert (shard.state, shard.worker) == (ShardState.RUNNING, "another")


@pytest.mark.parametrize(
    ("asked", "kind", "used"),
    [("auto", "cpu", "cpu"), ("auto", "cuda", "cuda"), ("cpu", "cuda", "cpu")],
)
def test_a_shard_runs_where_it_asked_to(asked, kind, used) -> None:
    assert training.engine_device(asked, kind) == used


@pytest.fixture
def spoiled(tmp_path, monkeypatch) -> Iterator[None]:
    """This process as a file leaves it that does what it likes to torch."""
    for name in ("nn.functional.cross_entropy", "manual_seed", "bmm"):
        module, _, function = f"torch.{name}".rpartition(".")
        # As it is: it is put back afterwards.
        monkeypatch.setattr(f"torch.{name}", getattr(sys.modules[module], function))
    file = tmp_path / "spoiling.py"
    file.write_text(SPOILING + DECENT.replace("FACTOR", "1.0"))
    training.keep_apart(1)
    own.register_file(file)
    yield
    torch.set_default_dtype(torch.float32)
    training._State.apart.stop()
    training._State.apart = None
    for known in (OWN_TASKS, OWN_METHODS, own._files):
        known.clear()


def test_what_a_file_does_to_torch_reaches_no_trial_of_the_catalogue(
    heartbeat, stopping, request
) -> None:
    changes = {"task": "bundled/iris", "seeds": (1,), "epochs": 2}
    alone = sorted(r.train_loss for r in run_trials(sweep_spec(**changes).expand()))
    request.getfixturevalue("spoiled")
    submitted = stored(**changes)
    train_all(submitted, heartbeat, stopping)
    assert seen(submitted).state is SweepState.COMPLETED
    with reading() as session:
        items = trials.page(session, sweep_id=submitted.sweep.id).items
    assert sorted(item.train_loss for item in items) == pytest.approx(alone, rel=1e-6)
