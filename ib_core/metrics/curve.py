"""Results of one method over learning rates and seeds: the input of every metric.

Only *completed* and *diverged* trials belong here. A failed trial (a fault of code or machine) is
no finding about a learning rate and is refused.

All metrics read losses: lower is better. For an accuracy pass the error, ``1 - accuracy``: every
robustness number is unchanged by such a shift, and the best one still reads as a small number.
"""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from math import inf, isfinite
from typing import Literal

import numpy as np

from ib_core.errors import InvalidSpec

COUNTED_OUTCOMES = ("completed", "diverged")

BandKind = Literal["std", "se", "quantile"]
BAND_DEFINITIONS: dict[BandKind, str] = {
    "std": "Mean plus and minus one population standard deviation of the seeds, as in the paper.",
    "se": "Mean plus and minus one standard error, the sample standard deviation / sqrt(seeds).",
    "quantile": "From the 10th to the 90th percentile of the seeds.",
}
QUANTILES = (0.1, 0.9)


@dataclass(frozen=True, slots=True)
class SeedResult:
    """One trial's loss.

    Attributes:
        seed: The trial's seed; results with one seed share weights and batch order.
        loss: The chosen loss; None, NaN and infinity all mean "not finite".
        initial_loss: The same loss before the first step, None when it was not recorded.
        outcome: ``"completed"`` or ``"diverged"``.
        validation_loss: Loss on the validation part, by which rates are then chosen; already capped
            at a loss at the start, if it is to be.
        above_start: Whether the final *training* loss is above its initial one; None: read it
            off `loss`, which then is the training loss.
        at_zero: Whether restarts left the weights at theta = 0 in the end.
    """

    seed: int
    loss: float | None
    initial_loss: float | None = None
    outcome: str = "completed"
    validation_loss: float | None = None
    above_start: bool | None = None
    at_zero: bool = False

    def __post_init__(self) -> None:
        if self.outcome not in COUNTED_OUTCOMES:
            raise InvalidSpec(
                f"Seed {self.seed} has outcome {self.outcome!r}, but only completed and diverged "
                "trials enter a mean; leave the others out.",
                field="outcome",
            )

    @property
    def finite_loss(self) -> float | None:
        """The loss, or None where it is not a finite number."""
        return self.loss if self.loss is not None and isfinite(self.loss) else None

    @property
    def diverged(self) -> bool:
        """Whether the trial diverged; a loss that is not finite always did."""
        return self.outcome == "diverged" or self.finite_loss is None

    @property
    def broken(self) -> bool:
        """Whether it diverged, ended above its initial training loss, or was restarted to zero."""
        if self.diverged or self.at_zero:
            return True
        if self.above_start is not None:
            return self.above_start
        start, loss = self.initial_loss, self.finite_loss
        return start is not None and loss is not None and loss > start

    @property
    def capped_loss(self) -> float | None:
        """``min(loss, initial loss)``, the initial loss if not finite; None without one."""
        if self.initial_loss is None or not isfinite(self.initial_loss):
            return None
        finite = self.finite_loss
        return self.initial_loss if finite is None else min(finite, self.initial_loss)


@dataclass(frozen=True, slots=True)
class Band:
    """The two edges drawn around a mean; None where no seed is finite."""

    low: float | None
    high: float | None


def _quantile(ascending: list[float], share: float) -> float | None:
    """Return numpy's default quantile; written out, since it is asked for thousands of times."""
    place = share * (len(ascending) - 1)
    below = int(place)
    above = min(below + 1, len(ascending) - 1)
    if ascending[below] == ascending[above]:  # infinite ones, too
        value = ascending[below]
    else:
        value = ascending[below] + (place - below) * (ascending[above] - ascending[below])
    return value if isfinite(value) else None


