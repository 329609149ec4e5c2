"""Series against each other, seed by seed."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise

from backend.schemas import DifferenceKind, PairedPointRead, PairedRead, PairRead
from backend.services.analysis.series import Key, baselines, series_id, version_order
from ib_core.metrics import PairedComparison, PairedDifference


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
    yield from ((key, eb) for key, eb in baselines(keys).items() if key != eb)


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
