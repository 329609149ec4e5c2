"""Cells that programs elsewhere train, and tokens that may do nothing but report on them."""

from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None


def _allow(table: str, column: str, values: str) -> None:
    name = op.f(f"ck_{table}_{column}")
    with op.batch_alter_table(table) as changed:
        changed.drop_constraint(name, type_="check")
        changed.create_check_constraint(name, f"{column} IN ({values})")


def upgrade() -> None:
    _allow("shards", "device", "'auto', 'cpu', 'cuda', 'agents'")
    _allow("tokens", "scope", "'read', 'write', 'admin', 'agent'")


def downgrade() -> None:
    # Older versions know neither: cells become shards whose task no worker finds, tokens end.
    op.execute("UPDATE shards SET device = 'auto' WHERE device = 'agents'")
    op.execute("DELETE FROM tokens WHERE scope = 'agent'")
    _allow("shards", "device", "'auto', 'cpu', 'cuda'")
    _allow("tokens", "scope", "'read', 'write', 'admin'")
