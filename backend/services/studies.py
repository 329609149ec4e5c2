"""Studies: create, read, change, delete."""

from collections.abc import Iterable, Sequence

import sqlalchemy as sa
from sqlalchemy import ColumnElement, exists, select
from sqlalchemy.orm import Session

from backend.db import changed_rows, clock
from backend.errors import NotFound
from backend.models import (
    ShardRow,
    ShardState,
    StudyRow,
    StudyTagRow,
    SweepRow,
    SweepTrialRow,
    TrialRow,
    UserRow,
)
from backend.schemas import StudyCreate, StudyRead, StudyUpdate
from backend.services import progress, trials

#: How the idempotency keys of a bundle's sweeps begin, by which its studies are known.
BUNDLE_KEY = "bundle:"


def of_bundle() -> ColumnElement[bool]:
    """Return the condition that a study came with a bundle: a sweep of it bears the import's key.

    A key and not a tag, which anybody may set and take away; and nobody's sweep, since people may
    choose keys, too.
    """
    return exists().where(
        SweepRow.study_id == StudyRow.id,
        SweepRow.owner_id.is_(None),
        SweepRow.idempotency_key.startswith(BUNDLE_KEY, autoescape=True),
    )


def _from_bundle(sweep: SweepRow) -> bool:
    """The same of one sweep that was read."""
    return sweep.owner_id is None and (sweep.idempotency_key or "").startswith(BUNDLE_KEY)


def create(session: Session, *, payload: StudyCreate, owner_id: int | None) -> StudyRead:
    """Store a new study."""
    row = StudyRow(name=payload.name, notes=payload.notes, owner_id=owner_id)
    session.add(row)
    session.flush()
    _set_tags(session, row.id, payload.tags)
    return get(session, study_id=row.id)


def get(session: Session, *, study_id: int) -> StudyRead:
    """Return a study with its state and progress."""
    row = session.get(StudyRow, study_id, populate_existing=True)
    if row is None:
        raise NotFound("study", study_id)
    return to_read(session, [row])[0]


def update(session: Session, *, study_id: int, payload: StudyUpdate) -> StudyRead:
    """Change what the payload names and nothing else."""
    values = payload.model_dump(include={"name", "notes"}, exclude_none=True)
    if payload.archived is not None:
        values["archived_at"] = clock() if payload.archived else None
    changed = sa.update(StudyRow).where(StudyRow.id == study_id)
    if changed_rows(session, changed.values(**values, updated_at=clock())) == 0:
        raise NotFound("study", study_id)
    if payload.tags is not None:
        _set_tags(session, study_id, payload.tags)
    return get(session, study_id=study_id)


def owner_of(session: Session, *, study_id: int) -> int | None:
    """Return the id of the account that created the study."""
    found = session.execute(select(StudyRow.owner_id).where(StudyRow.id == study_id)).one_or_none()
    if found is None:
        raise NotFound("study", study_id)
    return found[0]


def of_sweep(session: Session, *, sweep_id: int) -> tuple[int, int | None]:
    """Return a sweep's study, and the id of the account that owns it."""
    query = select(StudyRow.id, StudyRow.owner_id).join(SweepRow, SweepRow.study_id == StudyRow.id)
    found = session.execute(query.where(SweepRow.id == sweep_id)).one_or_none()
    if found is None:
        raise NotFound("sweep", sweep_id)
    return found[0], found[1]


def delete(session: Session, *, study_id: int) -> int:
    """Delete a study for good, with the trials that no other sweep holds; return their number."""
    if session.get(StudyRow, study_id, with_for_update=True) is None:
        raise NotFound("study", study_id)
    held = session.scalars(
        select(SweepTrialRow.trial_id)
        .join(SweepRow, SweepRow.id == SweepTrialRow.sweep_id)
        .where(SweepRow.study_id == study_id)
        .distinct()
    ).all()
    trials.lock(session, held)
    session.execute(sa.delete(StudyRow).where(StudyRow.id == study_id))
    return delete_orphans(session, trial_ids=held)


def delete_orphans(session: Session, *, trial_ids: Sequence[int]) -> int:
    """Delete those of the trials that no sweep holds, and shards left without any."""
    in_a_sweep = exists().where(SweepTrialRow.trial_id == TrialRow.id)
    in_a_shard = exists().where(TrialRow.shard_id == ShardRow.id)
    shards: set[int] = set()
    gone = 0
    for chunk in trials.chunks(trial_ids):
        orphans = (TrialRow.id.in_(chunk), ~in_a_sweep)
        shards |= {id for id in session.scalars(select(TrialRow.shard_id).where(*orphans)) if id}
        gone += changed_rows(session, sa.delete(TrialRow).where(*orphans))
    for chunk in trials.chunks(sorted(shards)):
        # A running one is its worker's, which finds nothing left to do and ends it.
        empty = (ShardRow.id.in_(chunk), ShardRow.state != ShardState.RUNNING, ~in_a_shard)
        session.execute(sa.delete(ShardRow).where(*empty))
    return gone


def to_read(session: Session, rows: Sequence[StudyRow]) -> list[StudyRead]:
    """Return studies as they go over the wire; the number of queries does not depend on theirs."""
    ids = [row.id for row in rows]
    owners = _owners(session, {row.owner_id for row in rows if row.owner_id})
    tags = _tags(session, ids)
    sweeps = _sweeps(session, ids)
    counts = progress.of_studies(session, sweeps=sweeps)
    return [
        StudyRead(
            id=row.id,
            name=row.name,
            notes=row.notes,
            tags=tags.get(row.id, []),
            owner=owners.get(row.owner_id) if row.owner_id else None,
            archived=row.archived_at is not None,
            bundle=any(_from_bundle(sweep) for sweep in sweeps[row.id]),
            created_at=row.created_at,
            updated_at=row.updated_at,
            state=counts[row.id].state,
            tasks=_distinct(sweep.task for sweep in sweeps[row.id]),
            methods=_distinct(
                method for sweep in sweeps[row.id] for method in sweep.spec.get("methods", ())
            ),
            progress=counts[row.id].progress.by_name(),
            total=counts[row.id].progress.total,
            sweep_ids=[sweep.id for sweep in sweeps[row.id]],
        )
        for row in rows
    ]


def _owners(session: Session, ids: set[int]) -> dict[int, str]:
    if not ids:
        return {}
    query = select(UserRow.id, UserRow.name).where(UserRow.id.in_(ids))
    return dict(session.execute(query).all())


def _tags(session: Session, ids: Sequence[int]) -> dict[int, list[str]]:
    query = select(StudyTagRow).where(StudyTagRow.study_id.in_(ids)).order_by(StudyTagRow.tag)
    found: dict[int, list[str]] = {}
    for row in session.scalars(query):
        found.setdefault(row.study_id, []).append(row.tag)
    return found


def _sweeps(session: Session, ids: Sequence[int]) -> dict[int, list[SweepRow]]:
    query = select(SweepRow).where(SweepRow.study_id.in_(ids)).order_by(SweepRow.id)
    found: dict[int, list[SweepRow]] = {id: [] for id in ids}
    for row in session.scalars(query, execution_options={"populate_existing": True}):
        found[row.study_id].append(row)
    return found


def _set_tags(session: Session, study_id: int, tags: Iterable[str]) -> None:
    session.execute(sa.delete(StudyTagRow).where(StudyTagRow.study_id == study_id))
    rows = [{"study_id": study_id, "tag": tag} for tag in sorted(set(tags))]
    if rows:
        session.execute(sa.insert(StudyTagRow), rows)


def _distinct(names: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(names))
