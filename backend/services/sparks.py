"""Small curves for the history's table cells."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

from sqlalchemy import Text, case, func, select, type_coerce
from sqlalchemy.orm import Session

from backend.models import SweepRow, SweepSummaryRow, SweepTrialRow, TrialRow
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
#: Losses from here on are added up apart, as fractions of themselves: PostgreSQL refuses a sum
#: above all numbers, as it does a fraction of a small one below them.
_HUGE, _FRACTION = 1e280, 2.0**-40
ENDED = (TrialState.COMPLETED.value, TrialState.DIVERGED.value)
_SUMS = ("sum", "huge", "finite", "total")
#: What stored rows consist of; those of another version are computed again.
LAYOUT = ",".join([column.key for column in _GROUP] + ["method", "lr", *_SUMS])

#: One rate of one method in one group, as `LAYOUT` names it.
Row = list[Any]


def of_studies(session: Session, *, study_ids: Sequence[int]) -> dict[int, list[Spark]]:
    """Return each study's curves, one a method; of a mixed study those of its largest part.

    Mean final training loss by rate, null where a seed's is not finite. Sweeps that have ended
    for good are read from their summaries, so that a page of the history costs two queries and
    reads no more trials than are still on their way.
    """
    query = select(SweepRow.id, SweepRow.study_id).where(SweepRow.study_id.in_(study_ids))
    studies = dict(session.execute(query).all())
    rows = _stored(session, studies)
    rows |= of_sweeps(session, sweep_ids=[id for id in studies if id not in rows])
    by_study: defaultdict[int, list[Row]] = defaultdict(list)
    for sweep_id in sorted(rows):
        by_study[studies[sweep_id]] += rows[sweep_id]
    return {study_id: _curves(found) for study_id, found in by_study.items()}


def of_sweeps(session: Session, *, sweep_ids: Sequence[int]) -> dict[int, list[Row]]:
    """Return the rows of each sweep, added up by the database."""
    if not sweep_ids:
        return {}
    # Not by the index on states: SQLite would begin with every trial there is that has ended.
    ended = func.lower(type_coerce(TrialRow.state, Text)).in_(ENDED)
    huge = func.abs(TrialRow.train_loss) >= _HUGE
    query = (
        select(
            SweepTrialRow.sweep_id,
            *_GROUP,
            TrialRow.method,
            TrialRow.lr,
            func.sum(case((~huge, TrialRow.train_loss))),
            func.sum(case((huge, TrialRow.train_loss * _FRACTION))),
            func.count(TrialRow.train_loss),
            func.count(),
        )
        .join(TrialRow, TrialRow.id == SweepTrialRow.trial_id)
        .where(SweepTrialRow.sweep_id.in_(sweep_ids), ended)
        .group_by(SweepTrialRow.sweep_id, *_GROUP, TrialRow.method, TrialRow.lr)
        .order_by(SweepTrialRow.sweep_id, TrialRow.method, TrialRow.lr)
    )
    found: defaultdict[int, list[Row]] = defaultdict(list)
    for sweep_id, *row in session.execute(query):
        found[sweep_id].append(row)
    return found


def _stored(session: Session, sweep_ids: Iterable[int]) -> dict[int, list[Row]]:
    query = select(SweepSummaryRow.sweep_id, SweepSummaryRow.curves).where(
        SweepSummaryRow.sweep_id.in_(list(sweep_ids)), SweepSummaryRow.layout == LAYOUT
    )
    return {sweep_id: curves["rows"] for sweep_id, curves in session.execute(query)}


def _curves(rows: Iterable[Row]) -> list[Spark]:
    sizes: Counter[tuple[Any, ...]] = Counter()
    sums: defaultdict[tuple[Any, ...], list[Any]] = defaultdict(lambda: [0.0] * len(_SUMS))
    for row in rows:
        group, (method, lr, *parts) = tuple(row[: len(_GROUP)]), row[len(_GROUP) :]
        sizes[group] += parts[-1]
        before = sums[group, method, lr]
        sums[group, method, lr] = [a + (b or 0) for a, b in zip(before, parts, strict=True)]
    largest = sizes.most_common(1)[0][0]
    curves: defaultdict[str, list[SparkPoint]] = defaultdict(list)
    for group, method, lr in sorted((key for key in sums if key[0] == largest), key=_by_rate):
        plain, huge, finite, total = sums[group, method, lr]
        mean = plain / finite + huge / finite / _FRACTION if finite == total else None
        curves[method].append(SparkPoint(lr=lr, mean=mean))
    return [Spark(method=method, points=points) for method, points in curves.items()]


def _by_rate(key: tuple[Any, ...]) -> tuple[float, str]:
    return key[2], key[1]
