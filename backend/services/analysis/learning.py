"""Losses over training by series and rate, how each was trained and set; App. C's theorem."""

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from itertools import groupby
from statistics import median
from typing import Any

import numpy as np
from sqlalchemy import func, select
from sqlalchemy.orm import Session

from backend.models import SweepRow, SweepTrialRow, TrialRow
from backend.schemas import (
    LearningRateRead,
    LearningRead,
    LearningSeriesRead,
    LossMetric,
    TheoremLine,
    TheoremRead,
    TrialState,
    WayRead,
)
from backend.services.analysis.rate_curves import Measure, seed_curve
from backend.services.analysis.series import (
    Finished,
    Key,
    labels,
    series_id,
    series_order,
    varied,
)
from backend.services.analysis.stored import KEY_COLUMNS, key_of, load_series
from backend.services.trials import COLUMNS, COUNTED, unpack
from ib_core.methods import METHODS
from ib_core.metrics import LEARNING, LearningCurve, SeedCurve, learning_curve
from ib_core.tasks import TASKS, PaperTask

#: With more trials than this an answer has their means only: no screen has room for the rest.
MOST_TRIALS = 1500


def learning_curves(
    session: Session,
    *,
    study_id: int,
    metric: LossMetric = "train_loss",
    smooth: int = 1,
    points: int = 40,
    only: Collection[str] = (),
    task: str | None = None,
) -> LearningRead:
    """Return a study's losses over training; the caller has checked that the study exists.

    Args:
        session: For reading.
        study_id: Which study.
        metric: Which column of the curves.
        smooth: Each value is the mean of so many evaluations up to it.
        points: At most so many evaluations.
        only: Ids of the series wanted; all of them if there are none.
        task: Only this task's.
    """
    measure = Measure(metric)
    value = TrialRow.train_loss.label("final")
    found, _ = load_series(session, study_ids=[study_id], value=value, with_curves=True, task=task)
    wanted = [one for one in found if not only or series_id(one.key) in only]
    whole = sum(len(one.rows) for one in wanted) <= MOST_TRIALS
    series = [
        LearningSeriesRead(
            id=series_id(one.key),
            rates=_rates(one.rows, measure, smooth=smooth, points=points, whole=whole),
        )
        for one in wanted
    ]
    return LearningRead(
        study_id=study_id,
        metric=metric,
        smooth=smooth,
        definition=LEARNING,
        whole=whole,
        series=[one for one in series if one.rates],
    )


def _rates(
    rows: Sequence[Finished], measure: Measure, *, smooth: int, points: int, whole: bool
) -> list[LearningRateRead]:
    curves = [(row, own) for row in rows if (own := _seed_curve(row, measure))]
    unknown = {row.lr for row in rows if row.state == TrialState.COMPLETED} - {
        row.lr for row, _ in curves if row.state == TrialState.COMPLETED
    }
    # Those that broke would stand for all, where of the others nothing is known; and nothing is of
    # those that broke, where of them, too, the start alone came with a bundle.
    went = {row.lr for row, own in curves if own.steps.size > 1}
    kept = went - unknown if unknown else {row.lr for row, _ in curves}
    curves = [(row, own) for row, own in curves if row.lr in kept]
    # As for final values: nobody's may mean that the task has no such number.
    known = any(np.isfinite(own.losses).any() for _, own in curves)
    if not known and not all(own.diverged for _, own in curves):
        return []
    found = []
    for lr, group in groupby(curves, key=lambda one: one[0].lr):
        members = list(group)
        curve = learning_curve([own for _, own in members], smooth=smooth, points=points)
        found.append(_to_read(lr, [row for row, _ in members], curve, measure, whole=whole))
    return found


def _seed_curve(row: Finished, measure: Measure) -> SeedCurve | None:
    """Return a trial's curve; None if it never recorded the metric."""
    if not row.curve:
        return None
    columns = unpack(row.curve, row.validation_curve)
    return seed_curve(dict(zip(COLUMNS, columns, strict=True)), measure, row.state)


def _to_read(
    lr: float, rows: Sequence[Finished], curve: LearningCurve, measure: Measure, *, whole: bool
) -> LearningRateRead:
    seeds = [
        {"trial_id": row.id, "seed": row.seed, "values": _readable(values, measure)}
        for row, values in zip(rows, curve.losses, strict=True)
    ]
    return LearningRateRead(
        lr=lr,
        n=len(rows),
        steps=curve.steps.astype(int).tolist(),
        epochs=curve.epochs.tolist(),
        mean=_readable(curve.mean, measure),
        broken=curve.broken.tolist(),
        seeds=seeds if whole else [],  # as dicts: pydantic makes them in one go
    )


def _readable(losses: Any, measure: Measure) -> list[float | None]:
    """Return six digits of every finite value: more would only make the answer long."""
    values = 1.0 - losses if measure.higher_is_better else losses
    return [float(f"{one:.6g}") if np.isfinite(one) else None for one in values.tolist()]


DEFINITION = (
    "Sum of rate x |g|^2 over the sum of rates so far, g being what a step multiplies by its "
    "rate. With the gradient of all the data for g it tends to 0 for decaying rates with restarts "
    "(theorem of App. C); a batch's noise stays in g. Medians over seeds."
)
NUMBERS = ("average", "gradient", "theta", "restarts")


