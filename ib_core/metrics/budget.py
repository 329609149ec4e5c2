"""What a search over random learning rates can be expected to find."""

import numpy as np

from ib_core.errors import InvalidSpec
from ib_core.metrics.means import MeanCurves
from ib_core.metrics.reading import Floats, Reading


def expected_lowest(values: Floats, k: int) -> Floats:
    """Expected lowest of k values drawn with replacement from each row, [curves]."""
    if k < 1:
        raise InvalidSpec(f"At least one rate has to be tried, not {k}.", field="k")
    n = values.shape[-1]
    # P(all k draws rank i or worse), i = 1 .. n+1; its drops are the weights of the sorted values.
    at_least = ((n - np.arange(n + 1)) / n) ** k
    expected: Floats = np.sort(values, axis=-1) @ (at_least[:-1] - at_least[1:])
    return expected


def expected_best(curves: MeanCurves, k: int = 3) -> Reading:
    """Return what trying a few learning rates at random brings.

    Expected lowest mean loss among k learning rates drawn at random, with replacement, from the
    grid, with losses capped at the initial loss where that is recorded.

    Without recorded initial losses the plain means stand in, and the number is undefined if one
    of them is not finite.
    """
    if not np.isnan(curves.initial[0]):
        return Reading.of(expected_lowest(curves.capped, k))
    note = ""
    if np.isnan(curves.mean[0]).any():
        note = "A mean loss is not finite, and without initial losses nothing can stand in for it."
    return Reading.of(expected_lowest(curves.mean, k), note=note)
