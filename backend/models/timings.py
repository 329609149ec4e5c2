"""What a step costs: races of methods on one network, asked for and measured."""

from datetime import datetime
from typing import Any

from sqlalchemy import CheckConstraint, ForeignKey, Index, String, Text
from sqlalchemy.orm import Mapped, mapped_column

from backend.db import NO_SECOND_USE, Base, CreatedAt, enum_column, one_of
from backend.models.shards import AGENTS, DEVICES, ShardState


class TimingRow(Base):
    """Methods that take steps on one network in turn; leased, not given, to a worker.

    Of the network, not of a study: every study that trains it shows what was measured.
    """

    __tablename__ = "timings"
    __table_args__ = (
        one_of("state", ShardState),
        one_of("device", tuple(device for device in DEVICES if device != AGENTS)),
        CheckConstraint("attempts >= 0", name="attempts_natural"),
        CheckConstraint(
            "state <> 'running' OR (worker IS NOT NULL AND lease_until IS NOT NULL)",
            name="running_has_lease",
        ),
        CheckConstraint("state <> 'done' OR results IS NOT NULL", name="done_has_results"),
        CheckConstraint("state <> 'failed' OR error IS NOT NULL", name="failed_has_error"),
        Index(None, "network_hash", "id"),
        Index(None, "state", "sent_at"),
        NO_SECOND_USE,
    )

    id: Mapped[int] = mapped_column(primary_key=True)
    state: Mapped[ShardState] = mapped_column(enum_column(ShardState))
    device: Mapped[str] = mapped_column(String(16), default="auto")  # as asked for
    network_hash: Mapped[str] = mapped_column(String(64))
    network: Mapped[dict[str, Any]]  # settings that decide what a step is, but for the method
    methods: Mapped[dict[str, Any]]  # what races, by name
    results: Mapped[dict[str, Any] | None]  # ratio to EB, quartiles and rounds, by name
    measured_on: Mapped[str] = mapped_column(String(300), default="")
    owner_id: Mapped[int | None] = mapped_column(ForeignKey("users.id", ondelete="SET NULL"))
    attempts: Mapped[int] = mapped_column(default=0)
    lease: Mapped[int] = mapped_column(default=0)  # number of claims; fences off stale workers
    worker: Mapped[str | None] = mapped_column(String(200))
    lease_until: Mapped[datetime | None]
    sent_at: Mapped[datetime | None]
    error: Mapped[str | None] = mapped_column(Text)
    created_at: Mapped[CreatedAt]
    finished_at: Mapped[datetime | None]
