"""From a request body to stored sweeps: presets filled in, several sweeps as one submission."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from backend.db import lock_table
from backend.models import AGENTS, StudyRow, SweepRow
from backend.schemas import DryRunRead, RunCreate, StudyCreate, SweepSubmitted
from backend.services import accounts, catalog, offers, studies, sweeps
from backend.services.accounts import Caller
from backend.services.shards import CellGrid, read_grid
from ib_core.errors import MissingData
from ib_core.sweep import SweepSpec, plan_shards, specs_of
from ib_core.sweep.request import read_body
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
    """

    sweep: SweepSubmitted
    shard_ids: list[int]


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
    # Two requests with one key, or for one name, must not both find nothing.
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
    return sweeps.open_run(session, study_id=study_id, run=run, owner_id=by.user_id)


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
