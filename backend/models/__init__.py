"""The tables, by noun; a row is typed and small, and the database refuses nonsense.

Here are people, their logins and tokens, who did what; and what is theirs: studies with tags,
notes and saved views, and sweeps. In `trials` are trials, their curves, recordings and replays,
shards and workers, and what a step costs.
"""

from datetime import datetime
from typing import Any

from sqlalchemy import CheckConstraint, ForeignKey, Index, String, Text, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from backend.db import NO_SECOND_USE, Base, CreatedAt, one_of
from backend.models.trials import (
    AGENTS,
    DEVICES,
    LONGEST_METHOD,
    CurveRow,
    OfferRow,
    RecordingRow,
    ShardRow,
    ShardState,
    TimingRow,
    TrialRow,
    WorkerRow,
)

__all__ = [
    "AGENTS",
    "BUNDLE_KEY",
    "DEVICES",
    "LIVE_KEY",
    "LONGEST_METHOD",
    "AuditRow",
    "CurveRow",
    "LoginAttemptsRow",
    "OfferRow",
    "RecordingRow",
    "SavedViewRow",
    "SessionRow",
    "ShardRow",
    "ShardState",
    "StudyNoteRow",
    "StudyRow",
    "StudyTagRow",
    "SweepRow",
    "SweepSummaryRow",
    "SweepTrialRow",
    "TimingRow",
    "TokenRow",
    "TrialRow",
    "UserRow",
    "WorkerRow",
]


ROLES = ("viewer", "member", "admin")
SCOPES = ("read", "write", "admin", "agent")


class UserRow(Base):
    """An account."""

    __tablename__ = "users"
    __table_args__ = (
        one_of("role", ROLES),
        CheckConstraint("length(name) > 0", name="name_given"),
        NO_SECOND_USE,
    )

    id: Mapped[int] = mapped_column(primary_key=True)
    name: Mapped[str] = mapped_column(String(100), unique=True)
    role: Mapped[str] = mapped_column(String(16), default="member")
    password_hash: Mapped[str | None] = mapped_column(String(255))
    created_at: Mapped[CreatedAt]
    last_login_at: Mapped[datetime | None]
    disabled_at: Mapped[datetime | None]


class SessionRow(Base):
    """A login in a browser: its key is in the cookie, only the key's digest is here."""

    __tablename__ = "sessions"
    __table_args__ = NO_SECOND_USE

    id: Mapped[int] = mapped_column(primary_key=True)
    user_id: Mapped[int] = mapped_column(ForeignKey("users.id", ondelete="CASCADE"), index=True)
    key_hash: Mapped[str] = mapped_column(String(64), unique=True)
    created_at: Mapped[CreatedAt]
    expires_at: Mapped[datetime] = mapped_column(index=True)


class LoginAttemptsRow(Base):
    """How often logging in failed lately, for an account's name or a caller's address."""

    __tablename__ = "login_attempts"
    __table_args__ = (CheckConstraint("failures >= 0", name="failures_natural"),)

    key: Mapped[str] = mapped_column(String(64), primary_key=True)  # a digest: names are private
    failures: Mapped[int]
    last_at: Mapped[CreatedAt] = mapped_column(index=True)


class TokenRow(Base):
    """A bearer token: shown once, kept as a hash."""

    __tablename__ = "tokens"
    __table_args__ = (one_of("scope", SCOPES), NO_SECOND_USE)

    id: Mapped[int] = mapped_column(primary_key=True)
    user_id: Mapped[int] = mapped_column(ForeignKey("users.id", ondelete="CASCADE"), index=True)
    name: Mapped[str] = mapped_column(String(100))
    prefix: Mapped[str] = mapped_column(String(16))  # what a person recognises it by
    token_hash: Mapped[str] = mapped_column(String(64), unique=True)
    created_at: Mapped[CreatedAt]
    expires_at: Mapped[datetime | None]
    last_used_at: Mapped[datetime | None]
    revoked_at: Mapped[datetime | None]
    scope: Mapped[str] = mapped_column(String(16), default="write")


