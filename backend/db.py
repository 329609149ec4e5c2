"""The engine, the base of all tables, transactions, the database's own time and revision."""

import json
import os
import sqlite3
import stat
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from enum import StrEnum
from functools import lru_cache
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any

from sqlalchemy import (
    JSON,
    CheckConstraint,
    ColumnElement,
    Connection,
    CursorResult,
    DateTime,
    Delete,
    Engine,
    Enum,
    Insert,
    MetaData,
    String,
    TypeDecorator,
    Update,
    create_engine,
    event,
    literal,
    or_,
    select,
    text,
    types,
)
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.engine import Dialect, make_url
from sqlalchemy.exc import InterfaceError, InternalError, OperationalError, SQLAlchemyError
from sqlalchemy.exc import TimeoutError as PoolTimeout
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.orm import DeclarativeBase, Session, mapped_column
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.functions import FunctionElement

from backend.settings import get_settings

#: How long a connection waits for another one's lock on an SQLite file.
BUSY_MILLISECONDS = 30_000
#: Clocks are corrected by so many seconds all the time.
CLOCK_SLACK = 1.0
#: Execution option that says how an SQLite transaction opens.
SQLITE_BEGIN = "sqlite_begin"

NAMES = {
    "ix": "ix_%(table_name)s_%(column_0_N_name)s",
    "uq": "uq_%(table_name)s_%(column_0_N_name)s",
    "ck": "ck_%(table_name)s_%(constraint_name)s",
    "fk": "fk_%(table_name)s_%(column_0_N_name)s_%(referred_table_name)s",
    "pk": "pk_%(table_name)s",
}


class UtcDateTime(TypeDecorator[datetime]):
    """An aware moment in UTC; SQLite, which knows no zones, keeps it without one."""

    impl = DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        """Refuse naive moments, which would mean another time on another machine."""
        if value is None:
            return None
        if value.tzinfo is None:
            raise ValueError(f"A moment needs its time zone; got {value.isoformat()}.")
        moment = value.astimezone(UTC)
        return moment.replace(tzinfo=None) if dialect.name == "sqlite" else moment

    def process_result_value(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        """Return the moment in UTC."""
        if value is None:
            return None
        return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)


class Base(DeclarativeBase):
    """Base of all tables; constraints have names so that migrations can find them."""

    metadata = MetaData(naming_convention=NAMES)
    type_annotation_map = {  # noqa: RUF012 - read by SQLAlchemy as a plain dict
        datetime: UtcDateTime,
        dict[str, Any]: JSON(none_as_null=True),
        float: types.Double,
        int: types.BigInteger().with_variant(types.Integer, "sqlite"),
        str: String,
    }


class clock(FunctionElement[datetime]):
    """The database's own time, so many seconds from now.

    Leases are written and judged by this one clock, so that a worker whose clock is wrong can
    neither lose its shard nor keep it for ever.
    """

    inherit_cache = True
    type = UtcDateTime()

    def __init__(self, seconds: float = 0.0) -> None:
        super().__init__(literal(float(seconds)))


@compiles(clock, "postgresql")
def _clock_postgresql(element: clock, compiler: SQLCompiler, **options: Any) -> str:
    seconds = compiler.process(element.clauses, **options)
    return f"(clock_timestamp() + make_interval(secs => {seconds}))"


@compiles(clock, "sqlite")
def _clock_sqlite(element: clock, compiler: SQLCompiler, **options: Any) -> str:
    # Milliseconds padded to SQLAlchemy's six digits: moments are compared as text.
    seconds = compiler.process(element.clauses, **options)
    return f"strftime('%Y-%m-%d %H:%M:%f000', 'now', ({seconds}) || ' seconds')"


def passed(moment: Any, *, ago: float = 0.0, longest: float = 0.0) -> ColumnElement[bool]:
    """Return the condition that a moment lies so many seconds back, or cannot be true.

    The database's clock may have been wrong for a while. What was written meanwhile lies days
    ahead, and would be waited for that long.

    Args:
        moment: A column that was written by `clock`.
        ago: How far back it has to be.
        longest: How far ahead it may have been written.
    """
    return or_(moment <= clock(-ago), moment > clock(longest + CLOCK_SLACK))


def database_time(session: Session) -> datetime:
    """Return the database's time as a value."""
    return session.scalars(select(clock())).one()


