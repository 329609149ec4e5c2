"""Heartbeats: by the database's clock, through faults, and never for a hung process."""

import os
import threading
import time
from collections.abc import Iterator
from math import inf
from typing import Any

import pytest
from sqlalchemy import event, select
from sqlalchemy.exc import OperationalError

from backend.db import clock, get_engine, reading, transaction
from backend.models import ShardRow, ShardState
from backend.services import shards, workers
from backend.services.shards import Claim
from backend.services.workers import Worker
from backend.settings import get_settings
from ib_core.announced import offer_key
from tests.announced import method_manifest
from tests.factories import claim, submit
from tests.servers import wait_for
from worker.reporter import HUNG, Heartbeat, Reporter, StopFlag

ONE = Worker("one", "host", 1, "cpu")


@pytest.fixture
def taken(database: str, quick: None) -> Claim:
    with transaction() as session:
        return claim(session, submit(session).shard_ids[0])


@pytest.fixture
def reporter(taken: Claim) -> Reporter:
    return Reporter(taken, stopping=StopFlag(), flush_seconds=1.0)


@pytest.fixture
def heartbeat(taken: Claim) -> Iterator[Heartbeat]:
    settings = get_settings().model_copy(update={"heartbeat_seconds": 0.1})
    heartbeat = Heartbeat(ONE, settings, stopping=StopFlag())
    yield heartbeat
    if heartbeat._thread.is_alive():
        heartbeat.stop()


def shard() -> ShardRow:
    with reading() as session:
        return session.scalars(select(ShardRow)).one()


def known() -> list[str]:
    with reading() as session:
        return [worker.name for worker in workers.list_all(session)]


def seconds_left() -> float:
    with reading() as session:
        until, now = session.execute(select(ShardRow.lease_until, clock())).one()
        return (until - now).total_seconds()


def test_a_process_signs_on_and_off(heartbeat: Heartbeat) -> None:
    heartbeat.start()
    wait_for(lambda: known() == ["one"], what="the arrival")
    heartbeat.stop()
    assert known() == []


def test_a_lease_is_renewed_for_as_long_as_training_lasts(
    heartbeat: Heartbeat, reporter: Reporter
) -> None:
    heartbeat.start()
    with heartbeat.during(reporter):
        reporter.fraction, reporter.trouble = 0.25, "the database is slow"
        wait_for(lambda: shard().progress == 0.25, what="a heartbeat")
        assert shard().message == "the database is slow"
        before = shard().lease_until
        wait_for(lambda: shard().lease_until > before, what="the next heartbeat")
    assert 3.0 < seconds_left() <= 4.0


def test_the_workers_own_clock_does_not_matter(
    heartbeat: Heartbeat, reporter: Reporter, monkeypatch
) -> None:
    """A machine whose clock is a day wrong neither loses its shard nor keeps it for ever."""
    for skew in (-86_400.0, 86_400.0):
        real = time.time
        monkeypatch.setattr(time, "time", lambda skew=skew, real=real: real() + skew)
        with heartbeat.during(reporter):
            heartbeat.beat()
        assert 3.0 < seconds_left() <= 4.0
        with transaction() as session:
            assert shards.expire(session) == 0
        monkeypatch.undo()


def test_a_lost_lease_is_noticed(heartbeat: Heartbeat, reporter: Reporter) -> None:
    with heartbeat.during(reporter):
        assert not reporter.lost
        with transaction() as session:
            session.query(ShardRow).update({"lease": 99})
        heartbeat.beat()
        assert reporter.lost


def test_a_forgotten_worker_introduces_itself_again(heartbeat: Heartbeat) -> None:
    heartbeat.beat()
    with transaction() as session:
        workers.remove(session, name="one")
    heartbeat.beat()
    assert known() == ["one"]


def test_a_worker_that_is_to_stop_says_so(heartbeat: Heartbeat) -> None:
    heartbeat._stopping.set()
    heartbeat.beat()
    with reading() as session:
        assert workers.list_all(session)[0].state == "stopping"


def test_beats_go_on_after_the_database_was_away(heartbeat: Heartbeat) -> None:
    away = [True]

    def refuse(*_: object) -> None:
        if away[0]:
            raise OperationalError("", {}, Exception("away"))

    event.listen(get_engine(), "before_cursor_execute", refuse)
    heartbeat.start()
    time.sleep(0.3)
    away[0] = False
    wait_for(lambda: known() == ["one"], what="the arrival")
    event.remove(get_engine(), "before_cursor_execute", refuse)


def test_what_cannot_be_announced_is_left_out_and_in_nobodys_way(
    heartbeat: Heartbeat, reporter: Reporter
) -> None:
    endless = method_manifest(name="bad.py:sgd", options={"properties": {"wd": {"maximum": inf}}})
    sound = method_manifest()
    heartbeat.bring([endless, sound])
    assert heartbeat.offers == (offer_key(sound),)
    heartbeat.start()
    wait_for(lambda: known() == ["one"], what="the arrival")
    with heartbeat.during(reporter):  # another sweep's shard
        reporter.fraction = 0.25
        wait_for(lambda: shard().progress == 0.25, what="a heartbeat")
    with reading() as session:
        assert workers.live_offers(session).keys == {offer_key(sound)}


def test_what_is_brought_while_a_beat_is_on_its_way_is_announced(
    heartbeat: Heartbeat, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, begun, go_on = workers.beat, threading.Event(), threading.Event()

    def slow(*args: Any, **options: Any) -> bool:
        done = real(*args, **options)
        if not begun.is_set() and threading.current_thread() is heartbeat._thread:
            begun.set()
            go_on.wait(10)
        return done

    heartbeat.beat()  # it is known, so that beats need not introduce it
    monkeypatch.setattr(workers, "beat", slow)
    heartbeat.start()
    assert begun.wait(10)
    bringing = threading.Thread(target=heartbeat.bring, args=([method_manifest()],))
    bringing.start()
    time.sleep(0.2)
    go_on.set()
    bringing.join()
    with reading() as session:
        assert workers.live_offers(session).keys == {offer_key(method_manifest())}


def test_beats_go_on_after_a_fault_that_nobody_expected(
    heartbeat: Heartbeat, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, faults = workers.beat, iter([TypeError("odd")] * 3)

    def beat(*args: Any, **options: Any) -> bool:
        for fault in faults:
            raise fault
        return real(*args, **options)

    monkeypatch.setattr(workers, "beat", beat)
    heartbeat.start()
    wait_for(lambda: known() == ["one"], what="the arrival")
    assert heartbeat._thread.is_alive()


def test_a_hung_process_gives_its_shard_back_and_ends(
    heartbeat: Heartbeat, reporter: Reporter, monkeypatch
) -> None:
    codes: list[int] = []
    monkeypatch.setattr(os, "_exit", codes.append)
    reporter.last_seen -= get_settings().stall_seconds + 1
    with heartbeat.during(reporter):
        pass
    assert codes[0] == HUNG
    row = shard()
    assert row.state is ShardState.QUEUED
    assert "no progress" in str(row.message)


def test_waiting_for_the_database_after_training_is_not_hanging(
    heartbeat: Heartbeat, reporter: Reporter, monkeypatch
) -> None:
    codes: list[int] = []
    monkeypatch.setattr(os, "_exit", codes.append)
    reporter.last_seen -= get_settings().stall_seconds + 1
    reporter._closed.set()
    with heartbeat.during(reporter):
        pass
    assert codes == []
