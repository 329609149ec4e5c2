"""What waits, told to workers: the only sender of messages, and the reaper, which sends again.

A message is a hint that work waits; the database knows what work.
"""

import logging
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

import redis
from celery import Celery
from kombu.exceptions import KombuError
from sqlalchemy.orm import Session

from backend.db import PASSING_FAULTS, reading, reason, transaction
from backend.errors import NotFound, Unavailable
from backend.services import maintenance, offers, shards, sweeps, workers
from backend.services.errands import REPLAYS, Errands
from backend.services.shards import QUEUES, Announcement
from backend.services.timings import RACES
from backend.settings import Settings, get_settings
from ib_core.errors import IBError

log = logging.getLogger(__name__)

RUN_SHARD = "etascope.run_shard"
RUN_TIMING = "etascope.run_timing"
RUN_REPLAY = "etascope.run_replay"
#: Keeps our keys apart when a team's Redis serves other programs too.
KEY_PREFIX = "etascope."
#: A request must not hang because the broker does.
CONNECT_SECONDS, ANSWER_SECONDS = 1.0, 2.0
#: What is written to see whether it can be, and how long it stays.
PROBE, PROBE_SECONDS = "probe", 60

SENDING: dict[str, Any] = {
    "broker_connection_timeout": CONNECT_SECONDS,
    "broker_connection_retry": False,
    "broker_transport_options": {
        "global_keyprefix": KEY_PREFIX,
        "socket_connect_timeout": CONNECT_SECONDS,
        "socket_timeout": ANSWER_SECONDS,
        "max_retries": 0,
    },
    "task_publish_retry": False,
    "task_ignore_result": True,
    "task_serializer": "json",
    "accept_content": ["json"],
}


class Queue:
    """Tells workers about shards, steps to be timed, and trials to be replayed."""

    def __init__(self, broker_url: str) -> None:
        self._app = Celery("etascope", broker=broker_url, set_as_current=False)
        self._app.conf.update(SENDING)

    def enqueue(self, shard_ids: Sequence[int]) -> int:
        """Announce new, committed shards; return how many messages were sent.

        With the broker away the shards simply stay queued, and the reaper announces them later.
        """
        if not shard_ids:
            return 0
        with transaction() as session:
            announcements = shards.announce(session, shard_ids=shard_ids)
        return self.announce(announcements)

    def announce(self, announcements: Sequence[Announcement]) -> int:
        """Send what has been noted as sent, or take the note back; return how many were sent."""
        try:
            self.send(announcements)
        except Unavailable as error:
            log.warning("%s %d shards stay queued.", error.message, len(announcements))
            with transaction() as session:
                shards.mark_unsent(session, shard_ids=[item.shard_id for item in announcements])
            return 0
        return len(announcements)

    def send(self, announcements: Sequence[Announcement]) -> None:
        """Send one message a shard.

        Raises:
            Unavailable: The broker does not take them.
        """
        self._send(RUN_SHARD, [(item.shard_id, item.queue) for item in announcements])

    def _send(self, name: str, numbers: Sequence[tuple[int, str]]) -> None:
        if not numbers:
            return
        with _reachable(), self._app.producer_pool.acquire(block=True, timeout=2) as producer:
            for number, queue in numbers:
                self._app.send_task(name, args=[number], queue=queue, producer=producer)

    def plan_rounds(self) -> int:
        """Plan the rounds of searches that are due, and announce them; return how many shards.

        One that cannot be planned ends: it would only fail again.
        """
        with reading() as session:
            due = sweeps.due_rounds(session)
        sent = 0
        for sweep_id in due:
            try:
                with transaction() as session:
                    shard_ids = sweeps.plan_round(session, sweep_id=sweep_id)
            except NotFound:  # deleted meanwhile
                continue
            except IBError as error:
                log.warning("Sweep %d searches no further: %s", sweep_id, error.message)
                with transaction() as session:
                    sweeps.end_search(session, sweep_id=sweep_id)
                continue
            sent += self.enqueue(shard_ids)
        return sent

    def announce_timings(self, depths: Mapping[str, int] | None = None) -> int:
        """Announce the races of steps that are due; return how many messages were sent."""
        return self._announce_errands(RUN_TIMING, RACES, REPLAYS, depths)

    def announce_replays(self, depths: Mapping[str, int] | None = None) -> int:
        """Announce the replays that are due; return how many messages were sent."""
        return self._announce_errands(RUN_REPLAY, REPLAYS, RACES, depths)

    def _announce_errands(
        self, name: str, errands: Errands, others: Errands, depths: Mapping[str, int] | None
    ) -> int:
        with transaction() as session:
            beside = others.announced(session) + Counter(shards.announced(session))
            found = errands.due(session, depths=depths, beside=beside)
        try:
            self._send(name, found)
        except Unavailable as error:
            log.warning("%s %d errands stay queued.", error.message, len(found))
            with transaction() as session:
                errands.mark_unsent(session, ids=[id for id, _ in found])
            return 0
        return len(found)

    def depths(self, *special: str) -> dict[str, int]:
        """Return how many messages wait in each queue, these special ones included.

        Raises:
            Unavailable: The broker does not answer.
        """
        with _reachable(), self._app.connection_for_write() as connection:
            client = connection.default_channel.client
            return {queue: int(client.llen(queue)) for queue in (*QUEUES, *special)}

    def why_unavailable(self) -> str | None:
        """Return why the broker cannot be used; None if it can: one on a full disk still reads."""
        try:
            with _reachable(), self._app.connection_for_write() as connection:
                connection.default_channel.client.set(PROBE, 1, ex=PROBE_SECONDS)
        except Unavailable as error:
            return error.message
        return None


