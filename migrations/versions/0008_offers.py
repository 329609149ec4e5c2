"""What workers offer besides the catalogue, and which shards need it."""

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "offers",
        sa.Column("key", sa.String(16), nullable=False),
        sa.Column("kind", sa.String(16), nullable=False),
        sa.Column("name", sa.String(100), nullable=False),
        sa.Column("code", sa.String(64)),
        sa.Column("data", sa.String(64)),
        sa.Column("manifest", sa.JSON(), nullable=False),
        sa.Column("worker", sa.String(200), nullable=False),
        sa.Column("host", sa.String(255), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("seen_at", sa.DateTime(timezone=True), nullable=False),
        sa.CheckConstraint("kind IN ('task', 'method')", name=op.f("ck_offers_kind")),
        sa.PrimaryKeyConstraint("key", name=op.f("pk_offers")),
    )
    op.create_index("ix_offers_name", "offers", ["kind", "name"])
    op.add_column("shards", sa.Column("needs", sa.String(40)))
    _methods_of_length(200)


def _methods_of_length(length: int) -> None:
    """Let names of methods be so long; SQLite does not care."""
    if op.get_bind().dialect.name == "postgresql":
        cut = f"substr(method, 1, {length})"
        op.alter_column("trials", "method", type_=sa.String(length), postgresql_using=cut)


def downgrade() -> None:
    _methods_of_length(32)
    op.drop_column("shards", "needs")
    op.drop_index("ix_offers_name", table_name="offers")
    op.drop_table("offers")
