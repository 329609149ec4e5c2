"""Mean curves, observed and resampled: the arrays every metric is computed from.

A seed decides initial weights and batch order for every rate and every method, so it is the unit
of chance: one bootstrap draw picks seeds, and the picked seeds are used at all rates of all
methods together. A draw is a row of weights, and every resampled mean is one matrix product.

Losses over training at one learning rate: what its seeds have in common at every evaluation.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ib_core.errors import InvalidSpec
from ib_core.metrics.curve import RateCurve, SeedResult
from ib_core.metrics.number import Floats, Ints

# Sums of equal numbers in different order differ in the last bits; that is no difference.
ROUNDING = 1e-12


@dataclass(frozen=True, slots=True)
class MeanCurves:
    """Curves of one method over the same rates: row 0 as observed, then its resamples.

    Attributes:
        lrs: Learning rates, ascending, [rates].
        mean: Mean loss, NaN where a seed is not finite, [curves, rates].
        capped: Mean of ``min(loss, initial loss)``, NaN if unknown, [curves, rates].
        initial: Mean initial loss, NaN if unknown, [curves].
        diverged: Share of seeds that diverged, [curves, rates].
        most_seeds: The largest number of seeds at one rate; below 2 resampling tells nothing.
    """

    lrs: Floats
    mean: Floats
    capped: Floats
    initial: Floats
    diverged: Floats
    most_seeds: int = 1

    @classmethod
    def of(
        cls,
        lrs: ArrayLike,
        mean: ArrayLike,
        *,
        initial: float | None = None,
        diverged: ArrayLike | None = None,
    ) -> "MeanCurves":
        """Build the curve of a method from bare means, as if each were one seed's loss."""
        rates = np.asarray(lrs, dtype=np.float64)
        if rates.ndim != 1 or not rates.size or np.any(np.diff(rates) <= 0) or not rates[0] > 0:
            raise InvalidSpec("Learning rates must be positive and ascending.", field="lrs")
        means = np.atleast_2d(np.asarray(mean, dtype=np.float64))
        if means.shape[-1] != rates.size:
            raise InvalidSpec(
                f"{rates.size} learning rates need as many means, not {means.shape[-1]}.",
                field="mean",
            )
        finite = np.isfinite(means)
        start = np.nan if initial is None else initial
        return cls(
            lrs=rates,
            mean=np.where(finite, means, np.nan),
            capped=np.where(finite, np.minimum(means, start), start),
            initial=np.full(len(means), start),
            diverged=np.atleast_2d(
                np.asarray(~finite if diverged is None else diverged, dtype=np.float64)
            ),
        )

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of a metric of these curves, [curves]."""
        return self.initial.shape

    @property
    def log_lrs(self) -> Floats:
        """Decimal logarithms of the learning rates."""
        return np.log10(self.lrs)

    @property
    def best_mean(self) -> Floats:
        """The lowest finite mean, l*; NaN where no mean is finite."""
        lowest = np.where(np.isnan(self.mean), np.inf, self.mean).min(axis=-1)
        return np.where(np.isinf(lowest), np.nan, lowest)

    @property
    def best_index(self) -> Ints:
        """Index of the lowest rate whose mean is the best mean, 0 where no mean is finite."""
        best = self.best_mean
        with np.errstate(invalid="ignore"):
            reached = self.mean <= (best + ROUNDING * np.abs(best))[..., None]
        first: Ints = reached.argmax(axis=-1)
        return first


def draw_weights(n_seeds: int, resamples: int, rng_seed: int) -> Floats:
    """How often each seed is drawn, [1 + resamples, seeds]; row 0 is the data as observed.

    A resample draws one seed less than there are: that makes the spread of resampled means
    unbiased, where drawing all of them makes it too small by (n - 1)/n.
    """
    rng = np.random.default_rng(rng_seed)
    drawn = rng.multinomial(n_seeds - 1, np.full(n_seeds, 1 / n_seeds), size=resamples)
    return np.vstack([np.ones((1, n_seeds)), drawn])


def mean_curves(
    curve: RateCurve, *, seeds: Sequence[int] | None = None, weights: Floats | None = None
) -> MeanCurves:
    """Average a curve over its seeds, once for every row of weights.

    Args:
        curve: The method's results; rates may have different seeds.
        seeds: What the columns of `weights` stand for; by default the curve's own seeds.
        weights: [curves, seeds] from `draw_weights`; by default only the observed curve.
    """
    columns = {seed: i for i, seed in enumerate(curve.seeds if seeds is None else seeds)}
    rows = np.ones((1, len(columns))) if weights is None else weights
    cells = _cells(curve, columns)
    average = SeedAverage(cells["present"], rows)
    bad = (rows @ (cells["present"] - cells["finite"])) > 0
    mean = np.where(bad, np.nan, average(cells["loss"]))
    # A rate none of whose seeds was drawn keeps its observed mean, which may be NaN.
    mean = np.where(average.drawn, mean, mean[0])
    return MeanCurves(
        lrs=np.array(curve.lrs),
        mean=np.where(np.isfinite(mean), mean, np.nan),
        capped=average(cells["capped"]),
        initial=_mean_initial(cells["initial"], cells["present"], rows),
        diverged=average(cells["diverged"]),
        most_seeds=max(point.n for point in curve.points),
    )


class SeedAverage:
    """Weighted means over the seeds present at each rate; a rate with none drawn is as observed.

    Args:
        present: 1 where a seed counts at a rate, else 0, [seeds, rates].
        weights: From `draw_weights`, [curves, seeds].
    """

    def __init__(self, present: Floats, weights: Floats) -> None:
        self._weights = weights
        self._total = weights @ present
        self.drawn = self._total > 0

    def __call__(self, cells: Floats) -> Floats:
        """Average a table that is 0 where `present` is, [seeds, rates] to [curves, rates]."""
        with np.errstate(over="ignore", invalid="ignore"):
            mean: Floats = (self._weights @ cells) / np.where(self.drawn, self._total, 1)
        return np.where(self.drawn, mean, mean[0])


def _mean_initial(initial: Floats, present: Floats, weights: Floats) -> Floats:
    total = weights @ present.sum(axis=1)
    with np.errstate(over="ignore", invalid="ignore"):
        mean: Floats = (weights @ initial.sum(axis=1)) / np.where(total > 0, total, 1)
    mean = np.where(np.isfinite(mean), mean, np.nan)  # too large to be added up: unknown
    return np.where(total > 0, mean, mean[0])


def _cells(curve: RateCurve, columns: dict[int, int]) -> dict[str, Floats]:
    """Tables [seeds, rates], 0 where a seed is absent; NaN throughout if a start is unknown."""
    names = ("present", "finite", "loss", "capped", "initial", "diverged")
    table = np.zeros((len(names), len(columns), len(curve.points)))
    places = [
        (columns[result.seed], k)
        for k, point in enumerate(curve.points)
        for result in point.results
    ]
    values = [_numbers(result) for point in curve.points for result in point.results]
    # All at once: ten thousand assignments would take longer than every other step.
    table[:, *np.array(places).T] = np.array(values, dtype=float).T
    cells = dict(zip(names, table, strict=True))
    if np.isnan(cells["initial"]).any():
        cells["capped"] = cells["initial"] = np.full_like(cells["initial"], np.nan)
    return cells


def _numbers(result: SeedResult) -> tuple[float, float, float, float, float, float]:
    loss, capped, initial = result.finite_loss, result.capped_loss, result.initial_loss
    if capped is None or initial is None:
        capped = initial = np.nan
    return (1.0, loss is not None, loss or 0.0, capped, initial, result.diverged)


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
