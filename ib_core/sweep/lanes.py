"""Training processes forked from this one, each with a pipe: news come up, shards go down.

Code of a user's own always trains in a guarded lane: whatever it does there (raise, hang, exit,
take all memory) is told in one sentence, and a new lane goes on with the others. `run_all` fails
the trials that are to blame; a worker (`Guard`) lets its queue decide.
"""

import ctypes
import faulthandler
import itertools
import multiprocessing
import os
import signal
import subprocess
import sys
import tempfile
import time
import warnings
from collections import deque
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from types import TracebackType
from typing import Any, Self

import torch

from ib_core.errors import IBError, place_in, said_where
from ib_core.methods import find_method
from ib_core.sweep.engine import run_trials
from ib_core.sweep.machine import keep_pages
from ib_core.sweep.result import CurvePoint, Observer, TrialResult, failed_result
from ib_core.sweep.spec import TrialSpec
from ib_core.tasks import PaperTask, find_task, limit_memory

#: Seconds without a word after which a lane with a user's code is taken to hang.
STALL_SECONDS = 300.0
#: What hung in a stack is looked for among its trials by so many lanes that may hang, too.
MOST_STALLS = 2
#: A lane that hangs has so many seconds to say where.
TELLING_SECONDS = 0.5
PR_SET_PDEATHSIG = 1


class LaneDied(IBError):
    """A training process ended without a word, or what it trained broke.

    Attributes:
        split: Whether one trial of several may be to blame.
        stalled: Whether it had to be stopped.
    """

    code = "lane_died"
    split = True
    stalled = False


def gpus_for(device: str) -> list[str]:
    """Return the GPUs that lanes can have, one each; none where this process uses one itself."""
    alike = device == "cuda" or (device == "auto" and torch.cuda.device_count() > 0)
    if not alike or torch.cuda.is_initialized() or not sys.platform.startswith("linux"):
        return []
    return [f"cuda:{number}" for number in range(torch.cuda.device_count())]


def is_own(trial: TrialSpec) -> bool:
    """Return whether a trial runs code that did not come with the catalogue."""
    task = find_task(trial.task)
    of_torch = trial.method.startswith("torch.optim.")
    own_method = find_method(trial.method).factory is not None and not of_torch
    return own_method or (not isinstance(task, PaperTask) and task.code is not None)


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


def _work(pipe: Connection, device: str, lanes: int, trace: int | None, threads: int) -> None:
    """Train shard after shard as they are handed down, until this process is stopped."""
    guarded = trace is not None
    # A copy of this process, made by a user's code, must not speak for it.
    os.register_at_fork(after_in_child=pipe.close)
    if trace is not None:
        faulthandler.register(signal.SIGUSR1, file=trace)  # for whoever waits and asks where it is
        limit_memory(lanes)
        # A loop without an end never looks at the pipe: it must end with its parent.
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's to handle
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    torch.set_num_threads(threads)
    keep_pages()
    try:
        while True:
            kind, content = pipe.recv()
            if kind == "drop":  # it came too late: those trials have ended
                continue
            try:
                run_trials(content, device=device, observer=_Reporter(pipe))
                pipe.send(("done",))
            except BaseException as error:  # a user's code may raise whatever it likes
                if guarded:
                    pipe.send(("failed", _told(error, content[0]), not isinstance(error, IBError)))
                else:
                    pipe.send(("raised", error))
    except (EOFError, OSError):
        pass  # the parent is gone
    finally:
        # Whatever the parent registered to happen at its exit is not this process's to do.
        os._exit(0)


def _told(error: BaseException, trial: TrialSpec) -> str:
    said = said_where(error, getattr(find_task(trial.task), "model", None))
    ended = ": it ended the process it trained in." if isinstance(error, SystemExit) else ""
    return f"{said}{ended}"


