"""Puts a bundle into the database: its trials become trials of this installation.

They keep their content address, so that a later sweep with the same settings reuses them. What
is already here stays as it is; importing twice, or a bundle that has grown, adds what is new.
Because an address is believed from then on, it is computed again before anything is stored.
"""

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from sqlalchemy import func, insert, select, update
from sqlalchemy.orm import Session

from backend.db import clock, insert_for, insert_many, lock_table
from backend.models import CurveRow, StudyRow, SweepRow, SweepTrialRow, TrialRow
from backend.schemas import StudyCreate
from backend.services import curves, results, studies
from backend.services.trials import chunks, spec_of
from ib_core.errors import CorruptData
from ib_core.reproduction import Body, Bundle, Portion, Study
from ib_core.sweep import ENGINE_VERSION, TrialResult, TrialSpec, fingerprint, specs_of

TAG = "paper"

#: A bundle's results that may be stored, by trial.
Held = dict[TrialSpec, TrialResult]


@dataclass(frozen=True, slots=True)
class Stored:
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


def store(session: Session, *, bundle: Bundle, source: str) -> Stored:
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
    found = [study for study in bundle.studies() if _trials(study.portions, held)]
    by_address = {
        result.fingerprint: result for study in found for result in _trials(study.portions, held)
    }
    new = _insert_trials(session, by_address)
    ids = _ids(session, by_address)
    for study in found:
        _store_study(session, study, held, ids, source)
    return Stored(len(found), len(by_address), new, len(bundle.results) - len(held))


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


def _trials(portions: Iterable[Portion], held: Held) -> list[TrialResult]:
    return [held[trial] for portion in portions for _, trial in portion.trials() if trial in held]


def _insert_trials(session: Session, held: dict[str, TrialResult]) -> int:
    known = _ids(session, held)
    fresh = [held[address] for address in sorted(held) if address not in known]
    insert_many(
        session,
        insert_for(session, TrialRow).values(finished_at=clock()).on_conflict_do_nothing(),
        [_trial_row(result) for result in fresh],
    )
    ids = _ids(session, [result.fingerprint for result in fresh])
    insert_many(
        session,
        insert_for(session, CurveRow).on_conflict_do_nothing(),
        [
            {
                "trial_id": ids[result.fingerprint],
                "points": len(result.curve),
                "data": curves.pack(curves.to_columns(result.curve)),
            }
            for result in fresh
        ],
    )
    return len(fresh)


def _trial_row(result: TrialResult) -> dict[str, Any]:
    return {
        "fingerprint": result.fingerprint,
        "engine_version": result.record.get("engine"),
        "data_hash": result.record.get("data"),
        **spec_of(result.spec),
        "options": asdict(result.spec.options),
        **results.to_columns(result),
    }


def _ids(session: Session, addresses: Iterable[str]) -> dict[str, int]:
    return {
        address: trial_id
        for chunk in chunks(sorted(addresses))
        for address, trial_id in session.execute(
            select(TrialRow.fingerprint, TrialRow.id).where(TrialRow.fingerprint.in_(chunk))
        )
    }


def _store_study(
    session: Session, study: Study, held: Held, ids: dict[str, int], source: str
) -> None:
    portions = [
        (number, portion, found)
        for number, portion in enumerate(study.portions)
        if (found := _trials([portion], held))
    ]
    keys = [_key(study, number) for number, _, _ in portions]
    study_id = _study_with(session, keys) or _create(session, study, source)
    for key, (_, portion, found) in zip(keys, portions, strict=True):
        sweep_id = _sweep(session, study_id, key, portion, found, source)
        _link(session, sweep_id, [ids[result.fingerprint] for result in found])


def _key(study: Study, number: int) -> str:
    return f"{studies.BUNDLE_KEY}{study.name}:{number}"


def _study_with(session: Session, keys: Sequence[str]) -> int | None:
    """Return the study an earlier import made, if it is still there."""
    found = select(SweepRow.study_id).where(
        SweepRow.idempotency_key.in_(keys[:500]), SweepRow.owner_id.is_(None)
    )
    return session.scalars(found.order_by(SweepRow.id).limit(1)).one_or_none()


def _create(session: Session, study: Study, source: str) -> int:
    profile, _, short = study.name.partition("/")
    payload = StudyCreate(
        name=study.title,
        tags=list(dict.fromkeys([TAG, profile, short[:50]])),
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
    """Return the sweep of a portion, made now if it is not there."""
    same = select(SweepRow.id).where(SweepRow.study_id == study_id, SweepRow.idempotency_key == key)
    sweep_id = session.scalars(same).one_or_none()
    if sweep_id is not None:
        return sweep_id
    spec = specs_of(portion.body)[0]
    return session.scalars(
        insert(SweepRow).returning(SweepRow.id),
        [
            {
                "study_id": study_id,
                "task": spec.task,
                "device": "auto",
                "spec": json.loads(json.dumps(asdict(spec))),
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
