"""Shards side by side: forked processes of one thread each, one a processor.

The tensors of a sweep are too small for threads inside a torch call to help: two threads take as
long as one. Two processes take half as long. A fork shares what is already imported and loaded,
so a lane starts in milliseconds; where a process cannot be forked safely (macOS, GPUs) the caller
trains its shards one after another instead.
"""

import multiprocessing
import os
import signal
import sys
import warnings
from collections.abc import Collection, Mapping, Sequence
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from types import TracebackType
from typing import Self

import torch

from ib_core.errors import IBError
from ib_core.sweep.engine import run_trials
from ib_core.sweep.result import SILENT, CurvePoint, Observer, TrialResult
from ib_core.sweep.shard import PlannedShard, plan_shards
from ib_core.sweep.spec import SweepSpec, TrialSpec


class LaneDied(IBError):
    """A training process ended without a word."""

    code = "lane_died"


def lanes_here(device: str) -> int:
    """Return how many shards can train side by side on this machine."""
    if not sys.platform.startswith("linux") or device not in ("cpu", "auto"):
        return 1
    if torch.cuda.is_available():
        return 1
    return len(os.sched_getaffinity(0))


class _Reporter(Observer):
    """A lane's end of the pipe: sends news, hears which trials are no longer wanted."""

    def __init__(self, pipe: Connection) -> None:
        self._pipe = pipe
        self._unwanted: set[int] = set()

    def points(self, points: Mapping[int, CurvePoint]) -> None:
        """Send new points."""
        self._pipe.send(("points", dict(points)))

    def finished(self, index: int, result: TrialResult) -> None:
        """Send a result."""
        self._pipe.send(("finished", index, result))

    def progress(self, fraction: float) -> Collection[int]:
        """Send how far the shard is; return what has been called off since it began."""
        self._pipe.send(("progress", fraction))
        while self._pipe.poll():
            _, unwanted = self._pipe.recv()  # nothing else is sent while a shard trains
            self._unwanted.update(unwanted)
        return self._unwanted


def _work(pipe: Connection, device: str) -> None:
    """Train shard after shard as they are handed down, until this process is stopped."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's to handle
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    torch.set_num_threads(1)
    try:
        while True:
            kind, content = pipe.recv()
            if kind == "drop":  # it came too late: those trials have ended
                continue
            try:
                run_trials(content, device=device, observer=_Reporter(pipe))
                pipe.send(("done",))
            except Exception as error:
                pipe.send(("raised", error))
    except (EOFError, OSError):
        pass  # the parent is gone
    finally:
        # Whatever the parent registered to happen at its exit is not this process's to do.
        os._exit(0)


class Lanes:
    """A crew of forked training processes; leaving the context stops them.

    Args:
        count: How many.
        device: What they train on.
    """

    def __init__(self, count: int, device: str) -> None:
        self._processes: dict[Connection, BaseProcess] = {}
        context = multiprocessing.get_context("fork")
        for _ in range(count):
            here, there = context.Pipe()
            process = context.Process(target=_work, args=(there, device), daemon=True)
            with warnings.catch_warnings():
                # Python warns of threads before a fork. A lane touches nothing of theirs: it has
                # one torch thread, and no locks but its own.
                warnings.simplefilter("ignore", DeprecationWarning)
                process.start()
            there.close()
            self._processes[here] = process

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        for process in self._processes.values():
            process.terminate()
        for pipe, process in self._processes.items():
            process.join()
            pipe.close()

    def train(
        self,
        trials: Sequence[TrialSpec],
        shards: Sequence[PlannedShard],
        watchers: Sequence[Observer],
    ) -> None:
        """Train all shards, as many at once as there are lanes.

        Args:
            trials: The whole list.
            shards: Which of them belong together.
            watchers: `watchers[i]` hears what happens in `shards[i]`, in the shard's own indices.

        Raises:
            LaneDied: If a process was killed.
        """
        waiting = iter(zip(shards, watchers, strict=True))
        at_work: dict[Connection, Observer] = {}

        def hand_down(pipe: Connection) -> None:
            if following := next(waiting, None):
                shard, at_work[pipe] = following
                pipe.send(("train", [trials[i] for i in shard.indices]))

        for pipe in self._processes:
            hand_down(pipe)
        while at_work:
            for ready in wait(list(at_work)):
                assert isinstance(ready, Connection)
                if self._listen(ready, at_work[ready]):
                    del at_work[ready]
                    hand_down(ready)

    def _listen(self, pipe: Connection, watcher: Observer) -> bool:
        """Pass one message on; return whether the lane is free again."""
        try:
            kind, *content = pipe.recv()
        except (EOFError, ConnectionResetError):
            process = self._processes[pipe]
            process.join(5)
            raise LaneDied(
                f"A training process ended unexpectedly (exit code {process.exitcode}).",
                hint="Often memory ran out: try fewer trials or a smaller batch size.",
            ) from None
        if kind == "raised":
            raise content[0]
        if kind == "points":
            watcher.points(*content)
        elif kind == "finished":
            watcher.finished(*content)
        elif kind == "progress":
            unwanted = set(watcher.progress(*content))
            if unwanted:
                pipe.send(("drop", unwanted))
        return bool(kind == "done")


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
