"""The reaper: whatever was lost is found, and nobody is hurried after an outage."""

import os
import signal
import subprocess
import sys
import time

import pytest
from sqlalchemy import event, update
from sqlalchemy.exc import OperationalError

from backend.db import clock, get_engine, reading, transaction
from backend.models import ShardRow, ShardState, TrialRow
from backend.queue import Reaper, get_queue
from backend.schemas import TrialState
from backend.services import sweeps, workers
from backend.services.workers import Worker
from backend.settings import get_settings
from ib_core.sweep.result import Outcome
from tests.factories import claim, submit, train
from tests.servers import BrokerServer, wait_for


@pytest.fixture
def reaper(database: str, broker: BrokerServer) -> Reaper:
    return Reaper(get_settings(), get_queue())


def new_shard() -> int:
    with transaction() as session:
        return submit(session).shard_ids[0]


def state(shard_id: int) -> ShardState:
    with reading() as session:
        return session.get_one(ShardRow, shard_id).state


def run_out(shard_id: int) -> None:
    with transaction() as session:
        ended = update(ShardRow).where(ShardRow.id == shard_id)
        session.execute(ended.values(lease_until=clock(-1)))


def test_a_submission_that_found_the_broker_away_is_announced_later(
    reaper: Reaper, broker: BrokerServer
) -> None:
    broker.kill()
    shard_id = new_shard()
    assert get_queue().enqueue([shard_id]) == 0
    assert reaper.run_once() == 0
    broker.start()
    assert reaper.run_once() == 1
    assert reaper.run_once() == 0


def test_a_broker_that_came_back_empty_is_told_everything_again(
    reaper: Reaper, broker: BrokerServer
) -> None:
    shard_id = new_shard()
    assert get_queue().enqueue([shard_id]) == 1
    broker.kill()
    broker.start()
    with transaction() as session:
        session.execute(update(ShardRow).values(sent_at=clock(-10)))
    assert reaper.run_once() == 1
    assert get_queue().depths()["cpu"] == 1


def test_a_silent_workers_shard_is_taken_back(reaper: Reaper) -> None:
    shard_id = new_shard()
    with transaction() as session:
        claim(session, shard_id, "silent")
    reaper.run_once()
    assert state(shard_id) is ShardState.RUNNING
    run_out(shard_id)
    reaper.run_once()
    assert state(shard_id) is ShardState.QUEUED


def test_a_killed_workers_shard_is_taken_back_without_waiting_for_its_lease(
    reaper: Reaper,
) -> None:
    shard_id = new_shard()
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    place = {"host": os.uname().nodename, "namespace": workers.local_namespace()}
    with transaction() as session:
        workers.register(session, worker=Worker("dead", pid=ended.pid, device="cpu", **place))
        claim(session, shard_id, "dead")
    reaper.run_once()
    assert state(shard_id) is ShardState.QUEUED
    with reading() as session:
        assert workers.list_all(session) == []
        assert "died" in session.get_one(ShardRow, shard_id).message


def test_after_an_outage_workers_get_time_to_renew_their_leases(reaper: Reaper) -> None:
    shard_id = new_shard()
    with transaction() as session:
        claim(session, shard_id)
    run_out(shard_id)

    def refuse(*_: object) -> None:
        raise OperationalError("SELECT", {}, Exception("the database is away"))

    event.listen(get_engine(), "before_cursor_execute", refuse)
    reaper._run_safely()
    event.remove(get_engine(), "before_cursor_execute", refuse)
    reaper._run_safely()
    assert state(shard_id) is ShardState.RUNNING
    reaper._patient_until = 0.0
    reaper._run_safely()
    assert state(shard_id) is ShardState.QUEUED


#: Plans a round and dies before it is stored, as a worker does whose machine loses power.
DIES = """
import os, signal, sys
from backend.db import transaction
from backend.services import sweeps
with transaction() as session:
    assert sweeps.plan_round(session, sweep_id=int(sys.argv[1]))
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_round_whose_planner_was_killed_is_planned_by_the_reaper(reaper: Reaper) -> None:
    search = {"find": "edge", "from": 0.1, "to": 10, "within": 1.5}
    with transaction() as session:
        made = submit(session, search=search)
        for shard_id in made.shard_ids:
            train(session, shard_id, outcome=Outcome.DIVERGED)
        session.execute(update(TrialRow).where(TrialRow.lr < 1).values(state=TrialState.COMPLETED))
    command = [sys.executable, "-c", DIES, str(made.sweep.id)]
    died = subprocess.run(command, env={**os.environ, "PYTHONPATH": os.getcwd()}, check=False)
    assert died.returncode == -signal.SIGKILL
    reaper.run_once()
    with reading() as session:
        found = sweeps.get(session, sweep_id=made.sweep.id)
    assert found.search is not None
    assert found.search.rounds == [12, 4]
    assert found.progress["queued"] == 4
    announced = get_queue().depths()["cpu"]
    assert announced >= 1
    reaper.run_once()
    assert get_queue().depths()["cpu"] == announced


def test_an_idle_pass_writes_nothing(reaper: Reaper) -> None:
    reaper.run_once()
    statements: list[str] = []

    def note(_connection, _cursor, statement, *_rest) -> None:
        statements.append(statement.split()[0])

    event.listen(get_engine(), "before_cursor_execute", note)
    reaper.run_once()
    event.remove(get_engine(), "before_cursor_execute", note)
    assert set(statements) <= {"SELECT", "BEGIN"}


def test_it_works_as_a_thread_and_stops(reaper: Reaper, monkeypatch) -> None:
    monkeypatch.setattr(get_settings(), "reap_seconds", 0.05)
    reaper.start()
    new_shard()
    wait_for(lambda: get_queue().depths()["cpu"] == 1, what="the shard to be announced")
    reaper.stop()
    reaper._thread.join(5)
    assert not reaper._thread.is_alive()


def test_a_pause_waits_for_the_pass_under_way_and_holds_the_next(reaper: Reaper) -> None:
    reaper._settings = reaper._settings.model_copy(update={"reap_seconds": 0.01})
    reaper.start()
    reaper.pause()
    new_shard()
    time.sleep(0.3)
    assert get_queue().depths()["cpu"] == 0
    reaper.go_on()
    wait_for(lambda: get_queue().depths()["cpu"] == 1, what="the shard to be announced")
    reaper.stop()
    reaper._thread.join(5)
