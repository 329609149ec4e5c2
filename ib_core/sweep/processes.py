"""Shards side by side: forked processes of one thread each, one a processor.

The tensors of a sweep are too small for threads inside a torch call to help: two threads take as
long as one. Two processes take half as long. A fork shares what is already imported and loaded,
so a lane starts in milliseconds; where a process cannot be forked safely (macOS, one that uses a
GPU already) the caller trains its shards one after another. With several GPUs every lane has one.

Code of a user's own always trains in a lane: whatever it does there (raise, hang, exit, take all
memory) fails the trials it was training, and a new lane goes on with the others.
"""

import itertools
import multiprocessing
import os
import resource
import signal
import sys
import time
import warnings
from collections.abc import Collection, Mapping, Sequence
from importlib import import_module
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from types import TracebackType
from typing import Self

import torch

from ib_core.errors import IBError, said_where
from ib_core.methods import find_method
from ib_core.sweep.engine import run_trials
from ib_core.sweep.result import SILENT, CurvePoint, Observer, TrialResult, failed_result
from ib_core.sweep.shard import PlannedShard, plan_shards
from ib_core.sweep.spec import TrialSpec
from ib_core.tasks import PaperTask, find_task

#: Seconds without a word after which a lane with a user's code is taken to hang.
STALL_SECONDS = 300.0
#: Share of the memory that is free which all lanes with a user's code may take together.
MEMORY_SHARE = 0.8


class LaneDied(IBError):
    """A training process ended without a word."""

    code = "lane_died"


def lanes_here(device: str) -> int:
    """Return how many shards can train side by side on this machine."""
    if len(gpus_for(device)) > 1:
        return len(gpus_for(device))
    return len(os.sched_getaffinity(0)) if _can_fork(device) else 1


def gpus_for(device: str) -> list[str]:
    """Return the GPUs that lanes can have, one each; none where this process uses one itself."""
    alike = device == "cuda" or (device == "auto" and torch.cuda.device_count() > 0)
    if not alike or torch.cuda.is_initialized() or not sys.platform.startswith("linux"):
        return []
    return [f"cuda:{number}" for number in range(torch.cuda.device_count())]


def _can_fork(device: str) -> bool:
    linux = sys.platform.startswith("linux")
    return linux and device in ("cpu", "auto") and not torch.cuda.is_available()


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


def is_own(trial: TrialSpec) -> bool:
    """Return whether a trial runs code that did not come with the catalogue."""
    task = find_task(trial.task)
    of_torch = trial.method.startswith("torch.optim.")
    own_method = find_method(trial.method).factory is not None and not of_torch
    return own_method or (not isinstance(task, PaperTask) and task.code is not None)


def _limit_memory(lanes: int) -> None:
    """Let this process take its share of the free memory and no more."""
    try:
        with open("/proc/meminfo") as file:
            free = next(int(line.split()[1]) * 1024 for line in file if "MemAvailable" in line)
        with open("/proc/self/statm") as file:
            data = int(file.read().split()[5]) * resource.getpagesize()
        most = data + int(MEMORY_SHARE * free / lanes)
        resource.setrlimit(resource.RLIMIT_DATA, (most, most))
    except (OSError, StopIteration, ValueError):
        pass  # no such limits here: the system's own will have to do


def _work(pipe: Connection, device: str, lanes: int, guarded: bool) -> None:
    """Train shard after shard as they are handed down, until this process is stopped."""
    if guarded:
        _limit_memory(lanes)
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
            except (Exception, SystemExit) as error:
                if guarded:
                    pipe.send(("failed", _told(error)))
                else:
                    pipe.send(("raised", error))
    except (EOFError, OSError):
        pass  # the parent is gone
    finally:
        # Whatever the parent registered to happen at its exit is not this process's to do.
        os._exit(0)


def _told(error: BaseException) -> str:
    if isinstance(error, SystemExit):
        return f"{said_where(error)}: it ended the process it trained in."
    return said_where(error)


