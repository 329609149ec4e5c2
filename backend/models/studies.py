"""A question with a name, tags, notes and an owner."""

from datetime import datetime
from typing import Any

from sqlalchemy import CheckConstraint, ForeignKey, Index, String, Text
from sqlalchemy.orm import Mapped, mapped_column

from backend.db import NO_SECOND_USE, Base, CreatedAt


class StudyRow(Base):
    """What holds sweeps together."""

    __tablename__ = "studies"
    __table_args__ = (
        CheckConstraint("length(name) > 0", name="name_given"),
        # Each order of the history pages by a key and, where it is equal, by id.
        Index(None, "created_at", "id"),
        Index(None, "updated_at", "id"),
        Index(None, "name", "id"),
        NO_SECOND_USE,
    )

    id: Mapped[int] = mapped_column(primary_key=True)
    name: Mapped[str] = mapped_column(String(200))
    notes: Mapped[str] = mapped_column(Text, default="")
    owner_id: Mapped[int | None] = mapped_column(
        ForeignKey("users.id", ondelete="SET NULL"), index=True
    )
    archived_at: Mapped[datetime | None]
    created_at: Mapped[CreatedAt]
    updated_at: Mapped[CreatedAt]


class StudyTagRow(Base):
    """One word to find a study by."""

    __tablename__ = "study_tags"
    __table_args__ = (Index(None, "tag", "study_id"),)

    study_id: Mapped[int] = mapped_column(
        ForeignKey("studies.id", ondelete="CASCADE"), primary_key=True
    )
    tag: Mapped[str] = mapped_column(String(50), primary_key=True)


class StudyNoteRow(Base):
    """What somebody noted about a study; outlives its author's account."""

    __tablename__ = "study_notes"
    __table_args__ = (Index(None, "study_id", "id"), NO_SECOND_USE)

    id: Mapped[int] = mapped_column(primary_key=True)
    study_id: Mapped[int] = mapped_column(ForeignKey("studies.id", ondelete="CASCADE"))
    user_id: Mapped[int | None] = mapped_column(ForeignKey("users.id", ondelete="SET NULL"))
    user_name: Mapped[str] = mapped_column(String(100), default="")
    text: Mapped[str] = mapped_column(Text)
    created_at: Mapped[CreatedAt]


class SavedViewRow(Base):
    """Filters of the history that somebody gave a name; nobody's where there are no accounts."""

    __tablename__ = "saved_views"
    __table_args__ = (Index(None, "user_id", "name"), NO_SECOND_USE)

    id: Mapped[int] = mapped_column(primary_key=True)
    user_id: Mapped[int | None] = mapped_column(ForeignKey("users.id", ondelete="CASCADE"))
    name: Mapped[str] = mapped_column(String(100))
    filters: Mapped[dict[str, Any]]
    created_at: Mapped[CreatedAt]