def build_engine(url: str) -> Engine:
    """Return a new engine for a database address."""
    if make_url(url).get_backend_name() != "sqlite":
        return create_engine(
            url, json_serializer=_to_json, pool_pre_ping=True, pool_size=10, max_overflow=20
        )
    name, pool = make_url(url).database, {}
    if name and name != ":memory:":
        _keep_private(Path(name))
        # The last one used first: every connection keeps megabytes of pages it has read.
        pool = {"pool_use_lifo": True}
    waiting = {"timeout": BUSY_MILLISECONDS / 1000}
    engine = create_engine(url, json_serializer=_to_json, connect_args=waiting, **pool)
    event.listen(engine, "connect", _prepare_sqlite)
    event.listen(engine, "begin", _begin_sqlite)
    return engine


def _keep_private(file: Path) -> None:
    """Let nobody else on this machine read a database, or the folder that is its home.

    Its companions (-wal, -shm) get the file's own permissions from SQLite when they are made. A
    folder is closed only if it looks like a home of ours: somebody may have put the file into
    one that others need.
    """
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with suppress(OSError):  # on a disk that cannot be written, or another user's: as it is
        os.close(os.open(file, os.O_CREAT | os.O_RDONLY, 0o600))
        for one in (file, Path(f"{file}-wal"), Path(f"{file}-shm")):
            if one.exists() and one.stat().st_mode & 0o077:
                one.chmod(0o600)
        mode = file.parent.stat().st_mode
        ours = file.parent == get_settings().home and file.parent != Path.home()
        if ours and mode & 0o077 and not mode & stat.S_ISVTX:
            file.parent.chmod(0o700)


def _to_json(value: Any) -> str:
    """Refuse NaN on every database: PostgreSQL does, SQLite would store text nobody can read."""
    return json.dumps(value, allow_nan=False, separators=(",", ":"))


def _prepare_sqlite(connection: sqlite3.Connection, _record: object) -> None:
    # The driver's own BEGIN comes too late (at the first write); `_begin_sqlite` sends ours.
    connection.isolation_level = None
    for pragma in (
        "journal_mode=WAL",
        f"busy_timeout={BUSY_MILLISECONDS}",
        "synchronous=NORMAL",
        "foreign_keys=ON",
    ):
        connection.execute(f"PRAGMA {pragma}")


def _begin_sqlite(connection: Connection) -> None:
    kind = connection.get_execution_options().get(SQLITE_BEGIN, "IMMEDIATE")
    connection.exec_driver_sql(f"BEGIN {kind}")


#: Faults that pass: nothing is wrong with what was to be written, it can be written later.
PASSING_FAULTS = (OperationalError, InterfaceError, InternalError, PoolTimeout)


def reason(error: Exception) -> str:
    """Return a database's fault in a few words, without the statement that met it."""
    return str(getattr(error, "orig", None) or error).strip().split("\n", 1)[0]


_engines: dict[str, Engine] = {}
_building = threading.Lock()
#: By address, whose turn it is to write to an SQLite file: see `_turn`.
_turns: dict[str, threading.Lock] = {}


def get_engine() -> Engine:
    """Return this process's engine, built on first use."""
    url = get_settings().database
    with _building:
        if url not in _engines:
            _engines[url] = build_engine(url)
        return _engines[url]


def dispose_engines() -> None:
    """Close every connection of this process."""
    while _engines:
        _engines.popitem()[1].dispose()


def _forget_engines() -> None:
    """Leave the parent's connections to the parent: two processes must not share a socket."""
    global _building
    _building = threading.Lock()  # another thread of the parent may have held the old one
    _turns.clear()
    while _engines:
        _engines.popitem()[1].dispose(close=False)


os.register_at_fork(after_in_child=_forget_engines)


@contextmanager
def transaction(engine: Engine | None = None) -> Iterator[Session]:
    """Yield a session that may write; commits at the end, rolls back on an error.

    On SQLite the write lock is taken at once. A transaction that starts reading and wants to
    write later could find that another one was quicker, and fail instead of waiting.
    """
    bind = engine or get_engine()
    with _turn(bind), _session(bind) as session, session.begin():
        yield session


