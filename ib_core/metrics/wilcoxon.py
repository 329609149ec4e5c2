"""Wilcoxon's signed-rank test, exact, with ties: is one method's loss lower for the same seeds?"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import erfc, sqrt

import numpy as np

from ib_core.metrics.reading import Floats, Ints

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
