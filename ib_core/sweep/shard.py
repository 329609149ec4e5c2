"""Which trials can be stacked, how many at once, at what cost; cut to what a device has room for.

A stack that does not fit is trained as two. Members know nothing of each other, so nothing but the
time it takes depends on where it is cut.
"""

import gc
from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from ib_core.errors import IBError, said_where
from ib_core.methods import find_method
from ib_core.sweep.cost import Speed, machine_speed, stack_memory, stack_seconds
from ib_core.sweep.result import CurvePoint, Observer, TrialResult
from ib_core.sweep.spec import TrialSpec
from ib_core.tasks import PaperTask, find_task

if TYPE_CHECKING:  # whoever only plans need not carry it
    import torch

#: Aim of one shard's length: short enough for fine progress and cheap recovery.
SHARD_SECONDS = 20.0
#: A short sweep is cut finer than that, so that its curves can be seen to grow, down to this.
LEAST_SECONDS = 2.0
#: Into how many shards a short group is cut.
LIVELY_PARTS = 10
#: Cutting a group up for several processes pays if each part takes longer than this.
WORTH_A_PROCESS = 0.2
#: No shard may need more than this.
SHARD_BYTES = 2 * 1024**3
#: Anybody's model is not cut finer than this for the sake of time: stacking is what it gains by.
WORTH_A_STACK = 32
#: Beyond this many members a stack gains nothing and only makes progress coarser.
MOST_MEMBERS = 512


@dataclass(frozen=True, slots=True)
class PlannedShard:
    """Trials that one worker trains together.

    Attributes:
        indices: Positions in the list that was planned.
        seconds: Forecast of its training time on this device.
        memory_bytes: Forecast of its peak memory, without the data set.
    """

    indices: tuple[int, ...]
    seconds: float
    memory_bytes: int


def stack_key(trial: TrialSpec) -> Hashable:
    """Return what trials of one stack must share: everything that shapes the program.

    Rate, seed, clip, mu and method are the members' own. Exact ISGD runs inner steps and stands
    alone, and so does every optimizer of torch's kind.
    """
    method = find_method(trial.method)
    return (
        trial.task,
        trial.profile,
        trial.activation,
        trial.epochs,
        trial.batch_size,
        trial.options.width,
        trial.options.depth,
        trial.options.validation,
        trial.options.own,
        method.implicit_filters,
        (trial.options.inner_steps, trial.options.isgd_form) if method.exact else None,
        trial.method if method.factory is not None else None,
    )


