"""A study's sweeps, page by page."""

from sqlalchemy import select
from sqlalchemy.orm import Session

from backend.models import SweepRow
from backend.schemas import Page, SweepRead
from backend.services import studies, sweeps
from backend.services.cursors import read_cursor, write_cursor


def page(
    session: Session, *, study_id: int, limit: int, cursor: str | None = None
) -> Page[SweepRead]:
    """Return a page of a study's sweeps, oldest first."""
    studies.owner_of(session, study_id=study_id)  # raises if there is no such study
    after = read_cursor(cursor, int)[0] if cursor else 0
    query = (
        select(SweepRow.id)
        .where(SweepRow.study_id == study_id, SweepRow.id > after)
        .order_by(SweepRow.id)
        .limit(limit + 1)
    )
    ids = session.scalars(query).all()
    return Page(
        items=[sweeps.get(session, sweep_id=sweep_id) for sweep_id in ids[:limit]],
        next_cursor=write_cursor(ids[limit - 1]) if len(ids) > limit else None,
    )
