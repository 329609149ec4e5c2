"""Shards and the workers that train them."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

BIG = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
MOMENT = sa.DateTime(timezone=True)
LARGEST = "1.7976931348623157e308"


def _finite(table: str, column: str) -> sa.CheckConstraint:
    return sa.CheckConstraint(
        f"{column} IS NULL OR ({column} >= -{LARGEST} AND {column} <= {LARGEST})",
        name=op.f(f"ck_{table}_{column}_finite"),
    )


def upgrade() -> None:
    op.create_table(
        "shards",
        sa.Column("id", BIG, nullable=False),
        sa.Column("state", sa.String(16), nullable=False),
        sa.Column("device", sa.String(16), nullable=False),
        sa.Column("trials", BIG, nullable=False),
        sa.Column("seconds", sa.Double(), nullable=False),
        sa.Column("memory_bytes", BIG, nullable=False),
        sa.Column("attempts", BIG, nullable=False),
        sa.Column("lease", BIG, nullable=False),
        sa.Column("worker", sa.String(200)),
        sa.Column("lease_until", MOMENT),
        sa.Column("not_before", MOMENT),
        sa.Column("queue", sa.String(16)),
        sa.Column("sent_at", MOMENT),
        sa.Column("progress", sa.Double(), nullable=False),
        sa.Column("message", sa.Text()),
        sa.Column("error", sa.Text()),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.Column("started_at", MOMENT),
        sa.Column("finished_at", MOMENT),
        sa.CheckConstraint("device IN ('auto', 'cpu', 'cuda')", name=op.f("ck_shards_device")),
        sa.CheckConstraint(
            "state <> 'failed' OR error IS NOT NULL", name=op.f("ck_shards_failed_has_error")
        ),
        sa.CheckConstraint(
            "state <> 'running' OR (worker IS NOT NULL AND lease_until IS NOT NULL)",
            name=op.f("ck_shards_running_has_lease"),
        ),
        sa.CheckConstraint(
            "state IN ('queued', 'running', 'done', 'failed', 'cancelled')",
            name=op.f("ck_shards_state"),
        ),
        sa.CheckConstraint("attempts >= 0", name=op.f("ck_shards_attempts_natural")),
        sa.CheckConstraint("lease >= 0", name=op.f("ck_shards_lease_natural")),
        sa.CheckConstraint(
            "progress >= 0 AND progress <= 1", name=op.f("ck_shards_progress_fraction")
        ),
        _finite("shards", "seconds"),
        sa.CheckConstraint("trials > 0", name=op.f("ck_shards_trials_positive")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_shards")),
        sqlite_autoincrement=True,
    )
    op.create_index(op.f("ix_shards_due"), "shards", ["state", "sent_at", "id"])
    op.create_index(op.f("ix_shards_leases"), "shards", ["state", "lease_until"])

    op.create_table(
        "workers",
        sa.Column("name", sa.String(200), nullable=False),
        sa.Column("host", sa.String(255), nullable=False),
        sa.Column("pid", BIG),
        sa.Column("device", sa.String(16), nullable=False),
        sa.Column("device_name", sa.String(200), nullable=False),
        sa.Column("details", sa.JSON(), nullable=False),
        sa.Column("shard_id", BIG),
        sa.Column("trials_done", BIG, nullable=False),
        sa.Column("busy_seconds", sa.Double(), nullable=False),
        sa.Column("started_at", MOMENT, nullable=False),
        sa.Column("heartbeat_at", MOMENT, nullable=False),
        sa.Column("stopping_at", MOMENT),
        sa.CheckConstraint("device IN ('cpu', 'cuda')", name=op.f("ck_workers_device")),
        sa.CheckConstraint("trials_done >= 0", name=op.f("ck_workers_trials_done_natural")),
        sa.ForeignKeyConstraint(
            ["shard_id"],
            ["shards.id"],
            name=op.f("fk_workers_shard_id_shards"),
            ondelete="SET NULL",
        ),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_workers")),
    )
    op.create_index(op.f("ix_workers_heartbeat_at"), "workers", ["heartbeat_at"])


def downgrade() -> None:
    op.drop_table("workers")
    op.drop_table("shards")
