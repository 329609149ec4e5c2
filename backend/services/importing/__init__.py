"""Runs made elsewhere: read, checked row by row, stored beside our own and marked as imported.

An import is all or nothing: a row that cannot be read refuses the file, with its line number.

| module | for |
| --- | --- |
| `files` | from bytes to rows, and from cells to values, with errors that name line and column |
| `runs` | from rows to trials |
| `into_study` | from trials to a study: shared by content like our own, one sweep a task |
"""

from backend.services.importing.files import read_rows
from backend.services.importing.into_study import (
    forget,
    preview,
    refuse_imported,
    store,
    store_trials,
)
from backend.services.importing.runs import Imported, read_trials

__all__ = [
    "Imported",
    "forget",
    "preview",
    "read_rows",
    "read_trials",
    "refuse_imported",
    "store",
    "store_trials",
]
