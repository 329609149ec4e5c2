"""Small curves for the history's table cells."""

from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import Any

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from backend.models import SweepRow, SweepTrialRow, TrialRow
from backend.schemas import Spark, SparkPoint, TrialState

#: What curves of one small picture must share.
_GROUP = (
    TrialRow.task,
    TrialRow.profile,
    TrialRow.activation,
    TrialRow.clip,
    TrialRow.mu,
    TrialRow.epochs,
    TrialRow.batch_size,
    TrialRow.imported,
    TrialRow.engine_version,
)


def of_studies(session: Session, *, study_ids: Sequence[int]) -> dict[int, list[Spark]]:
    """Return each study's curves, one a method; of a mixed study those of its largest part.

    Mean final training loss by rate, null where a seed's is not finite; averaged by the
    database, so that a page of the history costs one query.
    """
    ended = TrialRow.state.in_((TrialState.COMPLETED, TrialState.DIVERGED))
    query = (
        select(
            SweepRow.study_id,
            *_GROUP,
            TrialRow.method,
            TrialRow.lr,
            func.avg(TrialRow.train_loss),
            func.count(TrialRow.train_loss),
            func.count(),
        )
        .join(SweepTrialRow, SweepTrialRow.sweep_id == SweepRow.id)
        .join(TrialRow, TrialRow.id == SweepTrialRow.trial_id)
        .where(SweepRow.study_id.in_(study_ids), ended)
        .group_by(SweepRow.study_id, *_GROUP, TrialRow.method, TrialRow.lr)
        .order_by(TrialRow.lr)
    )
    sizes: defaultdict[int, Counter[Any]] = defaultdict(Counter)
    curves: defaultdict[tuple[int, Any], dict[str, list[SparkPoint]]] = defaultdict(dict)
    for study_id, *rest in session.execute(query):
        group, (method, lr, mean, finite, total) = tuple(rest[: len(_GROUP)]), rest[len(_GROUP) :]
        sizes[study_id][group] += total
        point = SparkPoint(lr=lr, mean=mean if finite == total else None)
        curves[study_id, group].setdefault(method, []).append(point)
    return {
        study_id: [
            Spark(method=method, points=points)
            for method, points in curves[study_id, groups.most_common(1)[0][0]].items()
        ]
        for study_id, groups in sizes.items()
    }
