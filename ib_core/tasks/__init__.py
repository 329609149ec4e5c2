"""Tasks by name: what is learnt, on which data, by which network.

| module | holds |
| --- | --- |
| `task` | `Task`, `Data`: the contract, for anybody's model |
| `paper` | `PaperTask`: networks of the paper, stacked by hand |
| `catalogue`, `modern` | `TASKS`: every task that comes along |
| `modules` | the networks of `modern` |
| `twins`, `mapped` | layers and functions of torch's as they can be stacked |
| `model_workload`, `stacked_model` | anybody's model, stacked, and the rows it is fed |
| `footprint` | the memory that a model takes, and may take |
| `randomness` | seeds: streams of weights, order and dropout; chance inside a user's model |
| `losses` | `LOSSES`, and accuracies |
| `networks` | stacked networks: dense, convolutional, recurrent |
| `workloads` | the paper's: of tables and images, and of music |

Names that need torch are imported when first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from ib_core.errors import UnknownName
from ib_core.options import Known
from ib_core.tasks.catalogue import MUSIC_RATES, TASKS, UCI_RATES
from ib_core.tasks.paper import PaperTask, build_workload, parameter_count
from ib_core.tasks.task import (
    CONV_FILTERS,
    EVALUATION_OUTPUTS,
    EVALUATION_ROWS,
    EVALUATION_STATES,
    Data,
    Defaults,
    Evaluation,
    Footprint,
    Recipe,
    Task,
    Workload,
)

if TYPE_CHECKING:
    from ib_core.tasks.footprint import limit_memory
    from ib_core.tasks.losses import LOSSES, of_all
    from ib_core.tasks.networks import StackedRNN, feed
    from ib_core.tasks.randomness import build_model, tensor_hash

__all__ = [
    "CONV_FILTERS",
    "EVALUATION_OUTPUTS",
    "EVALUATION_ROWS",
    "EVALUATION_STATES",
    "LOSSES",
    "MUSIC_RATES",
    "OWN_TASKS",
    "TASKS",
    "UCI_RATES",
    "Data",
    "Defaults",
    "Evaluation",
    "Footprint",
    "PaperTask",
    "Recipe",
    "StackedRNN",
    "Task",
    "Workload",
    "build_model",
    "build_workload",
    "feed",
    "find_task",
    "limit_memory",
    "of_all",
    "paper_task",
    "parameter_count",
    "tensor_hash",
]

_HOMES = {
    "footprint": "limit_memory",
    "losses": "LOSSES of_all",
    "networks": "StackedRNN feed",
    "randomness": "build_model tensor_hash",
}


#: Tasks from files and packages of this machine's user, by name; `ib_core.own` fills it.
OWN_TASKS: Known[Task] = Known("tasks")


def find_task(name: str) -> Task:
    """Return the task of that name, or raise with those that exist."""
    if name in TASKS:
        return TASKS[name]
    if name in OWN_TASKS:
        return OWN_TASKS[name]
    uci = {key.removeprefix("uci/") for key in TASKS if key.startswith("uci/")}
    if name.startswith("uci/"):
        raise UnknownName("UCI set", name.removeprefix("uci/"), uci, field="task")
    others = {key for key in TASKS if not key.startswith("uci/")}
    raise UnknownName("task", name, {*others, *OWN_TASKS, "uci/<set>"}, field="task")


def paper_task(name: str) -> PaperTask:
    """Return the paper's task of that name.

    Raises:
        UnknownName: If there is none, or it is a task of another kind.
    """
    found = find_task(name)
    if not isinstance(found, PaperTask):
        known = [key for key, task in TASKS.items() if isinstance(task, PaperTask)]
        raise UnknownName("task of the paper", name, known, field="task")
    return found


def __getattr__(name: str) -> Any:
    for module, names in _HOMES.items():
        if name in names.split():
            return getattr(import_module(f"{__name__}.{module}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
