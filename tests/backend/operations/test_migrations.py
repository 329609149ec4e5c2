"""Migrations: up, down and up again without losing a row, on both databases."""

import multiprocessing
import re
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, Engine, insert, inspect, select, text

from backend.db import Base, build_engine
from backend.errors import Unavailable
from backend.models import StudyRow, StudyTagRow
from backend.operations import database
from backend.operations.database import NewerSchema, upgrade
from backend.settings import Settings
from tests.servers import PostgresServer

FIRST = "0001"


@pytest.fixture(params=["sqlite", "postgresql"])
def empty(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Settings]:
    """Settings of a database without any table."""
    if request.param == "sqlite":
        yield Settings(database_url=f"sqlite:///{tmp_path / 'etascope.db'}")
        return
    server: PostgresServer = request.getfixturevalue("postgres_server")
    server.execute("CREATE DATABASE migrations")
    yield Settings(database_url=server.url("migrations"))
    server.execute("DROP DATABASE migrations WITH (FORCE)")


@pytest.fixture
def engine(empty: Settings) -> Iterator[Engine]:
    engine = build_engine(empty.database)
    yield engine
    engine.dispose()


def go_to(engine: Engine, revision: str, config: Config | None = None) -> None:
    with database._exclusive(engine) as connection:
        database.migrate(connection, config or database.script_config(), revision)


def test_an_empty_database_gets_the_newest_tables(empty: Settings, engine: Engine) -> None:
    done = upgrade(empty)
    assert (done.before, done.after, done.backup) == (None, database.newest(), None)
    assert {"studies", "sweeps", "trials", "shards", "curves"} <= set(
        inspect(engine).get_table_names()
    )


def test_upgrading_again_does_nothing(empty: Settings) -> None:
    upgrade(empty)
    again = upgrade(empty)
    assert (again.before, again.backup) == (again.after, None)


def test_models_and_migrations_agree(empty: Settings, engine: Engine) -> None:
    upgrade(empty)
    with engine.connect() as connection:
        context = MigrationContext.configure(connection, opts={"compare_type": True})
        assert compare_metadata(context, Base.metadata) == []
        migrated = describe(connection)
    go_to(engine, "base")
    with engine.begin() as connection:
        Base.metadata.create_all(connection)
    with engine.connect() as connection:
        assert migrated == describe(connection)


def describe(connection: Connection) -> dict[str, Any]:
    """Return what autogenerate does not compare as well: checks, keys, defaults, order."""
    look = inspect(connection)
    return {
        table: {
            "columns": [
                (c["name"], str(c["type"]), c["nullable"], c["default"])
                for c in look.get_columns(table)
            ],
            "checks": {
                c["name"]: re.sub(r"\s+", " ", c["sqltext"])
                for c in look.get_check_constraints(table)
            },
            "keys": sorted(str(sorted(k.items())) for k in look.get_foreign_keys(table)),
            "unique": sorted(str(sorted(u.items())) for u in look.get_unique_constraints(table)),
            "indexes": sorted(
                str(sorted({**i, "dialect_options": _as_text(i)}.items()))
                for i in look.get_indexes(table)
            ),
            "primary": look.get_pk_constraint(table),
        }
        for table in sorted(look.get_table_names())
        if table != "alembic_version"
    }


def _as_text(index: Any) -> dict[str, str]:
    """Conditions come as objects that equal only themselves."""
    return {name: str(value) for name, value in index.get("dialect_options", {}).items()}


def test_down_and_up_again_through_every_revision(empty: Settings, engine: Engine) -> None:
    script = ScriptDirectory.from_config(database.script_config())
    upgrade(empty)
    for step in script.walk_revisions():
        go_to(engine, step.down_revision or "base")
        go_to(engine, step.revision)
        go_to(engine, step.down_revision or "base")
    assert set(inspect(engine).get_table_names()) == {"alembic_version"}
    assert upgrade(empty).before is None


def test_rows_survive_the_way_down_and_up(empty: Settings, engine: Engine) -> None:
    upgrade(empty)
    with engine.begin() as connection:
        connection.execute(insert(StudyRow).values(id=1, name="kept"))
        connection.execute(insert(StudyTagRow).values(study_id=1, tag="kept too"))
    go_to(engine, FIRST)
    assert upgrade(empty).before == FIRST
    with engine.connect() as connection:
        assert connection.execute(select(StudyRow.name)).all() == [("kept",)]
        assert connection.execute(select(StudyTagRow.tag)).all() == [("kept too",)]


LATER = """
revision = "9000"
down_revision = "{head}"
from alembic import op
import sqlalchemy as sa

def upgrade():
    with op.batch_alter_table("studies") as studies:
        studies.add_column(sa.Column("colour", sa.String(10), server_default="blue"))
        studies.alter_column("name", type_=sa.String(300))

def downgrade():
    with op.batch_alter_table("studies") as studies:
        studies.drop_column("colour")
        studies.alter_column("name", type_=sa.String(200))
"""


@pytest.fixture
def later(tmp_path: Path) -> Config:
    """The migrations of a version that does not exist yet; it rebuilds a referenced table."""
    folder = tmp_path / "later"
    folder.mkdir()
    (folder / "9000_colour.py").write_text(LATER.format(head=database.newest()))
    config = database.script_config()
    script = ScriptDirectory.from_config(config)
    config.set_main_option("version_locations", f"{script.versions}:{folder}")
    return config


