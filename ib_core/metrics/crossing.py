"""Where a curve first rises above a bound, on the grid and in between."""

from dataclasses import dataclass

import numpy as np

from ib_core.metrics.means import ROUNDING
from ib_core.metrics.reading import Flags, Floats, Ints


@dataclass(frozen=True, slots=True)
class Crossing:
    """First crossing of each curve, [curves].

    Attributes:
        found: Whether the curve crosses at all before the grid ends.
        index: First grid point above the bound; the last point where none is.
        position: The crossing between that point and the one before; the last x where none is.
    """

    found: Flags
    index: Ints
    position: Floats


def first_above(x: Floats, values: Floats, bound: Floats, start: Ints) -> Crossing:
    """Walk up from each curve's start to the first value above the bound.

    The crossing is interpolated linearly in `x`. NaN lies above every bound and gives nothing to
    interpolate with: there the grid point itself is the crossing. The value at the start must
    not be above the bound. To walk down instead, reverse `x` and `values`.

    Args:
        x: Grid positions, [points].
        values: [curves, points].
        bound: [curves].
        start: Index from which to walk, [curves].
    """
    last = x.size - 1
    with np.errstate(invalid="ignore"):
        within = values <= (bound + ROUNDING * np.abs(bound))[:, None]
    above = ~within & (np.arange(x.size) > start[:, None])
    found: Flags = above.sum(axis=1) > 0
    index = np.where(found, above.argmax(axis=1), last)
    before = np.maximum(index - 1, 0)
    rows = np.arange(len(values))
    share = _share(values[rows, before], values[rows, index], bound)
    position = x[before] + share * (x[index] - x[before])
    return Crossing(found, index, np.where(found, position, x[last]))


def _share(lower: Floats, upper: Floats, bound: Floats) -> Floats:
    """How far between two values the bound lies, in [0, 1]; 1 where the upper is NaN."""
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        share = (bound - lower) / (upper - lower)
    return np.where(np.isfinite(share), np.clip(share, 0.0, 1.0), 1.0)
