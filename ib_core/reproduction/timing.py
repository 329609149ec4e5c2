"""How much longer an IB step takes than an EB step here, network by network.

EB and IB take turns on the same batches, one model at a time, steps only, and what is taken is the
processor's time: a ratio that a busy machine moves little. Their bounds are counted, not measured:
whoever only reads them need not carry torch.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from statistics import quantiles
from typing import TYPE_CHECKING, Any

from ib_core.datasets import DATASETS, UCI_NAMES, load_dataset
from ib_core.methods import Member, build_optimizer
from ib_core.metrics import LayerShape, overhead_bound
from ib_core.tasks import CONV_FILTERS, PaperTask, build_workload, find_task, paper_task

if TYPE_CHECKING:
    from torch import Tensor

#: The paper's name of the data, the task, and how many steps are timed a round.
TIMED_TASKS: dict[str, tuple[str, int]] = {
    "MNIST classification": ("mnist_classifier", 20),
    "MNIST autoencoder": ("mnist_autoencoder", 10),
    "JSB Chorales": ("music/jsb_chorales", 30),
    "MuseData": ("music/musedata", 4),
    "Nottingham": ("music/nottingham", 6),
    "Piano-midi.de": ("music/piano_midi", 3),
}
#: Of UCI whole epochs are timed: in the paper's sum a large table weighs more than a small one.
UCI, WHOLE_EPOCH = "UCI classification sum", None
ROUNDS = 9


def measure_overheads(said: Callable[[str], None] = lambda _: None) -> dict[str, Any]:
    """Return IB's overheads as shares, by the paper's name of the data, and on what machine."""
    import torch

    from ib_core.bench import surroundings

    found: dict[str, tuple[float, float, float]] = {}
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        for name, (task, steps) in TIMED_TASKS.items():
            if DATASETS[find_task(task).dataset].present():
                said(name)
                found[name] = _overhead([(task, steps)])
        tables = [f"uci/{name}" for name in UCI_NAMES if DATASETS[f"uci/{name}"].present()]
        if tables:
            said(UCI)
            found[UCI] = _overhead([(task, WHOLE_EPOCH) for task in tables])
        return {
            "overheads": {name: middle for name, (_, middle, _) in found.items()},
            "quartiles": {name: (low, high) for name, (low, _, high) in found.items()},
            "measured_on": surroundings(),
        }
    finally:
        torch.set_num_threads(threads)


def _overhead(works: Sequence[tuple[str, int | None]]) -> tuple[float, float, float]:
    """Return the quartiles of IB's overhead over rounds in which both methods take turns."""
    contestants = {
        method: _together([_steps(task, method, steps) for task, steps in works])
        for method in ("eb", "ib")
    }
    for work in contestants.values():
        work()
    ratios = []
    for number in range(ROUNDS):
        order = ("eb", "ib") if number % 2 else ("ib", "eb")
        taken = {method: _processor_seconds(contestants[method]) for method in order}
        ratios.append(taken["ib"] / taken["eb"])
    low, middle, high = quantiles(ratios, n=4, method="inclusive")
    return low - 1, middle - 1, high - 1


def _processor_seconds(work: Callable[[], None]) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start


def _together(works: list[Callable[[], None]]) -> Callable[[], None]:
    def run() -> None:
        for work in works:
            work()

    return run


def _steps(task_name: str, method: str, steps: int | None) -> Callable[[], None]:
    """Return what takes so many first steps of an epoch, or all of them, ready built."""
    import torch

    task = paper_task(task_name)
    dataset = load_dataset(task.dataset)
    workload = build_workload(task, dataset, task.recipe("text"), [1], torch.device("cpu"))
    model = workload.model()
    # A small rate: nothing diverges, and the work of a step does not depend on it.
    optimizer = build_optimizer(model, [Member(method=method, lr=1e-3)])
    workload.begin_epoch()

    def losses() -> Tensor:
        found = workload.losses(model)
        found.sum().backward()
        return found.detach()

    def run() -> None:
        for step in range(min(steps or workload.steps_per_epoch, workload.steps_per_epoch)):
            workload.load_batch(step)
            optimizer.step(losses)

    return run


def bounds() -> dict[str, float]:
    """Return the flop bound of every network on IB's overhead, as a share."""
    tasks = {name: paper_task(task) for name, (task, _) in TIMED_TASKS.items()}
    return {name: overhead_bound(list(_layers(task))).flop_weighted for name, task in tasks.items()}


def _layers(task: PaperTask) -> Iterator[LayerShape]:
    """Yield a network's layers; of a recurrent one the hidden layer reads its own state too."""
    if task.family == "conv":
        yield from _convolutions(task)
    widths = task.widths(task.recipe("text"))
    pairs = list(pairwise(widths))
    for position, (inputs, outputs) in enumerate(pairs):
        last = position == len(pairs) - 1
        extra = outputs if task.family == "music" and not last else 0
        yield LayerShape(inputs + extra, outputs, task.output if last else task.activation)


def _convolutions(task: PaperTask) -> Iterator[LayerShape]:
    side, channels = 28, 1
    for filters, size in zip(CONV_FILTERS, task.filter_sizes, strict=True):
        side = side - size + 1
        yield LayerShape(channels * size * size, filters, None, positions=side * side)
        side, channels = side // 2, filters


__all__ = ["bounds", "measure_overheads"]
