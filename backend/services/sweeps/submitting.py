"""What people do to sweeps: submit, forecast, cancel, retry."""

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from sqlalchemy import select, update
from sqlalchemy.orm import Session

from backend.db import changed_rows, clock, insert_for, insert_many
from backend.errors import Conflict, InvalidInput, NotFound, TooLarge
from backend.models import (
    AGENTS,
    DEVICES,
    LONGEST_METHOD,
    StudyRow,
    SweepRow,
    SweepTrialRow,
    TrialRow,
)
from backend.schemas import DryRunRead, SweepRead, TrialState
from backend.services import errands, offers, shards, trials, workers
from backend.services.sweeps.following import get, row_of
from backend.services.trials import RETRIABLE, UNFINISHED
from backend.settings import get_settings
from ib_core.sweep import ENGINE_VERSION, SweepSpec, TrialSpec

#: A replay trains a trial to find its break, and once more to record it.
REPLAY_RUNS = 2


@dataclass(frozen=True, slots=True)
class Submitted:
    """A stored sweep, and the new shards to announce once it is committed.

    Attributes:
        sweep: As it is now.
        shard_ids: What to announce.
        repeated: Whether an earlier request with the same idempotency key has stored it.
    """

    sweep: SweepRead
    shard_ids: list[int]
    repeated: bool = False


def submit(
    session: Session,
    *,
    study_id: int,
    spec: SweepSpec,
    body: dict[str, Any],
    owner_id: int | None,
    note: str = "",
    idempotency_key: str | None = None,
) -> Submitted:
    """Store a sweep; trials that are known are shared, the others get shards.

    Raises:
        NotFound: There is no such study.
        Conflict: The idempotency key was used before, for another body.
        TooLarge: The grid has more trials than the service takes.
        MissingData: The task's data is not on this machine.
    """
    _check(spec)
    touch(session, study_id)
    written = _insert_sweep(
        session,
        study_id=study_id,
        owner_id=owner_id,
        task=spec.task,
        device=spec.device,
        spec={**_plain(spec), **offers.carried_by(spec)},
        body=body,
        body_hash=_hash(body),
        note=note,
        idempotency_key=idempotency_key,
        total=spec.size,
        **_first_round(spec),
    )
    if written is None:
        first = _repeated(session, study_id, str(idempotency_key), _hash(body))
        return Submitted(get(session, sweep_id=first), [], repeated=True)
    place = Place(written, first=0, round=1 if spec.search else None)
    shard_ids, reused = add_trials(session, grid=shards.grid_of(spec), at=place, device=spec.device)
    session.execute(update(SweepRow).where(SweepRow.id == written).values(reused=reused))
    return Submitted(get(session, sweep_id=written), shard_ids)


@dataclass(frozen=True, slots=True)
class Place:
    """Where in a sweep trials are put: from which position on, and in which round of a search."""

    sweep_id: int
    first: int
    round: int | None


def _first_round(grid: SweepSpec | shards.CellGrid) -> dict[str, Any]:
    return {} if grid.search is None else {"round": 1, "searching": True}


def add_trials(
    session: Session, *, grid: shards.Grid, at: Place, device: str
) -> tuple[list[int], int]:
    """Put trials into a sweep, and into shards unless known; return the shards, and how many were.

    Known ones that were not recorded as the sweep wishes are replayed. The caller has locked the
    sweep's study.
    """
    known = shards.ensure_trials(session, grid=grid)
    pairs = list(zip(grid.addresses, grid.trials, strict=True))
    new = [shards.needs_training(known[address]) for address in grid.addresses]
    _insert_places(
        session,
        at,
        [(known[a].id, not is_new) for a, is_new in zip(grid.addresses, new, strict=True)],
    )
    again = [known[a].id for a in grid.addresses if known[a].state in RETRIABLE]
    shards.clear(session, trial_ids=again)
    to_train = [
        (known[a].id, trial) for (a, trial), is_new in zip(pairs, new, strict=True) if is_new
    ]
    if row_of(session, at.sweep_id).spec.get("record"):
        needs = {known[a].id: offers.needs_of([trial]) for a, trial in pairs}
        trials.want_recordings(session, needs=needs, device=device)
    shard_ids = shards.plan(session, trials=to_train, device=device)
    return shard_ids, len(grid.trials) - len(to_train)


