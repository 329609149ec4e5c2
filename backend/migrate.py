"""Bring a database to this version's tables: with a backup, under a lock, all or nothing."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, Engine, text
from sqlalchemy.exc import OperationalError

import migrations
from backend.db import build_engine
from backend.errors import Unavailable
from backend.settings import Settings
from ib_core.errors import IBError

#: Any number, as long as all Etascopes of the world use the same.
ADVISORY_LOCK = 0x657461


class NewerSchema(IBError):
    """A database that a later version has already changed."""

    code = "newer_schema"


@dataclass(frozen=True, slots=True)
class Upgrade:
    """What an upgrade did.

    Attributes:
        before: Revision found, None for an empty database.
        after: Revision reached.
        backup: Copy of the database as it was, where one was taken.
    """

    before: str | None
    after: str
    backup: Path | None = None


def upgrade(settings: Settings) -> Upgrade:
    """Migrate the configured database to the newest tables.

    SQLite files that hold something are copied first. On PostgreSQL, of several processes that
    start at once one migrates and the others wait.

    Raises:
        NewerSchema: The database belongs to a later version of Etascope.
        Unavailable: The database cannot be reached.
    """
    engine = build_engine(settings.database)
    try:
        with _exclusive(engine) as connection:
            return _upgrade(connection, script_config())
    except OperationalError as error:
        place = engine.url.render_as_string(hide_password=True)
        raise Unavailable(f"Cannot open the database {place}: {error.orig}.") from error
    finally:
        engine.dispose()


def script_config() -> Config:
    """Return Alembic's configuration for the migrations that came with this version."""
    return Config(Path(migrations.__file__).with_name("alembic.ini"))


def newest() -> str:
    """Return the revision this version's tables have."""
    return _head(ScriptDirectory.from_config(script_config()))


def _upgrade(connection: Connection, config: Config) -> Upgrade:
    script = ScriptDirectory.from_config(config)
    before, after = revision(connection), _head(script)
    _refuse_newer(before, after, script)
    if before == after:
        return Upgrade(before, after)
    backup = _back_up(connection, before)
    migrate(connection, config, after)
    return Upgrade(before, after, backup)


def migrate(connection: Connection, config: Config, target: str) -> None:
    """Run the migrations up or down to a revision, and commit them together."""
    config.attributes["connection"] = connection
    current = revision(connection)
    script = ScriptDirectory.from_config(config)
    order = ["base", *reversed([step.revision for step in script.walk_revisions()])]
    rises = order.index(current or "base") <= order.index(target)
    (command.upgrade if rises else command.downgrade)(config, target)
    _refuse_dangling(connection)
    connection.commit()


def revision(connection: Connection) -> str | None:
    """Return the revision a database is at."""
    return MigrationContext.configure(connection).get_current_revision()


def _head(script: ScriptDirectory) -> str:
    head = script.get_current_head()
    if head is None:
        raise RuntimeError("The migrations are not installed with this package.")
    return head


def _refuse_newer(before: str | None, after: str, script: ScriptDirectory) -> None:
    known = {step.revision for step in script.walk_revisions()}
    if before is not None and before not in known:
        raise NewerSchema(
            f"This database was made by a newer Etascope (its tables are at {before}, this "
            f"version knows up to {after}).",
            hint="Update Etascope, or restore a backup made by this version.",
        )


@contextmanager
def _exclusive(engine: Engine) -> Iterator[Connection]:
    """Yield a connection that no other migration can run beside.

    On SQLite the transaction that the first statement opens is already exclusive. Foreign keys
    are off meanwhile: to change a table SQLite makes a new one and drops the old, and dropping
    would cascade to everything that refers to it.
    """
    with engine.connect() as connection:
        if engine.dialect.name == "sqlite":
            raw = connection.connection.driver_connection
            assert isinstance(raw, sqlite3.Connection)
            raw.execute("PRAGMA foreign_keys=OFF")
            yield connection
            return
        connection.execute(text("SELECT pg_advisory_lock(:key)"), {"key": ADVISORY_LOCK})
        connection.commit()
        try:
            yield connection
        finally:
            connection.rollback()
            connection.execute(text("SELECT pg_advisory_unlock(:key)"), {"key": ADVISORY_LOCK})
            connection.commit()


def _back_up(connection: Connection, before: str | None) -> Path | None:
    """Copy an SQLite file that holds something, beside itself; return where to."""
    name = connection.engine.url.database
    if before is None or connection.dialect.name != "sqlite" or not name or name == ":memory:":
        return None
    source = Path(name)
    target = _free_name(source.with_name(f"{source.stem}-before-upgrade-from-{before}.db"))
    with closing(sqlite3.connect(source)) as old, closing(sqlite3.connect(target)) as new:
        old.backup(new)
    target.chmod(0o600)
    return target


def _free_name(wished: Path) -> Path:
    number, free = 1, wished
    while free.exists():
        number += 1
        free = wished.with_name(f"{wished.stem}-{number}{wished.suffix}")
    return free


def _refuse_dangling(connection: Connection) -> None:
    """Foreign keys were off on SQLite; check what they would have checked."""
    if connection.dialect.name == "sqlite":
        dangling = connection.execute(text("PRAGMA foreign_key_check")).all()
        if dangling:
            connection.rollback()
            raise RuntimeError(f"The migration would leave {len(dangling)} dangling references.")
