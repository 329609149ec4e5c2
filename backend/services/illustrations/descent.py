"""Explicit against implicit descent on a one-dimensional loss (Fig. 1)."""

from collections.abc import Callable
from typing import Literal

import numpy as np

from backend.schemas import Loss, PathRead, QuadraticRead, Samples
from backend.services.illustrations.toy_losses import TOY_LOSSES, Floats, ToyLoss, implicit_step

HALF_OF_THE_SAMPLES = 100
NARROWEST = 0.5
#: Of two steps to and fro the second reaches at least this share of the first in a circle.
SHRINKING = 0.99

Verdict = Literal["converges", "oscillates", "diverges", "cycles"]


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
            _read("esgd", explicit, toy, curvature, 1 - k if exact else None),
            _read("isgd", implicit, toy, curvature, 1 / (1 + k) if exact else None),
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


def _read(
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
