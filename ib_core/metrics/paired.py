"""Two methods seed by seed: with one seed they share initial weights and batch order.

With Wilcoxon's signed-rank test, exact, with ties: is one method's loss lower for the same seeds?
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import erfc, isfinite, sqrt

import numpy as np

from ib_core.metrics.curve import RateCurve, SeedResult
from ib_core.metrics.means import ROUNDING, MeanCurves, SeedAverage, draw_weights
from ib_core.metrics.number import Flags, Floats, Ints, Reading, interval

# Beyond this many pairs the normal approximation is good to more digits than anyone reads.
MOST_EXACT = 100


@dataclass(frozen=True, slots=True)
class SignedRank:
    """Outcome of the test.

    Attributes:
        p: Two-sided p-value; None without any difference to rank.
        n: Number of differences that are not zero.
        least_p: The smallest p that n differences can give, ``2 / 2^n``.
        note: What to bear in mind.
    """

    p: float | None
    n: int
    least_p: float
    note: str = ""


def least_p(n: int) -> float:
    """Return the smallest two-sided p that n differences can give, all of one sign: 2 / 2^n."""
    return min(1.0, 2.0 ** (1 - n))


def signed_rank(differences: Sequence[float]) -> SignedRank:
    """Test whether paired differences lie evenly around zero.

    Two-sided Wilcoxon signed-rank test of the paired differences; zeros are left out and ties
    share their rank. With n seeds p cannot fall below 2 / 2^n: 0.0625 for 5.
    """
    nonzero = np.array([d for d in differences if d != 0], dtype=np.float64)
    n = nonzero.size
    if n == 0:
        return SignedRank(None, 0, 1.0, "No pair differs, so there is nothing to test.")
    ranks = _doubled_ranks(np.abs(nonzero))
    positive = int(ranks[nonzero > 0].sum())
    p = _exact_p(ranks, positive) if n <= MOST_EXACT else _normal_p(ranks, positive)
    note = ""
    if least_p(n) > 0.05:
        note = f"With {n} differences p cannot fall below {least_p(n):g}; run more seeds."
    return SignedRank(p, n, least_p(n), note)


def _doubled_ranks(sizes: Floats) -> Ints:
    """Twice the mid-ranks, so that tied ones stay whole numbers."""
    _, group, count = np.unique(sizes, return_inverse=True, return_counts=True)
    last = np.cumsum(count)
    doubled: Ints = (2 * last - count + 1)[group]
    return doubled


def _exact_p(ranks: Ints, positive: int) -> float:
    """Share of the 2^n sign patterns at least as extreme, counted by adding one rank at a time."""
    chance = np.zeros(int(ranks.sum()) + 1)
    chance[0] = 1.0
    for rank in ranks:
        chance[rank:] = (chance[rank:] + chance[:-rank]) / 2
        chance[:rank] /= 2
    tail = min(float(chance[: positive + 1].sum()), float(chance[positive:].sum()))
    return min(1.0, 2 * tail)


def _normal_p(ranks: Ints, positive: int) -> float:
    spread = sqrt(float((ranks.astype(np.float64) ** 2).sum())) / 2
    distance = abs(positive - ranks.sum() / 2)
    return min(1.0, erfc(distance / spread / sqrt(2)))


@dataclass(frozen=True, slots=True)
class Pair:
    """Two trials with one learning rate and seed.

    Attributes:
        lr: The learning rate of both.
        seed: The seed of both.
        difference: First loss minus second; None if one of them is not finite.
        sign: -1 if the first is lower, +1 if higher, 0 if equal; a loss that is not finite is
            higher than any finite one, and two of them are equal.
    """

    lr: float
    seed: int
    difference: float | None
    sign: int


@dataclass(frozen=True, slots=True)
class PairedDifference:
    """Paired differences at one learning rate, or over all common ones.

    Attributes:
        lr: The learning rate; None for the average over all common ones.
        mean: Mean difference over the finite pairs; None if there is none.
        low: Lower end of its bootstrap interval over seeds; None below two finite seeds.
        high: Upper end.
        lower: Number of pairs in which the first method's loss is lower, finite or not.
        higher: Number in which it is higher.
        test: Wilcoxon's test of the finite differences (overall: of each seed's average).
        pairs: Every pair behind these numbers.
    """

    lr: float | None
    mean: float | None
    low: float | None
    high: float | None
    lower: int
    higher: int
    test: SignedRank
    pairs: tuple[Pair, ...]

    @property
    def n(self) -> int:
        """Number of pairs."""
        return len(self.pairs)

    @property
    def n_finite(self) -> int:
        """Number of pairs behind the mean, which `n` minus this are missing from."""
        return sum(pair.difference is not None for pair in self.pairs)


@dataclass(frozen=True, slots=True)
class PairedComparison:
    """First method minus second: at each common learning rate, and over all of them."""

    points: tuple[PairedDifference, ...]
    overall: PairedDifference


def paired_differences(
    first: RateCurve,
    second: RateCurve,
    *,
    resamples: int = 400,
    level: float = 0.95,
    rng_seed: int = 0,
) -> PairedComparison:
    """Compare two methods by learning rate and seed.

    Loss of one method minus loss of the other for the same learning rate and seed; negative means
    the first is better. Means over the finite pairs, with bootstrap intervals over seeds.

    The overall number is the mean over the common rates of the mean at each. A pair that is not
    finite enters no mean, but it is counted in `lower` and `higher` and listed.

    Args:
        first: For instance IB, or the clipped runs.
        second: For instance EB, or the runs without clipping.
        resamples: Bootstrap draws of seeds.
        level: Confidence level of the intervals.
        rng_seed: Seed of the draws; the same one gives the same intervals.
    """
    pairs = _pairs(first, second)
    rates = sorted({pair.lr for pair in pairs})
    seeds = sorted({pair.seed for pair in pairs})
    if not pairs:
        return PairedComparison((), _summary(None, (), Reading.undefined((1,), ""), (), level))
    table = _table(pairs, rates, seeds)
    present = np.isfinite(table)
    average = SeedAverage(present.astype(np.float64), draw_weights(len(seeds), resamples, rng_seed))
    means = average(np.where(present, table, 0))
    means[:, ~present.any(axis=0)] = np.nan
    points = tuple(
        _summary(
            lr,
            tuple(pair for pair in pairs if pair.lr == lr),
            Reading.of(means[:, k]),
            table[present[:, k], k],
            level,
        )
        for k, lr in enumerate(rates)
    )
    known = Reading.of(_nanmean(means))
    overall = _summary(None, pairs, known, _nanmean(table[present.any(axis=1)]), level)
    return PairedComparison(points, overall)


def _pairs(first: RateCurve, second: RateCurve) -> tuple[Pair, ...]:
    others = {
        (point.lr, result.seed): result for point in second.points for result in point.results
    }
    return tuple(
        _pair(point.lr, result, others[point.lr, result.seed])
        for point in first.points
        for result in point.results
        if (point.lr, result.seed) in others
    )


def _pair(lr: float, first: SeedResult, second: SeedResult) -> Pair:
    one, two = first.finite_loss, second.finite_loss
    if one is None or two is None:
        return Pair(lr, first.seed, None, (one is None) - (two is None))
    gap = one - two
    return Pair(lr, first.seed, gap if isfinite(gap) else None, (one > two) - (one < two))


def _table(pairs: Sequence[Pair], rates: Sequence[float], seeds: Sequence[int]) -> Floats:
    """Differences [seeds, rates], NaN where there is no finite pair."""
    row = {seed: i for i, seed in enumerate(seeds)}
    column = {lr: k for k, lr in enumerate(rates)}
    table = np.full((len(seeds), len(rates)), np.nan)
    for pair in pairs:
        if pair.difference is not None:
            table[row[pair.seed], column[pair.lr]] = pair.difference
    return table


def _nanmean(table: Floats) -> Floats:
    """Row means over what is finite; NaN for a row with nothing."""
    finite = np.isfinite(table)
    count = finite.sum(axis=1)
    total = np.where(finite, table, 0).sum(axis=1)
    return np.where(count > 0, total / np.maximum(count, 1), np.nan)


def _summary(
    lr: float | None,
    pairs: tuple[Pair, ...],
    means: Reading,
    differences: Sequence[float] | Floats,
    level: float,
) -> PairedDifference:
    low, high = interval(means, level) if len(differences) > 1 else (None, None)
    return PairedDifference(
        lr=lr,
        mean=None if np.isnan(means.value[0]) else float(means.value[0]),
        low=low,
        high=high,
        lower=sum(pair.sign < 0 for pair in pairs),
        higher=sum(pair.sign > 0 for pair in pairs),
        test=signed_rank([float(d) for d in differences]),
        pairs=pairs,
    )


def better_than(method: MeanCurves, eb: MeanCurves) -> Reading:
    """Return 1 where a method is better than EB over the whole grid, 0 where it is not.

    Whether the mean over the grid of the mean losses is lower than EB's (the paper's "15 of 17").

    The grid is the rates both have. A mean that is not finite is higher than any other, so the
    method without one wins; rates at which neither mean is finite are left out. Undefined where
    each has one the other has not.
    """
    if method is eb:
        return Reading.undefined(method.shape, "This is the baseline itself.")
    _, ours, theirs = np.intersect1d(method.lrs, eb.lrs, return_indices=True)
    one, two = method.mean[:, ours], eb.mean[:, theirs]
    lost_one, lost_two = np.isnan(one), np.isnan(two)
    kept = ~(lost_one & lost_two)
    total_one = np.where(kept & ~lost_one, one, 0).sum(axis=1)
    total_two = np.where(kept & ~lost_two, two, 0).sum(axis=1)
    lower = total_one < total_two - ROUNDING * np.abs(total_two)
    one_loses: Flags = (lost_one & kept).sum(axis=1) > 0
    two_loses: Flags = (lost_two & kept).sum(axis=1) > 0
    verdict = np.where(one_loses, 0.0, np.where(two_loses, 1.0, lower))
    undecided: Flags = (one_loses & two_loses) | (kept.sum(axis=1) == 0)
    note = _undecided(bool(undecided[0]), kept[0])
    return Reading.of(np.where(undecided, np.nan, verdict), note=note)


def _undecided(undecided: bool, kept: Flags) -> str:
    if not undecided:
        return ""
    if not kept.size:
        return "It shares no learning rate with EB."
    if not kept.any():
        return "At every common learning rate neither mean is finite."
    return "Each has a learning rate at which only its own mean is not finite."
