"""The database layer: time, locks, forks, and numbers that are none."""

import os
import sqlite3
import threading
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from sqlalchemy import select, text
from sqlalchemy.exc import OperationalError, StatementError

from backend import db
from backend.db import build_engine, clock, get_engine, reading, transaction
from backend.models import AuditRow, StudyRow


def test_the_clock_is_the_databases_and_counts_seconds(session) -> None:
    now, later = session.execute(select(clock(), clock(90.5))).one()
    assert abs(now - datetime.now(UTC)) < timedelta(seconds=5)
    assert later - now == pytest.approx(timedelta(seconds=90.5), abs=timedelta(milliseconds=50))


def test_moments_compare_whether_written_by_the_clock_or_by_python(session) -> None:
    hour = timedelta(hours=1)
    session.add(AuditRow(action="now", at=datetime.now(UTC)))
    session.add(AuditRow(action="later", at=datetime.now(UTC) + hour))
    session.flush()
    early = session.scalars(select(AuditRow.action).where(AuditRow.at < clock(60))).all()
    late = session.scalars(select(AuditRow.action).where(AuditRow.at > clock(3000))).all()
    assert (early, late) == (["now"], ["later"])


def test_a_moment_without_zone_is_refused(database: str) -> None:
    with pytest.raises(StatementError, match="needs its time zone"), transaction() as session:
        session.add(AuditRow(action="x", at=datetime(2026, 1, 1)))


def test_nan_is_refused_in_json_on_every_database(database: str) -> None:
    refused = pytest.raises((StatementError, ValueError), match="not JSON compliant")
    with refused, transaction() as session:
        session.add(AuditRow(action="x", detail={"loss": float("nan")}))


def test_a_transaction_rolls_back_on_an_error(database: str) -> None:
    def fail() -> None:
        with transaction() as session:
            session.add(StudyRow(name="lost"))
            session.flush()
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    with reading() as session:
        assert session.scalars(select(StudyRow)).all() == []


def test_sqlite_has_its_pragmas_on_every_connection(sqlite_database: str) -> None:
    with get_engine().connect() as connection:
        found = [
            connection.execute(text(f"PRAGMA {name}")).scalar()
            for name in ("journal_mode", "busy_timeout", "synchronous", "foreign_keys")
        ]
    assert found == ["wal", 30_000, 1, 1]


def test_a_reader_does_not_wait_for_a_writer(sqlite_database: str) -> None:
    with transaction() as writer:
        writer.add(StudyRow(name="unseen"))
        writer.flush()
        with reading() as reader:
            assert reader.scalars(select(StudyRow)).all() == []


def test_two_writers_wait_for_each_other_instead_of_failing(database: str) -> None:
    def add_many(name: str) -> None:
        for number in range(20):
            with transaction() as session:
                session.execute(select(StudyRow)).all()  # reading first is what used to break
                session.add(StudyRow(name=f"{name} {number}"))

    threads = [threading.Thread(target=add_many, args=(name,)) for name in "abcd"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    with reading() as session:
        assert len(session.scalars(select(StudyRow)).all()) == 80


def test_threads_that_come_at_once_share_one_engine(database: str) -> None:
    start = threading.Barrier(8)
    found: list[object] = []

    def ask() -> None:
        start.wait()
        found.append(get_engine())

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(found)) == 1


def test_a_forked_process_opens_connections_of_its_own(database: str) -> None:
    with transaction() as session:
        session.add(StudyRow(name="parent"))
    engine = get_engine()
    child = os.fork()
    if child == 0:
        same = get_engine() is engine
        with transaction() as session:
            session.add(StudyRow(name="child"))
        os._exit(1 if same else 0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    with reading() as session:  # the parent's connection still works
        assert len(session.scalars(select(StudyRow)).all()) == 2


def test_a_fault_is_told_without_the_statement(sqlite_database: str) -> None:
    with pytest.raises(OperationalError) as caught, reading() as session:
        session.execute(text("SELECT secret FROM nowhere"))
    assert db.reason(caught.value) == "no such table: nowhere"


def test_a_deleted_rows_id_is_not_given_again(session) -> None:
    ids = []
    for _ in range(2):
        row = StudyRow(name="x")
        session.add(row)
        session.flush()
        ids.append(row.id)
        session.delete(row)
        session.flush()
    assert ids[0] != ids[1]


def test_the_file_is_readable_by_sqlites_own_driver(sqlite_database: str) -> None:
    with transaction() as session:
        session.add(StudyRow(name="plain"))
    with sqlite3.connect(sqlite_database.removeprefix("sqlite:///")) as connection:
        assert connection.execute("SELECT name FROM studies").fetchall() == [("plain",)]
    connection.close()


def test_nobody_else_on_the_machine_reads_the_database(home: Path) -> None:
    home.chmod(0o755)
    file = home / "etascope.db"
    file.touch(mode=0o644)  # as an earlier version made it
    engine = build_engine(f"sqlite:///{file}")
    with transaction(engine) as session:
        session.execute(text("CREATE TABLE a (b)"))
        modes = {one.name: one.stat().st_mode & 0o777 for one in (home, *home.glob("etascope.db*"))}
    engine.dispose()
    assert set(modes) >= {"etascope.db", "etascope.db-wal"}
    assert {name: mode & 0o077 for name, mode in modes.items()} == dict.fromkeys(modes, 0)


def test_a_folder_that_others_need_stays_open(home: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "shared"
    elsewhere.mkdir(mode=0o755)
    elsewhere.chmod(0o755)
    build_engine(f"sqlite:///{elsewhere}/etascope.db").dispose()
    assert elsewhere.stat().st_mode & 0o777 == 0o755
    assert (elsewhere / "etascope.db").stat().st_mode & 0o777 == 0o600
