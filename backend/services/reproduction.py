"""The paper's reproduction: bundles put into the database, and all trials here held against it.

A bundle's trials become trials of this installation. They keep their content address, so that a
later sweep with the same settings reuses them. What is already here stays as it is; importing
twice, or a bundle that has grown, adds what is new. Because an address is believed from then on,
it is computed again before anything is stored.
"""

import hashlib
import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from sqlalchemy import Text, cast, func, insert, select, type_coerce, update
from sqlalchemy.orm import Session

from backend.db import clock, insert_for, insert_many, lock_table
from backend.models import CurveRow, StudyRow, SweepRow, SweepTrialRow, TrialRow
from backend.paper import read_findings
from backend.schemas import PaperRead, StudyCreate
from backend.services import studies, timings
from backend.services.trials import (
    COUNTED,
    chunks,
    curve_row,
    ids_at,
    insert_or_replace_rows,
    result_columns,
    spec_of,
    store_recordings,
)
from ib_core.datasets import DATASETS
from ib_core.errors import CorruptData
from ib_core.reproduction import (
    SETTINGS,
    Body,
    Bundle,
    Evidence,
    Portion,
    Run,
    Study,
    experiment_of,
    find,
    recorded_evidence,
    shipped_run_times,
)
from ib_core.sweep import (
    ENGINE_VERSION,
    Options,
    TrialResult,
    TrialSpec,
    fingerprint,
    finite_or_none,
    read_options,
    specs_of,
)

TAG = "paper"
#: Beginnings of the names of studies that repeat the paper, or go on from it.
OF_PAPER = ("text", "authors", "beyond")
#: A bundle's results that may be stored, by trial.
Held = dict[TrialSpec, TrialResult]


@dataclass(frozen=True, slots=True)
class StoredBundle:
    """What an import did.

    Attributes:
        studies: How many studies it brought.
        trials: How many trials they hold.
        new: How many of these were not here.
        left_out: How many were left out as made by another engine version.
    """

    studies: int
    trials: int
    new: int
    left_out: int = 0


def store_bundle(session: Session, *, bundle: Bundle, source: str) -> StoredBundle:
    """Store a bundle's studies with their sweeps and trials.

    Args:
        session: A session that may write.
        bundle: What to store.
        source: What the studies' notes call it.

    Raises:
        IBError: If the bundle is broken, or a trial's address is not that of its settings and
            data; names the file and the line.
    """
    lock_table(session, StudyRow)  # two imports at once would both find nothing here yet
    held = _checked(bundle)
    found = [study for study in bundle.studies() if _held_trials(study.portions, held)]
    by_address = {
        result.fingerprint: result
        for study in found
        for result in _held_trials(study.portions, held)
    }
    new = _insert_trials(session, by_address)
    ids = ids_at(session, by_address)
    store_recordings(
        session,
        {ids[address]: one.recording for address, one in by_address.items() if one.recording},
    )
    for study in found:
        _store_study(session, study, held, ids, source)
    timings.store_races(session, bundle.step_costs(), source=source)
    return StoredBundle(len(found), len(by_address), new, len(bundle.results) - len(held))


def _checked(bundle: Bundle) -> Held:
    """Return the results of this engine version, their addresses found to be right.

    How another version made its addresses is not known here, so its trials are left out: a wrong
    address would give a later sweep the numbers of other settings.
    """
    held = {}
    for spec, result in bundle.results.items():
        if result.record.get("engine") != ENGINE_VERSION:
            continue
        if result.fingerprint != fingerprint(spec, str(result.record.get("data"))):
            raise CorruptData(
                f"{bundle.place_of(result)}: the fingerprint is not that of the trial's settings "
                "and data, so the line was altered.",
                hint="Nothing was stored. Get the bundle again.",
            )
        held[spec] = result
    return held


def _held_trials(portions: Iterable[Portion], held: Held) -> list[TrialResult]:
    return [held[trial] for portion in portions for _, trial in portion.trials() if trial in held]


def _insert_trials(session: Session, held: dict[str, TrialResult]) -> int:
    known = ids_at(session, held)
    fresh = [held[address] for address in sorted(held) if address not in known]
    insert_many(
        session,
        insert_for(session, TrialRow).values(finished_at=clock()).on_conflict_do_nothing(),
        [_trial_row(result) for result in fresh],
    )
    ids = ids_at(session, [result.fingerprint for result in fresh])
    insert_many(
        session,
        insert_for(session, CurveRow).on_conflict_do_nothing(),
        [curve_row(ids[result.fingerprint], result.curve) for result in fresh if result.curve],
    )
    _lengthen_curves(session, {known[one]: held[one] for one in held if one in known})
    return len(fresh)


