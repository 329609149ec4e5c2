"""Small curves for the history's table cells."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

from sqlalchemy import Text, case, func, select, type_coerce
from sqlalchemy.orm import Session

from backend.models import SweepRow, SweepSummaryRow, SweepTrialRow, TrialRow
from backend.schemas import Spark, SparkPoint, TrialState
from backend.services.analysis.labels import labels
from backend.services.analysis.series import SETTINGS, Key, key_of, order

#: More lines than this could not be told apart in a table's cell.
MOST_LINES = 12
#: Losses from here on are added up apart, as fractions of themselves: PostgreSQL refuses a sum
#: above all numbers, as it does a fraction of a small one below them.
_HUGE, _FRACTION = 1e280, 2.0**-40
ENDED = (TrialState.COMPLETED.value, TrialState.DIVERGED.value)
_SUMS = ("sum", "huge", "finite", "total")
#: What stored rows consist of; those of another version are computed again.
LAYOUT = ",".join([str(column.key) for column in SETTINGS] + ["lr", *_SUMS])

#: One rate of one setting, as `LAYOUT` names it.
Row = list[Any]


def of_studies(session: Session, *, study_ids: Sequence[int]) -> dict[int, list[Spark]]:
    """Return each study's curves, one for each setting; of a mixed study those of its largest part.

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
    return {study_id: _curves(study_id, found) for study_id, found in by_study.items() if found}


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
            *SETTINGS,
            TrialRow.lr,
            func.sum(case((~huge, TrialRow.train_loss))),
            func.sum(case((huge, TrialRow.train_loss * _FRACTION))),
            func.count(TrialRow.train_loss),
            func.count(),
        )
        .join(TrialRow, TrialRow.id == SweepTrialRow.trial_id)
        .where(SweepTrialRow.sweep_id.in_(sweep_ids), ended)
        .group_by(SweepTrialRow.sweep_id, *SETTINGS, TrialRow.lr)
        .order_by(SweepTrialRow.sweep_id, TrialRow.lr)
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


def _curves(study_id: int, rows: Iterable[Row]) -> list[Spark]:
    sizes: Counter[tuple[Any, ...]] = Counter()
    sums: defaultdict[Key, dict[float, list[float]]] = defaultdict(dict)
    keys: dict[tuple[Any, ...], Key] = {}  # reading one costs more than the database's sums
    for row in rows:
        raw, (lr, *parts) = tuple(row[: len(SETTINGS)]), row[len(SETTINGS) :]
        key = keys[raw] if raw in keys else keys.setdefault(raw, key_of(study_id, raw))
        sizes[_part(key)] += parts[-1]
        before = sums[key].get(lr, [0.0] * len(_SUMS))
        sums[key][lr] = [a + (b or 0) for a, b in zip(before, parts, strict=True)]
    part = sizes.most_common(1)[0][0]
    shown = sorted((key for key in sums if _part(key) == part), key=order)[:MOST_LINES]
    return [
        Spark(method=key.method, label=label, points=_points(sums[key]))
        for key, label in zip(shown, labels(shown), strict=True)
    ]


def _part(key: Key) -> tuple[Any, ...]:
    """Return what curves of one small picture must share; other tasks have other losses."""
    return key.task, key.profile, key.imported, key.engine_version, key.data_hash


def _points(sums: dict[float, list[float]]) -> list[SparkPoint]:
    return [SparkPoint(lr=lr, mean=_mean(*sums[lr])) for lr in sorted(sums)]


def _mean(plain: float, huge: float, finite: float, total: float) -> float | None:
    return plain / finite + huge / finite / _FRACTION if finite == total else None