@contextmanager
def _turn(bind: Engine) -> Iterator[None]:
    """Wait for this process's other writers to an SQLite file.

    SQLite would do, but by sleeping and trying again: of several writers in a row, one or the
    other sleeps past all its chances. A lock wakes the next one at once. It only saves time; that
    nobody else writes is SQLite's to see to, so who has waited long enough goes on without it.
    """
    if bind.dialect.name != "sqlite":
        yield
        return
    with _building:
        turn = _turns.setdefault(str(bind.url), threading.Lock())
    taken = turn.acquire(timeout=BUSY_MILLISECONDS / 1000)
    try:
        yield
    finally:
        if taken:
            turn.release()


@contextmanager
def reading(engine: Engine | None = None) -> Iterator[Session]:
    """Yield a session for reading, which on SQLite neither waits for a writer nor blocks one."""
    bind = (engine or get_engine()).execution_options(**{SQLITE_BEGIN: "DEFERRED"})
    with _session(bind) as session, session.begin():
        yield session


def _session(bind: Engine) -> Session:
    # Services write by statements and read by statements; there are no loaded rows to keep true.
    return Session(bind, expire_on_commit=False, execution_options={"synchronize_session": False})


def lock_table(session: Session, table: type[Base]) -> None:
    """Keep others from writing to a table until the transaction ends; readers go on.

    For what must be true of a whole table: that it is empty, or has no such row yet. SQLite's
    transaction has excluded other writers from its beginning.
    """
    if session.get_bind().dialect.name == "postgresql":
        session.execute(text(f"LOCK TABLE {table.__tablename__} IN EXCLUSIVE MODE"))


def insert_for(session: Session, table: type[Base]) -> postgresql.Insert | sqlite.Insert:
    """Return an INSERT that knows ON CONFLICT, in the session's dialect."""
    if session.get_bind().dialect.name == "postgresql":
        return postgresql.insert(table)
    return sqlite.insert(table)


def insert_many(session: Session, statement: Insert, rows: Sequence[Mapping[str, Any]]) -> None:
    """Insert many rows at once.

    Through the connection, because the session would cut the rows into groups by which of their
    values are None.
    """
    if rows:
        session.connection().execute(statement, rows)


def changed_rows(session: Session, statement: Update | Delete | Insert) -> int:
    """Execute a write and return how many rows it changed: the answer of a compare-and-set."""
    result = session.execute(statement)
    return result.rowcount if isinstance(result, CursorResult) else 0


@lru_cache(maxsize=1)
def needed_revision() -> str:
    """Return the newest migration that came with this version, without loading Alembic for it."""
    names = (file.name[:4] for file in files("migrations").joinpath("versions").iterdir())
    return max(name for name in names if name.isdecimal())


def why_unusable(session: Session) -> str | None:
    """Return what is wrong with the database's tables; None if they are this version's."""
    try:
        found = session.execute(text("SELECT version_num FROM alembic_version")).scalar()
    except SQLAlchemyError:
        found = None
    needed = needed_revision()
    if found == needed:
        return None
    if found is not None and found > needed:
        return f"The database belongs to a newer version (its tables are at {found})."
    return f"The database's tables are at {found}, not {needed}. Run: etascope db upgrade"


#: Largest finite double: a stored number is never infinite, and PostgreSQL's NaN is above it.
LARGEST = "1.7976931348623157e308"

#: Ids are never given twice: a late result must not land in a row that took a deleted one's id.
NO_SECOND_USE = {"sqlite_autoincrement": True}

CreatedAt = Annotated[datetime, mapped_column(default=clock())]


def enum_column(kind: type[StrEnum]) -> Enum:
    """Return a VARCHAR that reads as `kind`; `one_of` adds the CHECK."""
    return Enum(
        kind,
        native_enum=False,
        create_constraint=False,
        length=16,
        values_callable=lambda members: [member.value for member in members],
    )


def one_of(column: str, values: type[StrEnum] | tuple[str, ...]) -> CheckConstraint:
    """Return a CHECK that the column holds one of these values."""
    listed = ", ".join(f"'{value}'" for value in values)
    return CheckConstraint(f"{column} IN ({listed})", name=column)


def finite(column: str) -> CheckConstraint:
    """Return a CHECK that the column holds a finite number or none."""
    return CheckConstraint(
        f"{column} IS NULL OR ({column} >= -{LARGEST} AND {column} <= {LARGEST})",
        name=f"{column}_finite",
    )
