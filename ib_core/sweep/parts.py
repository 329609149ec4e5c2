"""A shard in parts: cut to what a device has room for, and halved where its memory ran out.

A stack that does not fit is trained as two. Members know nothing of each other, so nothing but the
time it takes depends on where it is cut.
"""

import gc
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TypeVar

import torch

from ib_core.sweep.cost import stack_memory
from ib_core.sweep.result import CurvePoint, Observer, TrialResult
from ib_core.sweep.spec import TrialSpec

#: Of a device's free memory a stack may be forecast to take so much.
ROOM = 0.8

Trained = list[TrialResult | None]
#: Trains some trials as one stack and fills in their results, also those before it fails.
Train = Callable[[Sequence[TrialSpec], Observer, Trained], None]
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


def room_on(device: torch.device) -> int | None:
    """Return the bytes a stack may be forecast to take on a GPU; None where none is counted."""
    if device.type != "cuda":
        return None
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
    trials: Sequence[TrialSpec], train: Train, observer: Observer, room: int | None
) -> Trained:
    """Train a shard as one stack, or as many as its device has room for.

    Where memory runs out all the same, what has ended stays; the rest begins again in halves.
    """
    results: Trained = [None] * len(trials)
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
        for index, result in zip(part, found, strict=True):
            results[index] = result
        if full:  # outside of `except`, whose traceback holds the stack that was too large
            free_memory()
            most = -(-len(part) // 2)
            waiting = [i for i in part if results[i] is None] + waiting
    return results


def free_memory() -> None:
    """Give back what a stack that is gone has held."""
    gc.collect()
    if torch.cuda.is_available():
        torch.cuda.empty_cache()
