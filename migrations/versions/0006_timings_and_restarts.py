"""Restarts of a trial, counted; and races that tell what a step costs."""

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None

BIG = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
MOMENT = sa.DateTime(timezone=True)


def upgrade() -> None:
    op.add_column("trials", sa.Column("restarts", BIG))
    op.add_column("trials", sa.Column("at_zero", sa.Boolean()))
    op.create_table(
        "timings",
        sa.Column("id", BIG, nullable=False),
        sa.Column("state", sa.String(16), nullable=False),
        sa.Column("device", sa.String(16), nullable=False),
        sa.Column("network_hash", sa.String(64), nullable=False),
        sa.Column("network", sa.JSON(), nullable=False),
        sa.Column("methods", sa.JSON(), nullable=False),
        sa.Column("results", sa.JSON()),
        sa.Column("measured_on", sa.String(300), nullable=False),
        sa.Column("owner_id", BIG),
        sa.Column("attempts", BIG, nullable=False),
        sa.Column("lease", BIG, nullable=False),
        sa.Column("worker", sa.String(200)),
        sa.Column("lease_until", MOMENT),
        sa.Column("sent_at", MOMENT),
        sa.Column("error", sa.Text()),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.Column("finished_at", MOMENT),
        sa.CheckConstraint("attempts >= 0", name=op.f("ck_timings_attempts_natural")),
        sa.CheckConstraint("device IN ('auto', 'cpu', 'cuda')", name=op.f("ck_timings_device")),
        sa.CheckConstraint(
            "state <> 'done' OR results IS NOT NULL", name=op.f("ck_timings_done_has_results")
        ),
        sa.CheckConstraint(
            "state <> 'failed' OR error IS NOT NULL", name=op.f("ck_timings_failed_has_error")
        ),
        sa.CheckConstraint(
            "state <> 'running' OR (worker IS NOT NULL AND lease_until IS NOT NULL)",
            name=op.f("ck_timings_running_has_lease"),
        ),
        sa.CheckConstraint(
            "state IN ('queued', 'running', 'done', 'failed', 'cancelled')",
            name=op.f("ck_timings_state"),
        ),
        sa.ForeignKeyConstraint(
            ["owner_id"], ["users.id"], name=op.f("fk_timings_owner_id_users"), ondelete="SET NULL"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_timings")),
        sqlite_autoincrement=True,
    )
    op.create_index(op.f("ix_timings_network_hash_id"), "timings", ["network_hash", "id"])
    op.create_index(op.f("ix_timings_state_sent_at"), "timings", ["state", "sent_at"])


def downgrade() -> None:
    op.drop_table("timings")
    op.drop_column("trials", "at_zero")
    op.drop_column("trials", "restarts")
