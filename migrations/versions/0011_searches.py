"""Sweeps that search: how many rounds were planned, whether more may come, each trial's round."""

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None

BIG = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    op.add_column("sweeps", sa.Column("round", BIG))
    op.add_column("sweeps", sa.Column("searching", sa.Boolean()))
    op.create_index(op.f("ix_sweeps_searching"), "sweeps", ["searching"])
    op.add_column("sweep_trials", sa.Column("round", BIG))


def downgrade() -> None:
    op.drop_column("sweep_trials", "round")
    op.drop_index(op.f("ix_sweeps_searching"), "sweeps")
    op.drop_column("sweeps", "searching")
    op.drop_column("sweeps", "round")