def _insert_places(session: Session, at: Place, held: Sequence[tuple[int, bool]]) -> None:
    place = {"sweep_id": at.sweep_id, "round": at.round}
    rows = [
        {**place, "trial_id": trial_id, "position": at.first + index, "reused": reused}
        for index, (trial_id, reused) in enumerate(held)
    ]
    insert_many(session, insert_for(session, SweepTrialRow), rows)


def submit_cells(
    session: Session,
    *,
    study_id: int,
    grid: shards.CellGrid,
    body: dict[str, Any],
    owner_id: int | None,
    note: str = "",
    idempotency_key: str | None = None,
) -> Submitted:
    """Store a sweep whose cells wait for programs elsewhere; raises as `submit` does."""
    _check_size(grid)
    touch(session, study_id)
    written = _insert_sweep(
        session,
        study_id=study_id,
        owner_id=owner_id,
        task=grid.task,
        device=AGENTS,
        spec=grid.as_spec(),
        body=body,
        body_hash=_hash(body),
        note=note,
        idempotency_key=idempotency_key,
        total=grid.size,
        engine_version=None,
        **_first_round(grid),
    )
    if written is None:
        first = _repeated(session, study_id, str(idempotency_key), _hash(body))
        return Submitted(get(session, sweep_id=first), [], repeated=True)
    place = Place(written, first=0, round=1 if grid.search else None)
    add_cells(session, rows=grid.rows(written), at=place)
    return Submitted(get(session, sweep_id=written), [])


def add_cells(session: Session, *, rows: list[dict[str, Any]], at: Place) -> None:
    """Put cells into a sweep, for agents to claim."""
    insert_many(session, insert_for(session, TrialRow), rows)
    ids = trials.ids_at(session, [row["fingerprint"] for row in rows])
    order = [ids[row["fingerprint"]] for row in rows]
    _insert_places(session, at, [(trial_id, False) for trial_id in order])
    shards.plan_cells(session, trial_ids=order)


def forecast_cells(grid: shards.CellGrid) -> DryRunRead:
    """Return what submitting cells would mean; how long they take is not known here."""
    _check_size(grid)
    return DryRunRead(
        trials=_most(grid),
        at_most=grid.search is not None,
        reused=0,
        shards=grid.size,
        cost_seconds=0.0,
        learning_rates=list(grid.learning_rates),
        seeds=list(grid.seeds),
        messages=shards.obstacles([AGENTS], {}),
    )


def dry_run(session: Session, *, spec: SweepSpec) -> DryRunRead:
    """Return what submitting the sweep would mean, without storing anything."""
    _check(spec)
    grid = shards.grid_of(spec)
    states = shards.known_states(session, addresses=grid.addresses)
    new = [
        trial
        for trial, address in zip(grid.trials, grid.addresses, strict=True)
        if states.get(address, TrialState.CANCELLED) in RETRIABLE
    ]
    planned = shards.shards_for(new, device=spec.device)
    again = _to_replay(session, spec, grid, states)
    # What a trial takes alone depends on neither rate nor seed.
    alone = Counter(replace(trial, lr=1.0, seed=1) for trial in again)
    replayed = REPLAY_RUNS * sum(
        count * one.seconds
        for trial, count in alone.items()
        for one in shards.shards_for([trial], device=spec.device)
    )
    # A later round of a search trains one rate of every series and seed.
    later, first = _most(spec) - spec.size, spec.learning_rates[0]
    alike = [trial for trial in grid.trials if later and trial.lr == first]
    rounds = shards.shards_for(alike, device=spec.device)
    searched = sum(one.seconds for one in rounds) * later / max(1, len(alike))
    seconds = sum(one.seconds for one in planned) + searched + replayed
    live = workers.live_by_device(session)
    waits = shards.obstacles([spec.device], live) if planned or again or rounds else []
    return DryRunRead(
        trials=_most(spec),
        at_most=spec.search is not None,
        reused=spec.size - len(new),
        replays=len(again),
        shards=len(planned) + len(again),
        cost_seconds=seconds * shards.slowdown(session),
        memory_bytes=max((shard.memory_bytes for shard in [*planned, *rounds]), default=0),
        learning_rates=list(spec.learning_rates),
        seeds=list(spec.seeds),
        messages=[*waits, *_missing(session, [*new, *again, *alike])],
    )


