"""Which trials need training, and the shards that will train them: planned, and planned again.

A shard that did not end well is trained again, in pieces, or not at all.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, delete, insert, or_, select, update
from sqlalchemy.orm import Session

from backend.db import changed_rows, clock, insert_for, insert_many, passed
from backend.models import CurveRow, ShardRow, ShardState, TrialRow
from backend.schemas import TrialState
from backend.services import offers
from backend.services.trials import (
    CLEARED,
    RETRIABLE,
    SETTINGS,
    UNFINISHED,
    chunks,
    is_wanted,
    lock,
    readable,
    spec_of,
)
from backend.settings import get_settings
from ib_core.sweep import (
    ENGINE_VERSION,
    PlannedShard,
    SweepSpec,
    TrialSpec,
    fingerprint,
    plan_shards,
)
from ib_core.tasks import find_task

#: Trials vanish between insert and lock only if somebody deletes a study right then.
MOST_ROUNDS = 5
LONGEST_BACKOFF = 60.0
#: A shard that waits for a worker, and has not been announced to any.
WAITING: dict[str, Any] = {
    "state": ShardState.QUEUED,
    "worker": None,
    "lease_until": None,
    "sent_at": None,
    "queue": None,
    "progress": 0.0,
}


@dataclass(frozen=True, slots=True)
class Grid:
    """A sweep's trials with their addresses, in the order of the grid."""

    trials: tuple[TrialSpec, ...]
    addresses: tuple[str, ...]
    data_hash: str


def grid_of(spec: SweepSpec) -> Grid:
    """Return the sweep's trials and their addresses; the data must be there to have a hash."""
    return grid_of_trials(spec.expand(), find_task(spec.task).data_hash())


def grid_of_trials(trials: Sequence[TrialSpec], data_hash: str) -> Grid:
    """Return trials with their addresses, on data that need not be here."""
    return Grid(tuple(trials), tuple(fingerprint(one, data_hash) for one in trials), data_hash)


def known_states(session: Session, *, addresses: Iterable[str]) -> dict[str, TrialState]:
    """Return the state of each trial that is already known, by address."""
    return {
        found: state
        for chunk in chunks(sorted(addresses))
        for found, state in session.execute(
            select(TrialRow.fingerprint, TrialRow.state).where(TrialRow.fingerprint.in_(chunk))
        )
    }


@dataclass(frozen=True, slots=True)
class Known:
    """A trial as the database has it."""

    id: int
    state: TrialState
    planned: bool


def ensure_trials(session: Session, *, grid: Grid) -> dict[str, Known]:
    """Insert the trials that are not known yet, and return all of them, locked, by address."""
    found: dict[str, Known] = {}
    for _ in range(MOST_ROUNDS):
        _insert_missing(session, grid, found)
        found |= _locked(session, [a for a in grid.addresses if a not in found])
        if len(found) == len(grid.addresses):
            break
    return found


def _insert_missing(session: Session, grid: Grid, found: dict[str, Known]) -> None:
    missing = set(grid.addresses) - found.keys()
    missing -= known_states(session, addresses=missing).keys()
    if not missing:
        return
    options = {given: given.as_dict() for given in {trial.options for trial in grid.trials}}
    rows = [
        {
            "fingerprint": found_at,
            "state": TrialState.QUEUED,
            "engine_version": ENGINE_VERSION,
            "data_hash": grid.data_hash,
            **spec_of(trial),
            "options": options[trial.options],
        }
        for trial, found_at in zip(grid.trials, grid.addresses, strict=True)
        if found_at in missing
    ]
    # In one order for everybody: two submissions that overlap wait, they do not deadlock.
    rows.sort(key=lambda row: row["fingerprint"])
    insert_many(session, insert_for(session, TrialRow).on_conflict_do_nothing(), rows)


def _locked(session: Session, addresses: Sequence[str]) -> dict[str, Known]:
    """Return trials as they are now that nobody else can change them; locked as ids rise."""
    ids = sorted(
        id
        for chunk in chunks(sorted(addresses))
        for id in session.scalars(select(TrialRow.id).where(TrialRow.fingerprint.in_(chunk)))
    )
    columns = (TrialRow.fingerprint, TrialRow.id, TrialRow.state, TrialRow.shard_id)
    return {
        found: Known(id, state, shard_id is not None)
        for chunk in chunks(ids)
        for found, id, state, shard_id in session.execute(
            select(*columns).where(TrialRow.id.in_(chunk)).order_by(TrialRow.id).with_for_update()
        )
    }