def plan_shards(
    trials: Sequence[TrialSpec],
    *,
    device: str = "cpu",
    lanes: int = 1,
    seconds: float | None = None,
) -> list[PlannedShard]:
    """Group trials into shards of about `SHARD_SECONDS` each, within `SHARD_BYTES`.

    A group that takes less than a few such shards is cut finer, so that its curves grow before
    one's eyes. Pairs that differ in the method only stay neighbours, so that a half-finished
    sweep can already be compared.

    Args:
        trials: What will be trained.
        device: Where.
        lanes: How many processes will train them side by side: a group is cut into a multiple.
        seconds: Where nobody watches: shards of so many seconds, and no finer.
    """
    groups: dict[Hashable, list[int]] = {}
    for index, trial in enumerate(trials):
        groups.setdefault(stack_key(trial), []).append(index)
    speed = machine_speed(device)
    planned = []
    for indices in groups.values():
        indices.sort(key=lambda i: (trials[i].seed, trials[i].lr, trials[i].method))
        parts, count = _parts([trials[i] for i in indices], speed, lanes, seconds), len(indices)
        for number in range(parts):
            part = indices[number * count // parts : (number + 1) * count // parts]
            members = [trials[i] for i in part]
            planned.append(
                PlannedShard(
                    indices=tuple(part),
                    seconds=stack_seconds(members, speed),
                    memory_bytes=stack_memory(members),
                )
            )
    return planned


def _parts(group: list[TrialSpec], speed: Speed, lanes: int, seconds: float | None) -> int:
    """Return into how many shards a group is cut to fit the time target and the memory."""
    count = len(group)
    whole = stack_seconds(group, speed)
    target = seconds or min(SHARD_SECONDS, max(LEAST_SECONDS, whole / LIVELY_PARTS))
    fits = min(count, MOST_MEMBERS)
    least = 1
    if not isinstance(find_task(group[0].task), PaperTask):
        least = min(WORTH_A_STACK, -(-count // lanes))
    while fits > 1:
        sample = group[:fits]
        soon = fits <= least or stack_seconds(sample, speed) <= target
        if soon and stack_memory(sample) <= SHARD_BYTES:
            break
        fits = max(1, fits * 3 // 4 if fits > least else fits - 1)
    parts = -(-count // fits)
    if whole / lanes < WORTH_A_PROCESS:
        return parts
    return min(count, -(-parts // lanes) * lanes)


#: Of a device's free memory a stack may be forecast to take so much.
ROOM = 0.8

Trained = list[TrialResult | None]
#: Trains some trials as one stack and fills in their results, also those before it fails.
Train = Callable[[Sequence[TrialSpec], Observer, Trained], None]
#: Trains one trial, given why alone.
TrainOne = Callable[[TrialSpec, Observer, str], TrialResult | None]
T = TypeVar("T")


class PartObserver(Observer):
    """Passes on what happens to some trials of a shard, under their numbers in the shard.

    Args:
        outer: Who is told.
        indices: The shard's numbers of these trials.
        before: How many of the shard's trials are done already.
        total: How many there are.
    """

    def __init__(self, outer: Observer, indices: Sequence[int], before: int, total: int) -> None:
        self.outer, self.indices, self.before, self.total = outer, indices, before, total

    def points(self, points: Mapping[int, CurvePoint]) -> None:
        """Pass on their points."""
        self.outer.points({self.indices[i]: point for i, point in points.items()})

    def finished(self, index: int, result: TrialResult) -> None:
        """Pass on a result."""
        self.outer.finished(self.indices[index], result)

    def progress(self, fraction: float) -> Collection[int]:
        """Pass on how far the whole shard is; say which of these are no longer wanted."""
        done = (self.before + fraction * len(self.indices)) / self.total
        unwanted = set(self.outer.progress(done))
        return [place for place, index in enumerate(self.indices) if index in unwanted]


def room_on(device: "torch.device") -> int | None:
    """Return the bytes a stack may be forecast to take on a GPU; None where none is counted."""
    if device.type != "cuda":
        return None
    import torch

    free, _ = torch.cuda.mem_get_info(device)
    return int(ROOM * free)


def fitting(trials: Sequence[T], room: int | None, needs: Callable[[Sequence[T]], int]) -> int:
    """Return how many of the trials fit, one at least.

    Args:
        trials: What is to be trained as one stack.
        room: Bytes; None for no bound.
        needs: Forecasts what some of them take together.
    """
    count = len(trials)
    while room is not None and count > 1 and needs(trials[:count]) > room:
        count = -(-count // 2)
    return count


def train_in_parts(
    trials: Sequence[TrialSpec],
    train: Train,
    observer: Observer,
    room: int | None,
    results: Trained | None = None,
) -> Trained:
    """Train a shard as one stack, or as many as its device has room for.

    Where memory runs out all the same, what has ended stays; the rest begins again in halves.

    Args:
        trials: What to train.
        train: Trains some of them as one stack.
        observer: Told about the whole shard.
        room: Bytes that a stack may be forecast to take; None for no bound.
        results: Filled in, also before anything else is raised.
    """
    import torch

    results = [None] * len(trials) if results is None else results
    waiting = list(range(len(trials)))
    most = fitting(trials, room, stack_memory)
    while waiting:
        part, waiting = waiting[:most], waiting[most:]
        whole = len(part) == len(trials)
        before = len(trials) - len(part) - len(waiting)
        watcher = observer if whole else PartObserver(observer, part, before, len(trials))
        found: Trained = [None] * len(part)
        full = False
        try:
            train([trials[i] for i in part], watcher, found)
        except torch.OutOfMemoryError:
            if len(part) == 1:
                raise
            full = True
        finally:
            for index, result in zip(part, found, strict=True):
                results[index] = result
        if full:  # outside of `except`, whose traceback holds the stack that was too large
            free_memory()
            most = -(-len(part) // 2)
            waiting = [i for i in part if results[i] is None] + waiting
    return results


def train_own(
    trials: Sequence[TrialSpec],
    stacked: Train | None,
    each: TrainOne,
    observer: Observer,
    room: int | None,
    reason: str,
) -> Trained:
    """Train a user's model or optimizer: as stacks, or one by one where that broke.

    Args:
        trials: What to train.
        stacked: Trains some of them as one stack; None where they are not to be stacked.
        each: Trains one of them alone.
        observer: Told about the whole shard.
        room: See `train_in_parts`.
        reason: Why they are not stacked.
    """
    results: Trained = [None] * len(trials)
    if stacked is not None:
        try:
            return train_in_parts(trials, stacked, observer, room, results)
        except IBError:
            raise
        except Exception as error:  # it could be stacked at first, and then not
            reason = f"the stack broke: {said_where(error)}"
        free_memory()  # outside of `except`, whose traceback holds the stack
    for index, trial in enumerate(trials):
        watcher = PartObserver(observer, [index], index, len(trials))
        if results[index] is None and not watcher.progress(0.0):
            results[index] = each(trial, watcher, reason)
    return results


def free_memory() -> None:
    """Give back what a stack that is gone has held."""
    import torch

    gc.collect()
    if torch.cuda.is_available():
        torch.cuda.empty_cache()
