"""Runs that are logged as they happen: a cell each, made in the hands of the program that asks.

All runs of a study on one task are in one sweep, which grows; a run is known by the key that its
program chose, so that whatever is sent again finds the same one.
"""

import hashlib
from typing import Any

from sqlalchemy import delete, func, select, update
from sqlalchemy.orm import Session

from backend.db import clock, insert_for
from backend.errors import InvalidInput
from backend.models import AGENTS, CurveRow, ShardRow, ShardState, SweepRow, SweepTrialRow, TrialRow
from backend.schemas import RunCreate
from backend.services import shards
from backend.services.trials import RETRIABLE, UNFINISHED
from backend.settings import get_settings
from ib_core.errors import IBError
from ib_core.sweep.request import check

#: No key of a caller's has a space.
GROWS = "runs of "
MOST_RUNS = 20_000


def open_run(session: Session, *, study_id: int, run: RunCreate, owner_id: int | None) -> int:
    """Return the trial of a run, made or found; what had ended without a result goes on.

    A run whose program was silent for a lease has failed, until the same program sends what it
    kept meanwhile.
    """
    _check_settings(run)
    sweep_id = _sweep_of(session, study_id, run, owner_id)
    address = shards.address("run", study_id, run.key)
    # The sweep's lock keeps other openings away; a trial's before its shard's could deadlock.
    found = session.execute(
        select(TrialRow.id, TrialRow.state).where(TrialRow.fingerprint == address)
    ).one_or_none()
    if found is None:
        trial_id = _add(session, sweep_id, run, address)
        _hold(session, trial_id, run.agent)
    elif found.state in RETRIABLE:
        trial_id = found.id
        shards.clear(session, trial_ids=[trial_id])
        _hold(session, trial_id, run.agent)
    else:
        trial_id = found.id
        if found.state in UNFINISHED:
            _renew(session, trial_id)
    return int(trial_id)


def _check_settings(run: RunCreate) -> None:
    try:
        check("settings", run.settings)
    except IBError as error:
        raise InvalidInput(error.message, field="settings") from None


def _sweep_of(session: Session, study_id: int, run: RunCreate, owner_id: int | None) -> int:
    """Return the sweep of a study's runs on this task, locked, and made if need be."""
    key = GROWS + hashlib.sha256(run.task.encode()).hexdigest()
    body: dict[str, Any] = {"where": AGENTS, "task": run.task, "live": True}
    insert = insert_for(session, SweepRow).values(
        study_id=study_id,
        owner_id=owner_id,
        task=run.task,
        device=AGENTS,
        spec={**body, "methods": [], "learning_rates": [], "seeds": [], "clips": []},
        body=body,
        body_hash=key[-64:],
        note="Logged live.",
        idempotency_key=key,
        total=1,  # of the run that is about to be added
        reused=0,
        imported=False,
    )
    session.execute(insert.on_conflict_do_nothing(index_elements=["study_id", "idempotency_key"]))
    same = (SweepRow.study_id == study_id, SweepRow.idempotency_key == key)
    return session.scalars(select(SweepRow.id).where(*same).with_for_update()).one()


def _add(session: Session, sweep_id: int, run: RunCreate, address: str) -> int:
    held = select(func.count()).where(SweepTrialRow.sweep_id == sweep_id)
    position = session.scalar(held) or 0
    if position >= MOST_RUNS:
        raise InvalidInput(f"A study holds at most {MOST_RUNS:,} live runs of a task.", field="key")
    row = shards.columns_of(run.task, run.method, run.lr, run.seed, run.settings)
    row |= {"clip": run.clip, "epochs": run.epochs, "batch_size": run.batch_size}
    insert = insert_for(session, TrialRow).values({**row, "fingerprint": address})
    trial_id = session.scalars(insert.returning(TrialRow.id)).one()
    place = {"sweep_id": sweep_id, "trial_id": trial_id, "position": position, "reused": False}
    session.execute(insert_for(session, SweepTrialRow).values(place))
    row_of = session.get_one(SweepRow, sweep_id, populate_existing=True)
    row_of.total = position + 1
    row_of.spec = _wider(row_of.spec, run)
    session.flush()
    return int(trial_id)


def _wider(spec: dict[str, Any], run: RunCreate) -> dict[str, Any]:
    """Return the grid that holds this run too."""
    mine = {"methods": run.method, "learning_rates": run.lr, "seeds": run.seed, "clips": run.clip}
    wider = {
        name: sorted({*spec[name], value}, key=lambda one: (one is not None, one))
        for name, value in mine.items()
    }
    return {**spec, **wider, "epochs": max(run.epochs, spec.get("epochs", 1))}


def _hold(session: Session, trial_id: int, agent: str) -> None:
    """Put a run into its program's hands; nobody else may claim it, however it ends."""
    shards.plan_cells(session, trial_ids=[trial_id])
    shard_id = session.scalars(select(TrialRow.shard_id).where(TrialRow.id == trial_id)).one()
    assert shard_id is not None
    # All attempts but this one are used up: a silent run fails instead of waiting for another.
    used = update(ShardRow).where(ShardRow.id == shard_id)
    session.execute(used.values(attempts=get_settings().max_attempts - 1))
    shards.claim(session, shard_id=shard_id, worker=agent)
    session.execute(delete(CurveRow).where(CurveRow.trial_id == trial_id))


def _renew(session: Session, trial_id: int) -> None:
    home = select(TrialRow.shard_id).where(TrialRow.id == trial_id).scalar_subquery()
    until = clock(get_settings().lease_seconds)
    mine = (ShardRow.id == home, ShardRow.state == ShardState.RUNNING)
    session.execute(update(ShardRow).where(*mine).values(lease_until=until))
