"""Runs made elsewhere: read, checked row by row, stored beside our own and marked as imported.

`files` turns bytes into rows, `rows` turns a row into a trial, `storing` writes trials down. An
import is all or nothing: a row that cannot be read refuses the file, with its line number.
"""

from backend.services.importing.files import read_rows
from backend.services.importing.rows import Imported, read_trials
from backend.services.importing.storing import forget, refuse_imported, store, store_trials

__all__ = [
    "Imported",
    "forget",
    "read_rows",
    "read_trials",
    "refuse_imported",
    "store",
    "store_trials",
]
