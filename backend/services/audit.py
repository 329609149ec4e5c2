"""Who did what, and when; remembered also when the thing or the account is gone."""

from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from backend.db import clock
from backend.models import AuditRow
from backend.schemas import AuditRead, Page, StudyRead
from backend.services.accounts.caller import Caller
from backend.services.cursors import read_cursor, write_cursor

STUDY, ACCOUNT = "study", "account"


def record(
    session: Session,
    *,
    by: Caller,
    action: str,
    study_id: int | None = None,
    user_id: int | None = None,
    **detail: Any,
) -> None:
    """Remember an action, in the transaction that does it.

    Args:
        session: The transaction.
        by: Who did it.
        action: What, as `study.archive`.
        study_id: The study it was done to.
        user_id: Or the account.
        detail: What else to know; never a password or a token.
    """
    session.add(
        AuditRow(
            at=clock(),
            user_id=by.user_id,
            user_name=by.name if by.user_id is not None else "",
            action=action,
            target_kind=STUDY if study_id is not None else ACCOUNT,
            target_id=study_id if study_id is not None else user_id,
            detail=detail or None,
        )
    )


def record_changes(session: Session, *, by: Caller, before: StudyRead, after: StudyRead) -> None:
    """Remember what a change of a study really changed."""
    if after.name != before.name:
        record(
            session,
            by=by,
            action="study.rename",
            study_id=after.id,
            before=before.name,
            after=after.name,
        )
    if after.notes != before.notes:
        record(session, by=by, action="study.notes", study_id=after.id)
    if after.tags != before.tags:
        record(session, by=by, action="study.tags", study_id=after.id, tags=after.tags)
    if after.archived != before.archived:
        action = "study.archive" if after.archived else "study.restore"
        record(session, by=by, action=action, study_id=after.id)


def page(
    session: Session, *, study_id: int | None = None, limit: int = 50, cursor: str | None = None
) -> Page[AuditRead]:
    """Return what happened, to one study or at all, the newest first."""
    query = select(AuditRow).order_by(AuditRow.id.desc()).limit(limit + 1)
    if study_id is not None:
        query = query.where(AuditRow.target_kind == STUDY, AuditRow.target_id == study_id)
    if cursor is not None:
        (last,) = read_cursor(cursor, int)
        query = query.where(AuditRow.id < last)
    rows = session.scalars(query).all()
    return Page(
        items=[_to_read(row) for row in rows[:limit]],
        next_cursor=write_cursor(rows[limit - 1].id) if len(rows) > limit else None,
    )


def _to_read(row: AuditRow) -> AuditRead:
    return AuditRead(
        id=row.id,
        at=row.at,
        username=row.user_name or None,
        action=row.action,
        study_id=row.target_id if row.target_kind == STUDY else None,
        user_id=row.target_id if row.target_kind == ACCOUNT else None,
        detail=row.detail or {},
    )
