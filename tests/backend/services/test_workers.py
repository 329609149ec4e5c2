"""Workers: who lives, who is silent, whose process is gone."""

import os
import subprocess
import sys

import pytest
from sqlalchemy import update

from backend.db import clock
from backend.models import WorkerRow
from backend.services import workers
from backend.services.workers import Worker
from tests.factories import claim, submit


def here(pid: int, name: str = "one", **fields) -> Worker:
    place = {"host": os.uname().nodename, "namespace": workers.local_namespace()}
    return Worker(name=name, pid=pid, device="cpu", **(place | fields))


def silent_for(session, seconds: float) -> None:
    session.execute(update(WorkerRow).values(heartbeat_at=clock(-seconds)))


def test_a_worker_introduces_itself(session) -> None:
    worker = Worker("one", "host", 7, "cuda", "A100", ("gpu", "cpu"), threads=4, version="1.0")
    workers.register(session, worker=worker)
    (read,) = workers.list_all(session)
    assert (read.name, read.device, read.device_name) == ("one", "cuda", "A100")
    assert (read.queues, read.version) == (["gpu", "cpu"], "1.0")
    assert (read.alive, read.state, read.trials_per_minute) == (True, "idle", None)


def test_a_worker_that_comes_back_starts_anew(session) -> None:
    workers.register(session, worker=here(1))
    workers.credit(session, name="one", trials=5, seconds=60)
    workers.beat(session, name="one", shard_id=None, stopping=True)
    workers.register(session, worker=here(2))
    (read,) = workers.list_all(session)
    assert (read.trials_done, read.state) == (0, "idle")


def test_a_busy_worker_shows_its_shard(session) -> None:
    workers.register(session, worker=here(1))
    taken = claim(session, submit(session).shard_ids[0])
    assert workers.beat(session, name="one", shard_id=taken.shard_id)
    workers.credit(session, name="one", trials=30, seconds=120)
    (read,) = workers.list_all(session)
    assert (read.state, read.current_shard, read.trials) == ("busy", taken.shard_id, 12)
    assert read.trials_per_minute == pytest.approx(15)


def test_a_worker_nobody_knows_is_told_so(session) -> None:
    assert not workers.beat(session, name="ghost", shard_id=None)


def test_a_silent_worker_is_shown_but_does_not_count(session) -> None:
    workers.register(session, worker=here(1))
    silent_for(session, 60)
    (read,) = workers.list_all(session)
    assert (read.alive, read.state) == (False, "silent")
    assert workers.live_by_device(session) == {}


def test_a_stopping_worker_gets_no_new_work(session) -> None:
    workers.register(session, worker=here(1))
    assert workers.live_by_device(session) == {"cpu": 1}
    workers.beat(session, name="one", shard_id=None, stopping=True)
    assert workers.live_by_device(session) == {}
    assert workers.list_all(session)[0].state == "stopping"


def test_workers_silent_for_a_day_are_forgotten(session) -> None:
    workers.register(session, worker=here(1))
    silent_for(session, 3600)
    assert workers.forget_silent(session) == 0
    silent_for(session, 25 * 3600)
    assert workers.forget_silent(session) == 1
    assert workers.list_all(session) == []


def test_a_process_that_is_gone_is_found_dead_at_once(session) -> None:
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    workers.register(session, worker=here(ended.pid, "dead"))
    workers.register(session, worker=here(os.getpid(), "alive"))
    assert workers.find_dead(session) == ["dead"]
    taken = claim(session, submit(session).shard_ids[0], "dead")
    assert workers.leases(session, names=["dead"]) == [("dead", taken.shard_id)]


def test_a_killed_process_counts_as_dead_before_its_parent_has_buried_it(session) -> None:
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    workers.register(session, worker=here(child.pid))
    assert workers.find_dead(session) == []
    child.kill()
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    assert workers.find_dead(session) == ["one"]
    child.wait()


@pytest.mark.parametrize("elsewhere", [{"host": "another"}, {"namespace": "another container"}])
def test_a_process_id_elsewhere_says_nothing_here(session, elsewhere) -> None:
    workers.register(session, worker=here(2**22 + 1, **elsewhere))
    assert workers.find_dead(session) == []