def test_rebuilding_a_table_keeps_what_refers_to_it(
    empty: Settings, engine: Engine, later: Config
) -> None:
    """On SQLite a rebuild drops the old table, which would delete every row that refers to it."""
    upgrade(empty)
    with engine.begin() as connection:
        connection.execute(insert(StudyRow).values(id=1, name="kept"))
        connection.execute(insert(StudyTagRow).values(study_id=1, tag="kept too"))
    go_to(engine, "9000", later)
    with engine.connect() as connection:
        assert connection.execute(text("SELECT colour FROM studies")).all() == [("blue",)]
    go_to(engine, database.newest(), later)
    with engine.connect() as connection:
        assert connection.execute(select(StudyTagRow.tag)).all() == [("kept too",)]
        checks = {check["name"] for check in inspect(connection).get_check_constraints("studies")}
    assert checks == {"ck_studies_name_given"}


def test_a_newer_database_is_refused_with_a_clear_sentence(
    empty: Settings, engine: Engine, later: Config
) -> None:
    upgrade(empty)
    go_to(engine, "9000", later)
    with pytest.raises(NewerSchema, match="made by a newer Etascope") as caught:
        upgrade(empty)
    assert "restore a backup" in str(caught.value.hint)
    with engine.connect() as connection:
        assert database.revision(connection) == "9000"


def test_a_migration_that_fails_changes_nothing(
    empty: Settings, engine: Engine, later: Config
) -> None:
    upgrade(empty)
    locations = str(later.get_main_option("version_locations"))
    file = Path(locations.partition(":")[2]) / "9000_colour.py"
    broken = 'revision = "9000"\n' + file.read_text().split("\n", 2)[2]
    file.write_text(
        broken.replace("def downgrade", "    raise RuntimeError('half way')\n\ndef downgrade")
    )
    with pytest.raises(RuntimeError, match="half way"):
        go_to(engine, "9000", later)
    with engine.connect() as connection:
        assert database.revision(connection) == database.newest()
        assert "colour" not in {c["name"] for c in inspect(connection).get_columns("studies")}


def test_sqlite_is_backed_up_before_it_is_changed(tmp_path: Path) -> None:
    settings = Settings(database_url=f"sqlite:///{tmp_path / 'etascope.db'}")
    upgrade(settings)
    engine = build_engine(settings.database)
    with engine.begin() as connection:
        connection.execute(insert(StudyRow).values(id=1, name="precious"))
    go_to(engine, FIRST)
    engine.dispose()
    first, second = upgrade(settings).backup, None
    assert first is not None
    engine = build_engine(settings.database)
    go_to(engine, FIRST)
    engine.dispose()
    second = upgrade(settings).backup
    assert second != first
    for copy in (first, second):
        assert copy is not None
        with sqlite3.connect(copy) as connection:
            assert connection.execute("SELECT name FROM studies").fetchall() == [("precious",)]
            assert connection.execute("SELECT * FROM alembic_version").fetchall() == [(FIRST,)]
        connection.close()


def _upgrade(url: str) -> str:
    return upgrade(Settings(database_url=url)).after


def test_processes_that_start_at_once_migrate_once(empty: Settings) -> None:
    with multiprocessing.get_context("spawn").Pool(3) as pool:
        assert pool.map(_upgrade, [empty.database] * 3) == [database.newest()] * 3


def test_a_database_that_cannot_be_opened_is_named_without_its_password() -> None:
    url = "postgresql://ada:secret@localhost:1/nowhere"
    with pytest.raises(Unavailable) as caught:
        upgrade(Settings(database_url=url))
    assert "localhost:1/nowhere" in caught.value.message
    assert "secret" not in caught.value.message


def test_postgresql_forgets_what_it_knew_of_sweeps(postgres_server: PostgresServer) -> None:
    """Statistics from before would stay for ever: nothing replaces them any more."""
    known = text("SELECT count(*) FROM pg_stats WHERE (tablename, attname) = (:table, :column)")
    place = {"table": "sweep_trials", "column": "sweep_id"}
    postgres_server.execute("CREATE DATABASE statistics")
    engine = build_engine(postgres_server.url("statistics"))
    go_to(engine, "0012")
    with engine.begin() as connection:
        connection.execute(text("SET LOCAL session_replication_role = replica"))  # no keys
        places = "SELECT 1, n, n, false FROM generate_series(1, 300) AS n"
        connection.execute(
            text(f"INSERT INTO sweep_trials (sweep_id, trial_id, position, reused) {places}")
        )
        connection.execute(text("ANALYZE sweep_trials"))
        assert connection.execute(known, place).scalar_one() == 1
    go_to(engine, "0013")
    with engine.begin() as connection:
        connection.execute(text("ANALYZE sweep_trials"))
        assert connection.execute(known, place).scalar_one() == 0
        assert connection.execute(known, {**place, "column": "trial_id"}).scalar_one() == 1
    engine.dispose()
    postgres_server.execute("DROP DATABASE statistics WITH (FORCE)")
