"""Trials: one training run each, shared by all sweeps that ask for it.

| module | for |
| --- | --- |
| `rows` | a trial's columns: answered, filled from the engine's result, found, locked, deleted |
| `curves` | a trial's losses by step, as bytes |
| `exporting` | trials as files, or as the engine's results |
"""

from backend.services.trials.curves import curve, curve_row, first_and_best
from backend.services.trials.exporting import (
    FORMULA_STARTS,
    MEDIA_TYPES,
    Format,
    export,
    stored_results,
)
from backend.services.trials.rows import (
    CHUNK,
    CLEARED,
    COUNTED,
    OUTCOMES,
    RESULTS,
    RETRIABLE,
    SETTINGS,
    UNFINISHED,
    chunks,
    delete_orphans,
    finite,
    get,
    ids_at,
    is_wanted,
    lock,
    page,
    readable,
    result_columns,
    spec_of,
    to_event,
    to_read,
)

__all__ = [
    "CHUNK",
    "CLEARED",
    "COUNTED",
    "FORMULA_STARTS",
    "MEDIA_TYPES",
    "OUTCOMES",
    "RESULTS",
    "RETRIABLE",
    "SETTINGS",
    "UNFINISHED",
    "Format",
    "chunks",
    "curve",
    "curve_row",
    "delete_orphans",
    "export",
    "finite",
    "first_and_best",
    "get",
    "ids_at",
    "is_wanted",
    "lock",
    "page",
    "readable",
    "result_columns",
    "spec_of",
    "stored_results",
    "to_event",
    "to_read",
]
