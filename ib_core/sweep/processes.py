"""Shards side by side: forked processes of one thread each, one a processor.

The tensors of a sweep are too small for threads inside a torch call to help: two threads take as
long as one. Two processes take half as long. A fork shares what is already imported and loaded,
so a lane starts in milliseconds; where a process cannot be forked safely (macOS, one that uses a
GPU already) the caller trains its shards one after another. With several GPUs every lane has one.
"""

import os
from collections.abc import Collection, Mapping, Sequence
from importlib import import_module

from ib_core.methods import OWN_METHODS, find_method
from ib_core.sweep.engine import run_trials
from ib_core.sweep.lanes import STALL_SECONDS, Lanes, Work, can_fork, gpus_for, is_own
from ib_core.sweep.result import SILENT, CurvePoint, Observer, TrialResult
from ib_core.sweep.shard import PlannedShard, plan_shards
from ib_core.sweep.spec import TrialSpec
from ib_core.tasks import OWN_TASKS


def lanes_here(device: str) -> int:
    """Return how many shards can train side by side on this machine."""
    if len(gpus_for(device)) > 1:
        return len(gpus_for(device))
    return len(os.sched_getaffinity(0)) if can_fork(device) else 1


class _Whole:
    """How far the whole list is, from what every shard says of itself."""

    def __init__(self, shards: Sequence[PlannedShard]) -> None:
        self.total = sum(shard.seconds for shard in shards) or 1.0
        self.done: dict[int, float] = {}

    def fraction(self, number: int, seconds: float) -> float:
        """Take note that `seconds` of shard `number` are done; return the share of everything."""
        self.done[number] = seconds
        return sum(self.done.values()) / self.total


class _ShardObserver(Observer):
    """Passes a shard's news on in the whole list's indices and fractions, and keeps results."""

    def __init__(
        self,
        outer: Observer,
        number: int,
        shard: PlannedShard,
        whole: _Whole,
        results: list[TrialResult | None],
    ) -> None:
        self.outer, self.number, self.shard = outer, number, shard
        self.whole, self.results = whole, results

    def points(self, points: Mapping[int, CurvePoint]) -> None:
        """Pass on points."""
        self.outer.points({self.shard.indices[i]: point for i, point in points.items()})

    def finished(self, index: int, result: TrialResult) -> None:
        """Keep and pass on a result."""
        self.results[self.shard.indices[index]] = result
        self.outer.finished(self.shard.indices[index], result)

    def progress(self, fraction: float) -> Collection[int]:
        """Pass on progress, weighed by the shards' forecasts."""
        share = self.whole.fraction(self.number, fraction * self.shard.seconds)
        unwanted = set(self.outer.progress(share))
        return [i for i, index in enumerate(self.shard.indices) if index in unwanted]


def run_all(
    trials: Sequence[TrialSpec],
    *,
    device: str = "cpu",
    observer: Observer = SILENT,
    lanes: int | None = None,
    seconds: float | None = None,
    stall: float = STALL_SECONDS,
) -> list[TrialResult | None]:
    """Train any list of trials, grouped into shards, and return their results in order.

    Args:
        trials: What to train.
        device: As for `run_trials`.
        observer: Told about points, ends and progress of the whole list; may drop trials.
        lanes: Processes to train in; by default one a processor where that pays.
        seconds: As for `plan_shards`.
        stall: Seconds without a word after which a user's code is taken to hang.
    """
    wanted = lanes_here(device) if lanes is None else lanes
    shards = plan_shards(trials, device=device, lanes=wanted, seconds=seconds)
    results: list[TrialResult | None] = [None] * len(trials)
    whole = _Whole(shards)
    watchers = [
        _ShardObserver(observer, number, shard, whole, results)
        for number, shard in enumerate(shards)
    ]
    ready_to_fork(trials)
    guarded = can_fork(device) and any(is_own(trial) for trial in trials)
    if min(wanted, len(shards)) > 1 or guarded:
        count = min(wanted, len(shards))
        works = [
            Work(watcher, [trials[i] for i in shard.indices])
            for shard, watcher in zip(shards, watchers, strict=True)
        ]
        with Lanes(count, device, guarded=guarded, stall=stall) as crew:
            crew.train(works)
        return results
    for shard, watcher in zip(shards, watchers, strict=True):
        run_trials([trials[i] for i in shard.indices], device=device, observer=watcher)
    return results


def ready_to_fork(trials: Sequence[TrialSpec]) -> None:
    """Import what torch's optimizers want at their first step, so that no lane waits for it."""
    if any(find_method(trial.method).factory for trial in trials):
        import_module("torch._dynamo")


class Guard:
    """A guarded lane that a worker keeps: it remembers which way a model trains.

    Args:
        stall: Seconds without a word after which it is stopped.
        shares: So many of them share this machine's memory.
    """

    def __init__(self, *, stall: float = STALL_SECONDS, shares: int = 1) -> None:
        self.stall, self.shares = stall, shares
        self._lanes: Lanes | None = None
        self._known: list[int] = []

    def run(self, trials: Sequence[TrialSpec], *, device: str, observer: Observer) -> None:
        """Train a shard; what hangs ends as failed.

        Raises:
            LaneDied: In one sentence, if it broke.
        """
        ready_to_fork(trials)
        known = [*map(id, OWN_TASKS.values()), *map(id, OWN_METHODS.values())]
        if self._lanes is None or self._lanes.device != device or known != self._known:
            self.stop()
            self._known = known  # a fork knows what was entered before it
            self._lanes = Lanes(1, device, guarded=True, stall=self.stall, shares=self.shares)
        try:
            self._lanes.train([Work(observer, trials)], raising=True)
        except BaseException:
            self.stop()  # it may still be training what nobody waits for
            raise

    def stop(self) -> None:
        """End the lane."""
        if self._lanes is not None:
            self._lanes.stop()
            self._lanes = None
