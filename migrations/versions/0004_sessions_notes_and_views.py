"""Sessions, throttled logins, scoped tokens, notes with authors, saved views."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None

BIG = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
MOMENT = sa.DateTime(timezone=True)


def _user(table: str, ondelete: str) -> sa.ForeignKeyConstraint:
    name = op.f(f"fk_{table}_user_id_users")
    return sa.ForeignKeyConstraint(["user_id"], ["users.id"], name=name, ondelete=ondelete)


def upgrade() -> None:
    op.create_table(
        "sessions",
        sa.Column("id", BIG, nullable=False),
        sa.Column("user_id", BIG, nullable=False),
        sa.Column("key_hash", sa.String(64), nullable=False),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.Column("expires_at", MOMENT, nullable=False),
        _user("sessions", "CASCADE"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_sessions")),
        sa.UniqueConstraint("key_hash", name=op.f("uq_sessions_key_hash")),
        sqlite_autoincrement=True,
    )
    op.create_index(op.f("ix_sessions_expires_at"), "sessions", ["expires_at"])
    op.create_index(op.f("ix_sessions_user_id"), "sessions", ["user_id"])

    op.create_table(
        "login_attempts",
        sa.Column("key", sa.String(64), nullable=False),
        sa.Column("failures", BIG, nullable=False),
        sa.Column("last_at", MOMENT, nullable=False),
        sa.CheckConstraint("failures >= 0", name=op.f("ck_login_attempts_failures_natural")),
        sa.PrimaryKeyConstraint("key", name=op.f("pk_login_attempts")),
    )
    op.create_index(op.f("ix_login_attempts_last_at"), "login_attempts", ["last_at"])

    op.create_table(
        "study_notes",
        sa.Column("id", BIG, nullable=False),
        sa.Column("study_id", BIG, nullable=False),
        sa.Column("user_id", BIG),
        sa.Column("user_name", sa.String(100), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.ForeignKeyConstraint(
            ["study_id"],
            ["studies.id"],
            name=op.f("fk_study_notes_study_id_studies"),
            ondelete="CASCADE",
        ),
        _user("study_notes", "SET NULL"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_study_notes")),
        sqlite_autoincrement=True,
    )
    op.create_index(op.f("ix_study_notes_study_id_id"), "study_notes", ["study_id", "id"])

    op.create_table(
        "saved_views",
        sa.Column("id", BIG, nullable=False),
        sa.Column("user_id", BIG),
        sa.Column("name", sa.String(100), nullable=False),
        sa.Column("filters", sa.JSON(), nullable=False),
        sa.Column("created_at", MOMENT, nullable=False),
        _user("saved_views", "CASCADE"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_saved_views")),
        sqlite_autoincrement=True,
    )
    op.create_index(op.f("ix_saved_views_user_id_name"), "saved_views", ["user_id", "name"])

    with op.batch_alter_table("tokens") as tokens:
        tokens.add_column(sa.Column("scope", sa.String(16), nullable=False, server_default="write"))
        tokens.create_check_constraint(
            op.f("ck_tokens_scope"), "scope IN ('read', 'write', 'admin')"
        )
    with op.batch_alter_table("tokens") as tokens:
        tokens.alter_column("scope", server_default=None)
    # Sessions are rows now: deleting them ends them.
    with op.batch_alter_table("users") as users:
        users.drop_column("session_version")


def downgrade() -> None:
    with op.batch_alter_table("users") as users:
        users.add_column(sa.Column("session_version", BIG, nullable=False, server_default="1"))
    with op.batch_alter_table("users") as users:
        users.alter_column("session_version", server_default=None)
    with op.batch_alter_table("tokens") as tokens:
        tokens.drop_constraint(op.f("ck_tokens_scope"), type_="check")
        tokens.drop_column("scope")
    op.drop_table("saved_views")
    op.drop_table("study_notes")
    op.drop_table("login_attempts")
    op.drop_table("sessions")
