"""Tasks by name: what is learnt, on which data, by which network.

| module | holds |
| --- | --- |
| `base` | `Task`, `Recipe`, `Defaults`: what a task is; `Workload`: what feeds a stack |
| `catalogue` | `TASKS`: every task there is |
| `losses` | `LOSSES`, and accuracies |
| `networks` | stacked networks: dense, convolutional, recurrent |
| `rows`, `pieces` | workloads of tables and images, and of music |

Names that need torch are imported when first used.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from ib_core.datasets import Dataset
from ib_core.errors import UnknownName
from ib_core.tasks.base import (
    CONV_FILTERS,
    EVALUATION_OUTPUTS,
    EVALUATION_ROWS,
    EVALUATION_STATES,
    Defaults,
    Evaluation,
    Recipe,
    Task,
    Workload,
)
from ib_core.tasks.catalogue import MUSIC_RATES, TASKS, UCI_RATES

if TYPE_CHECKING:
    import torch

    from ib_core.tasks.losses import LOSSES
    from ib_core.tasks.networks import StackedRNN
    from ib_core.tasks.rows import feed

__all__ = [
    "CONV_FILTERS",
    "EVALUATION_OUTPUTS",
    "EVALUATION_ROWS",
    "EVALUATION_STATES",
    "LOSSES",
    "MUSIC_RATES",
    "TASKS",
    "UCI_RATES",
    "Defaults",
    "Evaluation",
    "Recipe",
    "StackedRNN",
    "Task",
    "Workload",
    "build_workload",
    "feed",
    "find_task",
    "parameter_count",
]

_HOMES = {
    "losses": "LOSSES",
    "networks": "StackedRNN",
    "rows": "feed",
}


def find_task(name: str) -> Task:
    """Return the task of that name, or raise with those that exist."""
    if name in TASKS:
        return TASKS[name]
    uci = {key.removeprefix("uci/") for key in TASKS if key.startswith("uci/")}
    if name.startswith("uci/"):
        raise UnknownName("UCI set", name.removeprefix("uci/"), uci, field="task")
    others = {key for key in TASKS if not key.startswith("uci/")}
    raise UnknownName("task", name, {*others, "uci/<set>"}, field="task")


def build_workload(
    task: Task, dataset: Dataset, recipe: Recipe, seeds: Sequence[int], device: torch.device
) -> Workload:
    """Return what feeds and measures a stack of members with these seeds."""
    # Here, because whoever only looks tasks up need not carry torch.
    from ib_core.tasks.pieces import PiecesWorkload
    from ib_core.tasks.rows import RowsWorkload

    kind = PiecesWorkload if task.family == "music" else RowsWorkload
    return kind(task, dataset, recipe, seeds, device)


def parameter_count(task: Task, recipe: Recipe) -> int:
    """Return the number of weights and biases of one network (docs/method.md, section 5)."""
    widths = task.widths(recipe)
    if task.family == "music":
        notes, hidden, outputs = widths
        read = notes + hidden if recipe.profile == "authors" else hidden
        return hidden * (notes + hidden + 1) + outputs * (read + 1)
    if widths == (1, 1):
        return 1
    dense = sum(m * (n + 1) for n, m in pairwise(widths))
    channels = (1, *CONV_FILTERS[:-1])
    convolutions = zip(channels, CONV_FILTERS, task.filter_sizes, strict=False)
    return dense + sum(m * (n * size * size + 1) for n, m, size in convolutions)


def __getattr__(name: str) -> Any:
    for module, names in _HOMES.items():
        if name in names.split():
            return getattr(import_module(f"{__name__}.{module}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
