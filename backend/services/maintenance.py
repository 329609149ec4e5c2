"""Looks after an installation: contradictions between rows, old rows, room on its disks."""

import shutil
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter
from sqlalchemy import ColumnElement, Select, delete, exists, func, select, text, update
from sqlalchemy.orm import Session

from backend.db import changed_rows, clock
from backend.models import (
    AGENTS,
    AuditRow,
    CurveRow,
    RecordingRow,
    ShardRow,
    ShardState,
    SweepRow,
    SweepTrialRow,
    TrialRow,
)
from backend.schemas import PlaceRead, StorageRead, TrialState
from backend.services import shards, trials, workers
from backend.services.trials import CHUNK, UNFINISHED, chunks
from backend.settings import Settings
from ib_core.sweep import Recording

#: Ids named in a problem's sentence.
MOST_NAMED = 5
_JSON: TypeAdapter[Any] = TypeAdapter(Any)
#: A lease that ended so long ago should have been noticed by the reaper.
GRACE_SECONDS = 120.0
DAY = 24 * 3600.0
ENDED_SHARDS = (ShardState.DONE, ShardState.FAILED, ShardState.CANCELLED)
#: So many rows at a time: a cleaning must not hold up the workers.
MOST_DELETED = 5000
#: A SQLite database is several files while it is open.
PROBE_BYTES = 64 * 1024
SQLITE_SUFFIXES = ("", "-wal", "-shm")


@dataclass(frozen=True, slots=True)
class Problem:
    """Rows that contradict each other.

    Attributes:
        kind: Stable name of the contradiction.
        sentence: What is wrong, for a person.
        ids: The rows concerned.
        repairable: Whether `repair` mends it.
    """

    kind: str
    sentence: str
    ids: tuple[int, ...]
    repairable: bool


@dataclass(frozen=True, slots=True)
class _Check:
    what: str
    find: Callable[[Session], Sequence[int]]
    mend: Callable[[Session, Sequence[int]], None] | None


def check(session: Session) -> list[Problem]:
    """Return every contradiction in the database."""
    return [_problem(kind, one, ids) for kind, one in CHECKS.items() if (ids := one.find(session))]


def repair(session: Session) -> list[Problem]:
    """Mend what can be mended without losing a result; return what was found."""
    found = []
    for kind, one in CHECKS.items():
        ids = one.find(session)  # again for each: mending one thing may show the next
        if ids:
            found.append(_problem(kind, one, ids))
            if one.mend is not None:
                one.mend(session, ids)
    return found


def _problem(kind: str, one: _Check, ids: Sequence[int]) -> Problem:
    named = ", ".join(str(id) for id in ids[:MOST_NAMED])
    more = f" and {len(ids) - MOST_NAMED} more" if len(ids) > MOST_NAMED else ""
    return Problem(kind, f"{one.what}: {named}{more}.", tuple(ids), one.mend is not None)


def _trials(*conditions: ColumnElement[bool]) -> Callable[[Session], Sequence[int]]:
    query = select(TrialRow.id).where(*conditions).order_by(TrialRow.id)
    return lambda session: session.scalars(query).all()


def _in_shard(*states: ShardState) -> ColumnElement[bool]:
    return exists().where(ShardRow.id == TrialRow.shard_id, ShardRow.state.in_(states))


def _short_sweeps(session: Session) -> Sequence[int]:
    held = (
        select(SweepTrialRow.sweep_id, func.count().label("held"))
        .group_by(SweepTrialRow.sweep_id)
        .subquery()
    )
    query = (
        select(SweepRow.id)
        .outerjoin(held, held.c.sweep_id == SweepRow.id)
        .where(func.coalesce(held.c.held, 0) != SweepRow.total)
        .order_by(SweepRow.id)
    )
    return session.scalars(query).all()


def _lost_curves(session: Session) -> Sequence[int]:
    known = exists().where(TrialRow.id == CurveRow.trial_id)
    return session.scalars(select(CurveRow.trial_id).where(~known)).all()


def _lost_recordings(session: Session) -> Sequence[int]:
    known = exists().where(TrialRow.id == RecordingRow.trial_id)
    return session.scalars(select(RecordingRow.trial_id).where(~known)).all()


def _damaged_recordings(session: Session) -> Sequence[int]:
    """Return the trials whose recording cannot be unpacked."""
    query = select(RecordingRow.trial_id, RecordingRow.data).where(RecordingRow.data.is_not(None))
    found = session.execute(query.execution_options(yield_per=CHUNK))
    return [id for id, data in found if data is not None and not _unpacks(data)]


