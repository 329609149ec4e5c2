"""Runs that other trackers hold, read where they lie, as rows that an import takes.

    found = read_tracker("optuna", "sqlite:///study.db", Names(lr="learning_rate"))
    found.rows       # one a run, for `POST /api/import`
    found.dropped    # which were left out, and why

| module | reads |
| --- | --- |
| `tracked` | a run of any tracker, and its row: names looked up, outcomes as the source says |
| `sources` | exported files, and stores that only their own library reads |

Libraries are imported when they are needed: `pip install 'etascope[importers]'`.
"""

from collections.abc import Callable, Iterable

from backend.trackers.sources import (
    read_aim,
    read_mlflow,
    read_optuna,
    read_table,
    read_tensorboard,
    read_wandb,
)
from backend.trackers.tracked import Dropped, Found, Names, TrackedRun, rows_of
from ib_core.errors import lookup

__all__ = ["READERS", "Dropped", "Found", "Names", "TrackedRun", "read_tracker", "rows_of"]

#: By the word that `etascope import` takes.
READERS: dict[str, Callable[[str, Names], Iterable[TrackedRun]]] = {
    "optuna": read_optuna,
    "mlflow": read_mlflow,
    "wandb": read_wandb,
    "tensorboard": read_tensorboard,
    "aim": read_aim,
    "table": read_table,
}


def read_tracker(kind: str, store: str, names: Names) -> Found:
    """Return the runs of a store as rows, and which were left out.

    Args:
        kind: A name in `READERS`.
        store: An address, a folder or a file.
        names: What the source calls the rate, the method and so on.

    Raises:
        IBError: The store cannot be read, or holds nothing that could be imported.
    """
    reader = lookup("tracker", kind, READERS)
    return rows_of(kind, store, reader(store, names), names)
