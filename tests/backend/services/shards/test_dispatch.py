"""Which shards are announced, where, and which are taken back."""

import pytest
from sqlalchemy import update

from backend.db import clock
from backend.models import ShardRow, ShardState, WorkerRow
from backend.services import shards, sweeps, workers
from backend.services.shards import Announcement, dispatch, planning
from backend.services.workers import Worker
from ib_core.sweep.shard import PlannedShard
from tests.factories import claim, submit, train_all

FULL = {"cpu": 1, "gpu": 1}
EMPTY = {"cpu": 0, "gpu": 0}


def arrive(session, device: str = "cpu") -> None:
    workers.register(session, worker=Worker(f"a {device}", "host", 1, device))


def sent_ago(session, seconds: float) -> None:
    session.execute(update(ShardRow).values(sent_at=clock(-seconds)))


def test_new_shards_are_due_once(session) -> None:
    submitted = submit(session)
    assert shards.due(session) == [Announcement(submitted.shard_ids[0], "cpu")]
    assert shards.due(session) == []


def test_what_the_broker_did_not_take_is_due_again(session) -> None:
    (item,) = [submit(session) and shards.due(session)[0]]
    shards.mark_unsent(session, shard_ids=[item.shard_id])
    assert shards.due(session) == [item]


def test_a_message_lost_by_a_broker_that_restarted_is_sent_again(session) -> None:
    submit(session)
    first = shards.due(session)
    sent_ago(session, dispatch.LOST_SECONDS + 1)
    assert shards.due(session, depths=FULL) == []  # it may still be in the queue
    assert shards.due(session, depths=EMPTY) == first


def test_a_message_just_sent_is_not_lost_because_the_queue_is_empty(session) -> None:
    submit(session)
    shards.due(session)
    assert shards.due(session, depths=EMPTY) == []


def test_an_old_message_is_repeated_if_the_queue_is_too_short_to_hold_it(session) -> None:
    submit(session, seeds=(1,))
    submit(session, seeds=(2,))
    assert len(shards.due(session)) == 2
    sent_ago(session, 301)
    assert shards.due(session, depths={"cpu": 2, "gpu": 0}) == []
    assert len(shards.due(session, depths={"cpu": 1, "gpu": 0})) == 2


def test_without_news_of_the_broker_old_messages_are_repeated(session) -> None:
    submit(session)
    shards.due(session)
    sent_ago(session, 301)
    assert len(shards.due(session)) == 1


def test_the_broker_holds_a_bounded_number_of_messages(session, monkeypatch) -> None:
    monkeypatch.setattr(dispatch, "WINDOW", 4)
    alone = [PlannedShard((index,), 1.0, 1) for index in range(12)]
    monkeypatch.setattr(planning, "plan_shards", lambda trials, device: alone)
    made = submit(session)
    assert len(shards.announce(session, shard_ids=made.shard_ids)) == 4
    assert shards.due(session, depths=FULL) == []
    claim(session, made.shard_ids[0])
    assert [item.shard_id for item in shards.due(session, depths=FULL)] == [made.shard_ids[4]]


def test_running_and_finished_shards_are_not_announced(session) -> None:
    claim(session, submit(session, seeds=(1,)).shard_ids[0])
    train_all(session, submit(session, seeds=(2,)))
    assert shards.due(session, depths=EMPTY) == []
    assert shards.pending(session) == dispatch.Pending(waiting=False, expired=False)


@pytest.mark.parametrize(
    ("device", "live", "queue"),
    [
        ("cpu", "cuda", "cpu"),
        ("cuda", "cpu", "gpu"),
        ("auto", "cpu", "cpu"),
        ("auto", "cuda", "gpu"),
    ],
)
def test_a_shard_goes_where_its_device_is(session, device, live, queue) -> None:
    arrive(session, live)
    submit(session, device=device)
    assert [item.queue for item in shards.due(session)] == [queue]


