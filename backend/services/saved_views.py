"""Saved views of the history: filters with a name, each person's own."""

import sqlalchemy as sa
from sqlalchemy import ColumnElement, select
from sqlalchemy.orm import Session

from backend.db import changed_rows, clock
from backend.errors import Conflict, NotFound
from backend.models import SavedViewRow
from backend.schemas import ViewCreate, ViewRead

MOST_VIEWS = 100


def save(session: Session, *, user_id: int | None, payload: ViewCreate) -> ViewRead:
    """Store filters under a name; an older view of that name gives way."""
    same = (_whose(user_id), SavedViewRow.name == payload.name)
    session.execute(sa.delete(SavedViewRow).where(*same))
    if len(list_for(session, user_id=user_id)) >= MOST_VIEWS:
        raise Conflict(f"There is room for {MOST_VIEWS} views; delete some first.")
    filters = payload.filters.model_dump(exclude_none=True)
    row = SavedViewRow(user_id=user_id, name=payload.name, filters=filters, created_at=clock())
    session.add(row)
    session.flush()
    return ViewRead(id=row.id, name=row.name, filters=filters)


def list_for(session: Session, *, user_id: int | None) -> list[ViewRead]:
    """Return somebody's views, by name."""
    query = select(SavedViewRow).where(_whose(user_id)).order_by(SavedViewRow.name)
    return [
        ViewRead(id=row.id, name=row.name, filters=row.filters) for row in session.scalars(query)
    ]


def delete(session: Session, *, user_id: int | None, view_id: int) -> None:
    """Delete a view of one's own."""
    query = sa.delete(SavedViewRow).where(SavedViewRow.id == view_id, _whose(user_id))
    if changed_rows(session, query) == 0:
        raise NotFound("view", view_id)


def _whose(user_id: int | None) -> ColumnElement[bool]:
    return SavedViewRow.user_id.is_(None) if user_id is None else SavedViewRow.user_id == user_id
