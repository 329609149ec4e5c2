"""Losses over training at one learning rate: what its seeds have in common at every evaluation."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ib_core.metrics.number import Floats

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
