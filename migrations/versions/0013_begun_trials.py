"""An index of the trials that somebody has begun: what waits need not be read to be counted."""

import sqlalchemy as sa
from alembic import op

revision = "0013"
down_revision = "0012"
branch_labels = None
depends_on = None

BEGUN = sa.text("state <> 'queued'")


def upgrade() -> None:
    op.create_index(
        op.f("ix_trials_begun"),
        "trials",
        ["id", "state", "finished_at"],
        postgresql_where=BEGUN,
        sqlite_where=BEGUN,
    )


def downgrade() -> None:
    op.drop_index(op.f("ix_trials_begun"), "trials")
