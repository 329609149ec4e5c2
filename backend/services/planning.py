"""Which trials a sweep still needs, and the shards that will train them."""

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass

from sqlalchemy import delete, insert, select, update
from sqlalchemy.orm import Session

from backend.db import insert_for, insert_many
from backend.models import CurveRow, ShardRow, TrialRow
from backend.schemas import TrialState
from backend.services.progress import RETRIABLE
from backend.services.requeue import WAITING
from backend.services.results import CLEARED
from backend.services.trials import SPEC_FIELDS, chunks, spec_of
from ib_core.datasets import data_hash
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


@dataclass(frozen=True, slots=True)
class Grid:
    """A sweep's trials with their addresses, in the order of the grid."""

    trials: tuple[TrialSpec, ...]
    addresses: tuple[str, ...]
    data_hash: str


def address(spec: SweepSpec) -> Grid:
    """Return the sweep's trials and their addresses; the data must be there to have a hash."""
    data = data_hash(find_task(spec.task).dataset)
    trials = tuple(spec.expand())
    return Grid(trials, tuple(fingerprint(trial, data) for trial in trials), data)


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
    options = {given: asdict(given) for given in {trial.options for trial in grid.trials}}
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
    planned = forecast([spec for _, spec in trials], device=device)
    rows = [
        {
            **WAITING,
            "device": device,
            "trials": len(shard.indices),
            "seconds": shard.seconds,
            "memory_bytes": shard.memory_bytes,
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


def forecast(trials: Sequence[TrialSpec], *, device: str) -> list[PlannedShard]:
    """Return the shards the trials would make; `auto` is forecast as the processor's."""
    return plan_shards(trials, device="cuda" if device == "cuda" else "cpu") if trials else []


def plan_again(session: Session, *, trial_ids: Sequence[int], device: str = "auto") -> list[int]:
    """Put trials that have lost their shard into new ones."""
    return plan(session, trials=specs(session, trial_ids=trial_ids), device=device)


def specs(session: Session, *, trial_ids: Sequence[int]) -> list[tuple[int, TrialSpec]]:
    """Return what is to be trained, by trial id."""
    columns = [getattr(TrialRow, name) for name in SPEC_FIELDS]
    return [
        (row.id, TrialSpec.from_dict(spec_of(row)))
        for chunk in chunks(trial_ids)
        for row in session.execute(select(TrialRow.id, *columns).where(TrialRow.id.in_(chunk)))
    ]
