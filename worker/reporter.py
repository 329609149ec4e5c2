"""What a training process tells the database: that it lives, what it finds; and when it stops.

The heartbeat says every few seconds that the process lives, and keeps its shard's lease; the
reporter stores what the engine finds without ever making training wait for it. Both stop by a flag
that all processes of a worker see, and have patience with the database.
"""

import logging
import os
import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from multiprocessing.sharedctypes import RawValue
from typing import Any, TypeVar

from sqlalchemy.orm import Session

from backend.db import PASSING_FAULTS, reading, reason, transaction
from backend.services import offers, shards, workers
from backend.services.shards import Claim
from backend.services.workers import Worker
from backend.settings import Settings
from ib_core.announced import offer_key
from ib_core.sweep import CurvePoint, Observer, TrialResult

T = TypeVar("T")

log = logging.getLogger(__name__)

FIRST_WAIT, LONGEST_WAIT = 0.5, 15.0
#: How long a stopping worker waits for a database that does not answer.
STOPPING_SECONDS = 10.0


class StopFlag:
    """Shared by processes that are forked after it was made; each may also raise its own.

    Without a lock on purpose: a process that is killed while it looks must not take a lock along
    that the others then wait for.
    """

    def __init__(self) -> None:
        self._everywhere = RawValue("b", 0)
        self._here = False

    def set(self) -> None:
        """Raise the flag for everybody: the whole worker stops."""
        self._everywhere.value = 1

    def set_here(self) -> None:
        """Raise the flag in this process only: it alone was told to stop what it does."""
        self._here = True

    def clear_here(self) -> None:
        """Lower this process's own flag; the shared one stays as it is."""
        self._here = False

    def is_set(self) -> bool:
        """Return whether the flag is up, here or everywhere."""
        return self._here or bool(self._everywhere.value)


def backoff(failures: int) -> float:
    """Return how long to wait after so many failures in a row."""
    return min(FIRST_WAIT * 2.0 ** min(failures - 1, 10), LONGEST_WAIT)


def until_it_works(
    action: Callable[[], T], *, what: str, give_up: Callable[[float], bool] = lambda _: False
) -> T:
    """Call `action` until the database lets it, for as long as `give_up(seconds)` is false.

    It may be locked, full, read-only or away meanwhile.
    """
    failures, began = 0, time.monotonic()
    while True:
        try:
            return action()
        except PASSING_FAULTS as error:
            failures += 1
            if give_up(time.monotonic() - began):
                raise
            log.warning(
                "Cannot %s (%s); trying again in %.1f s.", what, reason(error), backoff(failures)
            )
            time.sleep(backoff(failures))


#: Exit code of a process that was found hanging.
HUNG = 70


