"""Runs made elsewhere: read, checked row by row, stored beside our own and marked as imported.

An import is all or nothing: a row that cannot be read refuses the file, with its line number.

| module | for |
| --- | --- |
| `files` | from bytes to rows, and from cells to values, with errors that name line and column |
| `runs` | from rows to trials, and from trials to a study |
"""

from backend.services.importing.files import read_rows
from backend.services.importing.runs import (
    Imported,
    forget,
    read_trials,
    refuse_imported,
    store,
    store_trials,
)

__all__ = [
    "Imported",
    "forget",
    "read_rows",
    "read_trials",
    "refuse_imported",
    "store",
    "store_trials",
]