def _to_replay(
    session: Session, spec: SweepSpec, grid: shards.Grid, states: Mapping[str, TrialState]
) -> list[TrialSpec]:
    """Return the known trials of which the sweep wishes a recording that is not there."""
    done = [a for a in grid.addresses if spec.record and states.get(a) in trials.COUNTED]
    ids = trials.ids_at(session, done)
    lacking = set(trials.unrecorded(session, dict.fromkeys(ids.values(), spec.record)))
    return [t for a, t in zip(grid.addresses, grid.trials, strict=True) if ids.get(a) in lacking]


def _missing(session: Session, new: Sequence[TrialSpec]) -> list[str]:
    """Return what nobody who lives has of what these trials need."""
    needs = {offers.needs_of([trial]) for trial in {trial.method: trial for trial in new}.values()}
    found = offers.missing(session, needs=[one for one in needs if one])
    return [one.sentence for one in found]


def cancel(session: Session, *, sweep_id: int) -> SweepRead:
    """Stop a sweep: waiting trials and replays at once, running ones when their worker next asks.

    A trial that another sweep still wants goes on. Cancelling what has ended changes nothing.
    """
    row = row_of(session, sweep_id)
    recorded = errands.replays_of(session, sweep_ids=[sweep_id])
    busy = [*recorded, *_trial_ids(session, sweep_id, UNFINISHED)]
    if not row.searching and not busy:
        return get(session, sweep_id=sweep_id)
    touch(session, row.study_id)
    trials.lock(session, busy)
    open_one = (SweepRow.id == sweep_id, SweepRow.cancelled_at.is_(None))
    session.execute(update(SweepRow).where(*open_one).values(cancelled_at=clock()))
    waiting = _trial_ids(session, sweep_id, (TrialState.QUEUED,))
    shards.cancel_unwanted(session, waiting)
    shards.close_empty(session, shard_ids=_shard_ids(session, waiting))
    errands.call_off_replays(session, trial_ids=recorded)
    return get(session, sweep_id=sweep_id)


def retry(session: Session, *, sweep_id: int) -> Submitted:
    """Train a sweep's failed and cancelled trials again; nothing else is trained twice.

    Raises:
        Conflict: None of its trials failed or was cancelled.
    """
    row = row_of(session, sweep_id)
    if row.device == AGENTS and row.body.get("live"):
        raise Conflict(f"Sweep {sweep_id} was logged live; only its own programs can repeat it.")
    touch(session, row.study_id)
    trials.lock(session, _trial_ids(session, sweep_id, RETRIABLE))
    again = _trial_ids(session, sweep_id, RETRIABLE)
    cancelled = (SweepRow.id == sweep_id, SweepRow.cancelled_at.is_not(None))
    cleared = changed_rows(session, update(SweepRow).where(*cancelled).values(cancelled_at=None))
    if not again and not cleared:
        raise Conflict(f"Sweep {sweep_id} has no failed or cancelled trials to retry.")
    if cleared:
        errands.want_replays_again(session, sweep_id=sweep_id, device=row.device)
    shards.clear(session, trial_ids=again)
    # A search that stood still for want of these goes on with them.
    searched = update(SweepRow).where(SweepRow.id == sweep_id, SweepRow.round.is_not(None))
    session.execute(searched.values(searching=True))
    if row.device == AGENTS:
        shards.plan_cells(session, trial_ids=again)
        return Submitted(get(session, sweep_id=sweep_id), [])
    shard_ids = shards.plan_again(session, trial_ids=again, device=row.device)
    return Submitted(get(session, sweep_id=sweep_id), shard_ids)


