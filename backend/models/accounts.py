"""Who may do what, and who did it."""

from datetime import datetime
from typing import Any

from sqlalchemy import CheckConstraint, ForeignKey, Index, String, Text
from sqlalchemy.orm import Mapped, mapped_column

from backend.db import NO_SECOND_USE, Base, CreatedAt, one_of

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
