"""Runs migrations on the connection it is handed, or on the configured database."""

from typing import Any, Literal

from alembic import context
from alembic.autogenerate.api import AutogenContext
from sqlalchemy import Connection

import backend.models  # noqa: F401 - fills the metadata
from backend.db import Base, UtcDateTime, build_engine
from backend.settings import get_settings


def render_item(kind: str, thing: Any, _context: AutogenContext) -> str | Literal[False]:
    """Write our own types as the plain ones they are stored in; migrations import no models."""
    if kind == "type" and isinstance(thing, UtcDateTime):
        return "sa.DateTime(timezone=True)"
    return False


def migrate(connection: Connection) -> None:
    """Run the asked-for migrations as one transaction."""
    context.configure(
        connection=connection,
        target_metadata=Base.metadata,
        render_as_batch=True,
        render_item=render_item,
        compare_type=True,
        # Alembic distrusts SQLite here because of its driver; `backend.db` opens real ones.
        transactional_ddl=True,
    )
    with context.begin_transaction():
        context.run_migrations()


handed = context.config.attributes.get("connection")
if handed is not None:
    migrate(handed)
else:
    engine = build_engine(get_settings().database)
    with engine.connect() as connection:
        migrate(connection)
        connection.commit()
    engine.dispose()