class AuditRow(Base):
    """One thing somebody did; outlives the account and the thing."""

    __tablename__ = "audit"
    __table_args__ = (Index(None, "target_kind", "target_id"), NO_SECOND_USE)

    id: Mapped[int] = mapped_column(primary_key=True)
    at: Mapped[CreatedAt] = mapped_column(index=True)
    user_id: Mapped[int | None] = mapped_column(ForeignKey("users.id", ondelete="SET NULL"))
    user_name: Mapped[str] = mapped_column(String(100), default="")
    action: Mapped[str] = mapped_column(String(50))
    target_kind: Mapped[str] = mapped_column(String(20), default="")
    target_id: Mapped[int | None]
    detail: Mapped[dict[str, Any] | None]
    note: Mapped[str] = mapped_column(Text, default="")


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


#: How the idempotency keys of a bundle's sweeps begin, by which its studies are known.
BUNDLE_KEY = "bundle:"
#: How those of sweeps of live runs begin; no key of a caller's has a space.
LIVE_KEY = "runs of "


class SweepRow(Base):
    """A grid of trials; its state and progress are derived from them, never stored."""

    __tablename__ = "sweeps"
    __table_args__ = (
        Index(None, "study_id", "id"),
        UniqueConstraint("study_id", "idempotency_key"),
        CheckConstraint("total > 0", name="total_positive"),
        CheckConstraint("reused >= 0 AND reused <= total", name="reused_within_total"),
        NO_SECOND_USE,
    )

    id: Mapped[int] = mapped_column(primary_key=True)
    study_id: Mapped[int] = mapped_column(ForeignKey("studies.id", ondelete="CASCADE"))
    owner_id: Mapped[int | None] = mapped_column(ForeignKey("users.id", ondelete="SET NULL"))
    task: Mapped[str] = mapped_column(String(100), index=True)
    device: Mapped[str] = mapped_column(String(16), default="auto")
    spec: Mapped[dict[str, Any]]  # the grid in full, every default filled in
    body: Mapped[dict[str, Any]]  # as it was sent
    body_hash: Mapped[str] = mapped_column(String(64))
    note: Mapped[str] = mapped_column(Text, default="")
    idempotency_key: Mapped[str | None] = mapped_column(String(200))
    total: Mapped[int]
    reused: Mapped[int]
    imported: Mapped[bool] = mapped_column(default=False)
    engine_version: Mapped[str | None] = mapped_column(String(16))
    created_at: Mapped[CreatedAt]
    cancelled_at: Mapped[datetime | None]
    round: Mapped[int | None]  # how many a search has planned; NULL: a grid
    searching: Mapped[bool | None] = mapped_column(index=True)  # whether more may come


class SweepTrialRow(Base):
    """A trial's place in a sweep; a trial may be in many."""

    __tablename__ = "sweep_trials"
    __table_args__ = (
        UniqueConstraint("sweep_id", "position"),
        CheckConstraint("position >= 0", name="position_natural"),
    )

    # PostgreSQL keeps no statistics of it: they know nothing of a new sweep (migration 0013).
    sweep_id: Mapped[int] = mapped_column(
        ForeignKey("sweeps.id", ondelete="CASCADE"), primary_key=True
    )
    trial_id: Mapped[int] = mapped_column(
        ForeignKey("trials.id", ondelete="CASCADE"), primary_key=True, index=True
    )
    position: Mapped[int]
    reused: Mapped[bool]  # another sweep had already brought it
    round: Mapped[int | None]  # of a search, in which it was asked for; NULL: a grid


class SweepSummaryRow(Base):
    """What a sweep's trials add up to once all have a result, which is final.

    Derived, and only there to be quick: without a row everything is counted from the trials.
    """

    __tablename__ = "sweep_summaries"

    sweep_id: Mapped[int] = mapped_column(
        ForeignKey("sweeps.id", ondelete="CASCADE"), primary_key=True
    )
    completed: Mapped[int]
    diverged: Mapped[int]
    fresh: Mapped[int]
    finished_at: Mapped[datetime | None]
    layout: Mapped[str] = mapped_column(String(200))  # what a row of the curves consists of
    curves: Mapped[dict[str, Any]]
