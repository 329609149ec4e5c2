"""Loss against learning rate: which number of a trial a metric means, and what is plotted."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from math import inf
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from backend.schemas import (
    Band,
    ChosenOn,
    Metric,
    RatePointRead,
    Reducer,
    SeriesRead,
    TrialState,
)
from backend.services.analysis.series import (
    BASELINE,
    Finished,
    Key,
    Series,
    labels,
    series_id,
    varied,
)
from ib_core.metrics import (
    RateCurve,
    RatePoint,
    SeedCurve,
    SeedResult,
    divergence_probability,
    sensible_threshold,
)

if TYPE_CHECKING:  # a sweep on the terminal is judged here, and has no database
    from sqlalchemy.orm import Session


@dataclass(frozen=True, slots=True)
class Measure:
    """A metric under a reducer; time is never the best of several."""

    metric: Metric
    reducer: Reducer = "final"

    @property
    def higher_is_better(self) -> bool:
        """Whether the loss is its complement."""
        return self.metric.endswith("accuracy")

    @property
    def judge(self) -> str:
        """What rates and epochs are chosen by where rows are held out: its like on them."""
        return "validation_accuracy" if self.higher_is_better else "validation_loss"

    @property
    def is_best(self) -> bool:
        """Whether values come from curves."""
        return self.reducer == "best" and self.metric != "seconds"

    def needs_curves(self, *, initial: bool) -> bool:
        """Whether trials have to bring their curves; the initial training loss has a column."""
        return self.is_best or (initial and self.metric not in ("train_loss", "seconds"))

    def loss(self, value: float | None) -> float | None:
        """Return a value as something that is better when lower; also undoes itself."""
        return value if value is None or not self.higher_is_better else 1.0 - value


class Dot(NamedTuple):
    """One trial's number; a tuple, because there are ten thousand of them.

    Attributes:
        value: None where it is not finite.
        initial: The same number before the first step, None where it is not known.
        above_start: Whether the training loss ended above its initial value.
        at_zero: Whether restarts left the weights at zero.
        validation: Its loss on held-out rows, infinite where it was lost; None without any.
    """

    trial_id: int
    lr: float
    seed: int
    outcome: str
    value: float | None
    initial: float | None
    above_start: bool
    at_zero: bool
    validation: float | None


def to_dots(series: Series, measure: Measure, *, initial: bool = False) -> list[Dot]:
    """Return the trials that have the metric.

    A completed trial without the number never recorded it (a task without classes has no
    accuracy); a diverged one without it lost it, and that must show.
    """
    values, initials, judged = _numbers(series.rows, measure, initial=initial)
    known = any(value is not None for value in values)
    lost_all = all(row.state == TrialState.DIVERGED for row in series.rows)
    if not known and not lost_all:
        return []
    return [
        Dot(
            row.id,
            row.lr,
            row.seed,
            row.state,
            value,
            start,
            _rose(row.train_loss, row.initial_loss),
            bool(row.at_zero),
            validation,
        )
        for row, value, start, validation in zip(series.rows, values, initials, judged, strict=True)
        if value is not None or row.state == TrialState.DIVERGED
    ]


def _rose(end: float | None, start: float | None) -> bool:
    """Whether a training loss is known to have ended above its start."""
    return end is not None and start is not None and end > start


def has_validation(rows: Sequence[Finished]) -> bool:
    """Return whether all trials have held-out rows; one that diverged may have lost its loss."""
    known = [row.validation is not None for row in rows]
    lost = (row.state == TrialState.DIVERGED for row in rows)
    return any(known) and all(one or gone for one, gone in zip(known, lost, strict=True))


def _numbers(
    rows: Sequence[Finished], measure: Measure, *, initial: bool
) -> tuple[list[float | None], list[float | None], list[float | None]]:
    """Return the trials' values, their initial ones, and the losses that rates are chosen by."""
    values: list[float | None] = [row.final for row in rows]
    starts: list[float | None] = [row.initial_loss for row in rows]
    judged: list[float | None] = [row.validation for row in rows]
    if measure.needs_curves(initial=initial):
        first, best, by = _from_curves(rows, measure)
        if measure.metric != "train_loss":
            starts = _none_for_nan(first)
        if measure.is_best:
            values, judged = _none_for_nan(best), _none_for_nan(by)
    elif measure.metric != "train_loss":
        starts = [None] * len(rows)
    if not has_validation(rows):
        return values, starts, [None] * len(rows)
    caps = starts if measure.higher_is_better else [row.initial_loss for row in rows]
    return values, starts, _capped(judged, caps, measure)


