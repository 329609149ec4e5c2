"""Stopping a sweep and taking it up again."""

import pytest
from sqlalchemy import select

from backend.errors import Conflict, NotFound
from backend.models import ShardRow, ShardState
from backend.schemas import SweepState
from backend.services import maintenance, shards, sweeps, trials
from ib_core.sweep.result import Outcome
from tests.factories import claim, result, submit, train, train_all


def test_cancelling_stops_waiting_trials_at_once(session) -> None:
    submitted = submit(session)
    sweep = sweeps.cancel(session, sweep_id=submitted.sweep.id)
    assert (sweep.state, sweep.cancelled) == (SweepState.CANCELLED, True)
    assert sweep.progress["cancelled"] == 12
    assert shards.claim(session, shard_id=submitted.shard_ids[0], worker="w") is None
    assert set(session.scalars(select(ShardRow.state))) == {ShardState.CANCELLED}


def test_running_trials_are_dropped_when_their_worker_asks(session) -> None:
    submitted = submit(session)
    taken = claim(session, submitted.shard_ids[0])
    first = taken.trials[0]
    shards.report(session, claim=taken, finished={first.id: result(first)})
    sweep = sweeps.cancel(session, sweep_id=submitted.sweep.id)
    assert sweep.state is SweepState.CANCELLED
    assert sweep.messages == ["stopping: 11 trials are still running"]
    assert shards.wanted(session, claim=taken) == set()
    assert shards.drop_unwanted(session, claim=taken) == set()
    assert shards.finish(session, claim=taken)
    sweep = sweeps.get(session, sweep_id=submitted.sweep.id)
    assert (sweep.progress["completed"], sweep.progress["cancelled"]) == (1, 11)
    assert maintenance.check(session) == []


def test_a_trial_that_another_sweep_wants_goes_on(session) -> None:
    one = submit(session, seeds=(1, 2))
    other = submit(session, seeds=(2, 3))
    sweeps.cancel(session, sweep_id=one.sweep.id)
    for id in (*one.shard_ids, *other.shard_ids):
        train(session, id)
    assert sweeps.get(session, sweep_id=other.sweep.id).state is SweepState.COMPLETED
    mine = sweeps.get(session, sweep_id=one.sweep.id)
    assert (mine.progress["cancelled"], mine.progress["completed"]) == (6, 6)


def test_only_when_the_last_sweep_lets_go_a_trial_is_cancelled(session) -> None:
    one, other = submit(session), submit(session)
    sweeps.cancel(session, sweep_id=one.sweep.id)
    assert sweeps.get(session, sweep_id=other.sweep.id).progress["queued"] == 12
    sweeps.cancel(session, sweep_id=other.sweep.id)
    assert sweeps.get(session, sweep_id=other.sweep.id).progress["cancelled"] == 12


def test_cancelling_what_has_ended_changes_nothing(session) -> None:
    submitted = submit(session)
    train_all(session, submitted)
    sweep = sweeps.cancel(session, sweep_id=submitted.sweep.id)
    assert (sweep.state, sweep.cancelled) == (SweepState.COMPLETED, False)


def test_cancelling_twice_is_as_good_as_once(session) -> None:
    submitted = submit(session)
    once = sweeps.cancel(session, sweep_id=submitted.sweep.id)
    assert sweeps.cancel(session, sweep_id=submitted.sweep.id) == once


def test_retrying_trains_only_failed_and_cancelled_trials(session) -> None:
    submitted = submit(session)
    taken = claim(session, submitted.shard_ids[0])
    ends = [Outcome.COMPLETED] * 5 + [Outcome.DIVERGED] * 4 + [Outcome.FAILED] * 3
    finished = {t.id: result(t, outcome=o) for t, o in zip(taken.trials, ends, strict=True)}
    shards.report(session, claim=taken, finished=finished)
    shards.finish(session, claim=taken)
    assert sweeps.get(session, sweep_id=submitted.sweep.id).state is SweepState.FAILED

    again = sweeps.retry(session, sweep_id=submitted.sweep.id)
    assert again.sweep.progress["queued"] == 3
    assert again.sweep.state is SweepState.RUNNING
    retried = [t.id for id in again.shard_ids for t in train(session, id).trials]
    assert sorted(retried) == sorted(t.id for t in taken.trials[9:])
    assert sweeps.get(session, sweep_id=submitted.sweep.id).state is SweepState.COMPLETED


def test_retrying_a_cancelled_sweep_takes_it_up_again(session) -> None:
    submitted = submit(session)
    sweeps.cancel(session, sweep_id=submitted.sweep.id)
    again = sweeps.retry(session, sweep_id=submitted.sweep.id)
    assert (again.sweep.state, again.sweep.cancelled) == (SweepState.QUEUED, False)
    assert train_all(session, again).state is SweepState.COMPLETED


def test_retrying_before_the_worker_noticed_lets_it_go_on(session) -> None:
    submitted = submit(session)
    taken = claim(session, submitted.shard_ids[0])
    sweeps.cancel(session, sweep_id=submitted.sweep.id)
    again = sweeps.retry(session, sweep_id=submitted.sweep.id)
    assert again.shard_ids == []
    assert len(shards.wanted(session, claim=taken)) == 12


def test_a_retry_goes_to_the_device_the_sweep_asked_for(session) -> None:
    submitted = submit(session, device="cuda")
    sweeps.cancel(session, sweep_id=submitted.sweep.id)
    again = sweeps.retry(session, sweep_id=submitted.sweep.id)
    assert [session.get_one(ShardRow, id).device for id in again.shard_ids] == ["cuda"]


def test_there_must_be_something_to_retry(session) -> None:
    submitted = submit(session)
    with pytest.raises(Conflict, match="no failed or cancelled trials"):
        sweeps.retry(session, sweep_id=submitted.sweep.id)


def test_a_retried_trial_starts_with_a_clean_slate(session) -> None:
    submitted = submit(session)
    train_all(session, submitted, outcome=Outcome.FAILED)
    again = sweeps.retry(session, sweep_id=submitted.sweep.id)
    item = trials.page(session, sweep_id=again.sweep.id, limit=1).items[0]
    assert (item.error, item.attempts, item.finished_at, item.outcome) == (None, 0, None, None)
    assert trials.curve(session, trial_id=item.id).points == []


@pytest.mark.parametrize("verb", [sweeps.cancel, sweeps.retry, sweeps.get])
def test_a_sweep_that_is_not_there_is_said_not_to_be(session, verb) -> None:
    with pytest.raises(NotFound, match="no sweep 99"):
        verb(session, sweep_id=99)
