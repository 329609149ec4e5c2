"""One-dimensional losses, all with their minimum 0 at 0."""

from collections.abc import Callable
from dataclasses import dataclass
from math import copysign

import numpy as np
from numpy.typing import NDArray

from backend.schemas import Loss

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
    # Next to 0 the difference to log 2 would be rounding.
    near = np.log1p(2 * np.sinh(np.clip(x, -1, 1) / 2) ** 2)
    found: Floats = np.where(np.abs(x) < 1, near, np.logaddexp(x, -x) - np.log(2.0))
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
HALVINGS = 60


def implicit_step(loss: ToyLoss, theta: float, k: float) -> float:
    """Return the u that minimises ``k * loss(u) + (u - theta)^2 / 2``, eq. (1).

    Every loss here falls towards 0, so u lies between 0 and theta; the well is not convex, so
    that stretch is searched on a grid. Around the best point the slope's zero is then found by
    halving: values alone would show it to eight digits only.
    """
    if loss.proximal is not None:
        return loss.proximal(theta, k)
    grid = np.linspace(min(0.0, theta), max(0.0, theta), GRID)
    at = int(np.argmin(k * loss.value(grid) + (grid - theta) ** 2 / 2))
    low, high = float(grid[max(at - 1, 0)]), float(grid[min(at + 1, GRID - 1)])
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        if k * float(loss.slope(np.array(middle))) + middle - theta < 0:
            low = middle
        else:
            high = middle
    return (low + high) / 2
