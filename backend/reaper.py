"""Announces what is due, and takes back what was leased to the dead."""

import logging
import threading
import time
from collections.abc import Sequence

from sqlalchemy.orm import Session

from backend.db import PASSING_FAULTS, reading, reason, transaction
from backend.errors import Unavailable
from backend.queue import Queue
from backend.services import maintenance, offers, shards, sweeps, workers
from backend.services.replays import REPLAYS
from backend.services.timings import RACES
from backend.settings import Settings

log = logging.getLogger(__name__)

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
        try:
            depths = self._queue.depths()
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
