"""Shards that did not end well: again, in pieces, or not at all."""

import pytest
from sqlalchemy import select, update

from backend.db import clock, database_time
from backend.models import ShardRow, ShardState, TrialRow
from backend.schemas import SweepState, TrialState
from backend.services import shards, sweeps, trials
from backend.services.shards.planning import LONGEST_BACKOFF
from backend.settings import get_settings
from tests.factories import claim, result, submit


def shard(session, shard_id: int) -> ShardRow:
    return session.get_one(ShardRow, shard_id, populate_existing=True)


def states(session) -> set[TrialState]:
    return set(session.scalars(select(TrialRow.state)))


def run_out(session, shard_id: int) -> None:
    """Let a lease end, as if its worker had been silent."""
    past = update(ShardRow).where(ShardRow.id == shard_id).values(lease_until=clock(-1))
    session.execute(past)


def no_wait(session) -> None:
    """Let every backoff be over."""
    session.execute(update(ShardRow).values(not_before=None))


@pytest.fixture
def one_shard(session) -> int:
    """A waiting shard of twelve trials."""
    (shard_id,) = submit(session).shard_ids
    return shard_id


def test_a_released_shard_waits_again_and_no_attempt_is_burnt(session, one_shard) -> None:
    taken = claim(session, one_shard)
    done = taken.trials[0]
    shards.report(session, claim=taken, finished={done.id: result(done)})
    assert shards.release(session, claim=taken)
    row = shard(session, one_shard)
    assert (row.state, row.attempts, row.sent_at) == (ShardState.QUEUED, 0, None)
    again = claim(session, one_shard, "two")
    assert (again.attempt, len(again.trials)) == (1, 11)


def test_a_failed_shard_waits_a_little_before_it_is_tried_again(session, one_shard) -> None:
    taken = claim(session, one_shard)
    assert shards.fail(session, claim=taken, error="OutOfMemoryError: no")
    assert shards.claim(session, shard_id=one_shard, worker="two") is None
    assert shards.due(session) == []
    row = shard(session, one_shard)
    assert (row.state, row.message) == (ShardState.QUEUED, "Trying again: OutOfMemoryError: no")
    no_wait(session)
    assert claim(session, one_shard).attempt == 2


def test_the_wait_is_the_one_in_the_settings_doubles_each_time_and_has_an_end(
    session, one_shard, monkeypatch
) -> None:
    monkeypatch.setattr(get_settings(), "max_attempts", 100)
    waits = []
    for _ in range(7):
        no_wait(session)
        taken = claim(session, one_shard)
        before = database_time(session)
        shards.fail(session, claim=taken, error="killed", split=False)
        waits.append((shard(session, one_shard).not_before - before).total_seconds())
    first = get_settings().retry_seconds
    expected = [min(first * factor, LONGEST_BACKOFF) for factor in (1, 2, 4, 8, 16, 32, 64)]
    assert waits == pytest.approx(expected, abs=1.0)


def test_before_the_last_attempt_every_trial_gets_a_shard_of_its_own(session, one_shard) -> None:
    for _ in range(2):
        no_wait(session)
        shards.fail(session, claim=claim(session, one_shard), error="killed")
    waiting = session.scalars(select(ShardRow).where(ShardRow.state == ShardState.QUEUED)).all()
    assert [row.trials for row in waiting] == [1] * 12
    assert shard(session, one_shard).state is ShardState.FAILED


def test_the_parts_of_a_shard_share_what_was_forecast_for_it(session, one_shard) -> None:
    whole = shard(session, one_shard)
    forecast = (whole.seconds, whole.memory_bytes, whole.device)
    for _ in range(2):
        no_wait(session)
        shards.fail(session, claim=claim(session, one_shard), error="killed")
    parts = session.scalars(select(ShardRow).where(ShardRow.state == ShardState.QUEUED)).all()
    assert sum(part.seconds for part in parts) == pytest.approx(forecast[0])
    assert sum(part.memory_bytes for part in parts) <= forecast[1]
    assert {part.device for part in parts} == {forecast[2]}
    assert all(part.not_before is not None for part in parts)
    assert shards.due(session) == []


def test_a_fault_that_is_everybodys_does_not_part_the_trials(session, one_shard) -> None:
    for _ in range(3):
        no_wait(session)
        taken = claim(session, one_shard)
        shards.fail(session, claim=taken, error="the data set is missing", split=False)
    assert len(session.scalars(select(ShardRow)).all()) == 1
    assert states(session) == {TrialState.FAILED}


def test_one_poisonous_trial_does_not_fail_its_neighbours(session) -> None:
    submitted = submit(session)
    poison = None
    for _ in range(20):
        no_wait(session)
        for item in shards.due(session):
            taken = shards.claim(session, shard_id=item.shard_id, worker="w")
            if taken is None:
                continue
            poison = poison or taken.trials[3].id
            if poison in {t.id for t in taken.trials}:
                shards.fail(session, claim=taken, error="SIGKILL")
            else:
                done = {t.id: result(t) for t in taken.trials}
                shards.report(session, claim=taken, finished=done)
                shards.finish(session, claim=taken)
    sweep = sweeps.get(session, sweep_id=submitted.sweep.id)
    assert sweep.progress | {"completed": 11, "failed": 1} == sweep.progress
    assert sweep.state is SweepState.FAILED
    assert sweep.messages == ["1 trial failed: SIGKILL"]
    read = trials.get(session, trial_id=poison)
    assert (read.attempts, read.error) == (3, "SIGKILL")


def test_attempts_end(session, monkeypatch) -> None:
    monkeypatch.setattr(get_settings(), "max_attempts", 1)
    (shard_id,) = submit(session).shard_ids
    shards.fail(session, claim=claim(session, shard_id), error="first\nsecond")
    assert states(session) == {TrialState.FAILED}
    assert shard(session, shard_id).error == "first\nsecond"


def test_an_engine_that_forgets_a_trial_is_a_fault(session, one_shard) -> None:
    taken = claim(session, one_shard)
    some = {trial.id: result(trial) for trial in taken.trials[:10]}
    shards.report(session, claim=taken, finished=some)
    shards.finish(session, claim=taken)
    row = shard(session, one_shard)
    assert row.state is ShardState.QUEUED
    assert "without a result for 2 of 12" in row.message


def test_a_dead_processs_shard_is_given_back_at_once(session, one_shard) -> None:
    claim(session, one_shard, "dead")
    assert not shards.abandon(session, shard_id=one_shard, worker="another", error="x")
    assert shards.abandon(session, shard_id=one_shard, worker="dead", error="killed")
    assert shard(session, one_shard).state is ShardState.QUEUED


def test_a_worker_that_died_between_its_results_and_its_goodbye_loses_nothing(
    session, one_shard
) -> None:
    taken = claim(session, one_shard)
    finished = {trial.id: result(trial) for trial in taken.trials}
    shards.report(session, claim=taken, finished=finished)
    run_out(session, one_shard)
    assert shards.expire(session) == 1
    assert shard(session, one_shard).state is ShardState.DONE
    assert states(session) == {TrialState.COMPLETED}
