"""Faults, made for real: killed processes, a broker and databases that come and go."""

import os
import signal
import sqlite3
import time
from collections.abc import Callable
from typing import Any

import psutil
import pytest
from sqlalchemy import select

from backend.db import reading, transaction
from backend.models import ShardRow, TrialRow
from backend.queue import get_queue
from backend.schemas import SweepRead, SweepState
from backend.services import maintenance, sweeps
from backend.services.shards import Announcement
from tests import factories
from tests.servers import BrokerServer, PostgresServer, wait_for

#: A few seconds of training, in one shard.
LONG: dict[str, Any] = {"methods": ("ib",), "learning_rates": (0.1, 1.0), "epochs": 150}


def send(**changes: Any) -> int:
    """Submit a sweep as the web process does; return its id."""
    with transaction() as session:
        submitted = factories.submit(session, **(LONG | changes))
    get_queue().enqueue(submitted.shard_ids)
    return submitted.sweep.id


def seen(sweep_id: int) -> SweepRead:
    with reading() as session:
        return sweeps.get(session, sweep_id=sweep_id)


def attempts() -> list[int]:
    with reading() as session:
        return list(session.scalars(select(ShardRow.attempts).order_by(ShardRow.id)))


def wait_until_running(sweep_id: int) -> None:
    running = lambda: seen(sweep_id).progress["running"]  # noqa: E731
    wait_for(running, seconds=60, what="training to begin", every=0.05)


def assert_done_once(sweep_id: int, seconds: float = 120.0) -> None:
    """The sweep completes, each trial has one result, and nothing contradicts anything."""
    ended = lambda: seen(sweep_id).state not in ("queued", "running")  # noqa: E731
    wait_for(ended, seconds=seconds, what="the sweep to end", every=0.1)
    assert seen(sweep_id).state is SweepState.COMPLETED, seen(sweep_id)
    closed = lambda: not _open_shards()  # noqa: E731
    wait_for(closed, what="the shards to be closed")
    with reading() as session:
        assert maintenance.check(session) == []


def _open_shards() -> list[int]:
    with reading() as session:
        return list(
            session.scalars(select(ShardRow.id).where(ShardRow.state.in_(("queued", "running"))))
        )


@pytest.fixture(params=["sqlite", "postgresql"])
def service(request: pytest.FixtureRequest, broker: BrokerServer) -> BrokerServer:
    """A database of each kind and a broker."""
    request.getfixturevalue(f"{request.param}_database")
    return broker


@pytest.fixture
def on_sqlite(sqlite_database: str, broker: BrokerServer) -> BrokerServer:
    """An SQLite database and a broker."""
    del sqlite_database
    return broker


Start = Callable[..., Any]


def test_a_worker_killed_in_the_middle_of_a_shard(service, start_worker: Start) -> None:
    worker = start_worker()
    sweep_id = send()
    wait_until_running(sweep_id)
    worker.kill()
    start_worker()
    assert_done_once(sweep_id)
    assert attempts() == [2]


def test_a_training_process_killed_under_its_parent(on_sqlite, start_worker: Start) -> None:
    worker = start_worker()
    sweep_id = send()
    wait_until_running(sweep_id)
    os.kill(worker.child(), signal.SIGKILL)
    assert_done_once(sweep_id)
    assert worker.process.poll() is None
    assert attempts() == [2]


def assert_given_back(sweep_id: int) -> None:
    """The sweep's trials wait again, and no attempt was burnt."""
    waiting = lambda: not seen(sweep_id).progress["running"]  # noqa: E731
    wait_for(waiting, seconds=10, what="the shard to be given back")
    assert seen(sweep_id).progress["queued"] == 2
    assert set(attempts()) == {0}


@pytest.mark.parametrize("everybody", [False, True], ids=["parent", "whole group"])
def test_a_worker_told_to_stop_gives_its_shard_back_within_seconds(
    on_sqlite, start_worker: Start, everybody: bool
) -> None:
    worker = start_worker()
    sweep_id = send(epochs=10_000, learning_rates=(0.1,))
    wait_until_running(sweep_id)
    time.sleep(0.5)
    began = time.monotonic()
    if everybody:  # as systemd does, and a terminal's Ctrl-C
        os.killpg(worker.process.pid, signal.SIGTERM)
    worker.stop()
    assert time.monotonic() - began < 15
    assert_given_back(sweep_id)


def test_a_training_process_without_its_parent_does_not_train_on(
    on_sqlite, start_worker: Start
) -> None:
    worker = start_worker()
    child = worker.child()
    sweep_id = send(epochs=10_000, learning_rates=(0.1,))
    wait_until_running(sweep_id)
    time.sleep(0.5)
    os.kill(worker.process.pid, signal.SIGKILL)
    assert_given_back(sweep_id)
    wait_for(lambda: not psutil.pid_exists(child), seconds=15, what="the orphan to end")


