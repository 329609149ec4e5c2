"""Trials: one training run each, shared by all sweeps that ask for it.

| module | for |
| --- | --- |
| `rows` | a trial's columns: answered, filled from the engine's result, found, locked, deleted |
| `curves` | a trial's losses by step, and what was recorded of its way, as bytes |

Here are trials on their way out: every trial of a study as a file, or some as the engine's
results. Files are made while they are sent: memory does not grow with the study. They hold what
`TrialRead` names, the columns of the command line's CSV first.
"""

import csv
import io
import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import Enum
from pathlib import Path
from typing import Any, Literal

import numpy as np
from sqlalchemy import Engine, inspect, select
from sqlalchemy.engine import make_url
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.orm import Session

from backend.db import get_engine, reading
from backend.errors import NotFound
from backend.models import CurveRow, RecordingRow, SweepRow, SweepTrialRow, TrialRow
from backend.schemas import TrialRead
from backend.services.trials.curves import (
    COLUMNS,
    add_points,
    curve,
    curve_row,
    first_and_best,
    first_and_chosen,
    insert_or_replace_curve,
    insert_or_replace_rows,
    recording,
    store_recordings,
    unpack,
    unrecorded,
    want_recordings,
    wishes,
)
from backend.services.trials.rows import (
    BEGUN,
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
    spans_of,
    spec_of,
    to_event,
    to_read,
    within,
)
from backend.settings import get_settings
from ib_core.sweep import COLUMNS as COMMAND_LINE_COLUMNS
from ib_core.sweep import CurvePoint, Divergence, Outcome, Recording, TrialResult, TrialSpec
from ib_core.written import inert

__all__ = [
    "BEGUN",
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
    "spans_of",
    "spec_of",
    "store_recordings",
    "stored_results",
    "to_event",
    "to_read",
    "unpack",
    "unrecorded",
    "want_recordings",
    "wishes",
    "within",
]


Format = Literal["csv", "json", "parquet"]

MEDIA_TYPES: dict[Format, str] = {
    "csv": "text/csv; charset=utf-8",
    "json": "application/json",
    "parquet": "application/vnd.apache.parquet",
}

#: Trials read, and sent, at a time.
SENT_AT_ONCE = 1000

#: What of a trial no table has a column for.
NOT_IN_TABLES = ("record", "attempts", "created_at", "finished_at")
#: Columns of tables: all that is answered, in the order of the command line's CSV and then ours.
TABLE_COLUMNS = (
    *COMMAND_LINE_COLUMNS,
    *(n for n in TrialRead.model_fields if n not in (*COMMAND_LINE_COLUMNS, *NOT_IN_TABLES)),
)


SettingsOf = Callable[[Session, Sequence[int]], Mapping[int, dict[str, Any]]]


def export(
    engine: Engine, *, study_id: int, format: Format, settings_of: SettingsOf | None = None
) -> Iterator[bytes]:
    """Yield the file piece by piece; the caller has checked that the study exists.

    Args:
        engine: Each piece is read in a transaction of its own, so that a slow reader holds none.
        study_id: Which study.
        format: Every format has every trial, also those that failed or still wait; a number that
            is not finite is empty or null beside its outcome.
        settings_of: Tells the trials' settings that vary in the study.
    """
    writers: dict[Format, Callable[[Iterator[list[TrialRead]]], Iterator[bytes]]] = {
        "csv": _csv,
        "json": _json,
        "parquet": _parquet,
    }
    return writers[format](_chunks(engine, study_id, settings_of))


def _chunks(
    engine: Engine, study_id: int, settings_of: SettingsOf | None
) -> Iterator[list[TrialRead]]:
    members = (
        select(SweepTrialRow.trial_id)
        .join(SweepRow, SweepRow.id == SweepTrialRow.sweep_id)
        .where(SweepRow.study_id == study_id)
    )
    query = (
        select(TrialRow).where(TrialRow.id.in_(members)).order_by(TrialRow.id).limit(SENT_AT_ONCE)
    )
    last = 0
    while True:
        with reading(engine) as session:
            rows = session.scalars(query.where(TrialRow.id > last)).all()
            found = [to_read(row) for row in rows]
            if settings_of is not None:
                varied = settings_of(session, [trial.id for trial in found])
                found = [t.model_copy(update={"settings": varied[t.id]}) for t in found]
        if not found:
            return
        yield found
        last = found[-1].id


def _flat(trial: TrialRead) -> dict[str, Any]:
    """Return a trial as one row of a table."""
    return {name: _cell(getattr(trial, name)) for name in TABLE_COLUMNS}


def _cell(value: Any) -> Any:
    if isinstance(value, dict):
        return json.dumps(value, sort_keys=True)
    return value.value if isinstance(value, Enum) else value


def _csv(chunks: Iterator[list[TrialRead]]) -> Iterator[bytes]:
    yield (",".join(TABLE_COLUMNS) + "\r\n").encode()
    for chunk in chunks:
        text = io.StringIO()
        writer = csv.writer(text)
        for trial in chunk:
            writer.writerow(inert(value) for value in _flat(trial).values())
        yield text.getvalue().encode()