def _capped(
    judged: Sequence[float | None], caps: Sequence[float | None], measure: Measure
) -> list[float | None]:
    """Return the losses that rates are chosen by; those that are lost count as their caps.

    A validation loss is capped at the training loss at the start: that of every trial is known, so
    the same rate is best whatever is shown, and rows of the test have no say in it.
    """
    ends, tops = ([measure.loss(one) for one in some] for some in (judged, caps))
    return [
        min(inf if end is None else end, inf if top is None else top)
        for end, top in zip(ends, tops, strict=True)
    ]


def _from_curves(rows: Sequence[Finished], measure: Measure) -> tuple[Any, Any, Any]:
    """Return first values, those of the best epochs, and what these were chosen by."""
    # Only stored trials have packed curves; a sweep on the command line needs no database.
    from backend.services.trials import first_and_best, first_and_chosen

    highest = measure.higher_is_better
    by_validation = measure.is_best and has_validation(rows)
    if by_validation or measure.metric == measure.judge:
        blocks = [(row.curve, row.validation_curve) for row in rows]
        return first_and_chosen(blocks, measure.metric, by=measure.judge, highest=highest)
    first, best = first_and_best([row.curve for row in rows], measure.metric, highest=highest)
    return first, best, best


def _none_for_nan(values: Any) -> list[float | None]:
    return [None if value != value else value for value in values.tolist()]


def rate_curve(dots: Sequence[Dot], measure: Measure) -> RateCurve | None:
    """Return dots as losses; None without any."""
    if not dots:
        return None
    if measure.higher_is_better:
        dots = [
            dot._replace(value=measure.loss(dot.value), initial=measure.loss(dot.initial))
            for dot in dots
        ]
    # By position: ten thousand calls with names would take as long as reading the trials.
    return RateCurve.from_results(
        (lr, SeedResult(seed, value, initial, outcome, validation, above, at_zero))
        for _, lr, seed, outcome, value, initial, above, at_zero, validation in dots
    )


@dataclass(frozen=True, slots=True)
class Plotted:
    """A series with its numbers read.

    Attributes:
        series: Whose.
        dots: Its trials that have the metric.
        curve: The same as losses; None without any.
    """

    series: Series
    dots: list[Dot]
    curve: RateCurve | None


def to_plots(found: Sequence[Series], measure: Measure, *, initial: bool = False) -> list[Plotted]:
    """Return every series with its numbers, read once for all that is made of them."""
    plots = []
    for series in found:
        dots = to_dots(series, measure, initial=initial)
        plots.append(Plotted(series, dots, rate_curve(dots, measure)))
    return plots


def to_series(
    plots: Sequence[Plotted],
    measure: Measure,
    band: Band,
    study_names: Mapping[int, str] | None = None,
    *,
    paper: Collection[int] = (),
) -> list[SeriesRead]:
    """Return series with means, bands and seeds.

    Args:
        plots: The series with their numbers.
        measure: Which number.
        band: What is drawn around the means.
        study_names: To tell several studies' series apart.
        paper: Studies to which the paper's divergence threshold belongs.
    """
    keys = [plot.series.key for plot in plots]
    named, settings = labels(keys, study_names), varied(keys, study_names)
    thresholds = _thresholds(plots, measure, paper)
    return [
        SeriesRead(
            **key_fields(plot.series.key),
            label=label,
            settings=own,
            threshold=thresholds.get(plot.series.key.group),
            unfinished=plot.series.unfinished,
            failed=plot.series.failed,
            chosen_on=_chosen_on(plot.series, measure),
            points=_points(plot.dots, plot.curve, measure, band) if plot.curve else [],
        )
        for plot, label, own in zip(plots, named, settings, strict=True)
    ]


def _chosen_on(series: Series, measure: Measure) -> ChosenOn | None:
    """Return by what the best epoch was chosen, where that is not the training set."""
    if not measure.is_best:
        return None
    if has_validation(series.rows):
        return "validation"
    return "test" if measure.metric.startswith("test") else None


