"""Slow twins of the rules, which live only to be compared with.

Everything here is float64, made of searches and bisections that can be checked by eye, and knows
nothing of the fast rules. The functions are element-wise and take flat tensors of one shape.
"""

from collections.abc import Callable

import torch
from torch import Tensor

Function = Callable[[Tensor], Tensor]


def objective(
    sigma: Function, alpha: Tensor, s: Tensor, b: Tensor, z_sq: Tensor, lr: Tensor, mu: Tensor
) -> Tensor:
    """Return the value of eq. (8) at ``alpha``."""
    shrink = 1 + lr * mu
    q = s / shrink - alpha * lr * z_sq
    return b * sigma(q) + lr * shrink * z_sq * alpha**2 / 2


def reference_alpha(
    sigma: Function,
    slope_range: tuple[float, float],
    s: Tensor,
    b: Tensor,
    z_sq: Tensor,
    lr: Tensor,
    mu: Tensor,
    *,
    kinks: tuple[float, ...] = (),
    points: int = 1501,
    rounds: int = 6,
) -> Tensor:
    """Return the alpha of the lowest value of eq. (8), found by search; a tie goes to the smaller.

    At the minimum ``alpha*(1 + lr*mu)/b`` lies between sigma's lowest and highest slope. That
    interval is covered evenly, and a second time by the alphas whose steps land on an even grid
    of [-12, 12], outside of which every activation here is straight. Then the neighbourhood of the
    best point is covered again, ``rounds`` times.
    """
    shrink, k = 1 + lr * mu, lr * z_sq
    low, high = slope_range
    landings = torch.cat([torch.linspace(-12, 12, points), torch.tensor(kinks)]).double()
    shares = torch.linspace(low, high, points, dtype=torch.float64)
    alphas = torch.cat(
        [
            shares[:, None] * b / shrink,
            _clip((s / shrink - landings[:, None]) / k, low * b / shrink, high * b / shrink),
        ]
    ).nan_to_num(0.0)
    best = torch.zeros_like(s)
    for _ in range(rounds):
        alphas = alphas.sort(dim=0).values
        cost = objective(sigma, alphas, s, b, z_sq, lr, mu)
        index = _smallest_of_the_best(cost, alphas)
        best = alphas.gather(0, index)[0]
        below = alphas.gather(0, (index - 1).clamp(min=0))[0]
        above = alphas.gather(0, (index + 1).clamp(max=len(alphas) - 1))[0]
        spread = torch.linspace(0, 1, 101, dtype=torch.float64)[:, None]
        alphas = torch.cat([below + spread * (above - below), best[None]])
    return best


def _clip(x: Tensor, one: Tensor, other: Tensor) -> Tensor:
    return torch.minimum(torch.maximum(x, torch.minimum(one, other)), torch.maximum(one, other))


def _smallest_of_the_best(cost: Tensor, alphas: Tensor) -> Tensor:
    tied = cost <= cost.amin(dim=0)
    return torch.where(tied, alphas.abs(), torch.inf).argmin(dim=0, keepdim=True)


def reference_arctan_alpha(s: Tensor, b: Tensor, z_sq: Tensor, lr: Tensor, mu: Tensor) -> Tensor:
    """Return the root nearest zero of arctan's cubic, by bisection.

    Mirrored so that b > 0, ``t = lr*|z|^2*alpha`` is the smallest t >= 0 with
    ``g(t) = t*(1 + (t - c)^2) = B``. For c > sqrt(3), g rises to a peak, falls and rises again:
    below the height of the peak the root is before it, above it is after the valley.
    """
    shrink, k = 1 + lr * mu, lr * z_sq
    c, target = s / shrink * torch.sign(b), b.abs() * k / shrink
    bend = (c**2 - 3).clamp(min=0).sqrt()
    peak, valley = (c**2 + 1) / (2 * c + bend), (2 * c + bend) / 3
    folded = c > 3**0.5
    before_peak = folded & (target <= peak * (1 + (peak - c) ** 2))
    low = torch.where(folded & ~before_peak, valley, 0.0)
    high = torch.where(before_peak, peak, c.clamp(min=0) + 1.01 * target ** (1 / 3))
    for _ in range(400):
        middle = torch.where(low > 0, (low * high).sqrt(), high / 2**16)
        middle = torch.where(low < 0.5 * high, middle, (low + high) / 2)
        too_low = middle * (1 + (middle - c) ** 2) < target
        low, high = torch.where(too_low, middle, low), torch.where(too_low, high, middle)
    explicit = b / shrink / (1 + c**2)
    return torch.where(target > 0, torch.sign(b) * high / k, explicit)


def reference_softmax_q(s: Tensor, y: Tensor, k: Tensor, shrink: Tensor) -> Tensor:
    """Return q with ``shrink*q = s - k*(softmax(q) - y)`` for rows [rows, classes], by bisection.

    Given t = logsumexp(q), every class solves ``log p + p*k/shrink = c + y*k/shrink - t`` on its
    own, and the sum of the p falls as t grows: a bisection for t around bisections for log p.
    """
    c, rho = s / shrink, k / shrink
    span = (c.amax(-1, keepdim=True) - c.amin(-1, keepdim=True)) + rho + 50
    low, high = c.amin(-1, keepdim=True) - span, c.amax(-1, keepdim=True) + span
    for _ in range(110):
        t = (low + high) / 2
        too_low = _log_p(c + rho * y - t, rho).exp().sum(-1, keepdim=True) > 1
        low, high = torch.where(too_low, t, low), torch.where(too_low, high, t)
    return c - rho * (_log_p(c + rho * y - high, rho).exp() - y)


def _log_p(x: Tensor, rho: Tensor) -> Tensor:
    """Return the solution of ``log p + rho*p = x``."""
    high = torch.minimum(x, (x.clamp(min=0) / rho + 1).log())
    low = torch.minimum(x - 1, high - 1) - x.abs()
    for _ in range(90):
        middle = (low + high) / 2
        too_low = middle + rho * middle.exp() < x
        low, high = torch.where(too_low, middle, low), torch.where(too_low, high, middle)
    return high
