"""Trials: read one or many, read a curve, know whether anybody still wants them."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, TypeVar

import numpy as np
from sqlalchemy import ColumnElement, exists, select
from sqlalchemy.orm import Session

from backend.errors import InvalidInput, NotFound
from backend.models import CurveRow, ShardRow, SweepRow, SweepTrialRow, TrialRow
from backend.schemas import CurveRead, OutcomeName, Page, TrialRead, TrialState
from backend.services import curves
from backend.services.cursors import read_cursor, write_cursor

T = TypeVar("T")

#: What decides a trial's result, besides data and engine; `TrialSpec.from_dict` reads it.
SPEC_FIELDS = (
    "task",
    "profile",
    "method",
    "batch_rule",
    "activation",
    "lr",
    "seed",
    "clip",
    "mu",
    "epochs",
    "batch_size",
    "options",
)
#: Values one statement may carry; SQLite takes 32,766 variables, and short lists compile faster.
CHUNK = 1000

OUTCOMES: dict[TrialState, OutcomeName] = {
    TrialState.COMPLETED: "completed",
    TrialState.DIVERGED: "diverged",
    TrialState.FAILED: "failed",
}


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


def curve(
    session: Session, *, trial_id: int, after: int | None = None, points: int | None = None
) -> CurveRead:
    """Return a trial's curve, from the first step behind `after`, thinned to `points` points."""
    if points is not None and points < curves.FEWEST_POINTS:
        raise InvalidInput(
            f"A curve needs at least {curves.FEWEST_POINTS} points; got {points}.", field="points"
        )
    query = select(TrialRow.state, CurveRow.data).outerjoin(CurveRow).where(TrialRow.id == trial_id)
    found = session.execute(query).one_or_none()
    if found is None:
        raise NotFound("trial", trial_id)
    state, data = found
    columns = curves.unpack(data) if data else np.empty((len(curves.COLUMNS), 0))
    if after is not None:
        columns = columns[:, columns[curves.STEP] > after]
    total = columns.shape[1]
    last_step = int(columns[curves.STEP, -1]) if total else after
    kept = columns if points is None else curves.thin(columns, points)
    return CurveRead(
        trial_id=trial_id,
        state=state,
        points=curves.to_read(kept),
        last_step=last_step,
        total=total,
    )


def to_read(row: TrialRow) -> TrialRead:
    """Return a row as it goes over the wire."""
    return TrialRead(
        id=row.id,
        state=row.state,
        **{name: getattr(row, name) for name in SPEC_FIELDS},
        outcome=OUTCOMES.get(row.state),
        initial_loss=row.initial_loss,
        train_loss=row.train_loss,
        test_loss=row.test_loss,
        train_accuracy=row.train_accuracy,
        test_accuracy=row.test_accuracy,
        diverged_at_step=row.diverged_at_step,
        diverged_where=row.diverged_where,
        diverged_layer=row.diverged_layer,
        seconds=row.seconds,
        fingerprint=row.fingerprint,
        imported=row.imported,
        record=row.record,
        error=row.error,
        attempts=row.attempts,
        created_at=row.created_at,
        finished_at=row.finished_at,
    )


def spec_of(row: Any) -> dict[str, Any]:
    """Return what `TrialSpec.from_dict` reads."""
    return {name: getattr(row, name) for name in SPEC_FIELDS}


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


def _row(session: Session, trial_id: int) -> TrialRow:
    row = session.get(TrialRow, trial_id)
    if row is None:
        raise NotFound("trial", trial_id)
    return row
