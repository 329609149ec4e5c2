"""What was measured on held-out rows: a trial's last numbers, and its curve's."""

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None

NAMES = ("validation_loss", "validation_accuracy")


def upgrade() -> None:
    for name in NAMES:
        op.add_column("trials", sa.Column(name, sa.Double()))
    op.add_column("curves", sa.Column("validation", sa.LargeBinary()))


def downgrade() -> None:
    op.drop_column("curves", "validation")
    for name in reversed(NAMES):
        op.drop_column("trials", name)