def _unpacks(data: bytes) -> bool:
    try:
        Recording.from_bytes(data)
    except ValueError:
        return False
    return True


def _delete_recordings(session: Session, ids: Sequence[int]) -> None:
    for chunk in chunks(ids):
        session.execute(delete(RecordingRow).where(RecordingRow.trial_id.in_(chunk)))


def _unreadable_trials(session: Session) -> Sequence[int]:
    return _unreadable(session, TrialRow, lambda row: trials.to_read(row).model_dump_json())


def _unreadable_sweeps(session: Session) -> Sequence[int]:
    return _unreadable(session, SweepRow, lambda row: _JSON.dump_json([row.spec, row.body]))


def _unreadable(
    session: Session, table: type[TrialRow | SweepRow], write: Callable[[Any], object]
) -> Sequence[int]:
    """Return the rows that cannot be sent: one alone makes its whole study unreadable.

    Pages of ids rather than one long result, so that a row that cannot even be fetched costs its
    page only, whose rows are then fetched one by one.
    """
    found: list[int] = []
    last = 0
    while ids := session.scalars(
        select(table.id).where(table.id > last).order_by(table.id).limit(CHUNK)
    ).all():
        if not _writable(session, table, ids, write):
            found += [one for one in ids if not _writable(session, table, [one], write)]
        last = ids[-1]
    return found


def _writable(
    session: Session, table: Any, ids: Sequence[int], write: Callable[[Any], object]
) -> bool:
    try:
        for row in session.scalars(select(table).where(table.id.in_(ids))):
            write(row)
            session.expunge(row)
    except (ValueError, TypeError, RecursionError, OverflowError):
        return False
    return True


def _idle_shards(session: Session) -> Sequence[int]:
    busy = exists().where(TrialRow.shard_id == ShardRow.id, TrialRow.state.in_(UNFINISHED))
    waiting = ShardRow.state == ShardState.QUEUED
    return session.scalars(select(ShardRow.id).where(waiting, ~busy)).all()


def _silent_shards(session: Session) -> Sequence[int]:
    silent = (ShardRow.state == ShardState.RUNNING, ShardRow.lease_until < clock(-GRACE_SECONDS))
    return session.scalars(select(ShardRow.id).where(*silent)).all()


def _delete_trials(session: Session, ids: Sequence[int]) -> None:
    trials.delete_orphans(session, trial_ids=ids)


def _delete_curves(session: Session, ids: Sequence[int]) -> None:
    for chunk in chunks(ids):
        session.execute(delete(CurveRow).where(CurveRow.trial_id.in_(chunk)))


def _close_shards(session: Session, ids: Sequence[int]) -> None:
    shards.close_empty(session, shard_ids=ids)


def _expire(session: Session, ids: Sequence[int]) -> None:
    del ids
    while shards.expire(session):
        pass


def _plan_again(session: Session, ids: Sequence[int]) -> None:
    """Put the trials into new shards."""
    for chunk in chunks(ids):
        lost = (TrialRow.id.in_(chunk), TrialRow.state.in_(UNFINISHED))
        session.execute(
            update(TrialRow)
            .where(*lost)
            .values(state=TrialState.QUEUED, started_at=None, shard_id=None)
        )
        cells = _cells(session, chunk)
        shards.plan_cells(session, trial_ids=cells)
        shards.plan_again(session, trial_ids=sorted(set(chunk) - set(cells)))


def _cells(session: Session, ids: Sequence[int]) -> Sequence[int]:
    """Return those of the trials that programs elsewhere train."""
    query = (
        select(SweepTrialRow.trial_id)
        .join(SweepRow, SweepRow.id == SweepTrialRow.sweep_id)
        .where(SweepTrialRow.trial_id.in_(ids), SweepRow.device == AGENTS)
    )
    return session.scalars(query.distinct()).all()


CHECKS: dict[str, _Check] = {
    "orphan_trials": _Check(
        "Trials that belong to no sweep",
        _trials(~exists().where(SweepTrialRow.trial_id == TrialRow.id)),
        _delete_trials,
    ),
    "trials_without_shard": _Check(
        "Trials that wait although no open shard holds them",
        _trials(
            TrialRow.state.in_(UNFINISHED),
            ~_in_shard(ShardState.QUEUED, ShardState.RUNNING),
            exists().where(SweepTrialRow.trial_id == TrialRow.id),
        ),
        _plan_again,
    ),
    "running_in_waiting_shard": _Check(
        "Trials that run although their shard does not",
        _trials(TrialRow.state == TrialState.RUNNING, _in_shard(ShardState.QUEUED)),
        _plan_again,
    ),
    "silent_shards": _Check("Shards that run although their lease ended", _silent_shards, _expire),
    "idle_shards": _Check(
        "Shards that wait without anything to train", _idle_shards, _close_shards
    ),
    "short_sweeps": _Check("Sweeps that do not hold all their trials", _short_sweeps, None),
    "lost_curves": _Check("Curves that belong to no trial", _lost_curves, _delete_curves),
    "lost_recordings": _Check(
        "Recordings that belong to no trial", _lost_recordings, _delete_recordings
    ),
    "damaged_recordings": _Check(
        "Trials whose recording cannot be read; a replay makes a new one",
        _damaged_recordings,
        _delete_recordings,
    ),
    "unreadable_trials": _Check("Trials that no answer can hold", _unreadable_trials, None),
    "unreadable_sweeps": _Check("Sweeps that no answer can hold", _unreadable_sweeps, None),
}


