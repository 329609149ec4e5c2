"""A trial's row: its columns, how it is answered, found, locked and deleted.

The table decides what a trial's columns are; the lists below are derived from it. A new column is
a result unless it is named in `SETTINGS` or `LIFE`: it is emptied before a trial is trained again,
and filled from the engine's `TrialResult` if that has an attribute of its name. What `TrialRead`
names, too, is answered and exported.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, fields
from typing import Any, TypeVar

import sqlalchemy as sa
from pydantic import BaseModel
from sqlalchemy import ColumnElement, exists, select
from sqlalchemy.orm import Session

from backend.db import changed_rows
from backend.errors import NotFound
from backend.models import ShardRow, ShardState, SweepRow, SweepTrialRow, TrialRow
from backend.schemas import OutcomeName, Page, TrialEvent, TrialRead, TrialState
from backend.services import read_cursor, write_cursor
from ib_core.sweep import TrialResult, TrialSpec

T = TypeVar("T")

UNFINISHED = (TrialState.QUEUED, TrialState.RUNNING)
#: With a result: part of every mean. Divergence is one.
COUNTED = (TrialState.COMPLETED, TrialState.DIVERGED)
RETRIABLE = (TrialState.FAILED, TrialState.CANCELLED)
OUTCOMES: dict[TrialState, OutcomeName] = {
    TrialState.COMPLETED: "completed",
    TrialState.DIVERGED: "diverged",
    TrialState.FAILED: "failed",
}

#: What decides a trial's result, besides data and engine; `TrialSpec.from_dict` reads it.
SETTINGS = tuple(field.name for field in fields(TrialSpec) if field.compare)
#: What a trial is, and where it is in its life.
LIFE = (
    *("id", "fingerprint", "state", "shard_id", "imported", "engine_version", "data_hash"),
    *("attempts", "created_at", "started_at", "finished_at"),
)
#: Every other column: what became of the trial.
RESULTS: dict[str, sa.Column[Any]] = {
    column.key: column
    for column in sa.inspect(TrialRow).columns
    if column.key not in (*SETTINGS, *LIFE)
}
#: What a trial goes back to when it is to be trained again.
CLEARED: dict[str, Any] = {
    "state": TrialState.QUEUED,
    "started_at": None,
    "finished_at": None,
    "attempts": 0,
    **dict.fromkeys(RESULTS),
}

#: Written out: of a value that is bound no database could tell that `ix_trials_begun` answers it.
BEGUN: ColumnElement[bool] = sa.literal_column("trials.state") != sa.literal_column("'queued'")
#: Ids in more pieces, or with more strangers among them for each of ours, are no ranges.
MOST_RANGES, MOST_STRANGERS = 20, 1.0

LONGEST_ERROR = 10_000
#: What is answered of a trial and is no column: the settings are those of a study's series.
NO_COLUMNS = ("outcome", "settings")
#: Layers of people's models may be nested deeper than that.
LONGEST_LAYER = 100
#: Values one statement may carry; SQLite takes 32,766 variables, and short lists compile faster.
CHUNK = 1000


def get(session: Session, *, trial_id: int) -> TrialRead:
    """Return one trial with its reproducibility record."""
    return to_read(_row(session, trial_id))


def page(
    session: Session,
    *,
    sweep_id: int,
    method: str | None = None,
    state: TrialState | None = None,
    lr: float | None = None,
    seed: int | None = None,
    limit: int = 100,
    cursor: str | None = None,
) -> Page[TrialRead]:
    """Return a sweep's trials in the order of its grid."""
    if session.get(SweepRow, sweep_id) is None:
        raise NotFound("sweep", sweep_id)
    asked = {"method": method, "state": state, "lr": lr, "seed": seed}
    filters = [getattr(TrialRow, k) == value for k, value in asked.items() if value is not None]
    query = (
        select(SweepTrialRow.position, TrialRow)
        .join(TrialRow, TrialRow.id == SweepTrialRow.trial_id)
        .where(SweepTrialRow.sweep_id == sweep_id, *filters)
        .order_by(SweepTrialRow.position)
        .limit(limit + 1)
    )
    if cursor is not None:
        (position,) = read_cursor(cursor, int)
        query = query.where(SweepTrialRow.position > position)
    rows = session.execute(query).all()
    more = len(rows) > limit
    return Page(
        items=[to_read(row) for _, row in rows[:limit]],
        next_cursor=write_cursor(rows[limit - 1][0]) if more else None,
    )


