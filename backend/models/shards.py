"""What one worker trains together, and the workers."""

from datetime import datetime
from enum import StrEnum
from typing import Any

from sqlalchemy import CheckConstraint, ForeignKey, Index, String, Text
from sqlalchemy.orm import Mapped, mapped_column

from backend.db import NO_SECOND_USE, Base, CreatedAt, enum_column, finite, one_of

#: In place of a device: a cell, which somebody's program elsewhere claims.
AGENTS = "agents"
DEVICES = ("auto", "cpu", "cuda", AGENTS)


class ShardState(StrEnum):
    """Where a shard is in its life."""

    QUEUED = "queued"
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    CANCELLED = "cancelled"


class ShardRow(Base):
    """The trials that one worker trains together; leased, not given, to that worker."""

    __tablename__ = "shards"
    __table_args__ = (
        one_of("state", ShardState),
        one_of("device", DEVICES),
        CheckConstraint("attempts >= 0", name="attempts_natural"),
        CheckConstraint("lease >= 0", name="lease_natural"),
        CheckConstraint("trials > 0", name="trials_positive"),
        CheckConstraint("progress >= 0 AND progress <= 1", name="progress_fraction"),
        CheckConstraint(
            "state <> 'running' OR (worker IS NOT NULL AND lease_until IS NOT NULL)",
            name="running_has_lease",
        ),
        CheckConstraint("state <> 'failed' OR error IS NOT NULL", name="failed_has_error"),
        finite("seconds"),
        Index("ix_shards_due", "state", "sent_at", "id"),
        Index("ix_shards_leases", "state", "lease_until"),
        NO_SECOND_USE,
    )

    id: Mapped[int] = mapped_column(primary_key=True)
    state: Mapped[ShardState] = mapped_column(enum_column(ShardState))
    device: Mapped[str] = mapped_column(String(16), default="auto")
    trials: Mapped[int]  # how many it began with
    seconds: Mapped[float]  # forecast
    memory_bytes: Mapped[int] = mapped_column(default=0)
    attempts: Mapped[int] = mapped_column(default=0)
    lease: Mapped[int] = mapped_column(default=0)  # number of claims; fences off stale workers
    worker: Mapped[str | None] = mapped_column(String(200))
    lease_until: Mapped[datetime | None]
    not_before: Mapped[datetime | None]
    queue: Mapped[str | None] = mapped_column(String(16))  # where it was last announced
    sent_at: Mapped[datetime | None]
    progress: Mapped[float] = mapped_column(default=0.0)
    message: Mapped[str | None] = mapped_column(Text)
    error: Mapped[str | None] = mapped_column(Text)
    created_at: Mapped[CreatedAt]
    started_at: Mapped[datetime | None]
    finished_at: Mapped[datetime | None]
    needs: Mapped[str | None] = mapped_column(String(40))  # keys of offers its worker must have


class WorkerRow(Base):
    """A training process that has been heard of."""

    __tablename__ = "workers"
    __table_args__ = (
        CheckConstraint("device IN ('cpu', 'cuda')", name="device"),
        CheckConstraint("trials_done >= 0", name="trials_done_natural"),
    )

    name: Mapped[str] = mapped_column(String(200), primary_key=True)
    host: Mapped[str] = mapped_column(String(255), default="")
    pid: Mapped[int | None]
    device: Mapped[str] = mapped_column(String(16))
    device_name: Mapped[str] = mapped_column(String(200), default="")
    details: Mapped[dict[str, Any]]  # queues, threads, versions, keys of offers
    shard_id: Mapped[int | None] = mapped_column(ForeignKey("shards.id", ondelete="SET NULL"))
    trials_done: Mapped[int] = mapped_column(default=0)
    busy_seconds: Mapped[float] = mapped_column(default=0.0)
    started_at: Mapped[CreatedAt]
    heartbeat_at: Mapped[CreatedAt] = mapped_column(index=True)
    stopping_at: Mapped[datetime | None]


class OfferRow(Base):
    """A version of somebody's task or method that a worker has announced; never its code."""

    __tablename__ = "offers"
    __table_args__ = (
        CheckConstraint("kind IN ('task', 'method')", name="kind"),
        Index("ix_offers_name", "kind", "name"),
    )

    key: Mapped[str] = mapped_column(String(16), primary_key=True)
    kind: Mapped[str] = mapped_column(String(16))
    name: Mapped[str] = mapped_column(String(100))
    code: Mapped[str | None] = mapped_column(String(64))  # null: any worker has it
    data: Mapped[str | None] = mapped_column(String(64))
    manifest: Mapped[dict[str, Any]]
    worker: Mapped[str] = mapped_column(String(200))  # that had it last
    host: Mapped[str] = mapped_column(String(255), default="")
    created_at: Mapped[CreatedAt]
    seen_at: Mapped[CreatedAt]
