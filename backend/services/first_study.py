"""The study a newcomer finds: explicit against implicit steps on handwritten digits, run once."""

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import exists, select
from sqlalchemy.orm import Session

from backend.db import lock_table
from backend.models import StudyRow, StudyTagRow, SweepRow
from backend.schemas import StudyCreate, SweepCreate
from backend.services import audit, studies, submission
from backend.services.accounts.caller import Caller
from ib_core.sweep import PRESETS, SweepSpec

NAME = "First study: explicit against implicit steps on handwritten digits"
TAG = "first-study"
PRESET = "first/digits"
BODY = SweepCreate(preset=PRESET)


def _notes() -> str:
    [grid] = PRESETS[PRESET].sweeps()
    return (
        "Etascope runs this study by itself, once, when its history is empty. Each dot is one "
        f"training run: the same network, weights and batches at {len(grid['learning_rates'])} "
        f"learning rates and {grid['seeds']} seeds. Look at the rate where explicit "
        "backpropagation (EB) breaks, and where the implicit one (IB) does."
    )


@dataclass(frozen=True, slots=True)
class FirstStudy:
    """What became of asking for it.

    Attributes:
        study_id: The first study's, whoever began it; None: the history began without one.
        shard_ids: What to announce to the workers, if it was begun just now.
    """

    study_id: int | None
    shard_ids: Sequence[int] = ()


def prepare() -> list[SweepSpec]:
    """Return its sweeps, ready to be stored; to be called before the transaction."""
    return submission.prepare(BODY)


def find(session: Session) -> int | None:
    """Return the first study's id, archived or not, None if there is none."""
    tagged = exists().where(StudyTagRow.study_id == StudyRow.id, StudyTagRow.tag == TAG)
    return session.scalars(select(StudyRow.id).where(tagged).order_by(StudyRow.id).limit(1)).first()


def is_due(session: Session) -> bool:
    """Return whether nothing is in the history but perhaps a first study without its sweep."""
    found = session.scalars(select(StudyRow.id).order_by(StudyRow.id).limit(2)).all()
    if not found:
        return True
    empty = (
        session.scalars(select(SweepRow.id).where(SweepRow.study_id == found[0])).first() is None
    )
    return list(found) == [find(session)] and empty


def begin(session: Session, *, specs: Sequence[SweepSpec], by: Caller) -> FirstStudy:
    """Begin the first study if it is due; however many ask at once, it is begun once.

    Args:
        session: A session that may write.
        specs: From `prepare`.
        by: Who asked.
    """
    lock_table(session, StudyRow)
    study_id = find(session)
    if not is_due(session):
        return FirstStudy(study_id)
    if study_id is None:
        payload = StudyCreate(name=NAME, tags=[TAG], notes=_notes())
        study_id = studies.create(session, payload=payload, owner_id=by.user_id).id
        audit.record(session, by=by, action="study.create", study_id=study_id, name=NAME)
    found = submission.submit(
        session,
        study_id=study_id,
        body=BODY,
        specs=specs,
        owner_id=by.user_id,
        idempotency_key=TAG,
    )
    audit.record(
        session, by=by, action="sweep.submit", study_id=study_id, sweeps=found.new_sweep_ids
    )
    return FirstStudy(study_id, found.shard_ids)
