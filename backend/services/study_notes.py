"""Notes on a study: what people remark, with author and time."""

import sqlalchemy as sa
from sqlalchemy import select
from sqlalchemy.orm import Session

from backend.db import clock
from backend.errors import NotFound
from backend.models import StudyNoteRow
from backend.schemas import NoteRead, Page
from backend.services import studies
from backend.services.accounts.caller import Caller
from backend.services.cursors import read_cursor, write_cursor


def add(session: Session, *, study_id: int, by: Caller, text: str) -> NoteRead:
    """Store a remark of the caller's."""
    studies.owner_of(session, study_id=study_id)  # raises if there is no such study
    name = by.name if by.user_id is not None else ""
    row = StudyNoteRow(
        study_id=study_id, user_id=by.user_id, user_name=name, text=text, created_at=clock()
    )
    session.add(row)
    session.flush()
    session.refresh(row)
    return _to_read(row)


def page(
    session: Session, *, study_id: int, limit: int = 50, cursor: str | None = None
) -> Page[NoteRead]:
    """Return a study's notes, the newest first."""
    studies.owner_of(session, study_id=study_id)
    query = select(StudyNoteRow).where(StudyNoteRow.study_id == study_id)
    if cursor is not None:
        (last,) = read_cursor(cursor, int)
        query = query.where(StudyNoteRow.id < last)
    rows = session.scalars(query.order_by(StudyNoteRow.id.desc()).limit(limit + 1)).all()
    return Page(
        items=[_to_read(row) for row in rows[:limit]],
        next_cursor=write_cursor(rows[limit - 1].id) if len(rows) > limit else None,
    )


def delete(session: Session, *, note_id: int, by: Caller) -> None:
    """Delete a note; its author and admins may."""
    row = session.get(StudyNoteRow, note_id)
    if row is None:
        raise NotFound("note", note_id)
    by.check_owner(row.user_id, of="note")
    session.execute(sa.delete(StudyNoteRow).where(StudyNoteRow.id == note_id))


def _to_read(row: StudyNoteRow) -> NoteRead:
    return NoteRead(
        id=row.id,
        study_id=row.study_id,
        author=row.user_name or None,
        text=row.text,
        created_at=row.created_at,
    )
