"""Runs that other trackers hold, read where they lie, as rows that an import takes.

    found = read_tracker("optuna", "sqlite:///study.db", Names(lr="learning_rate"))
    found.rows       # one a run, for `POST /api/import`
    found.dropped    # which were left out, and why

| module | for |
| --- | --- |
| `stores` | stores that only their own library reads |
| `tracked` | a run of any source, and its row: names looked up, outcomes as the source says |

Here are exported files, which need no library, and the list of sources.
"""

import csv
import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from backend.trackers.stores import read_aim, read_mlflow, read_optuna, read_tensorboard
from backend.trackers.tracked import (
    Dropped,
    Found,
    Names,
    State,
    TrackedRun,
    flat,
    number,
    rows_of,
)
from ib_core.errors import InvalidSpec, lookup

#: Columns that say how a run ended, and what their words mean; any other word: it has ended.
STATES = ("state", "status", "outcome", "State", "Status")
_WORDS: dict[State, str] = {
    "running": "running waiting pending queued scheduled starting preempting paused in_progress",
    "diverged": "diverged exploded",
    "failed": "failed fail failure error errored crashed killed preempted pruned canceled "
    "cancelled aborted interrupted timeout out_of_memory node_fail",
}
MEANINGS = {word: state for state, words in _WORDS.items() for word in words.split()}
#: Columns that name a run, unless an import was told that they are something else.
IDS = ("id", "run_id", "ID", "Name", "name", "run")
ERRORS = ("error", "failure", "exception")
SUMMARIES = ("summary.", "summary_metrics.", "summaryMetrics.")
SECONDS = ("seconds", "_runtime", "Runtime", "duration", "summary._runtime")


def read_table(store: str, names: Names) -> Iterator[TrackedRun]:
    """Yield a run for every row of a CSV, JSON or Parquet file."""
    path = Path(store)
    for line, row in enumerate(_rows(path), start=1):
        yield _run(path.stem, line, dict(flat(row)), names)


def read_wandb(store: str, names: Names) -> Iterator[TrackedRun]:
    """Yield the runs of a W&B export: the table's CSV, or JSON as its public API gives runs.

    Of JSON, `config` and `summary` (or `summary_metrics`) are flattened; `history` may be a list
    of rows with `_step`.
    """
    path = Path(store)
    for line, row in enumerate(_rows(path), start=1):
        history = row.pop("history", None) if isinstance(row.get("history"), list) else None
        values = dict(flat(row))
        loss = names.loss or "loss"
        points = [
            (step if (said := number(one.get("_step"))) is None else said, value)
            for step, one in enumerate(history or [])
            if isinstance(one, Mapping) and (value := number(one.get(loss))) is not None
        ]
        yield replace(
            _run(str(values.get("project") or path.stem), line, values, names),
            values=values | _below("config.", values),
            metrics={
                name: value for place in SUMMARIES for name, value in _below(place, values).items()
            },
            history=points,
        )


def _below(place: str, values: Mapping[str, Any]) -> dict[str, Any]:
    return {k.removeprefix(place): v for k, v in values.items() if k.startswith(place)}


def _read_mlflow(store: str, names: Names) -> Iterable[TrackedRun]:
    exported = store.endswith((".csv", ".json", ".parquet"))
    return read_table(store, names) if exported else read_mlflow(store, names)


def _run(task: str, line: int, values: dict[str, Any], names: Names) -> TrackedRun:
    told = names.told()

    def first(columns: Sequence[str]) -> Any:
        mine = (values.get(name) for name in columns if name not in told)
        return next((one for one in mine if one not in (None, "") and one == one), None)  # no NaN

    said = str(first(STATES) or "").strip().lower()
    name, error = first(IDS), first(ERRORS)
    return TrackedRun(
        id="" if name is None else str(name),
        state=MEANINGS.get(re.sub(r"[\s-]+", "_", said.rpartition(".")[2]), "finished"),
        values=values,
        task=task,
        error=str(error) if error else (f"Its source says {said}." if said else None),
        seconds=number(first(SECONDS)),
        about={"line": line, "state": said, "name": values.get("Name") or values.get("name")},
    )


def _rows(path: Path) -> Iterable[dict[str, Any]]:
    if not path.is_file():
        raise InvalidSpec(f"There is no file {path}.")
    if path.suffix == ".parquet":
        return _parquet(path)
    if path.suffix in (".json", ".jsonl"):
        return _json(path)
    with path.open(encoding="utf-8-sig", newline="") as file:
        reader = csv.DictReader(file)
        twice = [name for name, times in Counter(reader.fieldnames).items() if times > 1 and name]
        if twice:  # one would silently hide the other
            raise InvalidSpec(f"{path} has several columns called {twice[0]!r}; rename one.")
        return list(reader)


def _parquet(path: Path) -> list[dict[str, Any]]:
    # Imported when first needed: it takes some 60 MB.
    import pyarrow.parquet as pq

    try:
        # In one thread: a pool of its own, ended with the process, now and then takes it down.
        table = pq.read_table(path, use_threads=False, pre_buffer=False)
    except (OSError, ValueError) as error:
        raise InvalidSpec(f"{path} is not Parquet: {error}.") from None
    return list(table.to_pylist())


def _json(path: Path) -> list[dict[str, Any]]:
    text = path.read_text("utf-8")
    try:
        if path.suffix == ".jsonl":
            found = [json.loads(line) for line in text.splitlines() if line.strip()]
        else:
            found = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InvalidSpec(f"{path} is not JSON: {error}.") from None
    if isinstance(found, dict):
        found = found.get("runs", [found])
    if not isinstance(found, list) or not all(isinstance(run, dict) for run in found):
        raise InvalidSpec(f"{path} must hold a list of runs.")
    return found


__all__ = ["READERS", "Dropped", "Found", "Names", "TrackedRun", "read_tracker", "rows_of"]

#: By the word that `etascope import` takes.
READERS: dict[str, Callable[[str, Names], Iterable[TrackedRun]]] = {
    "optuna": read_optuna,
    "mlflow": _read_mlflow,
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