def _row(session: Session, trial_id: int) -> TrialRow:
    row = session.get(TrialRow, trial_id)
    if row is None:
        raise NotFound("trial", trial_id)
    return row


def to_read(row: TrialRow) -> TrialRead:
    """Return a row as it goes over the wire."""
    return TrialRead(**_answered(row, TrialRead))


def to_event(row: TrialRow) -> TrialEvent:
    """Return a trial that has ended as the event stream tells it."""
    return TrialEvent(**_answered(row, TrialEvent))


def _answered(row: TrialRow, kind: type[BaseModel]) -> dict[str, Any]:
    """Return what a wire type asks of a row: its columns, and the outcome its state means."""
    found = {name: getattr(row, name) for name in kind.model_fields if name not in NO_COLUMNS}
    return {**found, "outcome": OUTCOMES.get(row.state)}


def spec_of(row: Any) -> dict[str, Any]:
    """Return what `TrialSpec.from_dict` reads, of a row or a spec."""
    return {name: getattr(row, name) for name in SETTINGS}


def result_columns(result: TrialResult) -> dict[str, Any]:
    """Return what an engine reports as columns; NaN never reaches the database.

    A completed trial whose loss is not finite would be a contradiction, so it counts as diverged.
    """
    state = TrialState(result.outcome.value)
    if state is TrialState.COMPLETED and not math.isfinite(result.train_loss):
        state = TrialState.DIVERGED
    where = result.divergence
    failed = state is TrialState.FAILED
    return {
        **{name: _storable_value(name, getattr(result, name, None)) for name in RESULTS},
        "state": state,
        "diverged_at_step": where.step if where else None,
        "diverged_where": where.where if where else None,
        "diverged_layer": where.layer[:LONGEST_LAYER] if where and where.layer else None,
        "error": readable(result.error or "The engine gave no reason.") if failed else None,
    }


def _storable_value(name: str, value: Any) -> Any:
    return finite(value) if RESULTS[name].type.python_type is float else plain(value)


def finite(value: float | None) -> float | None:
    """Return the number, or None if it is none or not finite."""
    return None if value is None or not math.isfinite(value) else float(value)


def readable(error: str) -> str:
    """Return an error that any database takes and any answer can repeat; not endless."""
    text = _storable(error)
    return text if len(text) <= LONGEST_ERROR else text[:LONGEST_ERROR] + " ... (cut)"


def _storable(text: str) -> str:
    """Return text without what UTF-8 cannot write or PostgreSQL keep: halves of pairs, and NUL.

    Halves come from file names that are not UTF-8, which Python puts into its errors.
    """
    return text.encode("utf-8", "backslashreplace").decode().replace("\x00", "\\x00")


def plain(value: Any) -> Any:
    """Return the value as JSON takes it: numbers that are not finite become null."""
    if isinstance(value, float):
        return finite(value)
    if isinstance(value, dict):
        return {plain(str(key)): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, str):
        return _storable(value)
    return value if isinstance(value, int | bool | None) else str(value)


def ids_at(session: Session, addresses: Iterable[str]) -> dict[str, int]:
    """Return the ids of the trials that are here, by address."""
    return {
        address: trial_id
        for chunk in chunks(sorted(addresses))
        for address, trial_id in session.execute(
            select(TrialRow.fingerprint, TrialRow.id).where(TrialRow.fingerprint.in_(chunk))
        )
    }


def is_wanted() -> ColumnElement[bool]:
    """Return the condition that a sweep which nobody cancelled holds the trial."""
    return exists(
        select(1)
        .select_from(SweepTrialRow)
        .join(SweepRow, SweepRow.id == SweepTrialRow.sweep_id)
        .where(SweepTrialRow.trial_id == TrialRow.id, SweepRow.cancelled_at.is_(None))
        .correlate(TrialRow)
    )