def needs_training(known: Known) -> bool:
    """Return whether nobody has trained the trial or is about to."""
    if known.state in RETRIABLE:
        return True
    return known.state is TrialState.QUEUED and not known.planned


def plan(session: Session, *, trials: Sequence[tuple[int, TrialSpec]], device: str) -> list[int]:
    """Put these trials into new shards; return the shards' ids."""
    if not trials:
        return []
    ids = [trial_id for trial_id, _ in trials]
    planned = shards_for([spec for _, spec in trials], device=device)
    rows = [
        {
            **WAITING,
            "device": device,
            "trials": len(shard.indices),
            "seconds": shard.seconds,
            "memory_bytes": shard.memory_bytes,
            "needs": offers.needs_of(trials[index][1] for index in shard.indices),
        }
        for shard in planned
    ]
    shard_ids = session.scalars(
        insert(ShardRow).returning(ShardRow.id, sort_by_parameter_order=True), rows
    ).all()
    for shard_id, shard in zip(shard_ids, planned, strict=True):
        held = TrialRow.id.in_([ids[index] for index in shard.indices])
        session.execute(update(TrialRow).where(held).values(shard_id=shard_id))
    return list(shard_ids)


def clear(session: Session, *, trial_ids: Sequence[int]) -> None:
    """Forget what became of failed and cancelled trials, so that they can be trained again."""
    for chunk in chunks(trial_ids):
        ended = (TrialRow.id.in_(chunk), TrialRow.state.in_(RETRIABLE))
        session.execute(update(TrialRow).where(*ended).values(CLEARED))
        session.execute(delete(CurveRow).where(CurveRow.trial_id.in_(chunk)))


def shards_for(trials: Sequence[TrialSpec], *, device: str) -> list[PlannedShard]:
    """Return the shards the trials would make; `auto` is forecast as the processor's."""
    return plan_shards(trials, device="cuda" if device == "cuda" else "cpu") if trials else []


def plan_again(session: Session, *, trial_ids: Sequence[int], device: str = "auto") -> list[int]:
    """Put trials that have lost their shard into new ones."""
    found = _specs(session, trial_ids=trial_ids)
    with offers.known_again(session, [(spec, data) for _, spec, data in found]).told():
        return plan(session, trials=[(id, spec) for id, spec, _ in found], device=device)


def _specs(
    session: Session, *, trial_ids: Sequence[int]
) -> list[tuple[int, TrialSpec, str | None]]:
    """Return what is to be trained, by trial id, and on which data."""
    columns = (TrialRow.id, TrialRow.data_hash, *(getattr(TrialRow, name) for name in SETTINGS))
    return [
        (row.id, TrialSpec.from_dict(spec_of(row)), row.data_hash)
        for chunk in chunks(trial_ids)
        for row in session.execute(select(*columns).where(TrialRow.id.in_(chunk)))
    ]


def put_back(session: Session, *, shard_id: int) -> None:
    """Give back a shard that was stopped on purpose; this burns no attempt."""
    unfinished = _unfinished(session, shard_id)
    if not unfinished:
        return _close(session, shard_id)
    attempts = {"attempts": ShardRow.attempts - 1, "not_before": None}
    _set(session, shard_id, **WAITING, **attempts)
    _requeue_trials(session, unfinished, attempts=TrialRow.attempts - 1)


def try_again(
    session: Session, *, shard_id: int, attempts: int, error: str, split: bool = True
) -> None:
    """Give back a shard after a fault, or fail what is left of it once its attempts are used up.

    Before the last attempt the trials part ways, if `split`: one that kills its worker every time
    must not take its neighbours along.
    """
    settings = get_settings()
    unfinished = _unfinished(session, shard_id)
    reason = readable(error)
    if not unfinished:
        return _close(session, shard_id)
    if attempts >= settings.max_attempts:
        return _give_up(session, shard_id, unfinished, reason)
    wait = clock(min(settings.retry_seconds * 2 ** (attempts - 1), LONGEST_BACKOFF))
    _requeue_trials(session, unfinished)
    if split and attempts == settings.max_attempts - 1 and len(unfinished) > 1:
        _split(session, shard_id, unfinished, attempts, wait, reason)
    else:
        _set(session, shard_id, **WAITING, not_before=wait, message=f"Trying again: {reason}")
    return None


