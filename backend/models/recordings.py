"""What was recorded of a trial's way, and the replay that is to record it."""

from datetime import datetime
from typing import Any

from sqlalchemy import CheckConstraint, ForeignKey, Index, LargeBinary, String, Text
from sqlalchemy.orm import Mapped, mapped_column

from backend.db import Base, CreatedAt, enum_column, one_of
from backend.models.shards import AGENTS, DEVICES, ShardState


class RecordingRow(Base):
    """One trial's norms and sharpness by step, in one compressed block.

    Made by the sweep that trained it, or by a replay: then the row is asked for first and leased to
    a worker like a race of steps. A replay keeps the block from before until it has a new one.
    """

    __tablename__ = "recordings"
    __table_args__ = (
        one_of("state", ShardState),
        one_of("device", tuple(device for device in DEVICES if device != AGENTS)),
        CheckConstraint("attempts >= 0", name="attempts_natural"),
        CheckConstraint(
            "state <> 'running' OR (worker IS NOT NULL AND lease_until IS NOT NULL)",
            name="running_has_lease",
        ),
        CheckConstraint("state <> 'done' OR data IS NOT NULL", name="done_has_data"),
        CheckConstraint("state <> 'failed' OR error IS NOT NULL", name="failed_has_error"),
        Index(None, "state", "sent_at"),
    )

    trial_id: Mapped[int] = mapped_column(
        ForeignKey("trials.id", ondelete="CASCADE"), primary_key=True
    )
    state: Mapped[ShardState] = mapped_column(enum_column(ShardState))
    data: Mapped[bytes | None] = mapped_column(LargeBinary)  # as `Recording.to_bytes` packs it
    agreement: Mapped[dict[str, Any] | None]  # of a replay with the numbers that were stored
    device: Mapped[str] = mapped_column(String(16), default="auto")  # as asked for
    owner_id: Mapped[int | None] = mapped_column(ForeignKey("users.id", ondelete="SET NULL"))
    attempts: Mapped[int] = mapped_column(default=0)
    lease: Mapped[int] = mapped_column(default=0)  # number of claims; fences off stale workers
    needs: Mapped[str | None] = mapped_column(String(40))  # offers its worker must have
    progress: Mapped[float] = mapped_column(default=0.0)
    worker: Mapped[str | None] = mapped_column(String(200))
    lease_until: Mapped[datetime | None]
    sent_at: Mapped[datetime | None]
    error: Mapped[str | None] = mapped_column(Text)
    created_at: Mapped[CreatedAt]
    finished_at: Mapped[datetime | None]