@contextmanager
def _reachable() -> Iterator[None]:
    try:
        yield
    except (KombuError, redis.RedisError, OSError) as error:
        does = "takes nothing" if isinstance(error, redis.ResponseError) else "does not answer"
        raise Unavailable(
            f"The broker {does} ({error}).",
            hint="Work stays queued and starts by itself once the broker is back.",
        ) from error


@lru_cache(maxsize=1)
def get_queue() -> Queue:
    """Return this process's queue."""
    return Queue(get_settings().broker)


# --- What is due is announced again, and what was leased to the dead is taken back

#: How often what need not be kept is deleted.
CLEANING_SECONDS = 3600.0
#: How long `pause` waits for a pass to end.
PAUSE_SECONDS = 5.0


class Reaper:
    """A thread of the web process and of every worker's parent; several may run at once.

    It works from the database alone, so it also repairs submissions that found the broker away,
    and a broker that came back empty.
    """

    def __init__(self, settings: Settings, queue: Queue | None = None) -> None:
        self._settings = settings
        self._queue = queue or Queue(settings.broker)
        self._ended = threading.Event()
        self._pass = threading.Lock()
        self._paused = False
        self._patient_until = 0.0
        self._clean_at = 0.0
        self._broker_away = False
        self._thread = threading.Thread(target=self._run, name="reaper", daemon=True)

    def start(self) -> None:
        """Begin to look every few seconds."""
        self._thread.start()

    def stop(self) -> None:
        """End after the pass that is under way."""
        self._ended.set()

    def pause(self) -> None:
        """Wait until no pass is under way, and let none begin."""
        self._paused = self._pass.acquire(timeout=PAUSE_SECONDS)

    def go_on(self) -> None:
        """End a pause."""
        if self._paused:
            self._paused = False
            self._pass.release()

    def _run(self) -> None:
        while not self._ended.wait(self._settings.reap_seconds):
            with self._pass:
                self._run_safely()

    def _run_safely(self) -> None:
        try:
            self.run_once()
        except PASSING_FAULTS as error:
            # Workers could not renew their leases either; they get a whole one to do so.
            self._patient_until = time.monotonic() + self._settings.lease_seconds
            log.warning("Cannot look for due work: %s", reason(error))
        except Exception:
            log.exception("Looking for due work failed.")

    def run_once(self) -> int:
        """Look once; return how many shards were announced."""
        self._forget_workers()
        with reading() as session:
            pending = shards.pending(session)
            errands = RACES.pending(session) or REPLAYS.pending(session)
            searching = sweeps.due_rounds(session)
        if errands:
            self._announce_errands()
        if searching:
            self._queue.plan_rounds()
        if pending.expired and time.monotonic() >= self._patient_until:
            with transaction() as session:
                lost = shards.expire(session)
            if lost:
                log.warning("Took %d shards back from silent workers.", lost)
        return self._announce(pending.queues) if pending.waiting or pending.expired else 0

    def _announce(self, special: Sequence[str]) -> int:
        try:
            depths = self._queue.depths(*special)
        except Unavailable as error:
            if not self._broker_away:
                log.warning("%s Work stays queued.", error.message)
            self._broker_away = True
            return 0
        self._broker_away = False
        with transaction() as session:
            due = shards.due(session, depths=depths)
        return self._queue.announce(due)

    def _announce_errands(self) -> None:
        with reading() as session:
            queues = RACES.queues(session) | REPLAYS.queues(session)
        try:
            depths = self._queue.depths(*sorted(queues.difference(QUEUES)))
        except Unavailable:  # said where shards are announced, and the rows stay queued
            return
        self._queue.announce_timings(depths)
        self._queue.announce_replays(depths)

    def _forget_workers(self) -> None:
        with reading() as session:
            dead = workers.find_dead(session)
        if dead:
            with transaction() as session:
                self._bury(session, dead)
        if time.monotonic() >= self._clean_at:
            self._clean_at = time.monotonic() + CLEANING_SECONDS
            with transaction() as session:
                gone = maintenance.clean(session, settings=self._settings)
            if gone:
                log.info("Not kept any longer: %s.", gone)

    def _bury(self, session: Session, dead: list[str]) -> None:
        for name, shard_id in workers.leases(session, names=dead):
            log.warning("Worker %s died while it trained shard %d.", name, shard_id)
            error = f"Worker {name} died while it trained this."
            shards.abandon(session, shard_id=shard_id, worker=name, error=error)
        RACES.abandon(session, workers=dead)
        REPLAYS.abandon(session, workers=dead)
        for name in dead:
            offers.leave(session, worker=name)
            workers.remove(session, name=name)
