"""Series against each other: the scorecard, differences seed by seed, several studies at once."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from statistics import fmean

from backend.schemas import (
    DifferenceKind,
    MetricRead,
    PairedPointRead,
    PairedRead,
    PairRead,
    ScorecardRow,
)
from backend.services.analysis.rate_curves import Measure, Plotted, key_fields
from backend.services.analysis.series import (
    Key,
    Series,
    labels,
    series_id,
    version_order,
)
from ib_core.metrics import (
    METRICS,
    MetricValue,
    PairedComparison,
    PairedDifference,
    RateCurve,
    recommendation,
)
from ib_core.metrics import scorecard as score

BASELINE = "eb"
SECONDS = (
    "Mean training time per epoch over the completed trials, in seconds: a trial's share of the "
    "time its shard took."
)
OVERHEAD = (
    "Mean over the learning rates and seeds that both completed of this method's training time, "
    "divided by the same mean of EB's, minus 1."
)
Seconds = dict[tuple[float, int], float]


def to_rows(
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
                name: to_metric(name, value, counts_down=counts_down) for name, value in row.items()
            }
            | time_metrics(seconds[key], eb_seconds, epochs=key.epochs),
        )
        for (key, (series, _)), row in zip(members.items(), values.values(), strict=True)
    ]


def to_metric(name: str, value: MetricValue, *, counts_down: bool = False) -> MetricRead:
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


def time_metrics(own: Seconds, eb: Seconds, *, epochs: int) -> dict[str, MetricRead]:
    """Return a series' time per epoch and its overhead over EB, None where not measured.

    Args:
        own: From `seconds_by_cell` of the series.
        eb: The same of EB's series; empty without one.
        epochs: How many a trial of the series has.
    """
    per_epoch = fmean(own.values()) / epochs if own else None
    return {
        "seconds_per_epoch": _time_metric(
            "Seconds per epoch", "seconds", per_epoch, SECONDS, "No trial has a measured time."
        ),
        "overhead": _time_metric(
            "Extra time over EB",
            "share",
            _overhead(own, eb),
            OVERHEAD,
            "No trial of this method and of EB share rate, seed and a measured time.",
        ),
    }


def seconds_by_cell(series: Series) -> Seconds:
    """Return measured times by rate and seed.

    Only of completed trials: a diverged one may have stopped early, and tells nothing.
    """
    cells = ((row.state, row.lr, row.seed, row.seconds) for row in series.rows)
    return {(lr, seed): took for state, lr, seed, took in cells if took and state == "completed"}


def _overhead(own: Seconds, eb: Seconds) -> float | None:
    common = own.keys() & eb.keys()
    if not common:
        return None
    return fmean(own[cell] for cell in common) / fmean(eb[cell] for cell in common) - 1


def _time_metric(
    title: str, unit: str, value: float | None, definition: str, missing: str
) -> MetricRead:
    return MetricRead(
        value=value,
        low=None,
        high=None,
        censored="none",
        definition=definition,
        title=title,
        unit=unit,
        better="lower",
        text="–" if value is None else f"{value:.3g}",
        note=missing if value is None else "",
        citation="Etascope",
    )


def pairs_of(keys: Sequence[Key], kind: DifferenceKind) -> Iterator[tuple[Key, Key]]:
    """Yield the series to compare, each with what it is compared to."""
    if kind == "engine":
        yield from _engines(keys)
        return
    if kind == "clip":
        known = set(keys)
        for key in keys:
            unclipped = replace(key, clip=None)
            if key.clip is not None and unclipped in known:
                yield key, unclipped
        return
    baselines = {key.group: key for key in keys if key.method == "eb"}
    for key in keys:
        if key.method != "eb" and key.group in baselines:
            yield key, baselines[key.group]


def _engines(keys: Sequence[Key]) -> Iterator[tuple[Key, Key]]:
    """Yield each series with the same one of the engine version before."""
    versions: dict[Key, list[Key]] = {}
    for key in keys:
        if key.engine_version is not None:
            versions.setdefault(replace(key, engine_version=None), []).append(key)
    for same in versions.values():
        ordered = sorted(same, key=lambda key: version_order(key.engine_version or ""))
        yield from ((later, earlier) for earlier, later in pairwise(ordered))


def pair_to_read(
    first: Key, second: Key, named: Mapping[Key, str], found: PairedComparison
) -> PairedRead:
    """Return a comparison as it is answered."""
    return PairedRead(
        first=series_id(first),
        second=series_id(second),
        first_label=named[first],
        second_label=named[second],
        overall=_point_to_read(found.overall),
        points=[_point_to_read(point) for point in found.points],
        pairs=[
            PairRead(lr=pair.lr, seed=pair.seed, difference=pair.difference)
            for pair in found.overall.pairs
        ],
    )


def _point_to_read(found: PairedDifference) -> PairedPointRead:
    return PairedPointRead(
        lr=found.lr,
        mean=found.mean,
        low=found.low,
        high=found.high,
        n=found.n,
        n_finite=found.n_finite,
        lower=found.lower,
        higher=found.higher,
        wilcoxon_p=found.test.p,
        note=found.test.note,
    )