class Work:
    """Trials of one shard on their way through a lane.

    Args:
        watcher: Hears what happens to them.
        trials: Which.
        places: The watcher's indices of them.
    """

    def __init__(
        self, watcher: Observer, trials: Sequence[TrialSpec], places: Sequence[int] | None = None
    ) -> None:
        self.watcher, self.trials = watcher, trials
        self.places = range(len(trials)) if places is None else places
        self.finished: set[int] = set()
        self.fraction, self.heard = 0.0, time.monotonic()
        #: Shared by all parts of a shard that was taken apart.
        self.stalls: list[LaneDied] = []

    def points(self, points: Mapping[int, CurvePoint]) -> None:
        """Pass on points."""
        self.watcher.points({self.places[i]: point for i, point in points.items()})

    def end(self, index: int, result: TrialResult) -> None:
        """Pass on a result."""
        self.finished.add(index)
        self.watcher.finished(self.places[index], result)

    def unwanted(self) -> set[int]:
        """Tell the watcher how far it is; return what is not wanted any more."""
        called_off = set(self.watcher.progress(self.fraction))
        return {i for i, place in enumerate(self.places) if place in called_off}

    def fail(self, error: LaneDied) -> None:
        """End the trials that have not ended as failed."""
        for index, trial in enumerate(self.trials):
            if index not in self.finished:
                data = find_task(trial.task).data_hash()
                self.end(index, failed_result(trial, data, error))

    def apart(self, error: LaneDied) -> "list[Work]":
        """Return what is left of it as trials alone; nothing where that would find nobody else."""
        left = [i for i in range(len(self.trials)) if i not in self.finished]
        if error.stalled:
            self.stalls.append(error)
        if len(self.trials) == 1 or len(left) == 0 or not error.split:
            return []
        parts = [Work(self.watcher, [self.trials[i]], [self.places[i]]) for i in left]
        for part in parts:
            part.stalls, part.fraction = self.stalls, self.fraction
        return parts


@contextmanager
def _allowed_children() -> Iterator[None]:
    """Let this process fork, though it be a daemon, as those of a worker's pool are.

    Python forbids it lest children stay behind; a guarded lane ends with its parent by itself.
    """
    config: dict[str, Any] = multiprocessing.current_process().__dict__["_config"]
    daemon = config.get("daemon")
    config["daemon"] = False
    try:
        yield
    finally:
        config["daemon"] = daemon


class _Fresh(subprocess.Popen[bytes]):
    """A lane that starts from nothing, like the other processes otherwise."""

    def __init__(self, pipe: int, *arguments: object) -> None:
        work = f"import ib_core.sweep.lanes as l; l._work(l.Connection({pipe}), *{arguments!r})"
        super().__init__([sys.executable, "-P", "-c", work], pass_fds=[pipe])

    def join(self, seconds: float | None = None) -> None:
        """Wait for its end."""
        with suppress(subprocess.TimeoutExpired):
            self.wait(seconds)

    exitcode = property(subprocess.Popen.poll)


