"""The numbers verdicts rest on, each with its interval: made from losses seed by seed.

They are functions of the runs alone, so that those of the recorded runs can be made once, where all
of them are at hand, and shipped as numbers.

| name | what it is |
| --- | --- |
| `edge`, `headroom`, `mean_difference`, ... | as the scorecard has them, EB the baseline |
| `difference@RATE` | capped loss minus EB's at one rate, as a share of EB's mean |
| `clipping` | capped loss with clipping minus without, over the upper half of the common rates |
| `beside_clipped@RATE` | IB without clipping minus EB with, capped, as a share of EB's mean |
| `spread` | standard deviation over EB's, geometric mean over the upper half of the rates |
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeVar

import numpy as np

from ib_core.metrics import Number, RateCurve, SeedResult, score_task, smooth
from ib_core.reproduction.published import CLIPPED, CLIPPED_MUSIC

Numbers = Mapping[tuple[str, str, str], Number]
#: Of the scorecard's numbers, those a verdict or the page asks for.
SCORED = (
    *("edge", "headroom", "good_range", "best_rate", "best_mean", "mean_difference"),
    *("chance_better", "paper_threshold", "paper_divergence_rate", "paper_headroom"),
)
T = TypeVar("T")
#: Losses of one seed, by rate.
BySeed = dict[int, dict[float, float]]


def measured(curves: Mapping[str, Mapping[str, RateCurve]]) -> Numbers:
    """Return every number there is, by experiment, method and name."""
    found: dict[tuple[str, str, str], Number] = {}
    for experiment, methods in curves.items():
        for method, row in score_task(methods, paper=True).rows.items():
            found |= {(experiment, method, name): row[name] for name in SCORED}
        if "eb" in methods and "ib" in methods:
            found |= _against_eb(experiment, methods["ib"], methods["eb"])
        found |= _with_clipping(experiment, methods, curves.get(CLIPPED.get(experiment, ""), {}))
    return found


def _against_eb(experiment: str, ib: RateCurve, eb: RateCurve) -> Numbers:
    each = by_rate(ib, eb).items()
    found = {(experiment, "ib", f"difference@{lr:g}"): number for lr, number in each}
    return {**found, (experiment, "ib", "spread"): spread(ib, eb)}


def _with_clipping(
    experiment: str, clipped: Mapping[str, RateCurve], plain: Mapping[str, RateCurve]
) -> Numbers:
    found: dict[tuple[str, str, str], Number] = {}
    for method in sorted(clipped.keys() & plain.keys()):
        number = clipping(clipped[method], plain[method])
        if number is not None:
            found[experiment, method, "clipping"] = number
    if experiment in CLIPPED_MUSIC and "eb" in clipped and "ib" in plain:
        for lr, number in by_rate(plain["ib"], clipped["eb"]).items():
            found[experiment, "ib", f"beside_clipped@{lr:g}"] = number
    return found


def by_rate(one: RateCurve, two: RateCurve) -> dict[float, Number]:
    """Return one method's capped loss minus another's at each common rate, over the other's mean.

    By the seeds both have; a rate without an initial loss is left out.
    """
    ours, theirs = _capped(one), _capped(two)
    found = {}
    for lr in sorted(set(one.lrs) & set(two.lrs)):
        pairs = [
            (ours[seed][lr], theirs[seed][lr])
            for seed in sorted(ours.keys() & theirs.keys())
            if lr in ours[seed] and lr in theirs[seed]
        ]
        if pairs:
            found[lr] = without_each(pairs, _relative)
    return found


def clipping(clipped: RateCurve, plain: RateCurve) -> Number | None:
    """Return the mean capped loss with clipping minus without, over the upper half of the rates."""
    common = sorted(set(clipped.lrs) & set(plain.lrs))
    upper = common[len(common) // 2 :]
    if not upper:
        return None
    ours, theirs = _capped(clipped), _capped(plain)
    gaps = [
        math.fsum(ours[seed][lr] - theirs[seed][lr] for lr in upper) / len(upper)
        for seed in sorted(ours.keys() & theirs.keys())
        if all(lr in ours[seed] and lr in theirs[seed] for lr in upper)
    ]
    return without_each(gaps, lambda found: math.fsum(found) / len(found)) if gaps else None


def spread(one: RateCurve, two: RateCurve) -> Number:
    """Return the ratio of standard deviations, geometric mean over the upper half of the rates.

    Over the seeds that are finite everywhere for both, and rates at which both losses vary.
    """
    common = sorted(set(one.lrs) & set(two.lrs))
    upper = common[len(common) // 2 :]
    ours, theirs = _finite(one), _finite(two)
    pairs = [
        ([ours[seed][lr] for lr in upper], [theirs[seed][lr] for lr in upper])
        for seed in sorted(ours.keys() & theirs.keys())
        if all(lr in ours[seed] and lr in theirs[seed] for lr in upper)
    ]
    if len(pairs) < 3:
        return Number(None, n=len(pairs), note="A standard deviation needs three finite seeds.")
    found = without_each(pairs, _log_ratio_of_spreads)
    value, low, high = (
        None if end is None else math.exp(min(end, 700.0))
        for end in (found.value, found.low, found.high)
    )
    return Number(value, low, high, n=found.n, note=found.note)


def _log_ratio_of_spreads(pairs: Sequence[tuple[list[float], list[float]]]) -> float:
    one, two = (np.std([pair[i] for pair in pairs], axis=0) for i in (0, 1))
    vary = (one > 0) & (two > 0)
    return float(np.mean(np.log(one[vary] / two[vary]))) if vary.any() else math.nan


def _relative(pairs: Sequence[tuple[float, float]]) -> float:
    ours, theirs = (math.fsum(pair[i] for pair in pairs) for i in (0, 1))
    return (ours - theirs) / theirs if theirs else math.nan


def without_each(seeds: Sequence[T], number: Callable[[Sequence[T]], float]) -> Number:
    """Return a number with the interval from leaving out one seed at a time."""
    rows = [seeds, *([*seeds[:i], *seeds[i + 1 :]] for i in range(len(seeds)))]
    values = [number(row) if row else math.nan for row in rows]
    return smooth(np.array(values), len(seeds))


def _capped(curve: RateCurve) -> BySeed:
    return losses_by_seed(curve, lambda result: result.capped_loss)


def _finite(curve: RateCurve) -> BySeed:
    return losses_by_seed(curve, lambda result: result.finite_loss)


def losses_by_seed(curve: RateCurve, loss: Callable[[SeedResult], float | None]) -> BySeed:
    """Return some loss of every trial that has it, by seed and rate."""
    found: BySeed = {}
    cells: Iterable[tuple[float, SeedResult]] = (
        (point.lr, result) for point in curve.points for result in point.results
    )
    for lr, result in cells:
        value = loss(result)
        if value is not None:
            found.setdefault(result.seed, {})[lr] = value
    return found
