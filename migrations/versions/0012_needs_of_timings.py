"""Which tasks and methods of people's own a race of steps needs its worker to have."""

import sqlalchemy as sa
from alembic import op

revision = "0012"
down_revision = "0011"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("timings", sa.Column("needs", sa.Text()))


def downgrade() -> None:
    op.drop_column("timings", "needs")
