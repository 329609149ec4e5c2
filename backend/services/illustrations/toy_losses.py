"""One-dimensional losses, all with their minimum 0 at 0."""

from collections.abc import Callable
from dataclasses import dataclass
from math import copysign

import numpy as np
from numpy.typing import NDArray

from backend.schemas.illustrations import Loss

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class ToyLoss:
    """A loss with curvature 1; `c` times it has curvature c.

    Attributes:
        value: The loss.
        slope: Its derivative.
        limit: Rate times curvature above which explicit steps leave the minimum; None: no rate
            is too large to stay finite.
        proximal: The u that minimises ``k * value(u) + (u - theta)^2 / 2``, where it has a formula.
    """

    value: Callable[[Floats], Floats]
    slope: Callable[[Floats], Floats]
    limit: float | None
    proximal: Callable[[float, float], float] | None = None


def _log_cosh(x: Floats) -> Floats:
    found: Floats = np.logaddexp(x, -x) - np.log(2.0)
    return found


def _shrink_towards_zero(theta: float, k: float) -> float:
    return copysign(max(abs(theta) - k, 0.0), theta)


TOY_LOSSES: dict[Loss, ToyLoss] = {
    "quadratic": ToyLoss(
        value=lambda x: x * x / 2,
        slope=lambda x: x,
        limit=2.0,
        proximal=lambda theta, k: theta / (1 + k),
    ),
    "absolute": ToyLoss(value=np.abs, slope=np.sign, limit=None, proximal=_shrink_towards_zero),
    # The logistic loss of two opposite examples.
    "logistic": ToyLoss(
        value=lambda x: 4 * _log_cosh(x / 2), slope=lambda x: 2 * np.tanh(x / 2), limit=2.0
    ),
    "arctan_well": ToyLoss(
        value=lambda x: np.arctan(x) ** 2 / 2,
        slope=lambda x: np.arctan(x) / (1 + x * x),
        limit=2.0,
    ),
}

GRID = 2001
REFINEMENTS = 4


def implicit_step(loss: ToyLoss, theta: float, k: float) -> float:
    """Return the u that minimises ``k * loss(u) + (u - theta)^2 / 2``, eq. (1).

    Every loss here falls towards 0, so u lies between 0 and theta; the well is not convex, so
    that stretch is searched on a grid, again and again around the best point.
    """
    if loss.proximal is not None:
        return loss.proximal(theta, k)
    low, high = min(0.0, theta), max(0.0, theta)
    best = theta
    for _ in range(REFINEMENTS):
        grid = np.linspace(low, high, GRID)
        cost = k * loss.value(grid) + (grid - theta) ** 2 / 2
        at = int(np.argmin(cost))
        best, reach = float(grid[at]), (high - low) / (GRID - 1)
        low, high = max(low, best - reach), min(high, best + reach)
    return best
