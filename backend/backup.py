"""Copies of the whole database: made while it is in use, put back while nothing runs."""

import os
import shutil
import sqlite3
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path

from sqlalchemy.engine import URL, make_url

from backend.errors import Unavailable
from backend.settings import Settings
from ib_core.errors import InvalidSpec


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
