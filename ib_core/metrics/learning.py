"""Losses over training at one learning rate: what its seeds have in common, and time to target."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import comb, inf, isfinite

import numpy as np
from numpy.typing import NDArray

from ib_core.metrics.number import (
    LEVEL,
    ROUNDING,
    Floats,
    Number,
    joined,
    number_text,
    seeds_note,
    unknown,
)

#: What a learning curve is, for captions.
LEARNING = (
    "Mean over all seeds at every evaluation; where one is not finite there is no mean. A seed "
    "that stopped at its divergence counts as not finite from there on."
)


@dataclass(frozen=True, slots=True)
class SeedCurve:
    """One trial's losses, by step.

    Attributes:
        steps: Ascending.
        epochs: As many.
        losses: As many; NaN or infinite where they are not finite.
        diverged: Whether what comes after its last step is lost rather than not measured.
    """

    steps: Floats
    epochs: Floats
    losses: Floats
    diverged: bool = False


@dataclass(frozen=True, slots=True)
class LearningCurve:
    """The seeds of one rate on one axis of steps.

    Attributes:
        steps: Ascending, [points].
        epochs: As many.
        losses: [seeds, points]; infinite where lost, NaN where nothing was measured.
        mean: [points]; infinite where a seed is lost, NaN where none was measured.
        broken: Seeds that are lost, or above their own first loss, [points].
        measured: Seeds behind them, [points].
    """

    steps: Floats
    epochs: Floats
    losses: Floats
    mean: Floats
    broken: NDArray[np.int64]
    measured: NDArray[np.int64]


def running_mean(losses: Floats, over: int) -> Floats:
    """Return the mean of each loss and up to `over` - 1 before it: ``mean(l[t-over+1 .. t])``.

    What is not finite stays so and is in no other's mean: a curve that broke still breaks where
    it did.
    """
    if over <= 1:
        return losses
    finite = np.isfinite(losses)
    known = np.concatenate([np.full(over - 1, np.nan), np.where(finite, losses, np.nan)])
    # Window by window: running sums would lose small losses behind a huge one.
    windows = np.lib.stride_tricks.sliding_window_view(known, over)
    counts = np.isfinite(windows).sum(axis=1)
    return np.where(finite, np.nansum(windows, axis=1) / np.maximum(counts, 1), losses)


def learning_curve(
    seeds: Sequence[SeedCurve], *, smooth: int = 1, points: int | None = None
) -> LearningCurve:
    """Return the seeds of one rate together.

    Args:
        seeds: At least one.
        smooth: Each loss is the mean of so many evaluations up to it.
        points: At most so many steps, evenly taken, the first and the last among them.
    """
    steps, places = np.unique(np.concatenate([one.steps for one in seeds]), return_index=True)
    epochs = np.concatenate([one.epochs for one in seeds])[places]
    losses = np.full((len(seeds), len(steps)), np.nan)
    for row, one in zip(losses, seeds, strict=True):
        known = np.where(np.isfinite(one.losses), one.losses, np.inf)
        row[np.searchsorted(steps, one.steps)] = running_mean(known, smooth)
        if one.diverged and one.steps.size:
            row[steps > one.steps[-1]] = np.inf
    if points is not None and len(steps) > points:
        kept = np.unique(np.linspace(0, len(steps) - 1, points).round().astype(int))
        steps, epochs, losses = steps[kept], epochs[kept], losses[:, kept]
    measured = ~np.isnan(losses)
    counts = measured.sum(axis=0)
    with np.errstate(invalid="ignore", over="ignore"):
        sums = np.where(measured, losses, 0.0).sum(axis=0)
        mean = np.where(counts > 0, sums / np.maximum(counts, 1), np.nan)
        first = np.array([one.losses[0] if one.losses.size else np.nan for one in seeds])
        broken = (losses > first[:, None]) | np.isinf(losses)
    return LearningCurve(steps, epochs, losses, mean, broken.sum(axis=0), counts)


#: With so many seeds the lowest and the highest hold the median 94 times in 100.
LEAST_FOR_MEDIAN = 5


def epochs_until(curve: SeedCurve, target: float) -> float:
    """Return the epochs at the first loss that is not above the target; infinite if none is.

    A loss between two evaluations is not known, so this is the first evaluation that shows it.
    """
    low_enough = curve.losses <= target + ROUNDING * abs(target)
    there = np.flatnonzero(low_enough & np.isfinite(curve.losses))
    return float(curve.epochs[there[0]]) if there.size else inf


def time_to_target(seeds: Sequence[SeedCurve], target: float) -> Number:
    """Return the median of the seeds' epochs to a target.

    A seed that never gets there is later than all that do: it is counted, and in no mean. Where
    that makes the median infinite, the number is "at least" the epochs trained.

    Args:
        seeds: At least one, of one series at one rate.
        target: A loss.
    """
    n = len(seeds)
    if not isfinite(target):
        return unknown(n, "There is no target: nothing was learnt, or initial losses are unknown.")
    times = np.sort([epochs_until(one, target) for one in seeds])
    got = f"{np.isfinite(times).sum()} of {n} seeds got to {number_text(target)}."
    few = "A median's interval needs 5 seeds." if n < LEAST_FOR_MEDIAN else seeds_note(n)
    low, high = (end if isfinite(end) else None for end in median_ends(times))
    middle = float(np.median(times))
    if isfinite(middle):
        return Number(middle, low, high, n=n, note=joined(got, few))
    trained = max((float(one.epochs[-1]) for one in seeds if one.epochs.size), default=0.0)
    return Number(trained, low, None, censored="above", n=n, note=joined(got, few))


def median_ends(ascending: Floats) -> tuple[float, float]:
    """Return two of some values between which their median lies 95 times in 100.

    The median is above the k lowest of n with the chance that fewer than k of n coins show heads,
    whatever the distribution: k is the largest for which both sides together stay below 5 %, and
    at least 1. Both ends are infinite below five values.
    """
    n = len(ascending)
    if n < LEAST_FOR_MEDIAN:
        return inf, inf
    k, outside = 0, 2 / 2**n
    while outside <= 1 - LEVEL:
        k += 1
        outside += 2 * comb(n, k) / 2**n
    k = max(k, 1)
    return float(ascending[k - 1]), float(ascending[n - k])
