"""What workers bring along, as the API answers it."""

from typing import Any

from backend.schemas import CatalogRead, MethodRead, OfferRead, TaskRead
from tests.dashboard.answers import NOW, catalog, task

#: What somebody's worker says of a task's options.
OWN_OPTIONS: dict[str, Any] = {
    "type": "object",
    "properties": {
        "width": {
            "description": "Units a layer.",
            "type": "integer",
            "minimum": 4,
            "maximum": 512,
            "default": 32,
        },
        "dropout": {"type": "number", "minimum": 0, "maximum": 0.9, "default": 0.0},
        "norm": {"enum": ["batch", "layer norm", False], "default": "batch"},
    },
    "additionalProperties": False,
}


def offer(kind: str = "task", **changes: Any) -> OfferRead:
    """Return a version that a worker brings along."""
    name = "my_file.py:task" if kind == "task" else "my_file.py:lion"
    given = {
        "key": "0123456789ab",
        "kind": kind,
        "name": name,
        "title": "<b>Mine</b>",
        "summary": "",
        "version": "aaaa0000",
        "code": "aaaa0000aaaa0000",
        "data": "d" * 64,
        "options": OWN_OPTIONS if kind == "task" else {"properties": {}},
        "defaults": {"epochs": 1, "batch_size": 50, "learning_rates": [0.1, 1.0], "seeds": 3},
        "packages": {"torch": "2.9.0"},
        "workers": ["anna.lab"],
        "last_worker": "one",
        "last_host": "anna.lab",
        "first_seen_at": NOW,
        "last_seen_at": NOW,
    }
    return OfferRead(**(given | changes))


def own_task(**changes: Any) -> TaskRead:
    """Return a task that a worker brings along, as the catalogue lists it."""
    own = {
        "name": "my_file.py:task",
        "title": "<b>Mine</b>",
        "family": "yours",
        "source": "version aaaa0000 on anna.lab",
        "dataset": "",
        "activation": "",
        "options": OWN_OPTIONS,
        "version": "aaaa0000",
        "workers": ["anna.lab"],
    }
    return task().model_copy(update=own | changes)


def own_catalog() -> CatalogRead:
    """Return the catalogue with a task and a method that a worker brings along."""
    lion = MethodRead(
        name="my_file.py:lion", title="my_file.py:lion", summary="", implicit=False, version="bbbb"
    )
    plain = catalog()
    mine = own_task(methods=["eb", "adam", lion.name])
    return plain.model_copy(
        update={
            "tasks": [*plain.tasks, mine],
            "methods": [*plain.methods, lion],
            "offers": [offer(), offer("method", workers=[], options={})],
        }
    )
