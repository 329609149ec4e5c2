"""Runs made elsewhere: read, checked row by row, stored beside our own and marked as imported.

An import is all or nothing: a row that cannot be read refuses the file, with its line number.

| module | for |
| --- | --- |
| `files` | from bytes to rows, and from cells to values, with errors that name line and column |
| `runs` | from rows to trials |

Here trials that were read become a study's: previewed, stored in pieces, published together;
shared by content like our own, one sweep a task.
"""

import hashlib
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import count, filterfalse
from typing import Any

from sqlalchemy import Engine, func, select, update
from sqlalchemy.orm import Session

from backend.db import clock, insert_for, transaction
from backend.errors import Conflict
from backend.models import CurveRow, StudyRow, SweepRow, SweepTrialRow, TrialRow
from backend.schemas import ImportedSeries, ImportPreview, ImportRead, StudyCreate, TrialState
from backend.services import studies
from backend.services.analysis import KEY_COLUMNS, Key, key_of
from backend.services.importing.runs import HELD_OUT, Imported, ImportedTrial, read_runs
from backend.services.trials import chunks, delete_orphans, ids_at, lock

__all__ = [
    "Imported",
    "forget",
    "preview",
    "read_runs",
    "refuse_imported",
    "store",
    "store_trials",
]


MOST_SHOWN = 100
#: Trials stored in one transaction; on SQLite every other writer waits for its end.
PIECE = 1000
#: What PostgreSQL knows the turn of imports by; any number that nobody else uses.
IMPORTING = 0x696D706F7274


def store_trials(engine: Engine, found: Imported) -> set[str]:
    """Store a file's trials, a piece at a time, so that no other writer waits for all of them.

    They belong to no sweep yet, so nobody sees them before `store` publishes them together. If
    that does not happen, the same file finds them again, and `db check --repair` deletes them.

    Returns:
        The addresses of those that are new.
    """
    trials = {trial.fingerprint: trial for trial in found.trials}
    new: set[str] = set()
    for piece in chunks(sorted(trials), PIECE):
        with transaction(engine) as session:
            _, fresh = _put(session, {address: trials[address] for address in piece})
        new |= fresh
    return new


def _put(session: Session, trials: Mapping[str, ImportedTrial]) -> tuple[dict[str, int], set[str]]:
    """Store those trials that are not here; return the ids of all, and which were not here.

    Nobody can delete them before this transaction ends. Another import of the same file might: one
    that could not be published forgets what nobody holds, and links not yet committed nobody sees.
    """
    _alone(session)
    fresh: set[str] = set()
    while True:
        lock(session, ids_at(session, trials).values())
        ids = ids_at(session, trials)
        absent = trials.keys() - ids.keys()
        if not absent:
            _insert_curves(session, [trials[address] for address in sorted(fresh)], ids)
            return ids, fresh
        fresh |= absent
        _insert_trials(session, [trials[address] for address in absent])


def _alone(session: Session) -> None:
    """Make other imports wait: two that insert the same trials, each with some, would for ever."""
    if session.get_bind().dialect.name == "postgresql":
        session.execute(select(func.pg_advisory_xact_lock(IMPORTING)))


def forget(engine: Engine, addresses: Iterable[str]) -> None:
    """Delete trials that were stored for an import that could not be published."""
    with transaction(engine) as session:
        _alone(session)
        ids = sorted(ids_at(session, addresses).values())
        lock(session, ids)
        delete_orphans(session, trial_ids=ids)


