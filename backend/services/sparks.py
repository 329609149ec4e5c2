"""Small curves for the history's table cells."""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from backend.models import SweepRow, SweepTrialRow, TrialRow
from backend.schemas import Spark, SparkPoint, TrialState
from backend.services.analysis.labels import labels
from backend.services.analysis.series import SETTINGS, Key, key_of, order

#: More lines than this could not be told apart in a table's cell.
MOST_LINES = 12

Curves = Mapping[Key, Sequence[SparkPoint]]


def of_studies(session: Session, *, study_ids: Sequence[int]) -> dict[int, list[Spark]]:
    """Return each study's curves, one for each setting; of a mixed study those of its largest part.

    Mean final training loss by rate, null where a seed's is not finite; averaged by the
    database, so that a page of the history costs one query.
    """
    ended = TrialRow.state.in_((TrialState.COMPLETED, TrialState.DIVERGED))
    query = (
        select(
            SweepRow.study_id,
            *SETTINGS,
            TrialRow.lr,
            func.avg(TrialRow.train_loss),
            func.count(TrialRow.train_loss),
            func.count(),
        )
        .join(SweepTrialRow, SweepTrialRow.sweep_id == SweepRow.id)
        .join(TrialRow, TrialRow.id == SweepTrialRow.trial_id)
        .where(SweepRow.study_id.in_(study_ids), ended)
        .group_by(SweepRow.study_id, *SETTINGS, TrialRow.lr)
        .order_by(TrialRow.lr)
    )
    sizes: defaultdict[int, Counter[Any]] = defaultdict(Counter)
    curves: defaultdict[int, dict[Key, list[SparkPoint]]] = defaultdict(dict)
    keys: dict[tuple[Any, ...], Key] = {}  # reading one costs more than the database's average
    for study_id, *settings, lr, mean, finite, total in session.execute(query):
        raw = (study_id, *settings)
        key = keys[raw] if raw in keys else keys.setdefault(raw, key_of(study_id, settings))
        sizes[study_id][_part(key)] += total
        point = SparkPoint(lr=lr, mean=mean if finite == total else None)
        curves[study_id].setdefault(key, []).append(point)
    return {
        study_id: _sparks(found, sizes[study_id].most_common(1)[0][0])
        for study_id, found in curves.items()
    }


def _part(key: Key) -> tuple[Any, ...]:
    """Return what curves of one small picture must share; other tasks have other losses."""
    return key.task, key.profile, key.imported, key.engine_version, key.data_hash


def _sparks(curves: Curves, part: tuple[Any, ...]) -> list[Spark]:
    shown = sorted((key for key in curves if _part(key) == part), key=order)[:MOST_LINES]
    named = labels(shown)
    return [
        Spark(method=key.method, label=label, points=list(curves[key]))
        for key, label in zip(shown, named, strict=True)
    ]
