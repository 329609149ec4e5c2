"""A whole sweep in this process: all shards, one after another, no server."""

from collections.abc import Collection, Mapping, Sequence

from ib_core.sweep.engine import run_trials
from ib_core.sweep.observer import SILENT, Observer
from ib_core.sweep.result import CurvePoint, TrialResult
from ib_core.sweep.shard import PlannedShard, plan_shards
from ib_core.sweep.spec import SweepSpec, TrialSpec


class _ShardObserver(Observer):
    """Passes a shard's news on in the whole list's indices and fractions."""

    def __init__(self, outer: Observer, shard: PlannedShard, done: float, total: float) -> None:
        self.outer, self.shard, self.done, self.total = outer, shard, done, total

    def points(self, points: Mapping[int, CurvePoint]) -> None:
        """Pass on points."""
        self.outer.points({self.shard.indices[i]: point for i, point in points.items()})

    def finished(self, index: int, result: TrialResult) -> None:
        """Pass on an end."""
        self.outer.finished(self.shard.indices[index], result)

    def progress(self, fraction: float) -> Collection[int]:
        """Pass on progress, weighed by the shards' forecasts."""
        whole = (self.done + fraction * self.shard.seconds) / self.total
        unwanted = set(self.outer.progress(whole))
        return [i for i, index in enumerate(self.shard.indices) if index in unwanted]


def run_all(
    trials: Sequence[TrialSpec], *, device: str = "cpu", observer: Observer = SILENT
) -> list[TrialResult | None]:
    """Train any list of trials, grouped into shards, and return their results in order."""
    shards = plan_shards(trials, device=device)
    total = sum(shard.seconds for shard in shards) or 1.0
    results: list[TrialResult | None] = [None] * len(trials)
    done = 0.0
    for shard in shards:
        watched = _ShardObserver(observer, shard, done, total)
        parts = run_trials([trials[i] for i in shard.indices], device=device, observer=watched)
        for index, result in zip(shard.indices, parts, strict=True):
            results[index] = result
        done += shard.seconds
    return results


def run_sweep(spec: SweepSpec, *, observer: Observer = SILENT) -> list[TrialResult | None]:
    """Train a sweep on its device and return its results in the order of `spec.expand()`."""
    return run_all(spec.expand(), device=spec.device, observer=observer)
