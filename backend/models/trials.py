"""Training runs, their curves and recordings; shards of them, the workers; what a step costs."""

from datetime import datetime
from enum import StrEnum
from typing import Any

from sqlalchemy import CheckConstraint, ForeignKey, Index, LargeBinary, String, Text, text
from sqlalchemy.orm import Mapped, mapped_column

from backend.db import LARGEST, NO_SECOND_USE, Base, CreatedAt, enum_column, finite, one_of
from backend.schemas import TrialState

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
    # Number of claims, of a cell a secret of its holder; fences off who has lost it.
    lease: Mapped[int] = mapped_column(default=0)
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


#: A name with what is said about it, as torch.optim.AdamW(weight_decay=0.1).
LONGEST_METHOD = 200


class TrialRow(Base):
    """One run of one method at one learning rate with one seed, addressed by its content.

    A loss that is not finite is NULL beside the state that says why. Imported trials know less
    about themselves than those trained here: their settings may be NULL.
    """

    __tablename__ = "trials"
    __table_args__ = (
        one_of("state", TrialState),
        CheckConstraint(f"lr > 0 AND lr <= {LARGEST}", name="lr_positive"),
        CheckConstraint(f"mu >= 0 AND mu <= {LARGEST}", name="mu_natural"),
        CheckConstraint(f"clip IS NULL OR (clip > 0 AND clip <= {LARGEST})", name="clip_positive"),
        CheckConstraint("seed >= 0", name="seed_natural"),
        CheckConstraint("epochs > 0", name="epochs_positive"),
        CheckConstraint("batch_size IS NULL OR batch_size > 0", name="batch_size_positive"),
        CheckConstraint("attempts >= 0", name="attempts_natural"),
        CheckConstraint("length(fingerprint) = 64", name="fingerprint_whole"),
        *(finite(c) for c in ("initial_loss", "train_loss", "test_loss")),
        *(finite(c) for c in ("train_accuracy", "test_accuracy", "seconds")),
        CheckConstraint(
            "state <> 'completed' OR train_loss IS NOT NULL"
            " OR (imported AND test_loss IS NOT NULL)",
            name="completed_has_loss",
        ),
        CheckConstraint("state <> 'failed' OR error IS NOT NULL", name="failed_has_error"),
        CheckConstraint("state <> 'running' OR shard_id IS NOT NULL", name="running_in_a_shard"),
        CheckConstraint(
            "state NOT IN ('completed', 'diverged', 'failed') OR finished_at IS NOT NULL",
            name="ended_has_time",
        ),
        CheckConstraint(
            "state NOT IN ('queued', 'running') OR (train_loss IS NULL AND finished_at IS NULL)",
            name="unfinished_has_no_result",
        ),
        # Progress is counted from this index alone, without touching the wide rows.
        Index("ix_trials_progress", "id", "state", "finished_at"),
        # So is what somebody has begun; those that wait may be many, and are everywhere.
        Index(
            "ix_trials_begun",
            *("id", "state", "finished_at"),
            postgresql_where=text("state <> 'queued'"),
            sqlite_where=text("state <> 'queued'"),
        ),
        NO_SECOND_USE,
    )

    id: Mapped[int] = mapped_column(primary_key=True)
    fingerprint: Mapped[str] = mapped_column(String(64), unique=True)
    state: Mapped[TrialState] = mapped_column(enum_column(TrialState), index=True)
    shard_id: Mapped[int | None] = mapped_column(
        ForeignKey("shards.id", ondelete="SET NULL"), index=True
    )
    imported: Mapped[bool] = mapped_column(default=False)
    engine_version: Mapped[str | None] = mapped_column(String(16))
    data_hash: Mapped[str | None] = mapped_column(String(64))

    task: Mapped[str] = mapped_column(String(100))
    profile: Mapped[str] = mapped_column(String(16))
    # SQLite keeps texts of any length, and would have to copy the table to hear of another.
    method: Mapped[str] = mapped_column(
        String(32).with_variant(String(LONGEST_METHOD), "postgresql")
    )
    batch_rule: Mapped[str | None] = mapped_column(String(16))
    activation: Mapped[str | None] = mapped_column(String(32))
    lr: Mapped[float]
    seed: Mapped[int]
    clip: Mapped[float | None]
    mu: Mapped[float]
    epochs: Mapped[int]
    batch_size: Mapped[int | None]
    options: Mapped[dict[str, Any]]

    attempts: Mapped[int] = mapped_column(default=0)
    created_at: Mapped[CreatedAt]
    started_at: Mapped[datetime | None]
    finished_at: Mapped[datetime | None]
    initial_loss: Mapped[float | None]
    train_loss: Mapped[float | None]
    test_loss: Mapped[float | None]
    train_accuracy: Mapped[float | None]
    test_accuracy: Mapped[float | None]
    diverged_at_step: Mapped[int | None]
    diverged_where: Mapped[str | None] = mapped_column(String(16))
    diverged_layer: Mapped[str | None] = mapped_column(String(100))
    seconds: Mapped[float | None]
    record: Mapped[dict[str, Any] | None]
    error: Mapped[str | None] = mapped_column(Text)
    restarts: Mapped[int | None]  # to zero (App. C); NULL where they were not counted
    at_zero: Mapped[bool | None]  # whether the last one left it there
    validation_loss: Mapped[float | None]  # on held-out rows; NULL where there are none
    validation_accuracy: Mapped[float | None]


class CurveRow(Base):
    """A trial's losses by step: six float64 columns in one compressed block.

    Where rows are held out, their two columns stand in a block of their own.

    One row for a whole curve, because a row per point would make the table a thousand times as
    long; bytes, because NaN is part of many a curve and columns cannot hold it alike everywhere.
    """

    __tablename__ = "curves"
    __table_args__ = (CheckConstraint("points >= 0", name="points_natural"),)

    trial_id: Mapped[int] = mapped_column(
        ForeignKey("trials.id", ondelete="CASCADE"), primary_key=True
    )
    points: Mapped[int]
    data: Mapped[bytes] = mapped_column(LargeBinary)
    validation: Mapped[bytes | None] = mapped_column(LargeBinary)


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
    needs: Mapped[str | None] = mapped_column(Text)  # keys of offers its worker must have
