"""A whole sweep on this machine, no server: its shards side by side, one a processor."""

from collections.abc import Collection, Mapping, Sequence

from ib_core.sweep.engine import run_trials
from ib_core.sweep.lanes import Lanes, lanes_here
from ib_core.sweep.observer import SILENT, Observer
from ib_core.sweep.result import CurvePoint, TrialResult
from ib_core.sweep.shard import PlannedShard, plan_shards
from ib_core.sweep.spec import SweepSpec, TrialSpec


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
) -> list[TrialResult | None]:
    """Train any list of trials, grouped into shards, and return their results in order.

    Args:
        trials: What to train.
        device: As for `run_trials`.
        observer: Told about points, ends and progress of the whole list; may drop trials.
        lanes: Processes to train in; by default one a processor where that pays.
        seconds: As for `plan_shards`.
    """
    wanted = lanes_here(device) if lanes is None else lanes
    shards = plan_shards(trials, device=device, lanes=wanted, seconds=seconds)
    results: list[TrialResult | None] = [None] * len(trials)
    whole = _Whole(shards)
    watchers = [
        _ShardObserver(observer, number, shard, whole, results)
        for number, shard in enumerate(shards)
    ]
    if min(wanted, len(shards)) > 1:
        with Lanes(min(wanted, len(shards)), device) as crew:
            crew.train(trials, shards, watchers)
        return results
    for shard, watcher in zip(shards, watchers, strict=True):
        run_trials([trials[i] for i in shard.indices], device=device, observer=watcher)
    return results


def run_sweep(spec: SweepSpec, *, observer: Observer = SILENT) -> list[TrialResult | None]:
    """Train a sweep on its device and return its results in the order of `spec.expand()`."""
    return run_all(spec.expand(), device=spec.device, observer=observer)