def clean(session: Session, *, settings: Settings) -> dict[str, int]:
    """Delete what the settings do not keep any longer; return how many rows of each kind.

    A shard tells how training went; once it has ended, nothing else depends on it.
    """
    found = {
        "workers": workers.forget_silent(session),
        "shards": _old_shards(session, settings.keep_shards_days),
        "audit": _old_audit(session, settings.keep_audit_days),
    }
    return {kind: count for kind, count in found.items() if count}


def _old_shards(session: Session, days: float) -> int:
    if not days:
        return 0
    busy = exists().where(TrialRow.shard_id == ShardRow.id, TrialRow.state.in_(UNFINISHED))
    old = _oldest_rows(
        ShardRow.id, ShardRow.state.in_(ENDED_SHARDS), _before(ShardRow.finished_at, days), ~busy
    )
    return changed_rows(session, delete(ShardRow).where(ShardRow.id.in_(old)))


def _old_audit(session: Session, days: float) -> int:
    if not days:
        return 0
    old = _oldest_rows(AuditRow.id, _before(AuditRow.at, days))
    return changed_rows(session, delete(AuditRow).where(AuditRow.id.in_(old)))


def _before(moment: Any, days: float) -> ColumnElement[bool]:
    found: ColumnElement[bool] = moment < clock(-days * DAY)
    return found


def _oldest_rows(id_column: Any, *conditions: ColumnElement[bool]) -> Select[int]:
    return select(id_column).where(*conditions).order_by(id_column).limit(MOST_DELETED)


def storage(session: Session, *, settings: Settings, data: Path) -> StorageRead:
    """Return the room each kind of file takes.

    Args:
        session: For reading.
        settings: Where things are.
        data: The folder of the data sets.
    """
    home = settings.home
    trials = session.scalar(select(func.count(TrialRow.id))) or 0
    packed = func.length(CurveRow.data) + func.coalesce(func.length(CurveRow.validation), 0)
    curves = session.scalar(select(func.sum(packed))) or 0
    places = [
        PlaceRead(name="database", used_bytes=database_bytes(session)),
        PlaceRead(name="logs", used_bytes=_folder_bytes(home / "logs")),
        PlaceRead(name="broker", used_bytes=_folder_bytes(home / "broker")),
        PlaceRead(name="data sets", used_bytes=_folder_bytes(data)),
    ]
    return StorageRead(
        places=places,
        trials=trials,
        curve_bytes=int(curves),
        free_bytes=shutil.disk_usage(_nearest(home)).free,
    )


def why_not_writable(folder: Path) -> str | None:
    """Return why nothing can be written into a folder (a full disk, say); None if it can.

    By writing: a full disk shows in no permission, and the space that is left may be another's.
    """
    try:
        with tempfile.TemporaryFile(dir=folder, prefix=".probe-") as probe:
            probe.write(bytes(PROBE_BYTES))
            probe.flush()
    except OSError as error:
        return error.strerror or type(error).__name__
    return None


def database_bytes(session: Session) -> int:
    """Return the room the whole database takes."""
    engine = session.get_bind().engine
    if engine.dialect.name == "postgresql":
        return int(session.scalar(text("SELECT pg_database_size(current_database())")) or 0)
    name = engine.url.database or ""
    files = (Path(f"{name}{suffix}") for suffix in SQLITE_SUFFIXES)
    return sum(file.stat().st_size for file in files if file.is_file())


def _folder_bytes(folder: Path) -> int:
    found = 0
    for file in folder.rglob("*") if folder.is_dir() else ():
        try:
            found += file.stat().st_size if file.is_file() else 0
        except OSError:  # gone between the listing and the look
            continue
    return found


def _nearest(folder: Path) -> Path:
    """Return a folder or the nearest one above it that exists."""
    return next(place for place in (folder, *folder.parents) if place.exists())
