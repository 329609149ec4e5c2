"""Sweeps, trials and their curves."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
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
        "trials",
        sa.Column("id", BIG, nullable=False),
        sa.Column("fingerprint", sa.String(64), nullable=False),
        sa.Column("state", sa.String(16), nullable=False),
        sa.Column("shard_id", BIG),
        sa.Column("imported", sa.Boolean(), nullable=False),
        sa.Column("engine_version", sa.String(16)),
        sa.Column("data_hash", sa.String(64)),
        sa.Column("task", sa.String(100), nullable=False),
        sa.Column("profile", sa.String(16), nullable=False),
        sa.Column("method", sa.String(32), nullable=False),
        sa.Column("batch_rule", sa.String(16)),
        sa.Column("activation", sa.String(32)),
        sa.Column("lr", sa.Double(), nullable=False),
        sa.Column("seed", BIG, nullable=False),
        sa.Column("clip", sa.Double()),
        sa.Column("mu", sa.Double(), nullable=False),
        sa.Column("epochs", BIG, nullable=False),
        sa.Column("batch_size", BIG),
        sa.Column("options", sa.JSON(), nullable=False),
        sa.Column("attempts", BIG, nullable=False),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.Column("started_at", MOMENT),
        sa.Column("finished_at", MOMENT),
        sa.Column("initial_loss", sa.Double()),
        sa.Column("train_loss", sa.Double()),
        sa.Column("test_loss", sa.Double()),
        sa.Column("train_accuracy", sa.Double()),
        sa.Column("test_accuracy", sa.Double()),
        sa.Column("diverged_at_step", BIG),
        sa.Column("diverged_where", sa.String(16)),
        sa.Column("diverged_layer", sa.String(100)),
        sa.Column("seconds", sa.Double()),
        sa.Column("record", sa.JSON()),
        sa.Column("error", sa.Text()),
        sa.CheckConstraint(
            "state <> 'completed' OR train_loss IS NOT NULL"
            " OR (imported AND test_loss IS NOT NULL)",
            name=op.f("ck_trials_completed_has_loss"),
        ),
        sa.CheckConstraint(
            "state <> 'failed' OR error IS NOT NULL", name=op.f("ck_trials_failed_has_error")
        ),
        sa.CheckConstraint(
            "state <> 'running' OR shard_id IS NOT NULL", name=op.f("ck_trials_running_in_a_shard")
        ),
        sa.CheckConstraint(
            "state IN ('queued', 'running', 'completed', 'diverged', 'failed', 'cancelled')",
            name=op.f("ck_trials_state"),
        ),
        sa.CheckConstraint(
            "state NOT IN ('completed', 'diverged', 'failed') OR finished_at IS NOT NULL",
            name=op.f("ck_trials_ended_has_time"),
        ),
        sa.CheckConstraint(
            "state NOT IN ('queued', 'running') OR (train_loss IS NULL AND finished_at IS NULL)",
            name=op.f("ck_trials_unfinished_has_no_result"),
        ),
        sa.CheckConstraint("attempts >= 0", name=op.f("ck_trials_attempts_natural")),
        sa.CheckConstraint(
            "batch_size IS NULL OR batch_size > 0", name=op.f("ck_trials_batch_size_positive")
        ),
        sa.CheckConstraint(
            f"clip IS NULL OR (clip > 0 AND clip <= {LARGEST})",
            name=op.f("ck_trials_clip_positive"),
        ),
        sa.CheckConstraint("epochs > 0", name=op.f("ck_trials_epochs_positive")),
        _finite("trials", "initial_loss"),
        sa.CheckConstraint("length(fingerprint) = 64", name=op.f("ck_trials_fingerprint_whole")),
        sa.CheckConstraint(f"lr > 0 AND lr <= {LARGEST}", name=op.f("ck_trials_lr_positive")),
        sa.CheckConstraint(f"mu >= 0 AND mu <= {LARGEST}", name=op.f("ck_trials_mu_natural")),
        _finite("trials", "seconds"),
        sa.CheckConstraint("seed >= 0", name=op.f("ck_trials_seed_natural")),
        _finite("trials", "test_accuracy"),
        _finite("trials", "test_loss"),
        _finite("trials", "train_accuracy"),
        _finite("trials", "train_loss"),
        sa.ForeignKeyConstraint(
            ["shard_id"], ["shards.id"], name=op.f("fk_trials_shard_id_shards"), ondelete="SET NULL"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_trials")),
        sa.UniqueConstraint("fingerprint", name=op.f("uq_trials_fingerprint")),
        sqlite_autoincrement=True,
    )
    op.create_index(op.f("ix_trials_progress"), "trials", ["id", "state", "finished_at"])
    op.create_index(op.f("ix_trials_shard_id"), "trials", ["shard_id"])
    op.create_index(op.f("ix_trials_state"), "trials", ["state"])

    op.create_table(
        "curves",
        sa.Column("trial_id", BIG, nullable=False),
        sa.Column("points", BIG, nullable=False),
        sa.Column("data", sa.LargeBinary(), nullable=False),
        sa.CheckConstraint("points >= 0", name=op.f("ck_curves_points_natural")),
        sa.ForeignKeyConstraint(
            ["trial_id"], ["trials.id"], name=op.f("fk_curves_trial_id_trials"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("trial_id", name=op.f("pk_curves")),
    )

    op.create_table(
        "sweeps",
        sa.Column("id", BIG, nullable=False),
        sa.Column("study_id", BIG, nullable=False),
        sa.Column("owner_id", BIG),
        sa.Column("task", sa.String(100), nullable=False),
        sa.Column("device", sa.String(16), nullable=False),
        sa.Column("spec", sa.JSON(), nullable=False),
        sa.Column("body", sa.JSON(), nullable=False),
        sa.Column("body_hash", sa.String(64), nullable=False),
        sa.Column("note", sa.Text(), nullable=False),
        sa.Column("idempotency_key", sa.String(200)),
        sa.Column("total", BIG, nullable=False),
        sa.Column("reused", BIG, nullable=False),
        sa.Column("imported", sa.Boolean(), nullable=False),
        sa.Column("engine_version", sa.String(16)),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.Column("cancelled_at", MOMENT),
        sa.CheckConstraint(
            "reused >= 0 AND reused <= total", name=op.f("ck_sweeps_reused_within_total")
        ),
        sa.CheckConstraint("total > 0", name=op.f("ck_sweeps_total_positive")),
        sa.ForeignKeyConstraint(
            ["owner_id"], ["users.id"], name=op.f("fk_sweeps_owner_id_users"), ondelete="SET NULL"
        ),
        sa.ForeignKeyConstraint(
            ["study_id"],
            ["studies.id"],
            name=op.f("fk_sweeps_study_id_studies"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_sweeps")),
        sa.UniqueConstraint(
            "study_id", "idempotency_key", name=op.f("uq_sweeps_study_id_idempotency_key")
        ),
        sqlite_autoincrement=True,
    )
    op.create_index(op.f("ix_sweeps_study_id_id"), "sweeps", ["study_id", "id"])
    op.create_index(op.f("ix_sweeps_task"), "sweeps", ["task"])

    op.create_table(
        "sweep_trials",
        sa.Column("sweep_id", BIG, nullable=False),
        sa.Column("trial_id", BIG, nullable=False),
        sa.Column("position", BIG, nullable=False),
        sa.Column("reused", sa.Boolean(), nullable=False),
        sa.CheckConstraint("position >= 0", name=op.f("ck_sweep_trials_position_natural")),
        sa.ForeignKeyConstraint(
            ["sweep_id"],
            ["sweeps.id"],
            name=op.f("fk_sweep_trials_sweep_id_sweeps"),
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["trial_id"],
            ["trials.id"],
            name=op.f("fk_sweep_trials_trial_id_trials"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("sweep_id", "trial_id", name=op.f("pk_sweep_trials")),
        sa.UniqueConstraint("sweep_id", "position", name=op.f("uq_sweep_trials_sweep_id_position")),
    )
    op.create_index(op.f("ix_sweep_trials_trial_id"), "sweep_trials", ["trial_id"])


def downgrade() -> None:
    op.drop_table("sweep_trials")
    op.drop_table("sweeps")
    op.drop_table("curves")
    op.drop_table("trials")