class Heartbeat:
    """A thread that beats for one training process and for the shard it trains."""

    def __init__(self, worker: Worker, settings: Settings, *, stopping: StopFlag) -> None:
        self.worker = worker
        self._settings = settings
        self._stopping = stopping
        self._ended = threading.Event()
        self._reporter: Reporter | None = None
        self._known = False
        #: One beat at a time: one that began before there was news must not call them told.
        self._beating = threading.RLock()
        self._manifests: list[dict[str, Any]] = []
        self._thread = threading.Thread(target=self._run, name="heartbeat", daemon=True)

    @property
    def offers(self) -> tuple[str, ...]:
        """The keys of what this process brings along."""
        return self.worker.offers

    def bring(
        self, manifests: Sequence[dict[str, Any]], left_out: Mapping[str, str] | None = None
    ) -> None:
        """Announce with the next beat, which is now, what this process brings along.

        Args:
            manifests: Of what it brings.
            left_out: What it should have brought, by name, and why it does not.
        """
        if not manifests and not left_out:
            return
        with self._beating:
            self._manifests = [*self._manifests, *manifests]
            self.worker = replace(self.worker, left_out=dict(left_out or {}))
            self._tell_keys()
            self._known = False
            self._beat_or_complain()

    def start(self) -> None:
        """Introduce the process and begin to beat."""
        self._thread.start()

    def stop(self) -> None:
        """End the beats and take the process off the list."""
        self._ended.set()
        self._thread.join(timeout=self._settings.heartbeat_seconds)
        try:
            with transaction() as session:
                offers.leave(session, worker=self.worker.name)
                workers.remove(session, name=self.worker.name)
        except PASSING_FAULTS as error:
            log.warning("Cannot sign off %s: %s", self.worker.name, reason(error))

    @contextmanager
    def during(self, reporter: "Reporter") -> Iterator[None]:
        """Keep a shard's lease for as long as the block runs."""
        self._reporter = reporter
        self._beat_or_complain()
        try:
            yield
        finally:
            self._reporter = None
            self._beat_or_complain()

    def _run(self) -> None:
        pause = 0.0
        while not self._ended.wait(pause):
            healthy = self._beat_or_complain()
            # After a fault sooner: the lease may be about to end.
            pause = self._settings.heartbeat_seconds / (1 if healthy else 5)

    def _beat_or_complain(self) -> bool:
        try:
            with self._beating:
                self.beat()
        except PASSING_FAULTS as error:
            log.warning("No heartbeat from %s: %s", self.worker.name, reason(error))
            return False
        except Exception:  # whatever it is: without beats every other sweep's leases would end
            log.exception("No heartbeat from %s.", self.worker.name)
            self._leave_out_unsound()
            return False
        return True

    def _leave_out_unsound(self) -> None:
        """Take back what cannot be written down, so that no later beat has to carry it."""
        for manifest in self._manifests if not self._known else ():
            try:
                with transaction() as session:
                    self._announce(session, [manifest])
            except PASSING_FAULTS:
                return  # a later beat finds out
            except Exception as error:
                log.error("%s is not brought along: %s", manifest["name"], reason(error))
                self._manifests = [one for one in self._manifests if one is not manifest]
                self._tell_keys()

    def _tell_keys(self) -> None:
        keys = [offer_key(one) for one in self._manifests if one["code"] is not None]
        self.worker = replace(self.worker, offers=tuple(keys))

    def _announce(self, session: Session, manifests: Sequence[dict[str, Any]]) -> None:
        worker = self.worker
        offers.announce(session, worker=worker.name, host=worker.host, manifests=manifests)

    def beat(self) -> None:
        """Beat once for the process, and once for its shard."""
        reporter = self._reporter
        shard_id = reporter.claim.shard_id if reporter else None
        with transaction() as session:
            stopping = self._stopping.is_set()
            name = self.worker.name
            if not self._known or not workers.beat(
                session, name=name, shard_id=shard_id, stopping=stopping
            ):
                self._announce(session, self._manifests)
                workers.register(session, worker=self.worker)
                workers.beat(session, name=name, shard_id=shard_id, stopping=stopping)
        self._known = True
        if reporter is not None:
            self._end_if_hung(reporter)
            with transaction() as session:
                held = shards.heartbeat(
                    session,
                    claim=reporter.claim,
                    progress=reporter.fraction,
                    message=reporter.trouble,
                )
            reporter.lost = reporter.lost or not held

    def _end_if_hung(self, reporter: "Reporter") -> None:
        silence = time.monotonic() - reporter.last_seen
        if reporter.closing or silence < self._settings.stall_seconds:
            return
        error = f"Training made no progress for {silence:.0f} s; its process was ended."
        log.critical("Shard %d: %s", reporter.claim.shard_id, error)
        try:
            with transaction() as session:
                shards.fail(session, claim=reporter.claim, error=error)
        finally:
            os._exit(HUNG)


# --- The reporter

#: A shard that will be done so soon is finished even though the worker is to stop.
SHORT_SECONDS = 3.0


class Stopped(Exception):
    """The worker is to stop, and the shard would take too long."""


class LeaseLost(Exception):
    """The shard is another worker's now."""


