"""Trials: one training run each, shared by all sweeps that ask for it.

| module | for |
| --- | --- |
| `rows` | a trial's columns: answered, filled from the engine's result, found, locked, deleted |
| `curves` | a trial's losses by step, and what was recorded of its way, as bytes |
| `exporting` | trials as files, or as the engine's results |
"""

from backend.services.trials.curves import (
    COLUMNS,
    add_points,
    curve,
    curve_row,
    export_recording,
    first_and_best,
    first_and_chosen,
    insert_or_replace_curve,
    insert_or_replace_rows,
    recording,
    store_recordings,
    unpack,
    wishes,
)
from backend.services.trials.exporting import (
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
    "COLUMNS",
    "COUNTED",
    "MEDIA_TYPES",
    "OUTCOMES",
    "RESULTS",
    "RETRIABLE",
    "SETTINGS",
    "UNFINISHED",
    "Format",
    "add_points",
    "chunks",
    "curve",
    "curve_row",
    "delete_orphans",
    "export",
    "export_recording",
    "finite",
    "first_and_best",
    "first_and_chosen",
    "get",
    "ids_at",
    "insert_or_replace_curve",
    "insert_or_replace_rows",
    "is_wanted",
    "lock",
    "page",
    "readable",
    "recording",
    "result_columns",
    "spec_of",
    "store_recordings",
    "stored_results",
    "to_event",
    "to_read",
    "unpack",
    "wishes",
]