class Lanes:
    """A crew of forked training processes; leaving the context stops them.

    Args:
        count: How many.
        device: What they train on.
        guarded: Whether they run a user's code: then a lane that breaks fails its trials only.
        stall: Seconds without a word after which a guarded lane is stopped.
    """

    def __init__(
        self, count: int, device: str, *, guarded: bool = False, stall: float = STALL_SECONDS
    ) -> None:
        self.count, self.device, self.guarded, self.stall = count, device, guarded, stall
        self._processes: dict[Connection, BaseProcess] = {}
        self._places = itertools.cycle(gpus_for(device) or [device])
        for _ in range(count):
            self._start()

    def _start(self) -> Connection:
        """Fork another lane and return this end of its pipe."""
        context = multiprocessing.get_context("fork")
        here, there = context.Pipe()
        arguments = (there, next(self._places), self.count, self.guarded)
        process = context.Process(target=_work, args=arguments, daemon=True)
        with warnings.catch_warnings():
            # Python warns of threads before a fork. A lane touches nothing of theirs: it has
            # one torch thread, and no locks but its own.
            warnings.simplefilter("ignore", DeprecationWarning)
            process.start()
        there.close()
        self._processes[here] = process
        return here

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
        at_work: dict[Connection, _AtWork] = {}

        def hand_down(pipe: Connection) -> None:
            if following := next(waiting, None):
                shard, watcher = following
                content = [trials[i] for i in shard.indices]
                at_work[pipe] = _AtWork(watcher, content)
                pipe.send(("train", content))

        for pipe in list(self._processes):
            hand_down(pipe)
        while at_work:
            for ready in wait(list(at_work), 1.0 if self.guarded else None):
                assert isinstance(ready, Connection)
                free = self._heard(ready, at_work)
                if free is not None:
                    hand_down(free)
            for pipe in self._stalled(at_work):
                self._stop(pipe)
                words = f"It gave no sign of life for {self.stall:g} s and was stopped."
                at_work.pop(pipe).fail(LaneDied(words))
                hand_down(self._start())

    def _heard(self, pipe: Connection, at_work: "dict[Connection, _AtWork]") -> Connection | None:
        """Take in a message; return the lane that is free by it, a new one for one that died."""
        try:
            if not self._listen(pipe, at_work[pipe]):
                return None
        except LaneDied as error:
            if not self.guarded:
                raise
            at_work.pop(pipe).fail(error)
            return self._start()
        del at_work[pipe]
        return pipe

    def _stalled(self, at_work: "Mapping[Connection, _AtWork]") -> list[Connection]:
        """Return the lanes that have not been heard of for too long."""
        if not self.guarded:
            return []
        now = time.monotonic()
        return [pipe for pipe, work in at_work.items() if now - work.heard > self.stall]

    def _stop(self, pipe: Connection) -> None:
        """Kill a lane that does not answer."""
        process = self._processes.pop(pipe)
        process.kill()
        process.join()
        pipe.close()

    def _listen(self, pipe: Connection, work: "_AtWork") -> bool:
        """Pass one message on; return whether the lane is free again."""
        watcher = work.watcher
        work.heard = time.monotonic()
        try:
            kind, *content = pipe.recv()
        except (EOFError, ConnectionResetError):
            process = self._processes.pop(pipe)
            process.join(5)
            raise LaneDied(
                f"A training process ended unexpectedly (exit code {process.exitcode}).",
                hint="Often memory ran out: try fewer trials or a smaller batch size.",
            ) from None
        if kind == "raised":
            raise content[0]
        if kind == "failed":
            work.fail(LaneDied(content[0]))
            return True
        if kind == "points":
            watcher.points(*content)
        elif kind == "finished":
            work.finished.add(content[0])
            watcher.finished(*content)
        elif kind == "progress":
            unwanted = set(watcher.progress(*content))
            if unwanted:
                pipe.send(("drop", unwanted))
        return bool(kind == "done")


class _AtWork:
    """A shard in a lane: who listens, what has ended, when it was last heard of."""

    def __init__(self, watcher: Observer, trials: Sequence[TrialSpec]) -> None:
        self.watcher, self.trials = watcher, trials
        self.finished: set[int] = set()
        self.heard = time.monotonic()

    def fail(self, error: LaneDied) -> None:
        """End the trials that have not ended as failed."""
        for index, trial in enumerate(self.trials):
            if index not in self.finished:
                data = find_task(trial.task).data_hash()
                self.watcher.finished(index, failed_result(trial, data, error))


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
    if any(find_method(trial.method).factory for trial in trials):
        import_module("torch._dynamo")  # torch's optimizers want it, and no lane should wait for it
    guarded = _can_fork(device) and any(is_own(trial) for trial in trials)
    if min(wanted, len(shards)) > 1 or guarded:
        count = min(wanted, len(shards))
        with Lanes(count, device, guarded=guarded, stall=stall) as crew:
            crew.train(trials, shards, watchers)
        return results
    for shard, watcher in zip(shards, watchers, strict=True):
        run_trials([trials[i] for i in shard.indices], device=device, observer=watcher)
    return results
