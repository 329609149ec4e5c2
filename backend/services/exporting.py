"""Every trial of a study as a file, made while it is sent: memory does not grow with the study."""

import csv
import io
import json
from collections.abc import Callable, Iterator
from typing import Any, Literal

from sqlalchemy import Engine, select

from backend.db import reading
from backend.models import SweepRow, SweepTrialRow, TrialRow
from backend.schemas import CSV_COLUMNS, TrialRead
from backend.services import trials

Format = Literal["csv", "json", "parquet"]
MEDIA_TYPES: dict[Format, str] = {
    "csv": "text/csv; charset=utf-8",
    "json": "application/json",
    "parquet": "application/vnd.apache.parquet",
}
#: Trials read, and sent, at a time.
CHUNK = 1000

#: What files hold besides the columns of the command line's CSV.
MORE_COLUMNS = ("id", "state", "imported", "diverged_where", "diverged_layer", "error")
COLUMNS = (*CSV_COLUMNS, *MORE_COLUMNS)

#: A spreadsheet runs a cell that starts with one of these as a formula.
FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")


def export(engine: Engine, *, study_id: int, format: Format) -> Iterator[bytes]:
    """Yield the file piece by piece; the caller has checked that the study exists.

    Args:
        engine: Each piece is read in a transaction of its own, so that a slow reader holds none.
        study_id: Which study.
        format: Every format has every trial, also those that failed or still wait; a number that
            is not finite is empty or null beside its outcome.
    """
    writers: dict[Format, Callable[[Iterator[list[TrialRead]]], Iterator[bytes]]] = {
        "csv": _csv,
        "json": _json,
        "parquet": _parquet,
    }
    return writers[format](_chunks(engine, study_id))


def _chunks(engine: Engine, study_id: int) -> Iterator[list[TrialRead]]:
    members = (
        select(SweepTrialRow.trial_id)
        .join(SweepRow, SweepRow.id == SweepTrialRow.sweep_id)
        .where(SweepRow.study_id == study_id)
    )
    query = select(TrialRow).where(TrialRow.id.in_(members)).order_by(TrialRow.id).limit(CHUNK)
    last = 0
    while True:
        with reading(engine) as session:
            rows = session.scalars(query.where(TrialRow.id > last)).all()
            found = [trials.to_read(row) for row in rows]
        if not found:
            return
        yield found
        last = found[-1].id


def _flat(trial: TrialRead) -> dict[str, Any]:
    """Return a trial as one row of a table."""
    row = {name: getattr(trial, name) for name in COLUMNS}
    row["options"] = json.dumps(trial.options, sort_keys=True)
    row["state"] = trial.state.value
    return row


def _csv(chunks: Iterator[list[TrialRead]]) -> Iterator[bytes]:
    yield (",".join(COLUMNS) + "\r\n").encode()
    for chunk in chunks:
        text = io.StringIO()
        writer = csv.writer(text)
        for trial in chunk:
            writer.writerow(inert(value) for value in _flat(trial).values())
        yield text.getvalue().encode()


def inert(value: Any) -> Any:
    """Return a cell that no spreadsheet runs; numbers stay numbers."""
    if isinstance(value, str) and value.startswith(FORMULA_STARTS):
        return f"'{value}"
    return value


def _json(chunks: Iterator[list[TrialRead]]) -> Iterator[bytes]:
    yield b'{"trials": ['
    separator = b"\n"
    for chunk in chunks:
        yield separator + b",\n".join(trial.model_dump_json().encode() for trial in chunk)
        separator = b",\n"
    yield b"\n]}\n"


def _parquet(chunks: Iterator[list[TrialRead]]) -> Iterator[bytes]:
    # Imported when first needed: pyarrow takes some 60 MB that few servers ever use.
    from backend.services.parquet import write_parquet

    return write_parquet(COLUMNS, ([_flat(trial) for trial in chunk] for chunk in chunks))