def _lengthen_curves(session: Session, known: Mapping[int, TrialResult]) -> None:
    """Give trials their losses over training where a bundle without them was stored before.

    So that the same is here in the end, in whatever order bundles come. A trial that ended
    otherwise here keeps what it has.
    """
    ways = [one for one, result in known.items() if len(result.curve) > 1]
    for some in chunks(ways):
        bare = (
            select(TrialRow.id, TrialRow.train_loss)
            .outerjoin(CurveRow, CurveRow.trial_id == TrialRow.id)
            .where(TrialRow.id.in_(some), TrialRow.state.in_(COUNTED))
            .where(func.coalesce(CurveRow.points, 0) <= 1)
        )
        same = [one for one, loss in session.execute(bare) if _ended_at(known[one], loss)]
        if not same:
            continue
        insert_or_replace_rows(session, [curve_row(one, known[one].curve) for one in same])
        # What was answered of them before is no longer true, and this is what tells.
        session.execute(update(TrialRow).where(TrialRow.id.in_(same)).values(finished_at=clock()))


def _ended_at(result: TrialResult, loss: float | None) -> bool:
    """Return whether a result is that of a stored trial, whose losses may have fewer digits."""
    own = finite_or_none(result.train_loss)
    return own is loss is None or (
        own is not None and loss is not None and math.isclose(own, loss, rel_tol=1e-6)
    )


def _trial_row(result: TrialResult) -> dict[str, Any]:
    return {
        "fingerprint": result.fingerprint,
        "engine_version": result.record.get("engine"),
        "data_hash": result.record.get("data"),
        **spec_of(result.spec),
        "options": result.spec.options.as_dict(),
        **result_columns(result),
    }


def _store_study(
    session: Session, study: Study, held: Held, ids: dict[str, int], source: str
) -> None:
    portions = [
        (number, portion, found)
        for number, portion in enumerate(study.portions)
        if (found := _held_trials([portion], held))
    ]
    keys = [_sweep_key(study, number) for number, _, _ in portions]
    study_id = _study_with(session, keys) or _create_study(session, study, source)
    for key, (_, portion, found) in zip(keys, portions, strict=True):
        sweep_id = _sweep(session, study_id, key, portion, found, source)
        _link(session, sweep_id, [ids[result.fingerprint] for result in found])


def _sweep_key(study: Study, number: int) -> str:
    return f"{studies.BUNDLE_KEY}{study.name}:{number}"


def _study_with(session: Session, keys: Sequence[str]) -> int | None:
    """Return the study an earlier import made, if it is still there."""
    found = select(SweepRow.study_id).where(
        SweepRow.idempotency_key.in_(keys[:500]), SweepRow.owner_id.is_(None)
    )
    return session.scalars(found.order_by(SweepRow.id).limit(1)).one_or_none()


def _create_study(session: Session, study: Study, source: str) -> int:
    profile, _, short = study.name.partition("/")
    payload = StudyCreate(
        name=study.title,
        tags=list(dict.fromkeys([*([TAG] if profile in OF_PAPER else []), profile, short[:50]])),
        notes=f"{study.question} From {source}.",
    )
    return studies.create(session, payload=payload, owner_id=None).id


def _sweep(
    session: Session,
    study_id: int,
    key: str,
    portion: Portion,
    found: Sequence[TrialResult],
    source: str,
) -> int:
    """Return the sweep of a portion, made now if it is not there.

    It names the seeds it holds, those included that another bundle has brought.
    """
    same = SweepRow.study_id == study_id, SweepRow.idempotency_key == key
    there = session.execute(select(SweepRow.id, SweepRow.spec).where(*same)).one_or_none()
    seeds = {result.spec.seed for result in found} | set(there.spec["seeds"] if there else ())
    spec = replace(specs_of(portion.body)[0], seeds=tuple(sorted(seeds)))
    told = json.loads(json.dumps(spec.as_dict()))
    if there is not None:
        session.execute(update(SweepRow).where(SweepRow.id == there.id).values(spec=told))
        return int(there.id)
    return session.scalars(
        insert(SweepRow).returning(SweepRow.id),
        [
            {
                "study_id": study_id,
                "task": spec.task,
                "device": "auto",
                "spec": told,
                "body": portion.body,
                "body_hash": _hash(portion.body),
                "note": f"From {source}.",
                "idempotency_key": key,
                "total": len(found),
                "reused": 0,
                "engine_version": found[0].record.get("engine"),
            }
        ],
    ).one()


