"""Numbers behind the toy pictures of the guide.

Here stands explicit against implicit descent on a one-dimensional loss (Fig. 1); one node's
explicit and implicit update is in `node_step`, imported when first asked for.
"""

from collections.abc import Callable
from dataclasses import dataclass
from math import copysign
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from backend.schemas import Loss, PathRead, QuadraticRead, Samples

HALF_OF_THE_SAMPLES = 100
NARROWEST = 0.5
#: Of two steps to and fro the second reaches at least this share of the first in a circle.
SHRINKING = 0.99
Verdict = Literal["converges", "oscillates", "diverges", "cycles"]
Floats = NDArray[np.float64]
GRID = 2001
HALVINGS = 60


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


def descent(*, loss: Loss, curvature: float, start: float, lr: float, steps: int) -> QuadraticRead:
    """Return both methods' iterates, what they come to, and the function to draw them on."""
    toy = TOY_LOSSES[loss]
    k = lr * curvature
    explicit = _path(start, steps, lambda theta: theta - k * float(toy.slope(np.array(theta))))
    implicit = _path(start, steps, lambda theta: implicit_step(toy, theta, k))
    exact = loss == "quadratic"
    return QuadraticRead(
        loss=loss,
        curvature=curvature,
        start=start,
        lr=lr,
        steps=steps,
        stability_limit=None if toy.limit is None else toy.limit / curvature,
        minimum=0.0,
        function=_function(toy, curvature, start),
        paths=[
            _path_to_read("esgd", explicit, toy, curvature, 1 - k if exact else None),
            _path_to_read("isgd", implicit, toy, curvature, 1 / (1 + k) if exact else None),
        ],
    )


def _path(start: float, steps: int, step: Callable[[float], float]) -> Floats:
    """Return the iterates, NaN once they have left the finite numbers."""
    found = np.full(steps + 1, np.nan)
    found[0] = start
    with np.errstate(over="ignore", invalid="ignore"):
        for t in range(steps):
            after = step(float(found[t]))
            if not np.isfinite(after):
                break
            found[t + 1] = after
    return found


def _path_to_read(
    method: Literal["esgd", "isgd"],
    path: Floats,
    toy: ToyLoss,
    curvature: float,
    factor: float | None,
) -> PathRead:
    with np.errstate(over="ignore", invalid="ignore"):
        losses = curvature * toy.value(path)
    return PathRead(
        method=method,
        theta=path.tolist(),
        loss=losses.tolist(),
        factor=factor,
        verdict=_verdict(path, factor),
    )


def _verdict(path: Floats, factor: float | None) -> Verdict:
    """Return what a path comes to: known on the quadratic, elsewhere judged by its last steps."""
    if factor is None:
        if _goes_in_a_circle(path):
            return "cycles"
        before, last = path[-2], path[-1]
        if before == 0 or last == 0:
            return "converges"
        if not np.isfinite(last) or abs(last) > abs(path[0]) * (1 + 1e-9):
            return "diverges"
        factor = float(last / before)
    if factor < -1:
        return "diverges"
    if factor == -1:
        return "cycles"
    return "oscillates" if factor < 0 else "converges"


def _goes_in_a_circle(path: Floats) -> bool:
    """Return whether the last two steps lead to and fro, on both sides of the minimum."""
    if path.size < 3 or not np.isfinite(path[-1]) or path[-1] * path[-2] >= 0:
        return False
    there, back = path[-2] - path[-3], path[-1] - path[-2]
    return bool(abs(there + back) < (1 - SHRINKING) * abs(back))


def _function(toy: ToyLoss, curvature: float, start: float) -> Samples:
    """Return the loss around the start: the same picture at every rate, whatever a path does."""
    reach = 1.5 * max(abs(start), NARROWEST)
    x = reach * np.arange(-HALF_OF_THE_SAMPLES, HALF_OF_THE_SAMPLES + 1) / HALF_OF_THE_SAMPLES
    with np.errstate(over="ignore"):
        return Samples(x=x.tolist(), y=(curvature * toy.value(x)).tolist())


if TYPE_CHECKING:
    from backend.services.illustrations.node_step import node_update

__all__ = ["descent", "node_update"]


def __getattr__(name: str) -> Any:
    """Import `node_step` when first asked for: torch takes seconds and much of a web process."""
    if name == "node_update":
        from backend.services.illustrations.node_step import node_update

        return node_update
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
