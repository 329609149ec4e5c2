"""Shards: leased to one worker at a time, by compare-and-set and by the database's clock."""

import secrets
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, case, literal, select, update
from sqlalchemy.orm import Session

from backend.db import changed_rows, clock, database_time
from backend.models import AGENTS, ShardRow, ShardState, TrialRow
from backend.schemas import TrialState
from backend.services.shards.planning import (
    cancel_unwanted_in,
    close_empty,
    is_ready,
    put_back,
    try_again,
)
from backend.services.trials import (
    SETTINGS,
    UNFINISHED,
    chunks,
    curve_row,
    insert_or_replace_rows,
    is_wanted,
    result_columns,
    spec_of,
    store_recordings,
    want_recordings,
    wishes,
)
from backend.settings import get_settings
from ib_core.sweep import CurvePoint, TrialResult

#: Leases of cells are below this: every JSON parser reads such a number as it is.
MOST_LEASES = 2**53


@dataclass(frozen=True, slots=True)
class ClaimedTrial:
    """A trial to train."""

    id: int
    fingerprint: str
    spec: dict[str, Any]  # what `TrialSpec.from_dict` reads
    record: tuple[str, ...] = ()  # what sweeps want recorded of it


@dataclass(frozen=True, slots=True)
class Claim:
    """A worker's lease on a shard; `lease` tells it from every other claim of the same shard."""

    shard_id: int
    lease: int
    attempt: int
    worker: str
    device: str
    seconds: float
    trials: tuple[ClaimedTrial, ...]


def claim(
    session: Session, *, shard_id: int, worker: str, offers: Collection[str] = ()
) -> Claim | None:
    """Lease a waiting shard to this worker; None if there is nothing to do for it.

    Args:
        session: A session that may write.
        shard_id: The shard.
        worker: Who asks.
        offers: Keys of what that worker brings along: nobody else may train what needs them.
    """
    needs = session.scalar(select(ShardRow.needs).where(ShardRow.id == shard_id))
    if needs and not set(needs.split(",")) <= set(offers):
        return None
    won = session.execute(
        update(ShardRow)
        .where(
            ShardRow.id == shard_id,
            ShardRow.state == ShardState.QUEUED,
            is_ready(),
        )
        .values(
            state=ShardState.RUNNING,
            worker=worker,
            lease=_next_lease(),
            attempts=ShardRow.attempts + 1,
            lease_until=clock(get_settings().lease_seconds),
            started_at=clock(),
            progress=0.0,
            message=None,
        )
        .returning(ShardRow.lease, ShardRow.attempts, ShardRow.device, ShardRow.seconds)
    ).one_or_none()
    if won is None:
        return None
    cancel_unwanted_in(session, shard_id=shard_id)
    trials = _start_trials(session, shard_id)
    taken = Claim(shard_id, won.lease, won.attempts, worker, won.device, won.seconds, trials)
    if not trials:
        finish(session, claim=taken)
        return None
    return taken


def _next_lease() -> ColumnElement[int]:
    """Return what tells a claim from all others of its shard.

    A worker is ours, and counting is enough. A cell's lease is all that proves whose it is: one
    that could be guessed would let a program report on a cell that another one trains.
    """
    secret = literal(1 + secrets.randbelow(MOST_LEASES - 1), ShardRow.lease.type)
    return case((ShardRow.device == AGENTS, secret), else_=ShardRow.lease + 1)


def _start_trials(session: Session, shard_id: int) -> tuple[ClaimedTrial, ...]:
    waiting = (TrialRow.shard_id == shard_id, TrialRow.state == TrialState.QUEUED)
    # Not by RETURNING: there SQLite gives 3 for a stored 3.0, which is another fingerprint.
    columns = (getattr(TrialRow, name) for name in SETTINGS)
    query = select(TrialRow.id, TrialRow.fingerprint, *columns).where(*waiting)
    found = session.execute(query.order_by(TrialRow.id).with_for_update()).all()
    session.execute(
        update(TrialRow)
        .where(*waiting)
        .values(state=TrialState.RUNNING, started_at=clock(), attempts=TrialRow.attempts + 1)
    )
    wanted = wishes(session, trial_ids=[row.id for row in found])
    return tuple(
        ClaimedTrial(row.id, row.fingerprint, spec_of(row), tuple(sorted(wanted.get(row.id, ()))))
        for row in found
    )


def heartbeat(
    session: Session, *, claim: Claim, progress: float = 0.0, message: str | None = None
) -> bool:
    """Renew the lease; False if the shard is another worker's now."""
    renewed = {
        "lease_until": clock(get_settings().lease_seconds),
        "progress": min(max(progress, 0.0), 1.0),
        "message": message,
    }
    return changed_rows(session, update(ShardRow).where(*_held(claim)).values(renewed)) == 1


def wanted(session: Session, *, claim: Claim) -> set[int]:
    """Return the trials that the worker should go on with."""
    mine = (TrialRow.shard_id == claim.shard_id, TrialRow.state == TrialState.RUNNING)
    return set(session.scalars(select(TrialRow.id).where(*mine, is_wanted())))


def drop_unwanted(session: Session, *, claim: Claim) -> set[int]:
    """Cancel the trials that nobody wants any more; return those to go on with."""
    cancel_unwanted_in(session, shard_id=claim.shard_id)
    return wanted(session, claim=claim)


