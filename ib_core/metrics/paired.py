"""Two methods seed by seed: with one seed they share initial weights and batch order.

With Wilcoxon's signed-rank test, exact, with ties: is one method's loss lower for the same seeds?
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import erfc, isfinite, sqrt

import numpy as np

from ib_core.metrics.curve import RateCurve, SeedResult
from ib_core.metrics.number import Floats, Ints, smooth

DIFFERENCE = (
    "Capped loss of one method minus the other's for the same learning rate and seed; negative "
    "means the first is better. Capped: at most the initial loss, which also stands for a loss "
    "that is not finite, so that no explosion drops out. 95 % interval by leaving out one seed at "
    "a time, with Student's t; none below 3 seeds."
)
WILCOXON = (
    "Two-sided Wilcoxon signed-rank test of the paired differences; zeros are left out and ties "
    "share their rank. With n seeds p cannot fall below 2 / 2^n: 0.0625 for 5."
)
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
        difference: First capped loss minus second; None if it takes an initial loss to say, and
            that was not recorded.
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
        mean: Mean capped difference; None if no pair has one.
        low: Lower end of its 95 % interval; None below three seeds.
        high: Upper end.
        lower: Number of pairs in which the first method's loss is lower, finite or not.
        higher: Number in which it is higher.
        test: Wilcoxon's test of the differences (overall: of each seed's average).
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


def paired_differences(first: RateCurve, second: RateCurve) -> PairedComparison:
    """Compare two methods by learning rate and seed.

    Capped loss of one method minus the other's for the same learning rate and seed; negative
    means the first is better. Capped: at most the initial loss, which also stands for a loss
    that is not finite, so that no explosion drops out. 95 % interval by leaving out one seed at
    a time, with Student's t; none below 3 seeds.

    The overall number is the mean over the common rates of the mean at each. A pair without an
    initial loss, of which one loss is not finite, enters no mean, but it is counted in `lower` and
    `higher` and listed.

    Args:
        first: For instance IB, or the clipped runs.
        second: For instance EB, or the runs without clipping.
    """
    pairs = _pairs(first, second)
    if not pairs:
        return PairedComparison((), _summary(None, (), np.empty((0, 1))))
    rates = sorted({pair.lr for pair in pairs})
    table = _table(pairs, rates, sorted({pair.seed for pair in pairs}))
    points = tuple(
        _summary(lr, tuple(pair for pair in pairs if pair.lr == lr), table[:, k : k + 1])
        for k, lr in enumerate(rates)
    )
    return PairedComparison(points, _summary(None, pairs, table))


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
        sign = (one is None) - (two is None)
    else:
        sign = (one > two) - (one < two)
    ours, theirs = first.capped_loss, second.capped_loss
    if ours is None or theirs is None:
        ours, theirs = one, two
    gap = None if ours is None or theirs is None else ours - theirs
    return Pair(lr, first.seed, gap if gap is not None and isfinite(gap) else None, sign)


def _table(pairs: Sequence[Pair], rates: Sequence[float], seeds: Sequence[int]) -> Floats:
    """Differences [seeds, rates], NaN where a pair has none."""
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


def _summary(lr: float | None, pairs: tuple[Pair, ...], table: Floats) -> PairedDifference:
    """Sum up differences [seeds, rates]."""
    known = table[np.isfinite(table).any(axis=1)]
    mean = low = high = None
    if known.size:
        without = [_mean_of_rates(np.delete(known, i, axis=0), known) for i in range(len(known))]
        found = smooth(np.array([_mean_of_rates(known, known), *without]), len(known))
        mean, low, high = found.value, found.low, found.high
    return PairedDifference(
        lr=lr,
        mean=mean,
        low=low,
        high=high,
        lower=sum(pair.sign < 0 for pair in pairs),
        higher=sum(pair.sign > 0 for pair in pairs),
        test=signed_rank([float(d) for d in _nanmean(known)]),
        pairs=pairs,
    )


def _mean_of_rates(table: Floats, whole: Floats) -> float:
    """Mean over the rates of the mean at each; a rate that lost its only seed keeps its mean."""
    left = _nanmean(table.T) if len(table) else np.full(whole.shape[1], np.nan)
    means = np.where(np.isnan(left), _nanmean(whole.T), left)
    return float(means[~np.isnan(means)].mean())