def key_fields(key: Key) -> dict[str, object]:
    """Return what the wire types say of a series' identity."""
    return {
        "id": series_id(key),
        "study_id": key.study_id,
        "task": key.task,
        "profile": key.profile,
        "method": key.method,
        "batch_rule": key.batch_rule,
        "activation": key.activation,
        "clip": key.clip,
        "mu": key.mu,
        "epochs": key.epochs,
        "batch_size": key.batch_size,
        "options": key.settings,
        "imported": key.imported,
        "engine_version": key.engine_version,
    }


def _thresholds(
    plots: Sequence[Plotted], measure: Measure, paper: Collection[int]
) -> dict[Key, float | None]:
    """Return the paper's threshold by group, in the paper's studies and where it has a sense.

    Time has none, and one above the initial loss follows the grid's end only.
    """
    if measure.metric == "seconds":
        return {}
    return {
        plot.series.key.group: measure.loss(sensible_threshold(plot.curve))
        for plot in plots
        if plot.series.key.method == BASELINE
        and plot.series.key.study_id in paper
        and plot.curve is not None
    }


def _points(
    dots: Sequence[Dot], curve: RateCurve, measure: Measure, band: Band
) -> list[RatePointRead]:
    seeds: dict[float, list[dict[str, Any]]] = {}
    for trial_id, lr, seed, outcome, value, *_ in dots:
        dot = {"seed": seed, "value": value, "outcome": outcome, "trial_id": trial_id}
        seeds.setdefault(lr, []).append(dot)
    return [_point(point, seeds[point.lr], measure, band) for point in curve.points]


def _point(
    point: RatePoint, seeds: list[dict[str, Any]], measure: Measure, band: Band
) -> RatePointRead:
    edges = point.band(band)
    low, high = measure.loss(edges.low), measure.loss(edges.high)
    if measure.higher_is_better:
        low, high = high, low
    diverged = divergence_probability(point.n_diverged, point.n)
    q1, median, q3 = map(measure.loss, point.quartiles)
    if measure.higher_is_better:
        q1, q3 = q3, q1
    return RatePointRead(
        lr=point.lr,
        mean=measure.loss(point.mean),
        finite_mean=measure.loss(point.finite_mean),
        low=low,
        high=high,
        n=point.n,
        n_finite=point.n_finite,
        diverged=point.n_diverged,
        diverged_low=diverged.low,
        diverged_high=diverged.high,
        q1=q1,
        median=median,
        q3=q3,
        seeds=seeds,  # as dicts: pydantic makes them in one go
    )


# --- Losses over training, of some trials


#: Reads trials' losses over training, by their ids.
Training = Callable[[Collection[int]], Mapping[int, SeedCurve]]


def seed_curve(columns: Mapping[str, Any], measure: Measure, state: str) -> SeedCurve | None:
    """Return a trial's losses, an accuracy as an error; None if it never recorded the metric.

    One that diverged before its first evaluation lost it, and that must show. None, too, for one
    that came with a bundle which keeps of a curve the start alone: its way is not known.

    Args:
        columns: Arrays by the name of a curve's column.
        measure: Which of them.
        state: How the trial ended.
    """
    values, diverged = columns.get(measure.metric), state == TrialState.DIVERGED
    if values is None or not (diverged or np.isfinite(values).any()):
        return None
    if not diverged and columns["step"].size == 1 and columns["step"][0] == 0:
        return None
    losses = 1.0 - values if measure.higher_is_better else values
    return SeedCurve(columns["step"], columns["epoch"], losses, diverged)


def stored_training(session: "Session", measure: Measure) -> Training:
    """Return what reads stored trials' losses; of some series' best rates they are few."""
    from sqlalchemy import select

    from backend.models import CurveRow, TrialRow
    from backend.services.trials import COLUMNS, chunks, unpack

    def read(ids: Collection[int]) -> dict[int, SeedCurve]:
        found = {}
        curves = select(CurveRow.trial_id, TrialRow.state, CurveRow.data, CurveRow.validation)
        curves = curves.join(TrialRow, TrialRow.id == CurveRow.trial_id)
        for some in chunks(sorted(ids)):
            rows = session.execute(curves.where(TrialRow.id.in_(some)))
            for trial, state, data, validation in rows:
                columns = dict(zip(COLUMNS, unpack(data, validation), strict=True))
                if one := seed_curve(columns, measure, state):
                    found[trial] = one
        return found

    return read