def test_work_for_any_device_does_not_wait_for_a_gpu_that_has_gone(session) -> None:
    arrive(session, "cuda")
    submit(session)
    assert shards.due(session)[0].queue == "gpu"
    workers.remove(session, name="a cuda")
    assert [item.queue for item in shards.due(session, depths=FULL)] == ["cpu"]


def test_a_lease_in_time_is_kept_and_one_that_ended_is_not(session) -> None:
    (shard_id,) = submit(session).shard_ids
    taken = claim(session, shard_id)
    assert shards.expire(session) == 0
    session.execute(update(ShardRow).values(lease_until=clock(-0.1)))
    assert shards.pending(session).expired
    assert shards.expire(session) == 1
    assert not shards.heartbeat(session, claim=taken)
    assert "stopped answering" in session.get_one(ShardRow, shard_id).message


def test_a_heartbeat_before_anybody_noticed_saves_the_lease(session) -> None:
    (shard_id,) = submit(session).shard_ids
    taken = claim(session, shard_id)
    session.execute(update(ShardRow).values(lease_until=clock(-0.1)))
    assert shards.heartbeat(session, claim=taken, progress=0.5, message="database busy")
    assert shards.expire(session) == 0
    row = session.get_one(ShardRow, shard_id, populate_existing=True)
    assert (row.progress, row.message) == (0.5, "database busy")


@pytest.mark.parametrize("given", [-1.0, 2.0])
def test_progress_stays_a_fraction(session, given) -> None:
    taken = claim(session, submit(session).shard_ids[0])
    assert shards.heartbeat(session, claim=taken, progress=given)


def test_cancelled_work_is_not_tried_again_when_its_worker_dies(session) -> None:
    submitted = submit(session)
    claim(session, submitted.shard_ids[0])
    sweeps.cancel(session, sweep_id=submitted.sweep.id)
    session.execute(update(ShardRow).values(lease_until=clock(-1)))
    shards.expire(session)
    assert sweeps.get(session, sweep_id=submitted.sweep.id).progress["cancelled"] == 12
    assert shards.due(session) == []
    assert session.get_one(ShardRow, submitted.shard_ids[0]).state is ShardState.DONE


def test_the_queue_is_described(session) -> None:
    claim(session, submit(session, seeds=(1,)).shard_ids[0])
    submit(session, seeds=(2,), device="cuda")
    view = shards.queue_state(session)
    assert (view.depth, view.running, view.trials_queued, view.trials_running) == (1, 1, 6, 6)
    assert view.by_queue == {"cpu": 0, "gpu": 1}
    assert view.oldest_seconds >= 0


def test_an_empty_queue_is_described(session) -> None:
    view = shards.queue_state(session)
    assert (view.depth, view.running, view.oldest_seconds) == (0, 0, None)


DAY = 24 * 3600.0


def test_what_was_sent_by_a_clock_that_was_a_day_ahead_is_sent_again(session) -> None:
    submit(session)
    first = shards.due(session)
    sent_ago(session, -DAY)
    assert shards.pending(session).waiting
    assert shards.due(session, depths=EMPTY) == first
    sent_ago(session, -DAY)
    assert shards.due(session, depths={"cpu": 0}) == first


def test_a_lease_by_a_clock_that_was_a_day_ahead_does_not_last_a_day(session) -> None:
    (shard_id,) = submit(session).shard_ids
    claim(session, shard_id)
    session.execute(update(ShardRow).values(lease_until=clock(DAY)))
    assert shards.pending(session).expired
    assert shards.expire(session) == 1
    session.execute(update(ShardRow).values(not_before=clock(DAY)))
    assert shards.claim(session, shard_id=shard_id, worker="another") is not None


def test_a_worker_heard_of_a_day_ahead_is_not_alive_for_a_day(session) -> None:
    arrive(session)
    assert workers.live_by_device(session) == {"cpu": 1}
    session.execute(update(WorkerRow).values(heartbeat_at=clock(DAY)))
    assert workers.live_by_device(session) == {}
