"""A database of the first release, full of real results, becomes this one's; all of it stays."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine, MetaData, Table, insert, inspect, select

from backend.db import Base, build_engine, get_engine, reading, transaction
from backend.models import AuditRow, TokenRow, UserRow
from backend.operations import database
from backend.operations.database import upgrade
from backend.services import analysis, importing, maintenance, shards, sweeps, workers
from backend.services.workers import Worker
from backend.settings import Settings
from ib_core.sweep.engine import run_trials
from ib_core.sweep.spec import TrialSpec
from tests import factories
from tests.servers import PostgresServer

#: The tables of the first release.
FIRST_RELEASE = "0003"
#: What later releases have done away with, on purpose.
DROPPED = {"users": {"session_version"}}
#: What a column had to hold that is not there any more.
OLD_VALUES: dict[str, dict[str, Any]] = {"users": {"session_version": 1}}

RUNS = b"dataset,method,lr,seed,train_loss\nmnist,eb,0.1,1,0.5\nmnist,eb,1e3,2,nan\n"


@pytest.fixture(params=["sqlite", "postgresql"])
def old(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Engine]:
    """An empty database of the first release, beside one of today."""
    request.getfixturevalue(f"{request.param}_database")
    url = f"sqlite:///{tmp_path / 'old.db'}"
    if request.param == "postgresql":
        server: PostgresServer = request.getfixturevalue("postgres_server")
        server.execute("CREATE DATABASE old")
        url = server.url("old")
    engine = build_engine(url)
    with database._exclusive(engine) as connection:
        database.migrate(connection, database.script_config(), FIRST_RELEASE)
    yield engine
    engine.dispose()
    if request.param == "postgresql":
        server.execute("DROP DATABASE old WITH (FORCE)")


def fill() -> int:
    """Store people, trained, diverged, imported, cancelled and waiting trials; return the study."""
    with transaction() as session:
        session.add(UserRow(id=1, name="ada", role="admin", password_hash="argon2"))
        session.flush()
        session.add(TokenRow(user_id=1, name="laptop", prefix="eta_abcd", token_hash="f" * 64))
        session.add(AuditRow(user_id=1, user_name="ada", action="study.create", target_id=1))
        workers.register(session, worker=Worker("w1", "here", 1, "cpu"))
        study = factories.new_study(session, "Été <b>", notes="# héllo", tags=["a", "ü"])
        trained = factories.submit(session, study.id, methods=("eb", "ib", "isgd"), clips=(None, 1))
    for shard_id in trained.shard_ids:
        _train(shard_id)
    with transaction() as session:
        found = importing.read_runs(RUNS, most_bytes=10_000)
        importing.store(
            session, found=found, source="runs.csv", study_id=None, name="Imported", owner_id=1
        )
        sweeps.cancel(session, sweep_id=factories.submit(session, seeds=(8,)).sweep.id)
        factories.submit(session, study.id, seeds=(1, 9))  # shares, and waits
    return study.id


def _train(shard_id: int) -> None:
    """Train for real."""
    with transaction() as session:
        claim = factories.claim(session, shard_id)
    results = run_trials([TrialSpec.from_dict(trial.spec) for trial in claim.trials])
    ended = zip(claim.trials, results, strict=True)
    finished = {trial.id: result for trial, result in ended if result is not None}
    with transaction() as session:
        shards.report(session, claim=claim, finished=finished)
        shards.finish(session, claim=claim)


def tables(engine: Engine) -> dict[str, Table]:
    found = MetaData()
    found.reflect(engine)
    return {table.name: table for table in found.sorted_tables if table.name != "alembic_version"}


def copy(source: Engine, target: Engine) -> None:
    """Bring today's rows into yesterday's tables."""
    here, there = tables(source), tables(target)
    with source.connect() as reader, target.begin() as writer:
        for name, table in there.items():
            shared = [column.name for column in table.columns if column.name in here[name].columns]
            rows = reader.execute(select(*(here[name].columns[c] for c in shared))).mappings()
            values = [{**OLD_VALUES.get(name, {}), **row} for row in rows]
            if values:
                writer.execute(insert(table), values)


def rows_of(engine: Engine, columns: dict[str, list[str]]) -> dict[str, list[tuple[Any, ...]]]:
    """Return every row of the named columns, in the order of the keys."""
    found = tables(engine)
    content = {}
    with engine.connect() as connection:
        for name, wanted in columns.items():
            table = found[name]
            query = select(*(table.columns[c] for c in wanted)).order_by(*table.primary_key)
            content[name] = [tuple(row) for row in connection.execute(query)]
    return content


def test_every_row_and_number_of_the_first_release_is_kept(old: Engine) -> None:
    study = fill()
    copy(get_engine(), old)
    columns = {
        name: [c.name for c in table.columns if c.name not in DROPPED.get(name, ())]
        for name, table in tables(old).items()
    }
    before = rows_of(old, columns)
    assert all(before.values()), "a table without rows proves nothing"
    done = upgrade(Settings(database_url=old.url.render_as_string(hide_password=False)))
    assert (done.before, done.after) == (FIRST_RELEASE, database.newest())
    assert rows_of(old, columns) == before
    assert set(inspect(old).get_table_names()) == {*Base.metadata.tables, "alembic_version"}
    _means_the_same(old, study)


def _means_the_same(old: Engine, study: int) -> None:
    with reading() as today, reading(old) as migrated:
        for metric in ("train_loss", "test_loss"):
            expected = analysis.sensitivity(today, study_id=study, metric=metric)
            assert analysis.sensitivity(migrated, study_id=study, metric=metric) == expected
        expected_card = analysis.scorecard(today, study_id=study)
        assert analysis.scorecard(migrated, study_id=study) == expected_card
        assert maintenance.check(migrated) == []