def report(
    session: Session,
    *,
    claim: Claim,
    points: Mapping[int, list[CurvePoint]] | None = None,
    finished: Mapping[int, TrialResult] | None = None,
) -> set[int]:
    """Store curves so far and finished trials, by trial id; return the trials finished by this.

    A result counts once: the first to arrive for an unfinished trial, even from a worker that
    lost its lease meanwhile, since a fingerprint has only one result. Later ones change nothing.
    """
    held = _holds(session, claim)
    stored = _store_results(session, claim, finished or {})
    if stored and not held:
        close_empty(session, shard_ids=_homes(session, stored))
    live = {id: so_far for id, so_far in (points or {}).items() if id not in (finished or {})}
    if live and held:
        running = (TrialRow.shard_id == claim.shard_id, TrialRow.state == TrialState.RUNNING)
        mine = _locked_ids(session, live, *running)
        _store_curves(session, {id: live[id] for id in mine})
    return stored


def _store_results(session: Session, claim: Claim, finished: Mapping[int, TrialResult]) -> set[int]:
    addresses = {trial.id: trial.fingerprint for trial in claim.trials}
    ours = {id: result for id, result in finished.items() if id in addresses}
    unfinished = _locked_ids(session, ours, TrialRow.state.in_(UNFINISHED))
    if not unfinished:
        return set()
    now = database_time(session)
    rows = []
    for id in unfinished:
        columns = result_columns(ours[id])
        if ours[id].fingerprint != addresses[id]:
            columns |= {
                "state": TrialState.FAILED,
                "error": "The data or the engine changed after this trial was submitted; "
                "submit the sweep again.",
            }
        rows.append({"id": id, "finished_at": now, **columns})
    session.execute(update(TrialRow), rows)
    _store_curves(session, {id: list(ours[id].curve) for id in unfinished})
    recorded = {id: found for id in unfinished if (found := ours[id].recording) is not None}
    store_recordings(session, recorded)
    if claim.device != AGENTS:  # a sweep that came while they trained may want more of them
        needs = session.scalar(select(ShardRow.needs).where(ShardRow.id == claim.shard_id))
        want_recordings(session, needs=dict.fromkeys(unfinished, needs), device=claim.device)
    return set(unfinished)


def _locked_ids(
    session: Session, ids: Mapping[int, Any], *conditions: ColumnElement[bool]
) -> list[int]:
    """Return which of the trials meet the conditions, and keep them from changing."""
    found: list[int] = []
    for chunk in chunks(sorted(ids)):
        query = select(TrialRow.id).where(TrialRow.id.in_(chunk), *conditions).order_by(TrialRow.id)
        found.extend(session.scalars(query.with_for_update()))
    return found


def _homes(session: Session, trial_ids: set[int]) -> list[int]:
    """Return the shards that trials wait in now, wherever they were trained."""
    found: set[int] = set()
    for chunk in chunks(sorted(trial_ids)):
        homes = session.scalars(select(TrialRow.shard_id).where(TrialRow.id.in_(chunk)))
        found.update(home for home in homes if home is not None)
    return sorted(found)


def _store_curves(session: Session, by_trial: Mapping[int, list[CurvePoint]]) -> None:
    rows = [curve_row(id, points) for id, points in by_trial.items() if points]
    if rows:
        insert_or_replace_rows(session, rows)


def finish(session: Session, *, claim: Claim) -> bool:
    """End a shard whose trials have all been reported; False if the lease was lost."""
    if not _holds(session, claim):
        return False
    missing = drop_unwanted(session, claim=claim)
    if missing:
        error = f"The engine ended without a result for {len(missing)} of {len(claim.trials)}."
        try_again(session, shard_id=claim.shard_id, attempts=claim.attempt, error=error)
        return True
    ended = {"state": ShardState.DONE, "progress": 1.0, "message": None, "finished_at": clock()}
    return changed_rows(session, update(ShardRow).where(*_held(claim)).values(ended)) == 1


def release(session: Session, *, claim: Claim) -> bool:
    """Give the shard back because the worker stops; False if the lease was lost."""
    if not _holds(session, claim):
        return False
    put_back(session, shard_id=claim.shard_id)
    return True


def fail(session: Session, *, claim: Claim, error: str, split: bool = True) -> bool:
    """Give the shard back because training broke; False if the lease was lost.

    Args:
        session: A session that may write.
        claim: The lease.
        error: Why, in a sentence.
        split: Whether one trial alone may be to blame, so that the last attempt is made apart.
    """
    if not _holds(session, claim):
        return False
    try_again(session, shard_id=claim.shard_id, attempts=claim.attempt, error=error, split=split)
    return True


def abandon(session: Session, *, shard_id: int, worker: str, error: str) -> bool:
    """Give back the shard of a training process that has died; False if it held none."""
    row = (
        select(ShardRow.attempts)
        .where(ShardRow.id == shard_id)
        .where(ShardRow.state == ShardState.RUNNING, ShardRow.worker == worker)
    )
    attempts = session.scalar(row.with_for_update())
    if attempts is None:
        return False
    try_again(session, shard_id=shard_id, attempts=attempts, error=error)
    return True


def _holds(session: Session, claim: Claim) -> bool:
    """Return whether the lease is still this claim's; nobody can take it until the commit."""
    row = select(ShardRow.state, ShardRow.lease).where(ShardRow.id == claim.shard_id)
    found = session.execute(row.with_for_update()).one_or_none()
    return found is not None and tuple(found) == (ShardState.RUNNING, claim.lease)


def _held(claim: Claim) -> tuple[ColumnElement[bool], ...]:
    return (
        ShardRow.id == claim.shard_id,
        ShardRow.state == ShardState.RUNNING,
        ShardRow.lease == claim.lease,
    )