def store(
    session: Session,
    *,
    found: Imported,
    new: Collection[str] = (),
    source: str,
    study_id: int | None,
    name: str,
    owner_id: int | None,
) -> ImportRead:
    """Publish what a file holds; the same file twice brings nothing new.

    Args:
        session: A session that may write.
        found: The file's trials; those that are not stored yet are stored here.
        new: Those that `store_trials` has stored for this very import.
        source: The file's name.
        study_id: The study to put them into; None: a new one.
        name: The new study's name.
        owner_id: Whose the new study is.
    """
    if study_id is None:
        payload = StudyCreate(name=name, tags=["imported"], notes=f"Imported from {source}.")
        study_id = studies.create(session, payload=payload, owner_id=owner_id).id
    studies.owner_of(session, study_id=study_id)  # raises if there is no such study
    # First, because imports into one study then wait for each other: both give out seeds.
    session.execute(update(StudyRow).where(StudyRow.id == study_id).values(updated_at=clock()))
    trials = {trial.fingerprint: trial for trial in found.trials}
    ids, fresh = _put(session, trials)
    new = {*new, *fresh}
    if not all(trial.numbered for trial in found.trials):
        _number(session, study_id, {ids[address]: trial for address, trial in trials.items()})
    held = _held(session, study_id, ids.values())
    by_task: defaultdict[str, list[ImportedTrial]] = defaultdict(list)
    for trial in trials.values():
        if ids[trial.fingerprint] not in held:  # what an earlier import brought is not listed again
            by_task[trial.columns["task"]].append(trial)
    links = {
        address: {"trial_id": ids[address], "reused": address not in new} for address in trials
    }
    common = {
        "study_id": study_id,
        "owner_id": owner_id,
        "body": {"import": source},
        "note": f"Imported from {source}.",
    }
    sweep_ids = [_sweep(session, task, by_task[task], links, common) for task in by_task]
    sweep_ids = sorted({*sweep_ids, *held.values()})
    return ImportRead(
        study_id=study_id,
        sweep_ids=sweep_ids,
        imported=len(new),
        reused=len(found.trials) - len(new),
        skipped=len(found.skipped),
        problems=found.skipped[:MOST_SHOWN],
    )


def _number(session: Session, study_id: int, trials: Mapping[int, ImportedTrial]) -> None:
    """Give runs without seeds the next free ones of their cells in the study: one series.

    One that some study shows already keeps its own: a trial is the same wherever it is shown.
    """
    columns = (TrialRow.id, TrialRow.lr, TrialRow.seed, *KEY_COLUMNS)
    members = (
        select(SweepTrialRow.trial_id)
        .join(SweepRow, SweepRow.id == SweepTrialRow.sweep_id)
        .where(SweepRow.study_id == study_id, SweepRow.imported)
    )
    there = list(session.execute(select(*columns).where(TrialRow.id.in_(members))))
    shown: set[int] = set()
    for chunk in chunks(sorted(trials)):
        there += session.execute(select(*columns).where(TrialRow.id.in_(chunk)))
        linked = select(SweepTrialRow.trial_id).where(SweepTrialRow.trial_id.in_(chunk))
        shown |= set(session.scalars(linked))
    stored = {id_: seed for id_, _, seed, *_ in there}
    cells = {id_: (lr, key_of(study_id, settings)) for id_, lr, _, *settings in there}
    loose = [id_ for id_, trial in trials.items() if not trial.numbered and id_ not in shown]
    taken: defaultdict[tuple[float, Key], set[int]] = defaultdict(set)
    for id_ in stored.keys() - set(loose):
        taken[cells[id_]].add(stored[id_])
    free: dict[tuple[float, Key], Iterator[int]] = {
        cell: filterfalse(seeds.__contains__, count(1)) for cell, seeds in taken.items()
    }
    given = {id_: next(free.setdefault(cells[id_], count(1))) for id_ in loose}
    for id_, trial in trials.items():
        trial.columns["seed"] = given.get(id_, stored[id_])
    changed = [{"id": id_, "seed": seed} for id_, seed in given.items() if seed != stored[id_]]
    if changed:
        session.execute(update(TrialRow), changed)


def _held(session: Session, study_id: int, trial_ids: Iterable[int]) -> dict[int, int]:
    """Return those of the trials that a study holds already, with the sweep they are in."""
    return {
        trial_id: sweep_id
        for chunk in chunks(sorted(trial_ids))
        for trial_id, sweep_id in session.execute(
            select(SweepTrialRow.trial_id, SweepTrialRow.sweep_id)
            .join(SweepRow, SweepRow.id == SweepTrialRow.sweep_id)
            .where(SweepRow.study_id == study_id, SweepTrialRow.trial_id.in_(chunk))
        )
    }