def theorem(session: Session, *, study_id: int) -> TheoremRead:
    """Return the lines of a study; the caller has checked that the study exists."""
    found = (
        select(TrialRow.id, TrialRow.lr, TrialRow.record, *KEY_COLUMNS)
        .join(SweepTrialRow, SweepTrialRow.trial_id == TrialRow.id)
        .join(SweepRow, SweepRow.id == SweepTrialRow.sweep_id)
        .where(SweepRow.study_id == study_id, TrialRow.state.in_(COUNTED))
        .where(TrialRow.record.is_not(None))
        .order_by(TrialRow.id)
    )
    groups: dict[tuple[Key, float], list[dict[str, Any]]] = {}
    seen: set[int] = set()
    for trial_id, lr, record, *settings in session.execute(found):
        if trial_id not in seen and "theorem" in record:
            key = key_of(study_id, settings)
            groups.setdefault((key, lr), []).append(record["theorem"])
        seen.add(trial_id)
    keys = sorted({key for key, _ in groups}, key=series_order)
    named = dict(zip(keys, labels(keys), strict=True))
    order = {key: number for number, key in enumerate(keys)}
    ordered = sorted(groups.items(), key=lambda item: (order[item[0][0]], item[0][1]))
    return TheoremRead(
        study_id=study_id,
        definition=DEFINITION,
        lines=[_line(key, named[key], lr, records) for (key, lr), records in ordered],
    )


def _line(key: Key, label: str, lr: float, records: Sequence[dict[str, Any]]) -> TheoremLine:
    """Return the medians over seeds, as far as the longest run goes."""
    longest = max(records, key=lambda record: len(record["step"]))["step"]
    columns = {
        name: [
            _middle([r[name][i] if i < len(r[name]) else None for r in records])
            for i in range(len(longest))
        ]
        for name in NUMBERS
    }
    if longest[:1] == [0]:  # no step has been taken yet
        columns["gradient"][0] = None
    return TheoremLine(
        task=key.task,
        method=key.method,
        label=label,
        lr=lr,
        seeds=len(records),
        step=longest,
        **columns,
    )


def _middle(values: Sequence[float | None]) -> float | None:
    """Return the median; None where a run is no longer finite or has not begun."""
    known = [value for value in values if value is not None]
    return median(known) if known and len(known) == len(values) else None


# --- How series were trained


def ways(session: Session, *, study_id: int) -> list[WayRead]:
    """Return how a study's series were trained and why so, where there was something to choose.

    The caller has checked that the study exists.
    """
    sweeps = select(SweepRow.id, SweepRow.spec).where(SweepRow.study_id == study_id)
    chosen = [sweep_id for sweep_id, spec in session.execute(sweeps) if not _by_hand(spec)]
    if not chosen:
        return []
    members = select(SweepTrialRow.trial_id).where(SweepTrialRow.sweep_id.in_(chosen))
    way, why = (TrialRow.record[name].as_string().label(name) for name in ("way", "why"))
    told = select(*KEY_COLUMNS, way, why).where(TrialRow.id.in_(members)).subquery()
    counted = select(*told.c, func.count()).where(told.c.way.is_not(None)).group_by(*told.c)
    found: Counter[tuple[Key, str, str]] = Counter()
    for *settings, name, reason, trials in session.execute(counted):
        found[key_of(study_id, settings), name, reason] += trials
    keys = sorted({key for key, _, _ in found}, key=series_order)
    named = dict(zip(keys, labels(keys), strict=True))
    order = {key: number for number, key in enumerate(keys)}
    in_order = sorted(found.items(), key=lambda one: (order[one[0][0]], *one[0][1:]))
    return [
        WayRead(label=named[key], task=key.task, way=name, why=reason, trials=trials)
        for (key, name, reason), trials in in_order
    ]


def _by_hand(spec: Mapping[str, Any]) -> bool:
    """Return whether a sweep's stacks were written by hand: the paper's tasks and methods."""
    methods = (str(one).partition("(")[0] for one in spec.get("methods", ()))
    return isinstance(TASKS.get(spec.get("task", "")), PaperTask) and all(
        one in METHODS for one in methods
    )


# --- In which settings a trial differs from others of its study


SettingsOf = Callable[[Session, Sequence[int]], dict[int, dict[str, Any]]]


def settings_of(session: Session, *, study_id: int) -> SettingsOf:
    """Return what tells by trial in which settings it differs from others of the study.

    As `varied` says it of the study's series, so that a trial's row names its series.
    """
    members = (
        select(SweepTrialRow.trial_id)
        .join(SweepRow, SweepRow.id == SweepTrialRow.sweep_id)
        .where(SweepRow.study_id == study_id)
    )
    rows = session.execute(select(*KEY_COLUMNS).where(TrialRow.id.in_(members)).distinct())
    keys = list(dict.fromkeys(key_of(study_id, tuple(row)) for row in rows))
    known = dict(zip(keys, varied(keys), strict=True))

    def of_trials(session: Session, trial_ids: Sequence[int]) -> dict[int, dict[str, Any]]:
        query = select(TrialRow.id, *KEY_COLUMNS).where(TrialRow.id.in_(trial_ids))
        found = {row[0]: key_of(study_id, row[1:]) for row in session.execute(query)}
        return {trial_id: known.get(key, {}) for trial_id, key in found.items()}

    return of_trials
