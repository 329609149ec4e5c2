"""Reports what the engine finds to the database, without ever making training wait for it."""

import logging
import threading
import time
from collections.abc import Collection, Mapping

from backend.db import PASSING_FAULTS, reading, reason, transaction
from backend.services import shards
from backend.services.shards import Claim
from ib_core.sweep import CurvePoint, Observer, TrialResult
from worker.heartbeat import STOPPING_SECONDS, StopFlag, backoff

log = logging.getLogger(__name__)

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
