"""What was recorded of a trial's way, and replays that are to record it."""

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None

BIG = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
MOMENT = sa.DateTime(timezone=True)


def upgrade() -> None:
    op.create_table(
        "recordings",
        sa.Column("trial_id", BIG, nullable=False),
        sa.Column("state", sa.String(16), nullable=False),
        sa.Column("data", sa.LargeBinary()),
        sa.Column("agreement", sa.JSON()),
        sa.Column("device", sa.String(16), nullable=False),
        sa.Column("owner_id", BIG),
        sa.Column("attempts", BIG, nullable=False),
        sa.Column("lease", BIG, nullable=False),
        sa.Column("needs", sa.String(40)),
        sa.Column("progress", sa.Double(), nullable=False),
        sa.Column("worker", sa.String(200)),
        sa.Column("lease_until", MOMENT),
        sa.Column("sent_at", MOMENT),
        sa.Column("error", sa.Text()),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.Column("finished_at", MOMENT),
        sa.CheckConstraint("attempts >= 0", name=op.f("ck_recordings_attempts_natural")),
        sa.CheckConstraint("device IN ('auto', 'cpu', 'cuda')", name=op.f("ck_recordings_device")),
        sa.CheckConstraint(
            "state <> 'done' OR data IS NOT NULL", name=op.f("ck_recordings_done_has_data")
        ),
        sa.CheckConstraint(
            "state <> 'failed' OR error IS NOT NULL", name=op.f("ck_recordings_failed_has_error")
        ),
        sa.CheckConstraint(
            "state <> 'running' OR (worker IS NOT NULL AND lease_until IS NOT NULL)",
            name=op.f("ck_recordings_running_has_lease"),
        ),
        sa.CheckConstraint(
            "state IN ('queued', 'running', 'done', 'failed', 'cancelled')",
            name=op.f("ck_recordings_state"),
        ),
        sa.ForeignKeyConstraint(
            ["owner_id"],
            ["users.id"],
            name=op.f("fk_recordings_owner_id_users"),
            ondelete="SET NULL",
        ),
        sa.ForeignKeyConstraint(
            ["trial_id"],
            ["trials.id"],
            name=op.f("fk_recordings_trial_id_trials"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("trial_id", name=op.f("pk_recordings")),
    )
    op.create_index(op.f("ix_recordings_state_sent_at"), "recordings", ["state", "sent_at"])


def downgrade() -> None:
    op.drop_table("recordings")