def is_ready() -> ColumnElement[bool]:
    """Return the condition that a shard's wait after a fault is over."""
    waited = passed(ShardRow.not_before, longest=LONGEST_BACKOFF)
    return or_(ShardRow.not_before.is_(None), waited)


def cancel_unwanted_in(session: Session, *, shard_id: int) -> int:
    """Cancel the shard's unfinished trials that no sweep wants any more."""
    mine = (TrialRow.shard_id == shard_id, TrialRow.state.in_(UNFINISHED))
    orphans = session.scalars(select(TrialRow.id).where(*mine, ~is_wanted())).all()
    return cancel_unwanted(session, orphans) if orphans else 0


def cancel_unwanted(session: Session, trial_ids: Sequence[int]) -> int:
    """Cancel those of the trials that are unfinished and that no sweep wants; return how many."""
    lock(session, trial_ids)
    gone = {"state": TrialState.CANCELLED, "finished_at": clock()}
    return sum(
        changed_rows(
            session,
            update(TrialRow)
            .where(TrialRow.id.in_(chunk), TrialRow.state.in_(UNFINISHED), ~is_wanted())
            .values(gone),
        )
        for chunk in chunks(trial_ids)
    )


def close_empty(session: Session, *, shard_ids: Sequence[int]) -> None:
    """Cancel waiting shards whose trials have all been cancelled."""
    for chunk in chunks(shard_ids):
        busy = select(TrialRow.shard_id).where(
            TrialRow.shard_id.in_(chunk), TrialRow.state.in_(UNFINISHED)
        )
        session.execute(
            update(ShardRow)
            .where(
                ShardRow.id.in_(chunk),
                ShardRow.state == ShardState.QUEUED,
                ShardRow.id.not_in(busy),
            )
            .values(state=ShardState.CANCELLED, finished_at=clock())
        )


def _unfinished(session: Session, shard_id: int) -> Sequence[int]:
    cancel_unwanted_in(session, shard_id=shard_id)
    mine = (TrialRow.shard_id == shard_id, TrialRow.state.in_(UNFINISHED))
    query = select(TrialRow.id).where(*mine).order_by(TrialRow.id)
    return session.scalars(query.with_for_update()).all()


def _requeue_trials(session: Session, trial_ids: Sequence[int], **values: Any) -> None:
    for chunk in chunks(trial_ids):
        session.execute(
            update(TrialRow)
            .where(TrialRow.id.in_(chunk), TrialRow.state == TrialState.RUNNING)
            .values(state=TrialState.QUEUED, started_at=None, **values)
        )


def _give_up(session: Session, shard_id: int, trial_ids: Sequence[int], reason: str) -> None:
    for chunk in chunks(trial_ids):
        session.execute(
            update(TrialRow)
            .where(TrialRow.id.in_(chunk), TrialRow.state.in_(UNFINISHED))
            .values(state=TrialState.FAILED, error=reason, finished_at=clock())
        )
    _set(session, shard_id, state=ShardState.FAILED, error=reason, finished_at=clock())


def _split(
    session: Session,
    shard_id: int,
    trial_ids: Sequence[int],
    attempts: int,
    wait: clock,
    reason: str,
) -> None:
    whole = session.get_one(ShardRow, shard_id, populate_existing=True)
    share = {
        **WAITING,
        "device": whole.device,
        "trials": 1,
        "seconds": whole.seconds / len(trial_ids),
        "memory_bytes": whole.memory_bytes // len(trial_ids),
        "needs": whole.needs,
        "attempts": attempts,
        "message": f"Alone after: {reason}",
    }
    made = session.scalars(
        insert(ShardRow).returning(ShardRow.id, sort_by_parameter_order=True),
        [share] * len(trial_ids),
    ).all()
    moves = [{"id": t, "shard_id": s} for t, s in zip(trial_ids, made, strict=True)]
    session.execute(update(TrialRow), moves)
    session.execute(update(ShardRow).where(ShardRow.id.in_(made)).values(not_before=wait))
    note = f"Split into {len(made)} shards of one trial."
    ended = {"state": ShardState.FAILED, "error": reason, "message": note, "finished_at": clock()}
    _set(session, shard_id, **ended)


def _close(session: Session, shard_id: int) -> None:
    """End a shard that has nothing left to train."""
    _set(session, shard_id, state=ShardState.DONE, progress=1.0, finished_at=clock())


def _set(session: Session, shard_id: int, **values: Any) -> None:
    session.execute(update(ShardRow).where(ShardRow.id == shard_id).values(values))
