"""The study a newcomer finds: explicit against implicit steps on handwritten digits, run once."""

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import exists, select
from sqlalchemy.orm import Session

from backend.db import lock_table
from backend.models import StudyRow, StudyTagRow, SweepRow
from backend.schemas import StudyCreate
from backend.services import submission
from backend.services.accounts.caller import Caller
from ib_core.sweep.presets import PRESETS

NAME = "First study: explicit against implicit steps on handwritten digits"
TAG = "first-study"
PRESET = "first/digits"


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


def prepare() -> submission.Request:
    """Return its sweeps, ready to be stored; to be called before the transaction."""
    return submission.prepare({"preset": PRESET})


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


def begin(session: Session, *, request: submission.Request, by: Caller) -> FirstStudy:
    """Begin the first study if it is due; however many ask at once, it is begun once.

    Args:
        session: A session that may write.
        request: From `prepare`.
        by: Who asked.
    """
    lock_table(session, StudyRow)
    study_id = find(session)
    if not is_due(session):
        return FirstStudy(study_id)
    if study_id is None:
        study = StudyCreate(name=NAME, tags=[TAG], notes=_notes())
        found = submission.submit_into(
            session, study=study, request=request, by=by, idempotency_key=TAG
        )
    else:
        found = submission.submit(
            session, study_id=study_id, request=request, by=by, idempotency_key=TAG
        )
    return FirstStudy(found.sweep.study_id, found.shard_ids)
