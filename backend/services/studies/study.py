"""One study: create, read, change, delete; what people note about it, and views of the history."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import sqlalchemy as sa
from sqlalchemy import ColumnElement, exists, func, select
from sqlalchemy.orm import Session

from backend.db import changed_rows, clock
from backend.errors import Conflict, NotFound
from backend.models import (
    BUNDLE_KEY,
    SavedViewRow,
    StudyNoteRow,
    StudyRow,
    StudyTagRow,
    SweepRow,
    SweepTrialRow,
    TrialRow,
    UserRow,
)
from backend.schemas import (
    NoteRead,
    Page,
    StudyCreate,
    StudyRead,
    StudyUpdate,
    SweepState,
    ViewCreate,
    ViewRead,
)
from backend.services import errands, read_cursor, write_cursor
from backend.services.accounts import Caller
from backend.services.sweeps import Progress, progress_of, state_of
from backend.services.trials import delete_orphans, lock
from ib_core.sweep import PRESETS

#: What a study with several sweeps is said to be: the first of these that one of them is.
PRECEDENCE = (
    SweepState.RUNNING,
    SweepState.QUEUED,
    SweepState.FAILED,
    SweepState.CANCELLED,
    SweepState.COMPLETED,
)
MOST_VIEWS = 100


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
    mine = select(SweepRow.id).where(SweepRow.study_id == study_id)
    recorded = errands.replays_of(session, sweep_ids=session.scalars(mine).all())
    lock(session, held)
    session.execute(sa.delete(StudyRow).where(StudyRow.id == study_id))
    errands.call_off_replays(session, trial_ids=recorded)
    return delete_orphans(session, trial_ids=held)


def to_read(session: Session, rows: Sequence[StudyRow]) -> list[StudyRead]:
    """Return studies as they go over the wire; the number of queries does not depend on theirs."""
    ids = [row.id for row in rows]
    owners = _owners(session, {row.owner_id for row in rows if row.owner_id})
    tags = _tags(session, ids)
    sweeps = _sweeps(session, ids)
    counts = progress_of_studies(session, sweeps=sweeps)
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
            picture=_picture(sweeps[row.id], tags.get(row.id, [])),
        )
        for row in rows
    ]


def _picture(sweeps: Sequence[SweepRow], tags: Sequence[str]) -> str:
    """Return the view of the preset that a study's first sweep is of.

    Sweeps of a bundle do not say it: there the parts of the preset's name are tags of the study.
    """
    asked = sweeps[0].body.get("preset") if sweeps else None
    found = (
        preset.picture
        for preset in PRESETS.values()
        if preset.picture
        and (preset.name == asked or (asked is None and set(preset.name.split("/")) <= set(tags)))
    )
    return next(found, "")


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


def study_state(states: Iterable[SweepState]) -> SweepState | None:
    """Return the state that a study's sweeps add up to; None without a sweep."""
    present = set(states)
    return next((state for state in PRECEDENCE if state in present), None)


@dataclass(frozen=True, slots=True)
class StudyProgress:
    """A study's trials, each counted once however many of its sweeps hold it."""

    progress: Progress
    state: SweepState | None


def progress_of_studies(
    session: Session, *, sweeps: Mapping[int, Sequence[SweepRow]]
) -> dict[int, StudyProgress]:
    """Return the progress of each study, given its sweeps, in three queries at most."""
    everyone = [sweep for held in sweeps.values() for sweep in held]
    by_sweep = progress_of(session, sweep_ids=[sweep.id for sweep in everyone])
    states = {
        sweep.id: state_of(
            by_sweep[sweep.id],
            cancelled=sweep.cancelled_at is not None,
            searching=bool(sweep.searching),
        )
        for sweep in everyone
    }
    shared = _progress_of_shared(
        session, [study for study, held in sweeps.items() if _may_share(held)]
    )
    return {
        study: StudyProgress(
            shared.get(study) or _add_up(by_sweep[sweep.id] for sweep in held),
            study_state(states[sweep.id] for sweep in held),
        )
        for study, held in sweeps.items()
    }


def _may_share(sweeps: Sequence[SweepRow]) -> bool:
    """Return whether a trial could be in two of the sweeps: the later one would have reused it."""
    return any(sweep.reused for sweep in sorted(sweeps, key=lambda sweep: sweep.id)[1:])


