"""Shards: one worker at a time, every result once, and nobody suffers for a bad neighbour."""

import math

import pytest
from sqlalchemy import select, update

from backend.db import clock
from backend.models import CurveRow, ShardRow, ShardState, TrialRow
from backend.schemas import SweepState, TrialState
from backend.services import maintenance, shards, studies, sweeps, trials
from ib_core.sweep.result import CurvePoint, Outcome
from tests.factories import claim, curve, result, submit, train


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


def test_a_claim_brings_the_trials_and_starts_them(session, one_shard) -> None:
    taken = claim(session, one_shard)
    assert (len(taken.trials), taken.attempt, taken.lease) == (12, 1, 1)
    assert states(session) == {TrialState.RUNNING}
    assert shard(session, one_shard).state is ShardState.RUNNING


def test_a_claimed_shard_cannot_be_claimed_again(session, one_shard) -> None:
    claim(session, one_shard)
    assert shards.claim(session, shard_id=one_shard, worker="two") is None


def test_a_shard_that_does_not_exist_is_nothing_to_do(session) -> None:
    assert shards.claim(session, shard_id=12345, worker="one") is None


def test_a_finished_shard_cannot_be_claimed_again(session, one_shard) -> None:
    train(session, one_shard)
    assert shards.claim(session, shard_id=one_shard, worker="two") is None
    assert states(session) == {TrialState.COMPLETED}


def test_results_are_stored_with_their_numbers_and_curve(session, one_shard) -> None:
    taken = claim(session, one_shard)
    first = taken.trials[0]
    stored = shards.report(session, claim=taken, finished={first.id: result(first, loss=0.25)})
    assert stored == {first.id}
    read = trials.get(session, trial_id=first.id)
    assert (read.state, read.outcome) == (TrialState.COMPLETED, "completed")
    assert (read.train_loss, read.initial_loss, read.attempts) == (0.25, 1.0, 1)
    assert read.record == {"engine": "test"}
    assert len(trials.curve(session, trial_id=first.id).points) == 3


@pytest.mark.parametrize("loss", [math.nan, math.inf, -math.inf])
def test_a_loss_that_is_no_number_is_null_beside_its_outcome(session, one_shard, loss) -> None:
    taken = claim(session, one_shard)
    first = taken.trials[0]
    broken = result(first, outcome=Outcome.DIVERGED, loss=loss, record={"norm": loss})
    shards.report(session, claim=taken, finished={first.id: broken})
    read = trials.get(session, trial_id=first.id)
    assert (read.state, read.train_loss) == (TrialState.DIVERGED, None)
    assert (read.diverged_at_step, read.diverged_where) == (2, "loss")
    assert read.record == {"norm": None}
    points = trials.curve(session, trial_id=first.id).points
    assert [point.train_loss for point in points][-1] is None


def test_completed_without_a_finite_loss_counts_as_diverged(session, one_shard) -> None:
    taken = claim(session, one_shard)
    first = taken.trials[0]
    shards.report(session, claim=taken, finished={first.id: result(first, loss=math.nan)})
    assert trials.get(session, trial_id=first.id).state is TrialState.DIVERGED


def test_a_shard_that_diverges_altogether_is_done_not_failed(session) -> None:
    submitted = submit(session)
    for id in submitted.shard_ids:
        train(session, id, outcome=Outcome.DIVERGED, loss=math.nan)
    assert sweeps.get(session, sweep_id=submitted.sweep.id).state is SweepState.COMPLETED


def test_a_result_counts_once(session, one_shard) -> None:
    taken = claim(session, one_shard)
    first = taken.trials[0]
    shards.report(session, claim=taken, finished={first.id: result(first, loss=0.25)})
    again = shards.report(session, claim=taken, finished={first.id: result(first, loss=0.75)})
    assert again == set()
    assert trials.get(session, trial_id=first.id).train_loss == 0.25
    assert len(session.scalars(select(CurveRow)).all()) == 1


def test_a_stale_workers_result_does_not_replace_a_newer_one(session, one_shard) -> None:
    stale = claim(session, one_shard, "stale")
    run_out(session, one_shard)
    shards.expire(session)
    no_wait(session)
    fresh = claim(session, one_shard, "fresh")
    first = fresh.trials[0]
    shards.report(session, claim=fresh, finished={first.id: result(first, loss=0.25)})
    shards.report(session, claim=stale, finished={first.id: result(first, loss=0.75)})
    assert trials.get(session, trial_id=first.id).train_loss == 0.25


def test_a_stale_workers_result_for_an_unfinished_trial_is_not_wasted(session, one_shard) -> None:
    stale = claim(session, one_shard, "stale")
    run_out(session, one_shard)
    shards.expire(session)
    no_wait(session)
    fresh = claim(session, one_shard, "fresh")
    first = stale.trials[0]
    assert shards.report(session, claim=stale, finished={first.id: result(first)}) == {first.id}
    assert first.id not in shards.wanted(session, claim=fresh)