class Reporter(Observer):
    """Buffers points and results; a thread of its own writes them in short transactions.

    While the database cannot be written to, everything stays in memory and training goes on.
    Curves are stored whole each time, so a write that is repeated changes nothing.
    """

    def __init__(self, claim: Claim, *, stopping: StopFlag, flush_seconds: float) -> None:
        self.claim = claim
        self.fraction = 0.0
        self.trouble: str | None = None
        self.lost = False
        self.stored: set[int] = set()
        self.last_seen = self._began = time.monotonic()
        self._stopping = stopping
        self._flush_seconds = flush_seconds
        self._lock = threading.Lock()
        self._curves: dict[int, list[CurvePoint]] = {}
        self._changed: set[int] = set()
        self._results: dict[int, TrialResult] = {}
        self._unwanted: frozenset[int] = frozenset()
        self._fault: Exception | None = None
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._run, name="reporter", daemon=True)

    @property
    def closing(self) -> bool:
        """Whether training is over and only writing is left."""
        return self._closed.is_set()

    def start(self) -> "Reporter":
        """Begin to write."""
        self._thread.start()
        return self

    def points(self, points: Mapping[int, CurvePoint]) -> None:
        """Keep new points."""
        with self._lock:
            for index, point in points.items():
                trial_id = self.claim.trials[index].id
                self._curves.setdefault(trial_id, []).append(point)
                self._changed.add(trial_id)

    def finished(self, index: int, result: TrialResult) -> None:
        """Keep a result; the curve it brings replaces the points so far."""
        trial_id = self.claim.trials[index].id
        with self._lock:
            self._results[trial_id] = result
            self._curves.pop(trial_id, None)
            self._changed.discard(trial_id)

    def progress(self, fraction: float) -> Collection[int]:
        """Note how far training is; end it if it should not go on."""
        self.last_seen, self.fraction = time.monotonic(), fraction
        if self._fault is not None:
            raise self._fault
        if self.lost:
            raise LeaseLost
        if self._stopping.is_set() and self._left() > SHORT_SECONDS:
            raise Stopped
        return self._unwanted

    def _left(self) -> float:
        elapsed = time.monotonic() - self._began
        return elapsed * (1 - self.fraction) / self.fraction if self.fraction > 0 else elapsed + 60

    def close(self) -> None:
        """Write what is left, however long the database takes; then stop.

        Only a worker that is to stop gives up, after `STOPPING_SECONDS`: what it has not stored
        by then will be trained again.
        """
        self._closed.set()
        self._thread.join()
        if self._fault is not None:
            raise self._fault

    def _run(self) -> None:
        failures, since = 0, 0.0
        while True:
            closing = self._closed.wait(backoff(failures) if failures else self._flush_seconds)
            try:
                self._flush()
            except PASSING_FAULTS as error:
                failures, since = failures + 1, since or time.monotonic()
                self._complain(error)
                if closing and self._hopeless(since):
                    self._fault = error
                    return
                if closing:
                    time.sleep(backoff(failures))
                continue
            except Exception as error:  # a fault of ours: the shard fails, loudly
                self._fault = error
                return
            failures, since, self.trouble = 0, 0.0, None
            if closing:
                return

    def _hopeless(self, since: float) -> bool:
        return self._stopping.is_set() and time.monotonic() - since > STOPPING_SECONDS

    def _complain(self, error: Exception) -> None:
        self.trouble = f"results wait in memory, the database cannot be written: {reason(error)}"
        log.warning("Shard %d: %s", self.claim.shard_id, self.trouble)

    def _flush(self) -> None:
        with self._lock:
            results = dict(self._results)
            changed = {id: list(self._curves[id]) for id in self._changed}
        if results or changed:
            with transaction() as session:
                stored = shards.report(session, claim=self.claim, points=changed, finished=results)
            self._forget(results, changed)
            self.stored |= stored
        self._ask()

    def _forget(
        self, results: Mapping[int, TrialResult], curves: Mapping[int, list[CurvePoint]]
    ) -> None:
        with self._lock:
            for trial_id in results:
                del self._results[trial_id]
            for trial_id, so_far in curves.items():
                if len(self._curves.get(trial_id, ())) == len(so_far):
                    self._changed.discard(trial_id)

    def _ask(self) -> None:
        """Ask which trials are still wanted; a write is needed only if some newly are not."""
        with reading() as session:
            unwanted = self._without(shards.wanted(session, claim=self.claim))
        if unwanted - self._unwanted:
            with transaction() as session:
                unwanted = self._without(shards.drop_unwanted(session, claim=self.claim))
        self._unwanted = unwanted

    def _without(self, wanted: set[int]) -> frozenset[int]:
        trials = enumerate(self.claim.trials)
        return frozenset(index for index, trial in trials if trial.id not in wanted)
