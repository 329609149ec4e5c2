"""Unclipped partners of clipped series, from whichever study holds them.

The paper's clipped experiments are studies of their own, so that clipped minus unclipped (its
appendix E) is a difference between studies: pairs are found by content, all settings but the
clipping being the same. What a study has itself comes first. The only module here that looks
beyond the studies it was asked about.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from backend.models import SweepRow, SweepTrialRow, TrialRow
from backend.schemas import DifferenceKind
from backend.services.analysis.series import Key, Series
from backend.services.trials import COUNTED

#: Studies that are looked through at most, those with most trials of the kind first.
MOST_STUDIES = 4


def difference_studies(session: Session, *, study_id: int, kind: DifferenceKind) -> list[int]:
    """Return the studies a difference is made of: the study, then others with its partners."""
    if kind != "clip":
        return [study_id]
    own = _settings(session, study_id, clipped=True)
    if not own or own <= _settings(session, study_id, clipped=False):
        return [study_id]
    tasks, profiles, methods = (sorted({row[place] for row in own}) for place in range(3))
    count = func.count()
    query = (
        select(SweepRow.study_id)
        .select_from(SweepTrialRow)
        .join(SweepRow, SweepRow.id == SweepTrialRow.sweep_id)
        .join(TrialRow, TrialRow.id == SweepTrialRow.trial_id)
        .where(TrialRow.clip.is_(None), TrialRow.state.in_(COUNTED), TrialRow.task.in_(tasks))
        .where(TrialRow.profile.in_(profiles), TrialRow.method.in_(methods))
        .where(SweepRow.study_id != study_id)
        .group_by(SweepRow.study_id)
        .order_by(count.desc(), SweepRow.study_id)
        .limit(MOST_STUDIES)
    )
    return [study_id, *session.scalars(query)]


def _settings(session: Session, study_id: int, *, clipped: bool) -> set[tuple[str, str, str]]:
    """Return task, profile and method of a study's trials with clipping, or without."""
    clip = TrialRow.clip.is_not(None) if clipped else TrialRow.clip.is_(None)
    query = (
        select(TrialRow.task, TrialRow.profile, TrialRow.method)
        .join(SweepTrialRow, SweepTrialRow.trial_id == TrialRow.id)
        .join(SweepRow, SweepRow.id == SweepTrialRow.sweep_id)
        .where(SweepRow.study_id == study_id, clip)
        .distinct()
    )
    return {(row.task, row.profile, row.method) for row in session.execute(query)}


def with_partners(
    own: Sequence[Series], others: Sequence[int], load: Callable[[int], list[Series]]
) -> list[Series]:
    """Return a study's series, and behind them the unclipped partners that it lacks.

    Args:
        own: The study's.
        others: Further studies to look in, in order.
        load: Returns a study's series.
    """
    known = {series.key for series in own}
    lacking = {
        replace(series.key, clip=None) for series in own if series.key.clip is not None
    } - known
    found: dict[Key, Series] = {}
    for study_id in others:
        if len(found) == len(lacking):
            break
        for series in load(study_id):
            here = replace(series.key, study_id=own[0].key.study_id)
            if here in lacking and here not in found:
                found[here] = replace(series, key=here)
    return [*own, *found.values()]
