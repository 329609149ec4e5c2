"""An index of the trials that somebody has begun; no statistics of sweeps that were new to them.

What waits need not be read to be counted. And of a sweep that is younger than its statistics
PostgreSQL believed that it has one trial: it then compared all of its trials with all that wait,
which took seconds for 2,000. Without statistics it expects some thousands.
"""

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
    if op.get_bind().dialect.name == "postgresql":
        op.execute("ALTER TABLE sweep_trials ALTER COLUMN sweep_id SET STATISTICS 0")
        # To the same type: nothing is rewritten, and what is known of the column is forgotten.
        op.execute("ALTER TABLE sweep_trials ALTER COLUMN sweep_id TYPE BIGINT")


def downgrade() -> None:
    if op.get_bind().dialect.name == "postgresql":
        op.execute("ALTER TABLE sweep_trials ALTER COLUMN sweep_id SET STATISTICS -1")
    op.drop_index(op.f("ix_trials_begun"), "trials")