def test_a_training_process_told_to_stop_gives_back_one_shard_and_works_on(
    on_sqlite, start_worker: Start
) -> None:
    worker = start_worker()
    sweep_id = send(epochs=400)
    wait_until_running(sweep_id)
    os.kill(worker.child(), signal.SIGTERM)
    assert_done_once(sweep_id)
    assert attempts() == [1]


def test_a_broker_killed_while_the_worker_is_idle(on_sqlite, start_worker: Start) -> None:
    start_worker()
    on_sqlite.kill()
    time.sleep(2.0)
    on_sqlite.start()
    assert_done_once(send(epochs=1))


def test_a_broker_killed_while_a_shard_trains(on_sqlite, start_worker: Start) -> None:
    start_worker()
    first = send()
    wait_until_running(first)
    on_sqlite.kill()
    second = send(seeds=(3,))  # finds the broker away
    time.sleep(1.0)
    on_sqlite.start()  # and empty
    assert_done_once(first)
    assert_done_once(second)
    assert attempts() == [1, 1]


def test_a_broker_that_is_away_when_the_worker_starts(on_sqlite, start_worker: Start) -> None:
    on_sqlite.kill()
    sweep_id = send(epochs=1)
    start_worker()
    time.sleep(1.0)
    on_sqlite.start()
    assert_done_once(sweep_id)


def test_one_shard_delivered_to_two_workers(service, start_worker: Start) -> None:
    start_worker()
    start_worker()
    sweep_id = send()
    with reading() as session:
        shard_id = session.scalars(select(ShardRow.id)).one()
    for _ in range(4):
        get_queue().send([Announcement(shard_id, "cpu")])
    assert_done_once(sweep_id)
    assert attempts() == [1]
    with reading() as session:
        assert set(session.scalars(select(TrialRow.attempts))) == {1}


def test_cancelling_takes_effect_within_five_seconds(on_sqlite, start_worker: Start) -> None:
    start_worker()
    sweep_id = send(epochs=10_000, learning_rates=(0.1,))
    wait_until_running(sweep_id)
    with transaction() as session:
        sweeps.cancel(session, sweep_id=sweep_id)
    stopped = lambda: not seen(sweep_id).progress["running"]  # noqa: E731
    wait_for(stopped, seconds=5, what="training to stop")
    assert seen(sweep_id).progress["cancelled"] == 2
    next_one = send(epochs=1, seeds=(5,))
    assert_done_once(next_one)


@pytest.mark.slow
def test_sqlite_locked_for_longer_than_a_lease(on_sqlite, start_worker: Start) -> None:
    start_worker()
    sweep_id = send()
    wait_until_running(sweep_id)
    with reading() as session:
        file = session.get_bind().url.database  # type: ignore[union-attr]
    blocker = sqlite3.connect(str(file), isolation_level=None)
    blocker.execute("BEGIN IMMEDIATE")
    time.sleep(10)
    blocker.execute("COMMIT")
    blocker.close()
    assert_done_once(sweep_id)


def test_postgresql_restarted_while_a_shard_trains(
    postgresql_database: str,
    broker: BrokerServer,
    postgres_server: PostgresServer,
    start_worker: Start,
) -> None:
    start_worker()
    sweep_id = send()
    wait_until_running(sweep_id)
    postgres_server.stop()
    time.sleep(2.0)
    postgres_server.start()
    assert_done_once(sweep_id)
    assert attempts() == [1]


POISON = """
import os, signal
from worker import app

honest = app.TrainingProcess.run

def run(self, shard_id):
    from worker import training
    train = training.run_trials
    def run_trials(specs, **options):
        if any(spec.lr == 3.0 for spec in specs):
            os.kill(os.getpid(), signal.SIGKILL)
        return train(specs, **options)
    training.run_trials = run_trials
    honest(self, shard_id)

app.TrainingProcess.run = run

from worker.main import serve
serve()
"""


def test_a_trial_that_kills_its_worker_fails_alone(on_sqlite, start_worker: Start) -> None:
    start_worker("-c", POISON)
    sweep_id = send(methods=("eb",), learning_rates=(0.1, 1.0, 3.0), seeds=(1,), epochs=1)
    ended = lambda: seen(sweep_id).state not in ("queued", "running")  # noqa: E731
    wait_for(ended, seconds=90, what="the sweep to end", every=0.1)
    found = seen(sweep_id)
    assert found.state is SweepState.FAILED
    assert (found.progress["completed"], found.progress["failed"]) == (2, 1)
    assert "died while it trained this" in found.messages[0]
