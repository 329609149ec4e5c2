"""From a request body to stored sweeps: presets filled in, several sweeps as one submission."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from sqlalchemy.orm import Session

from backend.errors import InvalidInput
from backend.schemas import DryRunRead, RateGrid, SweepCreate, SweepSubmitted
from backend.services import data_cards, studies, sweeps
from ib_core.datasets import data_hash
from ib_core.errors import MissingData, lookup
from ib_core.sweep import PRESETS, SweepSpec, count_seeds, log_grid, plan_shards
from ib_core.tasks import find_task

#: A preset is a study of given tasks and methods; everything else may be changed beside it.
DECIDED_BY_PRESET = ("task", "methods")


@dataclass(frozen=True, slots=True)
class Submission:
    """What a request stored, and the new shards to announce once it is committed.

    Attributes:
        sweep: The answer.
        shard_ids: What to announce.
        new_sweep_ids: Sweeps that no earlier request with the same idempotency key has stored.
    """

    sweep: SweepSubmitted
    shard_ids: list[int]
    new_sweep_ids: list[int]


def submit(
    session: Session,
    *,
    study_id: int,
    body: SweepCreate,
    specs: Sequence[SweepSpec],
    owner_id: int | None,
    idempotency_key: str | None = None,
) -> Submission:
    """Store the sweeps a body asks for, all or none; `prepare` has read them from it.

    Of a preset, sweeps whose data is not on this machine are left out and named, unless that
    would leave nothing.
    """
    sent = body.model_dump(mode="json", by_alias=True, exclude_unset=True)
    stored: list[sweeps.Submitted] = []
    missing: list[MissingData] = []
    for spec in specs:
        # Each sweep of a preset needs a key of its own; the first keeps the caller's.
        key = f"{idempotency_key}#{len(stored)}" if idempotency_key and stored else idempotency_key
        try:
            found = sweeps.submit(
                session,
                study_id=study_id,
                spec=spec,
                body=sent,
                owner_id=owner_id,
                note=body.note,
                idempotency_key=key,
            )
        except MissingData as error:
            missing.append(error)
        else:
            stored.append(found)
    if not stored:
        raise missing[0]
    return Submission(
        sweep=SweepSubmitted(
            **stored[0].sweep.model_dump(exclude={"messages"}),
            messages=[*stored[0].sweep.messages, *_left_out(missing)],
            sweep_ids=[one.sweep.id for one in stored],
        ),
        shard_ids=[shard for one in stored for shard in one.shard_ids],
        new_sweep_ids=[one.sweep.id for one in stored if not one.repeated],
    )


def prepare(body: SweepCreate) -> list[SweepSpec]:
    """Return the sweeps a body asks for, with everything done that takes long the first time.

    To be called before the transaction: hashing a data set or measuring this machine's speed
    inside it would keep every other writer waiting.
    """
    specs = read_specs(body)
    by_dataset = {find_task(spec.task).dataset: spec for spec in specs}
    data_cards.prepare(by_dataset)
    for dataset, spec in by_dataset.items():
        with suppress(MissingData):  # storing will say so, or leave it out
            data_hash(dataset)
            plan_shards(replace(spec, seeds=spec.seeds[:1]).expand()[:1])
    return specs


def dry_run(session: Session, *, study_id: int, body: SweepCreate) -> DryRunRead:
    """Return what submitting the body would mean, without storing anything."""
    studies.owner_of(session, study_id=study_id)  # raises if there is no such study
    forecasts: list[DryRunRead] = []
    missing: list[MissingData] = []
    specs = read_specs(body)
    data_cards.prepare(find_task(spec.task).dataset for spec in specs)
    for spec in specs:
        try:
            forecasts.append(sweeps.dry_run(session, spec=spec))
        except MissingData as error:
            missing.append(error)
    if not forecasts:
        raise missing[0]
    return DryRunRead(
        trials=sum(one.trials for one in forecasts),
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


def read_specs(body: SweepCreate) -> list[SweepSpec]:
    """Return the sweeps a body asks for: one, or those of its preset.

    Raises:
        IBError: With one sentence that names the setting and what would work.
    """
    if body.preset is None:
        return [read_spec(body)]
    given = body.model_fields_set - {"preset", "note"}
    for name in DECIDED_BY_PRESET:
        if name in given and getattr(body, name) is not None:
            raise InvalidInput(
                f"The preset {body.preset!r} decides {name}; leave {name} out, or the preset.",
                field=name,
            )
    preset = lookup("preset", body.preset, PRESETS, field="preset")
    changes = body.model_dump(by_alias=True, include=given, exclude_unset=True)
    filled = ({**sweep, **changes} for sweep in preset.sweeps(body.profile))
    return [read_spec(SweepCreate.model_validate(sweep)) for sweep in filled]


def read_spec(body: SweepCreate) -> SweepSpec:
    """Return one sweep, with the task's own rates and seeds where the body names none."""
    if body.task is None:
        raise InvalidInput("Name a task or a preset.", field="task", hint="See /api/catalog.")
    defaults = find_task(body.task).defaults(body.profile)
    rates: Any = body.learning_rates
    if isinstance(rates, RateGrid):
        rates = log_grid(rates.from_, rates.to, rates.count)
    seeds = defaults.seeds if body.seeds is None else body.seeds
    return SweepSpec.create(
        body.task,
        methods=body.methods or ("eb", "ib"),
        learning_rates=defaults.learning_rates if rates is None else rates,
        seeds=count_seeds(seeds) if isinstance(seeds, int) else seeds,
        epochs=body.epochs,
        batch_size=body.batch_size,
        clips=body.clip if isinstance(body.clip, list) else [body.clip],
        mu=body.mu,
        batch_rule=body.batch_rule,
        profile=body.profile,
        activation=body.activation,
        device=body.device,
        options=body.options.model_dump(),
    )