def preview(session: Session, *, found: Imported) -> ImportPreview:
    """Return what storing a file's trials would make, without storing anything."""
    known = ids_at(session, {trial.fingerprint for trial in found.trials})
    groups: defaultdict[tuple[str, str], list[ImportedTrial]] = defaultdict(list)
    for trial in found.trials:
        groups[trial.columns["task"], trial.columns["method"]].append(trial)
    return ImportPreview(
        trials=len(found.trials),
        new=len({trial.fingerprint for trial in found.trials} - known.keys()),
        series=[_series(task, method, groups[task, method]) for task, method in groups],
        skipped=len(found.skipped),
        problems=found.skipped[:MOST_SHOWN],
    )


def _series(task: str, method: str, members: Sequence[ImportedTrial]) -> ImportedSeries:
    states = Counter(trial.columns["state"] for trial in members)
    cells = Counter((trial.columns["lr"], trial.columns["seed"]) for trial in members)
    return ImportedSeries(
        task=task,
        method=method,
        learning_rates=sorted({trial.columns["lr"] for trial in members}),
        seeds=sorted({trial.columns["seed"] for trial in members}),
        completed=states[TrialState.COMPLETED],
        diverged=states[TrialState.DIVERGED],
        failed=states[TrialState.FAILED],
        repeated=sum(times - 1 for times in cells.values()),
    )


def refuse_imported(session: Session, *, sweep_id: int) -> None:
    """Refuse to train what was trained elsewhere."""
    imported = session.scalar(select(SweepRow.imported).where(SweepRow.id == sweep_id))
    if imported:
        raise Conflict(f"Sweep {sweep_id} was imported; its runs cannot be repeated here.")


def _insert_trials(session: Session, trials: Sequence[ImportedTrial]) -> None:
    rows = [
        {
            **dict.fromkeys(HELD_OUT),
            **trial.columns,
            "fingerprint": trial.fingerprint,
            "imported": True,
            "record": trial.record,
        }
        for trial in sorted(trials, key=lambda trial: trial.fingerprint)
    ]
    if rows:
        statement = insert_for(session, TrialRow).values(finished_at=clock())
        # With NULLs written out all rows have the same columns, and go in together.
        options = {"render_nulls": True}
        session.execute(statement.on_conflict_do_nothing(), rows, execution_options=options)


def _insert_curves(session: Session, trials: Sequence[ImportedTrial], ids: dict[str, int]) -> None:
    rows = [{**trial.curve, "trial_id": ids[trial.fingerprint]} for trial in trials if trial.curve]
    if rows:
        session.execute(insert_for(session, CurveRow).on_conflict_do_nothing(), rows)


def _sweep(
    session: Session,
    task: str,
    members: Sequence[ImportedTrial],
    links: dict[str, dict[str, Any]],
    common: dict[str, Any],
) -> int:
    """Return the sweep that holds these trials, the one of an earlier import if it is there."""
    rows = [links[trial.fingerprint] for trial in members]
    addresses = sorted(trial.fingerprint for trial in members)
    digest = hashlib.sha256("".join(addresses).encode()).hexdigest()
    key = f"import-{digest}"
    insert = insert_for(session, SweepRow).values(
        **common,
        task=task,
        device="auto",
        spec=_grid_of(task, members),
        body_hash=digest,
        idempotency_key=key,
        total=len(rows),
        reused=sum(row["reused"] for row in rows),
        imported=True,
    )
    insert = insert.on_conflict_do_nothing(index_elements=["study_id", "idempotency_key"])
    sweep_id = session.scalars(insert.returning(SweepRow.id)).one_or_none()
    if sweep_id is None:
        same = (SweepRow.study_id == common["study_id"], SweepRow.idempotency_key == key)
        return session.scalars(select(SweepRow.id).where(*same)).one()
    session.execute(
        insert_for(session, SweepTrialRow),
        [{"sweep_id": sweep_id, "position": i, **row} for i, row in enumerate(rows)],
    )
    return sweep_id


def _grid_of(task: str, members: Sequence[ImportedTrial]) -> dict[str, Any]:
    """Return the grid the runs span, in the form of a sweep's own."""

    def values(name: str) -> list[Any]:
        found = {trial.columns[name] for trial in members}
        return sorted(found, key=lambda value: (value is not None, value))

    return {
        "task": task,
        "methods": values("method"),
        "learning_rates": values("lr"),
        "seeds": values("seed"),
        "clips": values("clip"),
        "epochs": max(values("epochs")),
        "imported": True,
    }
