"""What ended sweeps add up to, so that the history need not read their trials again."""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None

BIG = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    op.create_table(
        "sweep_summaries",
        sa.Column("sweep_id", BIG, nullable=False),
        sa.Column("completed", BIG, nullable=False),
        sa.Column("diverged", BIG, nullable=False),
        sa.Column("fresh", BIG, nullable=False),
        sa.Column("finished_at", sa.DateTime(timezone=True)),
        sa.Column("layout", sa.String(200), nullable=False),
        sa.Column("curves", sa.JSON(), nullable=False),
        sa.ForeignKeyConstraint(
            ["sweep_id"],
            ["sweeps.id"],
            name=op.f("fk_sweep_summaries_sweep_id_sweeps"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("sweep_id", name=op.f("pk_sweep_summaries")),
    )


def downgrade() -> None:
    op.drop_table("sweep_summaries")
