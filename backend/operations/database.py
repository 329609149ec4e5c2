"""Upkeep of the database: brought to this version's tables, copied, replaced by a copy.

An upgrade is made with a copy, under a lock, all or nothing. Copies are made while the database
is in use, and put back while nothing runs.
"""

import os
import shutil
import sqlite3
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, Engine, text
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import OperationalError

import migrations
from backend.db import build_engine
from backend.errors import Unavailable
from backend.settings import Settings
from ib_core.errors import IBError, InvalidSpec

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
    backup = _copy_aside(connection, before)
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


def _copy_aside(connection: Connection, before: str | None) -> Path | None:
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


def back_up(settings: Settings, target: Path) -> None:
    """Write a consistent copy to a new file, complete or not at all.

    Raises:
        InvalidSpec: If the file exists or cannot be written.
        Unavailable: If the database or the tool to copy it is not there.
    """
    if target.exists():
        raise InvalidSpec(f"{target} is there already; give the name of a new file.", field="file")
    if not target.parent.is_dir():
        raise InvalidSpec(f"There is no folder {target.parent}.", field="file")
    url = make_url(settings.database)
    with _whole(target) as partial:
        if url.get_backend_name() == "sqlite":
            _copy(_sqlite_file(url), partial)
        else:
            _run_tool("pg_dump", ["--format=custom", "--no-owner", f"--file={partial}"], url)


def restore(settings: Settings, source: Path) -> Path | None:
    """Replace the database by a copy; the caller sees to it that nothing uses it.

    Returns:
        Where the replaced database has been put, for SQLite.

    Raises:
        InvalidSpec: If the file is not a copy of an Etascope database.
        Unavailable: If the tool to restore it is not there.
    """
    if not source.is_file():
        raise InvalidSpec(f"There is no file {source}.", field="file")
    url = make_url(settings.database)
    if url.get_backend_name() == "sqlite":
        _refuse_foreign(source)
        return _replace(_sqlite_file(url), source)
    options = ["--clean", "--if-exists", "--no-owner", "--single-transaction"]
    _run_tool("pg_restore", [*options, str(source)], url)
    return None


def _sqlite_file(url: URL) -> Path:
    if not url.database or url.database == ":memory:":
        raise InvalidSpec("A database in memory cannot be copied.", field="database_url")
    return Path(url.database)


@contextmanager
def _whole(target: Path) -> Iterator[Path]:
    """Yield a file beside the target that takes its place once it is complete."""
    partial = target.with_name(f".{target.name}.partial")
    try:
        partial.touch(mode=0o600)  # it holds hashes of passwords and tokens
        yield partial
        partial.replace(target)
    except OSError as error:
        raise InvalidSpec(f"Cannot write {target}: {error.strerror}.", field="file") from error
    finally:
        partial.unlink(missing_ok=True)


def _copy(source: Path, target: Path) -> None:
    """Copy an SQLite database page by page, which others may write to meanwhile."""
    if not source.is_file():
        raise Unavailable(f"There is no database yet at {source}; `etascope up` creates it.")
    try:
        with closing(sqlite3.connect(source)) as old, closing(sqlite3.connect(target)) as new:
            old.backup(new)
            new.execute("PRAGMA journal_mode = DELETE")  # one file, without companions
    except sqlite3.Error as error:
        raise Unavailable(f"Cannot copy {source} to {target}: {error}.") from error


def _refuse_foreign(file: Path) -> None:
    try:
        with closing(sqlite3.connect(f"{file.absolute().as_uri()}?mode=ro", uri=True)) as database:
            intact = database.execute("PRAGMA integrity_check").fetchone() == ("ok",)
            tables = {name for (name,) in database.execute("SELECT name FROM sqlite_master")}
    except sqlite3.DatabaseError as error:
        raise InvalidSpec(f"{file} is not an SQLite database: {error}.", field="file") from error
    if not intact:
        raise InvalidSpec(f"{file} is damaged; it fails SQLite's own check.", field="file")
    if not {"alembic_version", "studies", "trials"} <= tables:
        raise InvalidSpec(f"{file} is a database, but not one of Etascope's.", field="file")


def _replace(database: Path, source: Path) -> Path | None:
    """Put a copy of the source in the database's place; the database is kept beside it."""
    database.parent.mkdir(parents=True, exist_ok=True)
    kept = None
    with _whole(database) as partial:
        _copy(source, partial)
        if database.exists():
            kept = database.with_name(f"{database.name}.before-restore-{int(time.time())}")
            kept.touch(mode=0o600)
            _copy(database, kept)  # takes in what is still in the write-ahead log
            for suffix in ("-wal", "-shm"):
                database.with_name(database.name + suffix).unlink(missing_ok=True)
    return kept


def _run_tool(name: str, options: Sequence[str], url: URL) -> None:
    """Run one of PostgreSQL's tools; the password goes through the environment, unseen by `ps`."""
    tool = shutil.which(name)
    if tool is None:
        raise Unavailable(
            f"{name} is not installed here. Install PostgreSQL's client tools, or run it on the "
            "database's own machine."
        )
    password = {"PGPASSWORD": str(url.password)} if url.password else {}
    place = URL.create(
        "postgresql",
        username=url.username,
        host=url.host,
        port=url.port,
        database=url.database,
        query=url.query,
    ).render_as_string()
    done = subprocess.run(
        [tool, f"--dbname={place}", *options],
        env={**os.environ, **password},
        capture_output=True,
        text=True,
    )
    if done.returncode != 0:
        raise Unavailable(f"{name} failed: {' '.join(done.stderr.split())}")
