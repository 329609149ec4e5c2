"""Accounts and studies."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

BIG = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
MOMENT = sa.DateTime(timezone=True)


def upgrade() -> None:
    op.create_table(
        "users",
        sa.Column("id", BIG, nullable=False),
        sa.Column("name", sa.String(100), nullable=False),
        sa.Column("role", sa.String(16), nullable=False),
        sa.Column("password_hash", sa.String(255)),
        sa.Column("session_version", BIG, nullable=False),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.Column("last_login_at", MOMENT),
        sa.Column("disabled_at", MOMENT),
        sa.CheckConstraint("role IN ('viewer', 'member', 'admin')", name=op.f("ck_users_role")),
        sa.CheckConstraint("length(name) > 0", name=op.f("ck_users_name_given")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_users")),
        sa.UniqueConstraint("name", name=op.f("uq_users_name")),
        sqlite_autoincrement=True,
    )

    op.create_table(
        "tokens",
        sa.Column("id", BIG, nullable=False),
        sa.Column("user_id", BIG, nullable=False),
        sa.Column("name", sa.String(100), nullable=False),
        sa.Column("prefix", sa.String(16), nullable=False),
        sa.Column("token_hash", sa.String(64), nullable=False),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.Column("expires_at", MOMENT),
        sa.Column("last_used_at", MOMENT),
        sa.Column("revoked_at", MOMENT),
        sa.ForeignKeyConstraint(
            ["user_id"], ["users.id"], name=op.f("fk_tokens_user_id_users"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_tokens")),
        sa.UniqueConstraint("token_hash", name=op.f("uq_tokens_token_hash")),
        sqlite_autoincrement=True,
    )
    op.create_index(op.f("ix_tokens_user_id"), "tokens", ["user_id"])

    op.create_table(
        "audit",
        sa.Column("id", BIG, nullable=False),
        sa.Column("at", MOMENT, nullable=False),
        sa.Column("user_id", BIG),
        sa.Column("user_name", sa.String(100), nullable=False),
        sa.Column("action", sa.String(50), nullable=False),
        sa.Column("target_kind", sa.String(20), nullable=False),
        sa.Column("target_id", BIG),
        sa.Column("detail", sa.JSON()),
        sa.Column("note", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(
            ["user_id"], ["users.id"], name=op.f("fk_audit_user_id_users"), ondelete="SET NULL"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_audit")),
        sqlite_autoincrement=True,
    )
    op.create_index(op.f("ix_audit_at"), "audit", ["at"])
    op.create_index(op.f("ix_audit_target_kind_target_id"), "audit", ["target_kind", "target_id"])

    op.create_table(
        "studies",
        sa.Column("id", BIG, nullable=False),
        sa.Column("name", sa.String(200), nullable=False),
        sa.Column("notes", sa.Text(), nullable=False),
        sa.Column("owner_id", BIG),
        sa.Column("archived_at", MOMENT),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.Column("updated_at", MOMENT, nullable=False),
        sa.CheckConstraint("length(name) > 0", name=op.f("ck_studies_name_given")),
        sa.ForeignKeyConstraint(
            ["owner_id"], ["users.id"], name=op.f("fk_studies_owner_id_users"), ondelete="SET NULL"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_studies")),
        sqlite_autoincrement=True,
    )
    op.create_index(op.f("ix_studies_created_at_id"), "studies", ["created_at", "id"])
    op.create_index(op.f("ix_studies_name_id"), "studies", ["name", "id"])
    op.create_index(op.f("ix_studies_owner_id"), "studies", ["owner_id"])
    op.create_index(op.f("ix_studies_updated_at_id"), "studies", ["updated_at", "id"])

    op.create_table(
        "study_tags",
        sa.Column("study_id", BIG, nullable=False),
        sa.Column("tag", sa.String(50), nullable=False),
        sa.ForeignKeyConstraint(
            ["study_id"],
            ["studies.id"],
            name=op.f("fk_study_tags_study_id_studies"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("study_id", "tag", name=op.f("pk_study_tags")),
    )
    op.create_index(op.f("ix_study_tags_tag_study_id"), "study_tags", ["tag", "study_id"])


def downgrade() -> None:
    op.drop_table("study_tags")
    op.drop_table("studies")
    op.drop_table("audit")
    op.drop_table("tokens")
    op.drop_table("users")