def lock(session: Session, trial_ids: Iterable[int]) -> None:
    """Make every other transaction that would change these trials wait for this one.

    PostgreSQL judges a waiting statement's subqueries by what it saw before it waited. So whether
    a trial is wanted is asked in a statement of its own, after the lock. Everybody locks studies
    before sweeps, sweeps before shards, shards before trials, and each as ids rise, so that no two
    transactions wait for each other. SQLite has one writer at a time anyway.
    """
    if session.get_bind().dialect.name == "sqlite":
        return
    ids = sorted(trial_ids)
    shards = {
        shard_id
        for chunk in chunks(ids)
        for shard_id in session.scalars(
            select(TrialRow.shard_id).where(TrialRow.id.in_(chunk)).distinct()
        )
        if shard_id is not None
    }
    _lock_rows(session, ShardRow, sorted(shards))
    _lock_rows(session, TrialRow, ids)


def _lock_rows(session: Session, table: type[ShardRow | TrialRow], ids: Sequence[int]) -> None:
    for chunk in chunks(ids):
        query = select(table.id).where(table.id.in_(chunk)).order_by(table.id)
        session.execute(query.with_for_update()).all()


def chunks(values: Sequence[T], size: int = CHUNK) -> Iterator[Sequence[T]]:
    """Cut a list into pieces that one statement can carry."""
    for start in range(0, len(values), size):
        yield values[start : start + size]


def delete_orphans(session: Session, *, trial_ids: Sequence[int]) -> int:
    """Delete those of the trials that no sweep holds, and shards left without any."""
    in_a_sweep = exists().where(SweepTrialRow.trial_id == TrialRow.id)
    in_a_shard = exists().where(TrialRow.shard_id == ShardRow.id)
    shards: set[int] = set()
    gone = 0
    for chunk in chunks(trial_ids):
        orphans = (TrialRow.id.in_(chunk), ~in_a_sweep)
        shards |= {id for id in session.scalars(select(TrialRow.shard_id).where(*orphans)) if id}
        gone += changed_rows(session, sa.delete(TrialRow).where(*orphans))
    for chunk in chunks(sorted(shards)):
        # A running one is its worker's, which finds nothing left to do and ends it.
        empty = (ShardRow.id.in_(chunk), ShardRow.state != ShardState.RUNNING, ~in_a_shard)
        session.execute(sa.delete(ShardRow).where(*empty))
    return gone


@dataclass(frozen=True, slots=True)
class Span:
    """Where the trials of a sweep lie: how many, from which id to which."""

    trials: int
    first: int
    last: int


def spans_of(session: Session, *, sweep_ids: Sequence[int]) -> dict[int, Span]:
    """Return where each sweep's trials lie; two looks into an index, however many they are."""
    mine = SweepTrialRow.sweep_id == SweepRow.id
    ends = [
        select(end(SweepTrialRow.trial_id)).where(mine).scalar_subquery()
        for end in (sa.func.min, sa.func.max)
    ]
    query = select(SweepRow.id, SweepRow.total, *ends).where(SweepRow.id.in_(sweep_ids))
    found = session.execute(query).all()
    return {id: Span(total, first, last) for id, total, first, last in found if first is not None}


def within(spans: Iterable[Span]) -> ColumnElement[bool]:
    """Return a condition that all trials of these fulfil, and few others.

    Trials that were new to a sweep have ids side by side. Said so, they are found without a look at
    the million others; where ids are scattered, the condition is none.
    """
    ranges: list[tuple[int, int]] = []
    held = 0
    for span in sorted(spans, key=lambda span: span.first):
        held += span.trials
        if ranges and span.first <= ranges[-1][1] + 1:
            ranges[-1] = (ranges[-1][0], max(span.last, ranges[-1][1]))
        else:
            ranges.append((span.first, span.last))
    strangers = sum(last - first + 1 for first, last in ranges) - held
    if len(ranges) > MOST_RANGES or strangers > MOST_STRANGERS * held:
        return sa.true()
    return sa.or_(sa.false(), *(TrialRow.id.between(first, last) for first, last in ranges))
