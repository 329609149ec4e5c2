"""Robustness numbers of every series, against EB where its group has one."""

from collections import defaultdict
from collections.abc import Mapping, Sequence

from sqlalchemy.orm import Session

from backend.schemas import Metric, MetricRead, Reducer, ScorecardRead, ScorecardRow
from backend.services.analysis.cost import cost_metrics, seconds_by_cell
from backend.services.analysis.labels import labels, series_id
from backend.services.analysis.sensitivity import key_fields
from backend.services.analysis.series import Key, Series, load_series
from backend.services.analysis.values import Measure, Plotted, read_plots
from ib_core.metrics import METRICS, MetricValue, RateCurve, recommendation
from ib_core.metrics import scorecard as score

BASELINE = "eb"


def scorecard(
    session: Session,
    *,
    study_id: int,
    metric: Metric = "train_loss",
    reducer: Reducer = "final",
) -> ScorecardRead:
    """Return a study's robustness numbers; the caller has checked that the study exists."""
    measure = Measure(metric, reducer)
    found = load_series(
        session,
        study_ids=[study_id],
        value=measure.column,
        with_curves=measure.needs_curves(initial=True),
    )
    rows = read_rows(read_plots(found, measure, initial=True), measure)
    return ScorecardRead(study_id=study_id, metric=metric, reducer=reducer, rows=rows)


def read_rows(
    plots: Sequence[Plotted],
    measure: Measure,
    study_names: Mapping[int, str] | None = None,
) -> list[ScorecardRow]:
    """Return one row for each series that has at least one finished trial with the metric.

    Args:
        plots: Read with their initial losses.
        measure: Which number they are.
        study_names: To tell several studies' series apart.
    """
    keys = [plot.series.key for plot in plots]
    named = dict(zip(keys, labels(keys, study_names), strict=True))
    groups: defaultdict[Key, dict[Key, tuple[Series, RateCurve]]] = defaultdict(dict)
    for plot in plots:
        if plot.curve is not None:
            groups[plot.series.key.group][plot.series.key] = (plot.series, plot.curve)
    return [
        row
        for members in groups.values()
        for row in _group_rows(members, named, counts_down=measure.higher_is_better)
    ]


def _group_rows(
    members: Mapping[Key, tuple[Series, RateCurve]],
    named: Mapping[Key, str],
    *,
    counts_down: bool,
) -> list[ScorecardRow]:
    baseline = next((key for key in members if key.method == BASELINE), None)
    curves = {series_id(key): curve for key, (_, curve) in members.items()}
    values = score(curves, baseline=series_id(baseline) if baseline else BASELINE)
    seconds = {key: seconds_by_cell(series) for key, (series, _) in members.items()}
    eb_seconds = seconds[baseline] if baseline else {}
    return [
        ScorecardRow(
            **key_fields(key),
            label=named[key],
            recommendation=recommendation(row["robust_low"], row["robust_high"]),
            trials=len(series.rows),
            metrics={
                name: read_metric(name, value, counts_down=counts_down)
                for name, value in row.items()
            }
            | cost_metrics(seconds[key], eb_seconds, epochs=key.epochs),
        )
        for (key, (series, _)), row in zip(members.items(), values.values(), strict=True)
    ]


def read_metric(name: str, value: MetricValue, *, counts_down: bool = False) -> MetricRead:
    """Return a number with its definition.

    Args:
        name: Its name in the scorecard.
        value: The number.
        counts_down: Whether the losses are errors, 1 - accuracy.
    """
    known = METRICS.get(name, METRICS["expected_best"])
    error = "Losses here are errors, 1 - accuracy." if counts_down and known.unit == "loss" else ""
    return MetricRead(
        value=value.value,
        low=value.low,
        high=value.high,
        censored=value.censored,
        definition=value.definition,
        title=known.title,
        unit="error" if error else value.unit,
        better=known.better,
        text=value.text,
        note=f"{value.note} {error}".strip(),
        citation=known.citation,
    )
