"""Steps on a GPU: their losses are looked at seldom, and a step can be replayed as one CUDA graph.

`Launches` notes the torch calls of some work: how many, and whether the same ones again. A graph is
a step's launches, recorded once; replayed they cost the processor one call. It is right
only if every step makes the same calls with the same numbers on the same memory, and needs nothing
of the processor. So it is not believed but looked at: two steps are compared call by call, and what
the method remembers must lie where it lay. Adam, whose numbers change with every step, is never
replayed. Switched on by `ETASCOPE_CUDA_GRAPHS=on`; off until GPUs have been seen to gain by it.
"""

import os
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from ib_core.methods import StackOptimizer


class Launches(TorchDispatchMode):
    """Notes the torch calls made inside it.

    Attributes:
        names: How often each operator was called, views apart.
        calls: Every call in order, with its numbers and the shapes of its tensors.
        at_host: Calls that read or made a tensor on the processor.
    """

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.names: Counter[str] = Counter()
        self.calls: list[tuple[str, tuple[Any, ...]]] = []
        self.at_host: list[str] = []

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Any = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """Note a call and make it."""
        found = func(*args, **(kwargs or {}))
        leaves = tree_leaves((args, kwargs))
        self.calls.append((str(func), tuple(_plainly(leaf) for leaf in leaves)))
        if not func.is_view:
            self.names[str(func)] += 1
        if any(isinstance(part, Tensor) and part.is_cpu for part in (*leaves, *tree_leaves(found))):
            self.at_host.append(str(func))
        return found

    @property
    def total(self) -> int:
        """How many launches there were."""
        return sum(self.names.values())


def _plainly(leaf: Any) -> Any:
    return tuple(leaf.shape) if isinstance(leaf, Tensor) else leaf


#: Losses on a GPU are looked at once in so many steps.
LOOK_EVERY = 32
#: Steps before one is recorded: allocators and kernels are warm, first steps are over.
WARM = 3


def look_every(device: torch.device) -> int:
    """Return in how many steps losses are looked at once."""
    return 1 if device.type == "cpu" else LOOK_EVERY


def all_finite(losses: Sequence[Tensor]) -> bool:
    """Return whether all losses of some steps are finite; waits for the device once."""
    return bool(torch.stack(list(losses)).sum().isfinite())


def graphs_wanted(device: torch.device) -> bool:
    """Return whether steps are to be replayed there."""
    return device.type == "cuda" and os.environ.get("ETASCOPE_CUDA_GRAPHS", "off") == "on"


class Graph(Protocol):
    """Launches that can be made again."""

    def record(self, work: Callable[[], Tensor]) -> Tensor:
        """Note the launches of some work without making them; return where its result will lie."""

    def replay(self) -> None:
        """Make them."""


class CudaGraph:
    """A graph of CUDA's."""

    def __init__(self) -> None:
        self._graph = torch.cuda.CUDAGraph()

    def record(self, work: Callable[[], Tensor]) -> Tensor:
        """Note the launches of some work without making them; return where its result will lie."""
        with torch.cuda.graph(self._graph):
            return work()

    def replay(self) -> None:
        """Make them."""
        self._graph.replay()


class ReplayedSteps:
    """Takes the steps of one stack, by a graph where that is right.

    Args:
        workload: Its `batch` is what a step reads; it may be put elsewhere.
        optimizer: Of the stack; members must not leave it meanwhile.
        closure: As `StackOptimizer.step` takes it.
        graph: Makes a graph.
    """

    def __init__(
        self,
        workload: Any,
        optimizer: StackOptimizer,
        closure: Callable[[], Tensor],
        graph: Callable[[], Graph] = CudaGraph,
    ) -> None:
        self._workload, self._optimizer, self._closure = workload, optimizer, closure
        self._make = graph
        self._graph: Graph | None = None
        self._seen: list[Any] = []
        self._batch: tuple[Tensor | None, ...] = ()
        self._losses = self._lr = torch.empty(0)
        self._here = optimizer.slots.like.is_cpu
        self.possible = hasattr(workload, "batch")

    @property
    def replays(self) -> bool:
        """Whether a step has been recorded."""
        return self._graph is not None

    def step(self) -> Tensor:
        """Take a step on the workload's present batch and return the losses before it."""
        if not self.possible:
            return self._eager()
        if len(self._seen) < WARM:
            return self._watched()
        if self._graph is None:
            return self._recorded()
        if not self._same_shapes():  # the last batch of an epoch
            return self._eager()
        return self._replayed()

    def _eager(self) -> Tensor:
        self._optimizer.given_lr = None
        return self._optimizer.step(self._closure)

    def _watched(self) -> Tensor:
        before = _places(self._optimizer)
        self._optimizer.given_lr = self._optimizer.current_lr()  # outside, as for a graph
        with Launches() as made:
            losses = self._optimizer.step(self._closure)
        self._optimizer.given_lr = None
        stays = before == _places(self._optimizer)
        self._seen.append((made.calls, stays and (self._here or not made.at_host)))
        if len(self._seen) == WARM:
            (one, _), (other, lies) = self._seen[-2:]
            self.possible = lies and one == other
        return losses

    def _recorded(self) -> Tensor:
        self._batch = tuple(None if p is None else p.clone() for p in self._workload.batch)
        self._workload.batch = self._batch
        self._optimizer.given_lr = self._lr = self._optimizer.current_lr().clone()
        graph = self._make()
        self._losses = graph.record(lambda: self._optimizer.step(self._closure))
        self._graph = graph
        graph.replay()
        self._optimizer.given_lr = None
        return self._losses.clone()

    def _replayed(self) -> Tensor:
        assert self._graph is not None
        for mine, present in zip(self._batch, self._workload.batch, strict=True):
            if mine is not None:
                mine.copy_(present)
        self._optimizer.given_lr = None
        self._lr.copy_(self._optimizer.current_lr())
        self._graph.replay()
        self._optimizer.steps += 1
        return self._losses.clone()

    def _same_shapes(self) -> bool:
        now = self._workload.batch
        return [p is not None and p.shape for p in now] == [
            p is not None and p.shape for p in self._batch
        ]


def _places(optimizer: StackOptimizer) -> list[int]:
    """Return where everything lies that a method remembers from step to step."""
    parts = tree_leaves(optimizer.remembered())
    return [id(part) if isinstance(part, Tensor) else hash(part) for part in parts]