def _insert_sweep(session: Session, **values: Any) -> int | None:
    """Return the new sweep's id; None if its idempotency key was used before."""
    common = {"reused": 0, "imported": False, "engine_version": ENGINE_VERSION}
    insert = insert_for(session, SweepRow).values(common | values)
    if values["idempotency_key"] is not None:
        insert = insert.on_conflict_do_nothing(index_elements=["study_id", "idempotency_key"])
    return session.scalars(insert.returning(SweepRow.id)).one_or_none()


def _repeated(session: Session, study_id: int, key: str, body_hash: str) -> int:
    query = select(SweepRow.id, SweepRow.body_hash)
    first_id, first_hash = session.execute(
        query.where(SweepRow.study_id == study_id, SweepRow.idempotency_key == key)
    ).one()
    if first_hash != body_hash:
        raise Conflict(
            f"The idempotency key {key!r} was used before, for another sweep ({first_id}).",
            field="Idempotency-Key",
            hint="Send a new key with a new body.",
        )
    return int(first_id)


def touch(session: Session, study_id: int) -> None:
    """Note that a study has changed; nobody else can change its sweeps until the commit."""
    changed = update(StudyRow).where(StudyRow.id == study_id).values(updated_at=clock())
    if changed_rows(session, changed) == 0:
        raise NotFound("study", study_id)


def _trial_ids(session: Session, sweep_id: int, states: Iterable[TrialState]) -> Sequence[int]:
    query = (
        select(TrialRow.id)
        .join(SweepTrialRow, SweepTrialRow.trial_id == TrialRow.id)
        .where(SweepTrialRow.sweep_id == sweep_id, TrialRow.state.in_(tuple(states)))
        .order_by(SweepTrialRow.position)
    )
    return session.scalars(query).all()


def _shard_ids(session: Session, trial_ids: Sequence[int]) -> list[int]:
    found = {
        shard_id
        for chunk in trials.chunks(trial_ids)
        for shard_id in session.scalars(select(TrialRow.shard_id).where(TrialRow.id.in_(chunk)))
    }
    return sorted(shard_id for shard_id in found if shard_id is not None)


def _check(spec: SweepSpec) -> None:
    known = [device for device in DEVICES if device != AGENTS]
    if spec.device not in known:
        told = f"A sweep's device is one of {', '.join(known)}; got {spec.device!r}."
        raise InvalidInput(told, field="device")
    if long := [name for name in spec.methods if len(name) > LONGEST_METHOD]:
        raise InvalidInput(
            f"A method with its options has at most {LONGEST_METHOD} characters; "
            f"{long[0][:40]}... has {len(long[0])}.",
            field="methods",
        )
    _check_size(spec)


def _most(grid: SweepSpec | shards.CellGrid) -> int:
    """Return how many trials a sweep may come to: of a search, no more than it can need."""
    if (search := grid.search) is None:
        return grid.size
    return min(search.most, grid.size // len(grid.learning_rates) * search.longest)


def _check_size(grid: SweepSpec | shards.CellGrid) -> None:
    most, size = get_settings().max_trials, _most(grid)
    if size > most:
        raise TooLarge(
            f"A sweep holds at most {most:,} trials; this one has {size:,}.",
            field="learning_rates",
            hint="Split it into several sweeps of one study.",
        )


def _plain(spec: SweepSpec) -> dict[str, Any]:
    plain: dict[str, Any] = json.loads(json.dumps(spec.as_dict(), allow_nan=False))
    return plain


def _hash(body: dict[str, Any]) -> str:
    canonical = json.dumps(body, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(canonical.encode()).hexdigest()
