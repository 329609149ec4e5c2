"""Copies of the database and their way back."""

import shutil
import sqlite3
import stat
from contextlib import closing
from pathlib import Path

import pytest
from sqlalchemy import select

from backend.db import dispose_engines, reading, transaction
from backend.errors import Unavailable
from backend.models import StudyRow
from backend.operations import database
from backend.settings import Settings
from ib_core.errors import InvalidSpec
from tests import factories


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    """An installation whose database holds one study, partly still in the write-ahead log."""
    settings = Settings(home=tmp_path / "home", database_url="", broker_url="")
    settings.home.mkdir()
    write(settings.home / "etascope.db", "first")
    return settings


def write(file: Path, study: str) -> None:
    with closing(sqlite3.connect(file)) as database:
        database.execute("PRAGMA journal_mode = WAL")
        for table in ("alembic_version", "studies", "trials"):
            database.execute(f"CREATE TABLE IF NOT EXISTS {table} (name TEXT)")
        database.execute("DELETE FROM studies")
        database.execute("INSERT INTO studies VALUES (?)", (study,))
        database.commit()


def study(file: Path) -> str:
    with closing(sqlite3.connect(file)) as database:
        [(name,)] = database.execute("SELECT name FROM studies").fetchall()
        return str(name)


def test_backup_holds_what_an_open_database_has_only_in_its_log(
    settings: Settings, tmp_path: Path
) -> None:
    with closing(sqlite3.connect(settings.home / "etascope.db")) as busy:
        busy.execute("UPDATE studies SET name = 'second'")
        busy.commit()
        assert (settings.home / "etascope.db-wal").stat().st_size > 0

        database.back_up(settings, tmp_path / "copy.db")

    assert study(tmp_path / "copy.db") == "second"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["copy.db", "home"]
    assert stat.S_IMODE((tmp_path / "copy.db").stat().st_mode) == 0o600


def test_backup_does_not_replace_a_file(settings: Settings, tmp_path: Path) -> None:
    (tmp_path / "copy.db").write_text("precious")
    with pytest.raises(InvalidSpec, match="is there already"):
        database.back_up(settings, tmp_path / "copy.db")
    assert (tmp_path / "copy.db").read_text() == "precious"


def test_backup_of_nothing_says_so_and_leaves_no_file(tmp_path: Path) -> None:
    settings = Settings(home=tmp_path / "nobody", database_url="", broker_url="")
    with pytest.raises(Unavailable, match="There is no database yet"):
        database.back_up(settings, tmp_path / "copy.db")
    assert list(tmp_path.iterdir()) == []


def test_restore_brings_back_the_copy_and_keeps_what_it_replaced(
    settings: Settings, tmp_path: Path
) -> None:
    database.back_up(settings, tmp_path / "copy.db")
    write(settings.home / "etascope.db", "later")

    kept = database.restore(settings, tmp_path / "copy.db")

    assert study(settings.home / "etascope.db") == "first"
    assert kept is not None
    assert study(kept) == "later"
    assert study(tmp_path / "copy.db") == "first"


@pytest.mark.parametrize("content", [b"", b"not a database at all", b"SQLite format 3\0" * 64])
def test_restore_refuses_what_is_no_copy_and_changes_nothing(
    settings: Settings, tmp_path: Path, content: bytes
) -> None:
    (tmp_path / "odd.db").write_bytes(content)
    with pytest.raises(InvalidSpec):
        database.restore(settings, tmp_path / "odd.db")
    assert study(settings.home / "etascope.db") == "first"


def test_restore_of_a_missing_file_says_so(settings: Settings, tmp_path: Path) -> None:
    with pytest.raises(InvalidSpec, match="There is no file"):
        database.restore(settings, tmp_path / "nowhere.db")


def test_postgresql_without_its_tools_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: None)
    settings = Settings(home=tmp_path, database_url="postgresql://u:geheim@nowhere/db")
    with pytest.raises(Unavailable, match="pg_dump is not installed"):
        database.back_up(settings, tmp_path / "copy.dump")


def test_postgresql_password_is_in_no_command_line_and_no_message(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tool = tmp_path / "pg_dump"
    tool.write_text(
        '#!/bin/sh\nexec >&2; echo "$@"; [ "$PGPASSWORD" = geheim ] && echo it came\nexit 3'
    )
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    settings = Settings(home=tmp_path, database_url="postgresql://u:geheim@nowhere/db")
    with pytest.raises(Unavailable, match="--dbname=postgresql://u@nowhere/db") as failure:
        database.back_up(settings, tmp_path / "copy.dump")
    assert failure.value.message.endswith("it came")
    assert "geheim" not in failure.value.message


def test_postgresql_comes_back_as_it_was(postgresql_database: str, tmp_path: Path) -> None:
    settings = Settings(home=tmp_path, database_url=postgresql_database)
    with transaction() as session:
        factories.new_study(session, name="first")
    database.back_up(settings, tmp_path / "copy.dump")
    with transaction() as session:
        factories.new_study(session, name="later")
    dispose_engines()

    database.restore(settings, tmp_path / "copy.dump")

    with reading() as session:
        assert session.scalars(select(StudyRow.name)).all() == ["first"]
