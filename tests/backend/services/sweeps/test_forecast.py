"""When a sweep will be done, and what it is waiting for."""

import pytest
from sqlalchemy import update

from backend.db import clock
from backend.models import ShardRow
from backend.services import shards, sweeps, workers
from backend.services.workers import Worker
from ib_core.sweep.result import Outcome
from tests.factories import claim, submit, sweep_spec, train, train_all


def arrive(session, name: str = "one", device: str = "cpu") -> None:
    workers.register(session, worker=Worker(name, "host", 1, device))


def forecast(session, seconds: float) -> None:
    session.execute(update(ShardRow).values(seconds=seconds))


def seen(session, made) -> tuple[float | None, list[str]]:
    sweep = sweeps.get(session, sweep_id=made.sweep.id)
    return sweep.eta_seconds, sweep.messages


def test_without_a_worker_nothing_is_promised(session) -> None:
    made = submit(session)
    assert seen(session, made) == (None, ["no worker is alive: start one with etascope worker"])


def test_a_sweep_for_a_gpu_says_that_it_waits_for_one(session) -> None:
    arrive(session)
    made = submit(session, device="cuda")
    assert seen(session, made) == (None, ["waiting for a gpu worker"])
    arrive(session, "two", "cuda")
    eta, messages = seen(session, made)
    assert eta is not None
    assert messages == []


def test_two_workers_take_half_the_time(session) -> None:
    made = submit(session)
    forecast(session, 30.0)
    arrive(session)
    assert seen(session, made) == (30.0, [])
    arrive(session, "two")
    assert seen(session, made) == (15.0, [])


def test_progress_shortens_the_wait(session) -> None:
    arrive(session)
    made = submit(session)
    forecast(session, 30.0)
    taken = claim(session, made.shard_ids[0])
    shards.heartbeat(session, claim=taken, progress=0.5)
    assert seen(session, made)[0] == pytest.approx(15.0)


def test_other_peoples_work_in_front_is_part_of_the_wait(session) -> None:
    arrive(session)
    submit(session, seeds=(1,))
    mine = submit(session, seeds=(2,))
    submit(session, seeds=(3,))  # behind mine: does not matter
    forecast(session, 10.0)
    assert seen(session, mine)[0] == pytest.approx(20.0)


def test_a_machine_slower_than_forecast_is_noticed(session) -> None:
    arrive(session)
    train_all(session, submit(session, seeds=(1,)))
    session.execute(update(ShardRow).values(started_at=clock(-20), finished_at=clock()))
    made = submit(session, seeds=(2,))
    forecast(session, 10.0)
    assert seen(session, made)[0] == pytest.approx(20.0, rel=0.05)


@pytest.mark.parametrize("ratio", [0.3, 1.0, 4.0])
def test_a_sweep_is_announced_at_the_pace_of_the_work_before_it(session, ratio) -> None:
    later = sweep_spec(seeds=tuple(range(10, 20)))
    plain = sweeps.dry_run(session, spec=later).cost_seconds
    train_all(session, submit(session, seeds=(1,)))
    forecast(session, 10.0)
    took = {"started_at": clock(-10 * ratio), "finished_at": clock()}
    session.execute(update(ShardRow).values(took))
    announced = sweeps.dry_run(session, spec=later).cost_seconds
    assert announced / plain == pytest.approx(ratio, rel=0.05)


def test_shards_too_short_to_tell_the_pace_do_not(session) -> None:
    later = sweep_spec(seeds=tuple(range(10, 20)))
    plain = sweeps.dry_run(session, spec=later).cost_seconds
    train_all(session, submit(session, seeds=(1,)))
    forecast(session, 0.01)
    session.execute(update(ShardRow).values(started_at=clock(-1), finished_at=clock()))
    assert sweeps.dry_run(session, spec=later).cost_seconds == plain


def test_a_finished_sweep_has_neither_eta_nor_messages(session) -> None:
    made = submit(session)
    train_all(session, made)
    sweep = sweeps.get(session, sweep_id=made.sweep.id)
    assert (sweep.eta_seconds, sweep.messages) == (None, [])
    assert sweep.finished_at is not None


def test_faults_are_counted_and_named(session) -> None:
    made = submit(session)
    train_all(session, made, outcome=Outcome.FAILED, error="Out of memory\nat line 3")
    assert seen(session, made)[1] == ["12 trials failed: Out of memory"]


def test_a_workers_trouble_reaches_the_person_who_waits(session) -> None:
    arrive(session)
    made = submit(session)
    taken = claim(session, made.shard_ids[0])
    shards.heartbeat(session, claim=taken, message="the database cannot be written: disk full")
    assert seen(session, made)[1] == ["the database cannot be written: disk full"]


def test_a_sweep_that_only_waits_for_anothers_shard_has_an_eta_too(session) -> None:
    arrive(session)
    submit(session)
    shared = submit(session)
    forecast(session, 12.0)
    assert seen(session, shared)[0] == pytest.approx(12.0)


def test_work_that_another_sweep_needs_is_finished_for_both(session) -> None:
    one, other = submit(session), submit(session)
    train(session, one.shard_ids[0])
    assert seen(session, other) == (None, [])
