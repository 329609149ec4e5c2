"""Loss against learning rate: what is plotted."""

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy.orm import Session

from backend.schemas import (
    Band,
    Metric,
    RatePointRead,
    Reducer,
    SensitivityRead,
    SeriesRead,
)
from backend.services.analysis.labels import labels, series_id
from backend.services.analysis.series import Key, load_series
from backend.services.analysis.values import Dot, Measure, Plotted, read_plots
from ib_core.metrics import (
    BAND_DEFINITIONS,
    METRICS,
    RateCurve,
    RatePoint,
    divergence_probability,
    paper_threshold,
)


def sensitivity(
    session: Session,
    *,
    study_id: int,
    metric: Metric = "train_loss",
    reducer: Reducer = "final",
    band: Band = "std",
) -> SensitivityRead:
    """Return a study's curves; the caller has checked that the study exists."""
    measure = Measure(metric, reducer)
    found = load_series(
        session,
        study_ids=[study_id],
        value=measure.column,
        with_curves=measure.needs_curves(initial=False),
    )
    series = read_series(read_plots(found, measure), measure, band)
    thresholds = [line.threshold for line in series if line.threshold is not None]
    return SensitivityRead(
        study_id=study_id,
        metric=metric,
        reducer=reducer,
        band=band,
        band_definition=BAND_DEFINITIONS[band],
        series=series,
        threshold=thresholds[0] if thresholds else None,
        threshold_definition=METRICS["divergence_threshold"].definition,
    )


def read_series(
    plots: Sequence[Plotted],
    measure: Measure,
    band: Band,
    study_names: Mapping[int, str] | None = None,
) -> list[SeriesRead]:
    """Return series with means, bands, seeds and their group's divergence threshold."""
    named = labels([plot.series.key for plot in plots], study_names)
    thresholds = _thresholds(plots, measure)
    return [
        SeriesRead(
            **key_fields(plot.series.key),
            label=label,
            threshold=thresholds.get(plot.series.key.group),
            unfinished=plot.series.unfinished,
            failed=plot.series.failed,
            points=_points(plot.dots, plot.curve, measure, band) if plot.curve else [],
        )
        for plot, label in zip(plots, named, strict=True)
    ]


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


def _thresholds(plots: Sequence[Plotted], measure: Measure) -> dict[Key, float | None]:
    """Return the paper's threshold by group; time has none."""
    if measure.metric == "seconds":
        return {}
    return {
        plot.series.key.group: measure.loss(paper_threshold(plot.curve))
        for plot in plots
        if plot.series.key.method == "eb" and plot.curve is not None
    }


def _points(
    dots: Sequence[Dot], curve: RateCurve, measure: Measure, band: Band
) -> list[RatePointRead]:
    seeds: dict[float, list[dict[str, Any]]] = {}
    for trial_id, lr, seed, outcome, value, _ in dots:
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
        seeds=seeds,  # as dicts: pydantic makes them in one go
    )
