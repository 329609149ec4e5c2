"""The numbers once more, slowly and plainly: loops, no arrays of arrays, nothing shared."""

import math
from collections.abc import Mapping, Sequence

import numpy as np

from ib_core.metrics import RateCurve, SeedResult


def capped(result: SeedResult) -> float:
    assert result.initial_loss is not None
    if result.loss is None or not math.isfinite(result.loss):
        return result.initial_loss
    return min(result.loss, result.initial_loss)


def capped_means(curve: RateCurve, without: int | None = None) -> dict[float, float]:
    found = {}
    for point in curve.points:
        kept = [one for one in point.results if one.seed != without] or list(point.results)
        found[point.lr] = sum(capped(one) for one in kept) / len(kept)
    return found


def initial_mean(curve: RateCurve, without: int | None = None) -> float:
    every = [one for point in curve.points for one in point.results]
    kept = [one for one in every if one.seed != without] or every
    return sum(one.initial_loss or 0.0 for one in kept) / len(kept)


def lowest_of_all(curves: Mapping[str, RateCurve], without: int | None = None) -> float:
    return min(min(capped_means(curve, without).values()) for curve in curves.values())


def common_range(curves: Mapping[str, RateCurve]) -> tuple[float, float]:
    return max(c.lrs[0] for c in curves.values()), min(c.lrs[-1] for c in curves.values())


def mean_over_range(means: Mapping[float, float], low: float, high: float) -> float:
    """Mean of the straight-line curve in log rate, by a sum over 200,000 points."""
    count = 200_000
    points = math.log(low) + (math.log(high) - math.log(low)) * (np.arange(count) + 0.5) / count
    return float(np.interp(points, np.log(list(means)), list(means.values())).mean())


def sensitivity(
    curves: Mapping[str, RateCurve], label: str, *, own: bool = False, without: int | None = None
) -> float:
    means = capped_means(curves[label], without)
    lowest = min(means.values()) if own else lowest_of_all(curves, without)
    start = initial_mean(curves[label], without)
    return (mean_over_range(means, *common_range(curves)) - lowest) / (start - lowest)


def best_of_k(means: Mapping[float, float], low: float, high: float, k: int) -> float:
    """Expected lowest of k points of the straight-line curve: the integral of P(all above y)."""
    points = math.log(low) + (math.log(high) - math.log(low)) * np.linspace(0, 1, 100_001)
    values = np.sort(np.interp(points, np.log(list(means)), list(means.values())))
    above = 1 - np.arange(1, values.size) / (values.size - 1)
    return float(values[0] + (np.diff(values) * above**k).sum())


def student_interval(values: Sequence[float]) -> tuple[float, float]:
    from scipy.stats import t

    n = len(values)
    mean = sum(values) / n
    variance = sum((value - mean) ** 2 for value in values) / (n - 1)
    half = float(t.ppf(0.975, n - 1)) * math.sqrt(variance / n)
    return mean - half, mean + half


def chance(ours: RateCurve, theirs: RateCurve) -> float:
    won, cells = 0.0, 0
    for one in ours.points:
        for two in theirs.points:
            for a in one.results:
                for b in two.results:
                    if one.lr == two.lr and a.seed == b.seed:
                        x = a.finite_loss if a.finite_loss is not None else math.inf
                        y = b.finite_loss if b.finite_loss is not None else math.inf
                        won += 1.0 if x < y else 0.5 if x == y else 0.0
                        cells += 1
    return won / cells


def together(curve: RateCurve) -> float:
    """Variance of how often a seed breaks, over what it would be if its rates broke alone."""
    shares = {p.lr: sum(one.broken for one in p.results) / p.n for p in curve.points}
    alone = sum(share * (1 - share) for share in shares.values())
    excess = []
    for seed in curve.seeds:
        mine = [(p.lr, r.broken) for p in curve.points for r in p.results if r.seed == seed]
        excess.append(sum(broken - shares[lr] for lr, broken in mine))
    if alone == 0 or len(excess) < 2:
        return 1.0
    return max(1.0, sum(e * e for e in excess) / (len(excess) - 1) / alone)


def edge_quantiles(curve: RateCurve, shares: Sequence[float]) -> list[float]:
    """Posterior quantiles of the edge by adding up a finer grid, one cell at a time."""
    weight = 1 / together(curve)
    trials = [
        (math.log10(p.lr), weight * sum(r.broken for r in p.results), weight * p.n)
        for p in curve.points
    ]
    step = 0.01
    edges = np.arange(trials[0][0] - 2, trials[-1][0] + 2 + step / 2, step)
    slopes = np.array([0.5 * 200 ** (i / 40) for i in range(41)])
    weights = []
    for edge in edges:
        log_chance = np.zeros(slopes.size)
        for x, broke, n in trials:
            steep = slopes * (x - edge)
            log_chance -= broke * np.logaddexp(0, -steep) + (n - broke) * np.logaddexp(0, steep)
        weights.append(float(np.exp(log_chance).sum()))
    upto = np.cumsum(weights) / sum(weights)
    return [float(10 ** edges[int(np.searchsorted(upto, share))]) for share in shares]
