"""Has a study changed? Answered without reading its trials' rows."""

import hashlib
from collections.abc import Sequence

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from backend.models import StudyRow, SweepRow, SweepTrialRow, TrialRow


def studies_version(session: Session, *, study_ids: Sequence[int]) -> str:
    """Return a text that changes whenever an analysis of these studies could.

    A trial's numbers change only when it ends, which its state and time tell; names matter
    because labels and comparisons show them.
    """
    trials = (
        select(
            SweepRow.study_id,
            TrialRow.state,
            func.count(),
            func.sum(TrialRow.id),
            func.max(TrialRow.finished_at, type_=TrialRow.finished_at.type),
        )
        .select_from(SweepTrialRow)
        .join(SweepRow, SweepRow.id == SweepTrialRow.sweep_id)
        .join(TrialRow, TrialRow.id == SweepTrialRow.trial_id)
        .where(SweepRow.study_id.in_(study_ids))
        .group_by(SweepRow.study_id, TrialRow.state)
        .order_by(SweepRow.study_id, TrialRow.state)
    )
    names = (
        select(StudyRow.id, StudyRow.name).where(StudyRow.id.in_(study_ids)).order_by(StudyRow.id)
    )
    facts = [tuple(row) for query in (trials, names) for row in session.execute(query)]
    return hashlib.sha256(repr(facts).encode()).hexdigest()[:32]