def test_a_late_result_closes_the_shard_that_waits_for_nothing_else(session, one_shard) -> None:
    late = claim(session, one_shard, "late")
    run_out(session, one_shard)
    shards.expire(session)
    *most, last = late.trials
    shards.report(session, claim=late, finished={trial.id: result(trial) for trial in most})
    assert shard(session, one_shard).state is ShardState.QUEUED  # it still waits for one
    shards.report(session, claim=late, finished={last.id: result(last)})
    assert shard(session, one_shard).state is ShardState.CANCELLED
    assert shards.queue_state(session).depth == 0
    assert states(session) == {TrialState.COMPLETED}


def test_a_stale_worker_can_neither_finish_nor_fail_nor_renew_the_shard(session, one_shard) -> None:
    stale = claim(session, one_shard, "worker")
    run_out(session, one_shard)
    shards.expire(session)
    no_wait(session)
    claim(session, one_shard, "worker")  # even under the same name
    assert not shards.heartbeat(session, claim=stale)
    assert not shards.finish(session, claim=stale)
    assert not shards.release(session, claim=stale)
    assert not shards.fail(session, claim=stale, error="x")
    assert shard(session, one_shard).state is ShardState.RUNNING


def test_a_stale_workers_unfinished_curve_is_ignored(session, one_shard) -> None:
    stale = claim(session, one_shard, "stale")
    run_out(session, one_shard)
    shards.expire(session)
    first = stale.trials[0]
    shards.report(session, claim=stale, points={first.id: list(curve(2))})
    assert trials.curve(session, trial_id=first.id).points == []


def test_a_stale_worker_s_curve_does_not_replace_that_of_who_trains_now(session, one_shard) -> None:
    stale = claim(session, one_shard, "stale")
    run_out(session, one_shard)
    shards.expire(session)
    no_wait(session)
    fresh = claim(session, one_shard, "fresh")
    first = fresh.trials[0]
    shards.report(session, claim=fresh, points={first.id: list(curve(5))})
    shards.report(session, claim=stale, points={first.id: list(curve(2))})
    assert len(trials.curve(session, trial_id=first.id).points) == 5


def test_live_points_show_before_the_end(session, one_shard) -> None:
    taken = claim(session, one_shard)
    first = taken.trials[0]
    points = [CurvePoint(0, 0.0, 1.0, 1.0, 0.1, 0.2), CurvePoint(5, 0.5, math.nan, 2.0)]
    shards.report(session, claim=taken, points={first.id: points})
    read = trials.curve(session, trial_id=first.id)
    assert (read.state, read.last_step, read.total) == (TrialState.RUNNING, 5, 2)
    assert [p.train_loss for p in read.points] == [1.0, None]
    assert [p.train_accuracy for p in read.points] == [0.1, None]


def test_a_result_of_other_data_is_not_taken_for_this_trial(session, one_shard) -> None:
    taken = claim(session, one_shard)
    first = taken.trials[0]
    other = result(first, fingerprint="f" * 64)
    shards.report(session, claim=taken, finished={first.id: other})
    read = trials.get(session, trial_id=first.id)
    assert read.state is TrialState.FAILED
    assert "data or the engine changed" in read.error


def test_a_result_for_somebody_elses_trial_is_ignored(session) -> None:
    one = submit(session, seeds=(1,)).shard_ids[0]
    two = submit(session, seeds=(2,)).shard_ids[0]
    mine, theirs = claim(session, one), claim(session, two)
    foreign = theirs.trials[0]
    assert shards.report(session, claim=mine, finished={foreign.id: result(foreign)}) == set()


def test_results_for_a_deleted_study_are_dropped_without_a_fault(session) -> None:
    submitted = submit(session)
    taken = claim(session, submitted.shard_ids[0])
    studies.delete(session, study_id=submitted.sweep.study_id)
    first = taken.trials[0]
    points = {first.id: list(curve(2))}
    assert shards.report(session, claim=taken, points=points) == set()
    assert shards.report(session, claim=taken, finished={first.id: result(first)}) == set()
    assert shards.wanted(session, claim=taken) == set()
    assert shards.finish(session, claim=taken)
    assert maintenance.check(session) == []


def test_a_failed_trial_keeps_its_neighbours_results(session, one_shard) -> None:
    taken = claim(session, one_shard)
    finished = {trial.id: result(trial) for trial in taken.trials}
    bad = taken.trials[5]
    finished[bad.id] = result(bad, outcome=Outcome.FAILED, error="boom\x00", loss=math.nan)
    shards.report(session, claim=taken, finished=finished)
    assert trials.get(session, trial_id=bad.id).error == "boom\\x00"
    assert shards.finish(session, claim=taken)
