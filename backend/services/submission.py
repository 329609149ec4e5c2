"""From a request to what is stored: sweeps and presets submitted, runs opened that log as they go.

All live runs of a study on one task are in one sweep, which grows; a run is known by the key that
its program chose, so that whatever is sent again finds the same one.
"""

import hashlib
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

from sqlalchemy import delete, func, select, update
from sqlalchemy.orm import Session

from backend.db import clock, insert_for, lock_table
from backend.errors import InvalidInput
from backend.models import (
    AGENTS,
    LIVE_KEY,
    CurveRow,
    ShardRow,
    ShardState,
    StudyRow,
    SweepRow,
    SweepTrialRow,
    TrialRow,
)
from backend.schemas import DryRunRead, RunCreate, StudyCreate, SweepSubmitted
from backend.services import accounts, catalog, offers, shards, studies, sweeps
from backend.services.accounts import Caller
from backend.services.shards import CellGrid, read_grid
from backend.services.trials import RETRIABLE, UNFINISHED
from backend.settings import get_settings
from ib_core.errors import IBError, MissingData
from ib_core.sweep import SweepSpec, plan_shards, specs_of
from ib_core.sweep.request import check, read_body
from ib_core.tasks import find_task


@dataclass(frozen=True, slots=True)
class Request:
    """A body that was read: in canonical form, and what it asks to be trained."""

    body: dict[str, Any]
    specs: tuple[SweepSpec, ...] = ()
    cells: CellGrid | None = None  # in place of specs: programs elsewhere train it
    known: offers.Known = field(default_factory=offers.Known)  # what it was read with


@dataclass(frozen=True, slots=True)
class Submission:
    """What a request stored, and the new shards to announce once it is committed.

    Attributes:
        sweep: The answer.
        shard_ids: What to announce.
        records: Whether replays may have been asked for.
    """

    sweep: SweepSubmitted
    shard_ids: list[int]
    records: bool = False


def submit(
    session: Session,
    *,
    study_id: int,
    request: Request,
    by: Caller,
    idempotency_key: str | None = None,
) -> Submission:
    """Store the sweeps a request asks for, all or none; `prepare` has read it.

    Of a preset, sweeps whose data is not on this machine are left out and named, unless that
    would leave nothing.
    """
    stored: list[sweeps.Submitted] = []
    missing: list[MissingData] = []
    if request.cells is not None:
        stored.append(
            sweeps.submit_cells(
                session,
                study_id=study_id,
                grid=request.cells,
                body=request.body,
                owner_id=by.user_id,
                note=request.body.get("note", ""),
                idempotency_key=idempotency_key,
            )
        )
    for spec in request.specs:
        # Each sweep of a preset needs a key of its own; the first keeps the caller's.
        key = f"{idempotency_key}#{len(stored)}" if idempotency_key and stored else idempotency_key
        try:
            with request.known.told():
                found = sweeps.submit(
                    session,
                    study_id=study_id,
                    spec=spec,
                    body=request.body,
                    owner_id=by.user_id,
                    note=request.body.get("note", ""),
                    idempotency_key=key,
                )
        except MissingData as error:
            missing.append(error)
        else:
            stored.append(found)
    if not stored:
        raise missing[0]
    if new := [one.sweep.id for one in stored if not one.repeated]:
        accounts.audit(session, by=by, action="sweep.submit", study_id=study_id, sweeps=new)
    return Submission(
        sweep=SweepSubmitted(
            **stored[0].sweep.model_dump(exclude={"messages"}),
            messages=[*stored[0].sweep.messages, *_left_out(missing)],
            sweep_ids=[one.sweep.id for one in stored],
        ),
        shard_ids=[shard for one in stored for shard in one.shard_ids],
        records=any(spec.record for spec in request.specs),
    )


def submit_into(
    session: Session,
    *,
    study: StudyCreate,
    request: Request,
    by: Caller,
    reuse: bool = False,
    idempotency_key: str | None = None,
) -> Submission:
    """Store the sweeps a request asks for in a study of that name; both, or neither.

    Args:
        session: A session that may write.
        study: The study to make.
        request: From `prepare`.
        by: Who asks.
        reuse: Take the newest study of that name that the caller may change, if there is one.
        idempotency_key: The same key again finds the study that it made the first time.
    """
    if idempotency_key or reuse:  # two with one key, or for one name, must not both find nothing
        lock_table(session, StudyRow)
    study_id = _study_of(session, idempotency_key, by) if idempotency_key else None
    if study_id is None and reuse:
        study_id = named_study(session, name=study.name, by=by)
    if study_id is None:
        study_id = studies.create(session, payload=study, owner_id=by.user_id).id
        accounts.audit(session, by=by, action="study.create", study_id=study_id, name=study.name)
    return submit(
        session, study_id=study_id, request=request, by=by, idempotency_key=idempotency_key
    )


def open_run(session: Session, *, run: RunCreate, by: Caller) -> int:
    """Return the trial of a run that is logged live, in the study it names, made if need be."""
    if isinstance(run.study, int):
        study_id: int | None = run.study
        by.check_owner(studies.owner_of(session, study_id=run.study))
    else:
        lock_table(session, StudyRow)  # two runs that begin at once share the study
        study_id = named_study(session, name=run.study, by=by)
    if study_id is None:
        payload = StudyCreate(name=str(run.study))
        study_id = studies.create(session, payload=payload, owner_id=by.user_id).id
        accounts.audit(session, by=by, action="study.create", study_id=study_id, name=payload.name)
    return _open_in(session, study_id=study_id, run=run, owner_id=by.user_id)