@dataclass(frozen=True)
class RatePoint:
    """All seeds of one method at one learning rate."""

    lr: float
    results: tuple[SeedResult, ...]

    def __post_init__(self) -> None:
        if not (isfinite(self.lr) and self.lr > 0):
            raise InvalidSpec(f"A learning rate is positive and finite, not {self.lr}.", field="lr")
        seeds = [result.seed for result in self.results]
        if not seeds:
            raise InvalidSpec(f"Learning rate {self.lr:g} has no results.", field="results")
        if len(set(seeds)) < len(seeds):
            raise InvalidSpec(f"A seed occurs twice at learning rate {self.lr:g}.", field="seed")

    @cached_property
    def finite(self) -> tuple[float, ...]:
        """The losses that are finite."""
        losses = (result.finite_loss for result in self.results)
        return tuple(loss for loss in losses if loss is not None)

    @property
    def n(self) -> int:
        """Number of seeds."""
        return len(self.results)

    @property
    def n_finite(self) -> int:
        """Number of seeds behind `finite_mean`."""
        return len(self.finite)

    @cached_property
    def n_diverged(self) -> int:
        """Number of seeds that diverged, whether their loss stayed finite or not."""
        return sum(result.diverged for result in self.results)

    @property
    def mean(self) -> float | None:
        """Mean over all seeds; None, above every threshold, if any seed is not finite."""
        return self.finite_mean if self.n_finite == self.n else None

    @cached_property
    def finite_mean(self) -> float | None:
        """Mean over the finite seeds, shown beside a mean that is not a number."""
        if not self.finite:
            return None
        with np.errstate(over="ignore"):
            mean = float(np.mean(self.finite))
        return mean if isfinite(mean) else None

    def band(self, kind: BandKind = "std") -> Band:
        """Return the band of the finite seeds around their mean (see `BAND_DEFINITIONS`).

        It never reaches beyond the lowest or highest finite seed: a skewed handful of losses
        would otherwise draw a band below zero. With one seed it is that seed.
        """
        if not self.finite or self.finite_mean is None:
            return Band(None, None)
        if kind == "quantile":
            low, high = np.quantile(self.finite, QUANTILES)
        elif kind in BAND_DEFINITIONS:
            half = self._half_width(kind)
            low, high = self.finite_mean - half, self.finite_mean + half
        else:
            raise InvalidSpec(f"There is no band {kind!r}; use std, se or quantile.", field="band")
        low, high = np.clip([low, high], min(self.finite), max(self.finite))
        return Band(float(low), float(high))

    @property
    def quartiles(self) -> tuple[float | None, float | None, float | None]:
        """First quartile, median and third quartile of all seeds, between neighbours linearly.

        A loss that is not finite is above all others; a quartile that touches one is None.
        """
        losses = sorted(self.finite) + [inf] * (self.n - self.n_finite)
        first, median, third = (_quantile(losses, share) for share in (0.25, 0.5, 0.75))
        return first, median, third

    def _half_width(self, kind: BandKind) -> float:
        if self.n_finite == 1:
            return 0.0
        with np.errstate(over="ignore"):
            std = float(np.std(self.finite))
        # sample std / sqrt(n) = population std / sqrt(n - 1)
        return std if kind == "std" else std / float(np.sqrt(self.n_finite - 1))


@dataclass(frozen=True, slots=True)
class RateCurve:
    """One method's results, by ascending learning rate whatever order they came in."""

    points: tuple[RatePoint, ...]

    def __post_init__(self) -> None:
        if not self.points:
            raise InvalidSpec("A curve needs at least one learning rate.", field="points")
        ordered = tuple(sorted(self.points, key=lambda point: point.lr))
        for lower, upper in pairwise(ordered):
            if lower.lr == upper.lr:
                raise InvalidSpec(f"Learning rate {lower.lr:g} occurs twice.", field="points")
        object.__setattr__(self, "points", ordered)

    @classmethod
    def from_results(cls, results: Iterable[tuple[float, SeedResult]]) -> "RateCurve":
        """Group (learning rate, result) pairs, in any order, into a curve."""
        by_rate: dict[float, list[SeedResult]] = defaultdict(list)
        for lr, result in results:
            by_rate[lr].append(result)
        return cls(tuple(RatePoint(lr, tuple(found)) for lr, found in by_rate.items()))

    @property
    def lrs(self) -> tuple[float, ...]:
        """The learning rates, ascending."""
        return tuple(point.lr for point in self.points)

    @property
    def seeds(self) -> tuple[int, ...]:
        """Every seed that occurs at some rate, ascending."""
        return tuple(sorted({result.seed for point in self.points for result in point.results}))