def _add_up(parts: Iterable[Progress]) -> Progress:
    found = Progress()
    for part in parts:
        for state, count in part.counts.items():
            found.counts[state] += count
    return found


def _progress_of_shared(session: Session, study_ids: Sequence[int]) -> dict[int, Progress]:
    if not study_ids:
        return {}
    found = {study_id: Progress() for study_id in study_ids}
    query = (
        select(SweepRow.study_id, TrialRow.state, func.count(TrialRow.id.distinct()))
        .select_from(SweepRow)
        .join(SweepTrialRow, SweepTrialRow.sweep_id == SweepRow.id)
        .join(TrialRow, TrialRow.id == SweepTrialRow.trial_id)
        .where(SweepRow.study_id.in_(study_ids))
        .group_by(SweepRow.study_id, TrialRow.state)
    )
    for study_id, state, count in session.execute(query):
        found[study_id].counts[state] = count
    return found


def add_note(session: Session, *, study_id: int, by: Caller, text: str) -> NoteRead:
    """Store what the caller notes about a study."""
    owner_of(session, study_id=study_id)  # raises if there is no such study
    name = by.name if by.user_id is not None else ""
    row = StudyNoteRow(
        study_id=study_id, user_id=by.user_id, user_name=name, text=text, created_at=clock()
    )
    session.add(row)
    session.flush()
    session.refresh(row)
    return _note_to_read(row)


def notes_page(
    session: Session, *, study_id: int, limit: int = 50, cursor: str | None = None
) -> Page[NoteRead]:
    """Return a study's notes, the newest first."""
    owner_of(session, study_id=study_id)
    query = select(StudyNoteRow).where(StudyNoteRow.study_id == study_id)
    if cursor is not None:
        (last,) = read_cursor(cursor, int)
        query = query.where(StudyNoteRow.id < last)
    rows = session.scalars(query.order_by(StudyNoteRow.id.desc()).limit(limit + 1)).all()
    return Page(
        items=[_note_to_read(row) for row in rows[:limit]],
        next_cursor=write_cursor(rows[limit - 1].id) if len(rows) > limit else None,
    )


def delete_note(session: Session, *, note_id: int, by: Caller) -> None:
    """Delete a note; its author and admins may."""
    row = session.get(StudyNoteRow, note_id)
    if row is None:
        raise NotFound("note", note_id)
    by.check_owner(row.user_id, of="note")
    session.execute(sa.delete(StudyNoteRow).where(StudyNoteRow.id == note_id))


def _note_to_read(row: StudyNoteRow) -> NoteRead:
    return NoteRead(
        id=row.id,
        study_id=row.study_id,
        author=row.user_name or None,
        text=row.text,
        created_at=row.created_at,
    )


def save_view(session: Session, *, user_id: int | None, payload: ViewCreate) -> ViewRead:
    """Store filters under a name; an older view of that name gives way."""
    same = (_view_of(user_id), SavedViewRow.name == payload.name)
    session.execute(sa.delete(SavedViewRow).where(*same))
    if len(list_views(session, user_id=user_id)) >= MOST_VIEWS:
        raise Conflict(f"There is room for {MOST_VIEWS} views; delete some first.")
    filters = payload.filters.model_dump(exclude_none=True)
    row = SavedViewRow(user_id=user_id, name=payload.name, filters=filters, created_at=clock())
    session.add(row)
    session.flush()
    return ViewRead(id=row.id, name=row.name, filters=filters)


def list_views(session: Session, *, user_id: int | None) -> list[ViewRead]:
    """Return somebody's views, by name."""
    query = select(SavedViewRow).where(_view_of(user_id)).order_by(SavedViewRow.name)
    return [
        ViewRead(id=row.id, name=row.name, filters=row.filters) for row in session.scalars(query)
    ]


def delete_view(session: Session, *, user_id: int | None, view_id: int) -> None:
    """Delete a view of one's own."""
    query = sa.delete(SavedViewRow).where(SavedViewRow.id == view_id, _view_of(user_id))
    if changed_rows(session, query) == 0:
        raise NotFound("view", view_id)


def _view_of(user_id: int | None) -> ColumnElement[bool]:
    return SavedViewRow.user_id.is_(None) if user_id is None else SavedViewRow.user_id == user_id