def _study_of(session: Session, key: str, by: Caller) -> int | None:
    """Return the study into which a caller submitted with this key before."""
    same = (SweepRow.idempotency_key == key, SweepRow.owner_id.is_not_distinct_from(by.user_id))
    return session.scalars(select(SweepRow.study_id).where(*same).limit(1)).first()


def named_study(session: Session, *, name: str, by: Caller) -> int | None:
    """Return the newest study of a name that a caller may change."""
    query = select(StudyRow.id, StudyRow.owner_id).where(
        StudyRow.name == name, StudyRow.archived_at.is_(None)
    )
    found = session.execute(query.order_by(StudyRow.id.desc())).all()
    return next((study_id for study_id, owner in found if by.may_change(owner)), None)


def prepare(body: Mapping[str, Any], known: offers.Known | None = None) -> Request:
    """Read a body, and do everything that takes long the first time.

    To be called before the transaction: hashing a data set or measuring this machine's speed
    inside it would keep every other writer waiting.

    Args:
        body: As it came.
        known: What it may name besides the catalogue.

    Raises:
        IBError: With one sentence that names the setting and what would work.
    """
    read = read_body(body)
    if read.get("where") == AGENTS:
        return Request(read, cells=read_grid(read))
    known = known or offers.Known(body)
    with known.told():
        request = Request(read, specs_of(known.body), known=known)
        offers.check(request.specs)
        by_dataset = {find_task(spec.task).dataset: spec for spec in request.specs}
        catalog.prepare_cards(by_dataset)
        for spec in by_dataset.values():
            with suppress(MissingData):  # storing will say so, or leave it out
                find_task(spec.task).data_hash()
                plan_shards(replace(spec, seeds=spec.seeds[:1]).expand()[:1])
    return request


def forecast(session: Session, *, body: Mapping[str, Any]) -> DryRunRead:
    """Return what submitting a body would mean, without storing anything."""
    read = read_body(body)
    if read.get("where") == AGENTS:
        return sweeps.forecast_cells(read_grid(read))
    known = offers.known_to(session, body)
    with known.told():
        return _forecast(session, known.body)


def _forecast(session: Session, body: Mapping[str, Any]) -> DryRunRead:
    forecasts: list[DryRunRead] = []
    missing: list[MissingData] = []
    specs = specs_of(body)
    offers.check(specs)
    catalog.prepare_cards(find_task(spec.task).dataset for spec in specs)
    for spec in specs:
        try:
            forecasts.append(sweeps.dry_run(session, spec=spec))
        except MissingData as error:
            missing.append(error)
    if not forecasts:
        raise missing[0]
    return DryRunRead(
        trials=sum(one.trials for one in forecasts),
        at_most=any(one.at_most for one in forecasts),
        reused=sum(one.reused for one in forecasts),
        replays=sum(one.replays for one in forecasts),
        shards=sum(one.shards for one in forecasts),
        cost_seconds=sum(one.cost_seconds for one in forecasts),
        memory_bytes=max(one.memory_bytes for one in forecasts),
        sweeps=len(forecasts),
        learning_rates=sorted({lr for one in forecasts for lr in one.learning_rates}),
        seeds=sorted({seed for one in forecasts for seed in one.seeds}),
        messages=[
            *dict.fromkeys(message for one in forecasts for message in one.messages),
            *_left_out(missing),
        ],
    )


def _left_out(missing: Sequence[MissingData]) -> list[str]:
    if not missing:
        return []
    return [f"{len(missing)} sweeps left out for want of data, the first: {missing[0].message}"]


# --- A run that is logged as it happens: a cell, made in the hands of the program that asks


MOST_RUNS = 20_000


def _open_in(session: Session, *, study_id: int, run: RunCreate, owner_id: int | None) -> int:
    """Return the trial of a run, made or found; what had ended without a result goes on.

    A run whose program was silent for a lease has failed, until the same program sends what it
    kept meanwhile.
    """
    _check_settings(run)
    sweep_id, cancelled = _sweep_of(session, study_id, run, owner_id)
    address = shards.address("run", study_id, run.key)
    # The sweep's lock keeps other openings away; a trial's before its shard's could deadlock.
    found = session.execute(
        select(TrialRow.id, TrialRow.state, TrialRow.task).where(TrialRow.fingerprint == address)
    ).one_or_none()
    if found is not None and found.task != run.task:  # nor is there a sweep of the other task then
        raise InvalidInput(
            f"The run {run.key} is of the task {found.task}, not of {run.task}.", field="key"
        )
    if found is None:
        turn = 0
        while cancelled:  # that was said of the runs there were then
            turn += 1
            sweep_id, cancelled = _sweep_of(session, study_id, run, owner_id, turn)
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


def _sweep_of(
    session: Session, study_id: int, run: RunCreate, owner_id: int | None, turn: int = 0
) -> tuple[int, bool]:
    """Return a sweep of a study's runs on this task, locked, and whether it was cancelled.

    It is made if need be; a later turn is another sweep.
    """
    named = f"{run.task}\n{turn}" if turn else run.task
    key = LIVE_KEY + hashlib.sha256(named.encode()).hexdigest()
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
    columns = select(SweepRow.id, SweepRow.cancelled_at)
    sweep_id, cancelled_at = session.execute(columns.where(*same).with_for_update()).one()
    return sweep_id, cancelled_at is not None


def _add(session: Session, sweep_id: int, run: RunCreate, address: str) -> int:
    held = select(func.count()).where(SweepTrialRow.sweep_id == sweep_id)
    position = session.scalar(held) or 0
    if position >= MOST_RUNS:
        raise InvalidInput(f"A study holds at most {MOST_RUNS:,} live runs of a task.", field="key")
    row = shards.columns_of(run.task, run.method, run.lr, run.seed, run.settings or {})
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