def _hash(body: Body) -> str:
    """Return a hash of a sweep's body."""
    return hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()


def _link(session: Session, sweep_id: int, trial_ids: Sequence[int]) -> None:
    """Put trials into a sweep behind those it holds."""
    here = SweepTrialRow.sweep_id == sweep_id
    held = set(session.scalars(select(SweepTrialRow.trial_id).where(here)))
    new = [trial_id for trial_id in dict.fromkeys(trial_ids) if trial_id not in held]
    if not new:
        return
    last = session.scalar(select(func.max(SweepTrialRow.position)).where(here))
    first = 0 if last is None else last + 1
    insert_many(
        session,
        insert(SweepTrialRow),
        [
            {"sweep_id": sweep_id, "trial_id": trial_id, "position": first + i, "reused": False}
            for i, trial_id in enumerate(new)
        ],
    )
    total = len(held) + len(new)
    session.execute(update(SweepRow).where(SweepRow.id == sweep_id).values(total=total))
    touched = select(SweepRow.study_id).where(SweepRow.id == sweep_id).scalar_subquery()
    session.execute(update(StudyRow).where(StudyRow.id == touched).values(updated_at=clock()))


def version(session: Session) -> str:
    """Return a text that changes whenever the reproduction could."""
    trials = select(
        func.count(),
        func.sum(TrialRow.id),
        func.max(TrialRow.finished_at, type_=TrialRow.finished_at.type),
    ).where(TrialRow.state.in_(COUNTED))
    facts = [
        tuple(session.execute(trials).one()),
        [name for name, info in DATASETS.items() if info.present()],
        ENGINE_VERSION,
    ]
    return hashlib.sha256(repr(facts).encode()).hexdigest()[:32]


def get(session: Session) -> PaperRead:
    """Judge every experiment and claim on the trials this installation has.

    Trials of other engine versions are left out: they may not share a mean.
    """
    measured = shipped_run_times().get("overheads", {})
    runs: dict[str, list[Run]] = {"text": [], "authors": []}
    for profile, run in _own_runs(session):
        runs[profile].append(run)
    return read_findings(
        find(
            text=Evidence.of(runs["text"], measured),  # the text's networks are what was timed
            authors=Evidence.of(runs["authors"]),
            recorded=recorded_evidence(),
        )
    )


def _own_runs(session: Session) -> Iterator[tuple[str, Run]]:
    columns = [getattr(TrialRow, name) for name in SETTINGS if name != "options"]
    query = (
        select(
            *columns,
            # A real cast: PostgreSQL's driver would hand over a dict, which no cache can keep.
            cast(TrialRow.options, Text).label("options"),
            *(TrialRow.lr, TrialRow.seed, TrialRow.initial_loss),
            *(TrialRow.train_loss, TrialRow.test_loss, TrialRow.test_accuracy),
            type_coerce(TrialRow.state, Text).label("state"),
        )
        .where(TrialRow.state.in_(COUNTED), TrialRow.imported.is_(False))
        .where(TrialRow.engine_version == ENGINE_VERSION)
        .order_by(TrialRow.id)
    )
    # Through the connection: the session's own machinery is for rows that are entities.
    for row in session.connection().execute(query):
        settings = (*row[: len(columns)], _options(row.options))
        experiment = experiment_of(settings, row.lr)
        if experiment is not None:
            yield (
                row.profile,
                Run(
                    experiment=experiment,
                    dataset=row.task.removeprefix("uci/") if experiment == "uci" else "",
                    method=row.method,
                    lr=row.lr,
                    seed=row.seed,
                    train_loss=row.train_loss,
                    test_loss=row.test_loss,
                    test_accuracy=row.test_accuracy,
                    initial_loss=row.initial_loss,
                    outcome=row.state,
                ),
            )


@lru_cache(maxsize=256)
def _options(text: str) -> Options | None:
    """Return a trial's options; None for those of another version, which are no experiment's."""
    found = json.loads(text or "{}")
    return read_options(found) if found.keys() <= Options.__dataclass_fields__.keys() else None