def _json(chunks: Iterator[list[TrialRead]]) -> Iterator[bytes]:
    yield b'{"trials": ['
    separator = b"\n"
    for chunk in chunks:
        yield separator + b",\n".join(trial.model_dump_json().encode() for trial in chunk)
        separator = b",\n"
    yield b"\n]}\n"


def _parquet(chunks: Iterator[list[TrialRead]]) -> Iterator[bytes]:
    """Yield the file piece by piece; each chunk becomes a row group."""
    # Imported when first needed: pyarrow takes some 60 MB that few servers ever use.
    import pyarrow as pa
    import pyarrow.parquet as pq

    kinds = {float: pa.float64(), int: pa.int64(), bool: pa.bool_()}
    columns = {column.key: column.type.python_type for column in inspect(TrialRow).columns}
    schema = pa.schema(
        [(name, kinds.get(columns.get(name, str), pa.string())) for name in TABLE_COLUMNS]
    )
    sink = _Pipe()
    with pq.ParquetWriter(pa.PythonFile(sink, mode="w"), schema) as writer:
        for chunk in chunks:
            rows = [_flat(trial) for trial in chunk]
            writer.write_table(pa.Table.from_pylist(rows, schema=schema))
            yield sink.drain()
    yield sink.drain()


class _Pipe(io.RawIOBase):
    """Takes what a writer writes and hands it on; Parquet never goes back."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._written = 0

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        piece = bytes(data)
        self._parts.append(piece)
        self._written += len(piece)
        return len(piece)

    def tell(self) -> int:
        return self._written

    def drain(self) -> bytes:
        """Return what has been written since the last time."""
        found = b"".join(self._parts)
        self._parts.clear()
        return found


def stored_results(addresses: Sequence[str]) -> dict[str, TrialResult]:
    """Return what was already trained here, by address; nothing without a database."""
    if not addresses or not _database_exists():
        return {}
    try:
        with reading() as session:
            return _find(session, addresses)
    except SQLAlchemyError:
        return {}  # away or of another version: nothing to reuse, and no reason not to train


def _database_exists() -> bool:
    """Return whether there is a database, without making one."""
    url = make_url(get_settings().database)
    missing = not url.database or not Path(url.database).is_file()
    if url.get_backend_name() == "sqlite" and missing:
        return False
    try:
        return inspect(get_engine()).has_table(TrialRow.__tablename__)
    except SQLAlchemyError:
        return False


def _find(session: Session, addresses: Sequence[str]) -> dict[str, TrialResult]:
    found = {}
    for chunk in chunks(sorted(addresses)):
        rows = session.execute(
            select(TrialRow, CurveRow.data, CurveRow.validation)
            .outerjoin(CurveRow, CurveRow.trial_id == TrialRow.id)
            .where(TrialRow.fingerprint.in_(chunk), TrialRow.state.in_(COUNTED))
            .where(TrialRow.imported.is_(False))
        )
        for row in rows:
            result = _result(*row)
            found[result.fingerprint] = result
    return found


def _result(trial: TrialRow, data: bytes | None, validation: bytes | None) -> TrialResult:
    curve = _curve(data, validation)

    def number(name: str) -> float:
        value = getattr(trial, name)
        return math.nan if value is None else float(value)

    def known(name: str) -> float | None:
        """Return a number that some tasks have not; one that was lost was there before."""
        return number(name) if any(getattr(point, name) is not None for point in curve) else None

    return TrialResult(
        spec=TrialSpec.from_dict(spec_of(trial)),
        outcome=Outcome(trial.state.value),
        initial_loss=number("initial_loss"),
        train_loss=number("train_loss"),
        test_loss=number("test_loss"),
        train_accuracy=known("train_accuracy"),
        test_accuracy=known("test_accuracy"),
        validation_loss=known("validation_loss"),
        validation_accuracy=known("validation_accuracy"),
        divergence=None
        if trial.diverged_at_step is None
        else Divergence(
            trial.diverged_at_step, trial.diverged_where or "loss", trial.diverged_layer
        ),
        seconds=trial.seconds or 0.0,
        curve=curve,
        fingerprint=trial.fingerprint,
        record=trial.record or {},
        restarts=trial.restarts or 0,
        at_zero=bool(trial.at_zero),
    )


def _curve(data: bytes | None, validation: bytes | None) -> tuple[CurvePoint, ...]:
    if data is None:
        return ()
    step, epoch, train, test, *rest = unpack(data, validation)
    # What a task has not is NaN all the way; a number that was lost on the way is not.
    optional = [[None] * len(step) if np.isnan(one).all() else one.tolist() for one in rest]
    points = zip(step, epoch.tolist(), train.tolist(), test.tolist(), *optional, strict=True)
    return tuple(CurvePoint(int(step), *numbers) for step, *numbers in points)


def export_recording(session: Session, *, trial_id: int) -> Iterator[str]:
    """Return a trial's whole recording as lines of CSV; empty where there is no finite number.

    Raises:
        NotFound: There is none.
    """
    row = session.get(RecordingRow, trial_id)
    if row is None or row.data is None:
        raise NotFound("recording of trial", trial_id)
    names, lines = Recording.from_bytes(row.data).table()

    def written() -> Iterator[str]:
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(names)
        for step, *numbers in lines:
            writer.writerow([int(step), *("" if not math.isfinite(n) else n for n in numbers)])
        yield text.getvalue()

    return written()