class Lanes:
    """A crew of training processes; leaving the context stops them.

    Args:
        count: How many.
        device: What they train on.
        guarded: Whether they run a user's code: then a lane that breaks fails its trials only.
        stall: Seconds without a word after which a guarded lane is stopped.
        shares: So many lanes, here and elsewhere on this machine, share the memory.
        fresh: Whether they start from nothing instead of being forked: they know the catalogue
            alone, and nothing of what users' files have done to this process.
        threads: Of each.
    """

    def __init__(
        self,
        count: int,
        device: str,
        *,
        guarded: bool = False,
        stall: float = STALL_SECONDS,
        shares: int | None = None,
        fresh: bool = False,
        threads: int = 1,
    ) -> None:
        self.count, self.device, self.guarded, self.stall = count, device, guarded, stall
        self.fresh, self.threads = fresh, threads
        self.shares = shares or count
        self._processes: dict[Connection, BaseProcess | _Fresh] = {}
        self._trace = tempfile.TemporaryFile()  # noqa: SIM115  lanes write to it until it is gone
        self._places = itertools.cycle(gpus_for(device) or [device])
        for _ in range(count):
            self._start()

    def _start(self) -> Connection:
        """Begin another lane and return this end of its pipe."""
        context = multiprocessing.get_context("fork")
        here, there = context.Pipe()
        trace = self._trace.fileno() if self.guarded else None
        arguments = (there, next(self._places), self.shares, trace, self.threads)
        if self.fresh:
            self._processes[here] = _Fresh(there.fileno(), *arguments[1:])
            there.close()
            return here
        process = context.Process(target=_work, args=arguments, daemon=True)
        with warnings.catch_warnings():
            # Python warns of threads before a fork. A lane touches nothing of theirs: it has
            # one torch thread, and no locks but its own.
            warnings.simplefilter("ignore", DeprecationWarning)
            with _allowed_children():
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
        self.stop()

    def stop(self) -> None:
        """End all lanes; a user's code is not asked."""
        for process in self._processes.values():
            if self.guarded:
                process.kill()
            else:
                process.terminate()
        for pipe, process in self._processes.items():
            process.join()
            pipe.close()
        self._processes.clear()
        self._trace.close()

    def train(self, works: Sequence[Work], *, raising: bool = False) -> None:
        """Train all, as many at once as there are lanes.

        Args:
            works: What to train.
            raising: Whether what breaks is raised, apart from what hangs, instead of being looked
                for among the trials and ended as failed.

        Raises:
            LaneDied: If a process was killed.
        """
        waiting, at_work = deque(works), dict[Connection, Work]()
        while at_work or waiting:
            self._hand_down(waiting, at_work)
            for ready in wait(list(at_work), 1.0 if self.guarded else None):
                assert isinstance(ready, Connection)
                try:
                    if self._listen(ready, at_work[ready]):
                        del at_work[ready]
                except LaneDied as error:
                    if raising or not self.guarded:
                        raise
                    waiting.extendleft(_blamed(at_work.pop(ready), error))
            for pipe, place in self._watched(at_work):
                silent = LaneDied(f"It gave no sign of life for {self.stall:g} s and was stopped.")
                silent.stalled, silent.where = True, place
                waiting.extendleft(_blamed(at_work.pop(pipe), silent, apart=not raising))

    def _hand_down(self, waiting: "deque[Work]", at_work: dict[Connection, Work]) -> None:
        """Give every free lane something to train."""
        while len(self._processes) < self.count:
            self._start()
        for pipe in [one for one in self._processes if one not in at_work]:
            if waiting:
                at_work[pipe] = waiting.popleft()
                at_work[pipe].heard = time.monotonic()
                pipe.send(("train", at_work[pipe].trials))

    def _watched(self, at_work: Mapping[Connection, Work]) -> list[tuple[Connection, str | None]]:
        """Call off what is not wanted; stop and return lanes that hang, and where they do."""
        stalled, now = [], time.monotonic()
        for pipe, work in at_work.items() if self.guarded else ():
            if unwanted := work.unwanted():
                pipe.send(("drop", unwanted))
            if now - work.heard > self.stall:
                process = self._processes.pop(pipe)
                stalled.append((pipe, self._place_of(process)))
                process.kill()
                process.join()
                pipe.close()
        return stalled

    def _place_of(self, process: BaseProcess | _Fresh) -> str | None:
        """Return where in a user's code a lane is; None if it is elsewhere, or cannot tell."""
        assert process.pid is not None
        start = self._trace.seek(0, os.SEEK_END)
        os.kill(process.pid, signal.SIGUSR1)
        time.sleep(TELLING_SECONDS)
        self._trace.seek(start)
        return place_in(self._trace.read().decode("utf-8", "replace"))

    def _listen(self, pipe: Connection, work: Work) -> bool:
        """Pass one message on; return whether the lane is free again."""
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
            # Whatever a user's code did to it, the next one begins afresh.
            self._processes.pop(pipe).kill()
            error = LaneDied(content[0])
            error.split, error.where = content[1], ""  # its words have told
            raise error
        if kind == "points":
            work.points(*content)
        elif kind == "finished":
            work.end(*content)
        elif kind == "progress":
            (work.fraction,) = content
            if unwanted := work.unwanted():
                pipe.send(("drop", unwanted))
        return bool(kind == "done")


def _blamed(work: Work, error: LaneDied, *, apart: bool = True) -> list[Work]:
    """End as failed what is to blame; return what has to be tried alone to find out."""
    parts = work.apart(error) if apart else []
    if not parts or len(work.stalls) > MOST_STALLS:
        work.fail(error)
        return []
    return parts
