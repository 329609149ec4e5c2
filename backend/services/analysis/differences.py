"""Two series seed by seed: a method against EB, clipped against unclipped."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise

from sqlalchemy.orm import Session

from backend.schemas import (
    DifferenceKind,
    DifferencesRead,
    Metric,
    PairedPointRead,
    PairedRead,
    PairRead,
    Reducer,
)
from backend.services.analysis.labels import labels, series_id
from backend.services.analysis.series import Key, load_series, version_order
from backend.services.analysis.values import Measure, read_plots
from ib_core.metrics import METRICS, PairedComparison, PairedDifference, paired_differences


def differences(
    session: Session,
    *,
    study_id: int,
    kind: DifferenceKind,
    metric: Metric = "train_loss",
    reducer: Reducer = "final",
) -> DifferencesRead:
    """Return a study's paired differences; the caller has checked that the study exists.

    An accuracy is compared as an error, 1 - accuracy, so that negative always means better.
    """
    measure = Measure(metric, reducer)
    found = load_series(
        session,
        study_ids=[study_id],
        value=measure.column,
        with_curves=measure.needs_curves(initial=False),
    )
    keys = [series.key for series in found]
    named = dict(zip(keys, labels(keys), strict=True))
    curves = {plot.series.key: plot.curve for plot in read_plots(found, measure)}
    items = [
        _read(first, second, named, paired_differences(one, two))
        for first, second in _pairs(keys, kind)
        if (one := curves[first]) is not None and (two := curves[second]) is not None
    ]
    return DifferencesRead(
        study_id=study_id,
        metric=metric,
        reducer=reducer,
        kind=kind,
        definition=METRICS["paired_difference"].definition,
        items=[item for item in items if item.points],
    )


def _pairs(keys: Sequence[Key], kind: DifferenceKind) -> Iterator[tuple[Key, Key]]:
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


def _read(first: Key, second: Key, named: Mapping[Key, str], found: PairedComparison) -> PairedRead:
    return PairedRead(
        first=series_id(first),
        second=series_id(second),
        first_label=named[first],
        second_label=named[second],
        overall=_point(found.overall),
        points=[_point(point) for point in found.points],
        pairs=[
            PairRead(lr=pair.lr, seed=pair.seed, difference=pair.difference)
            for pair in found.overall.pairs
        ],
    )


def _point(found: PairedDifference) -> PairedPointRead:
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
