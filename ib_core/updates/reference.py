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
) -> Tensor:
    """Return the alpha of the lowest value of eq. (8), found by search; a tie goes to the smaller.

    At the minimum ``alpha*(1 + lr*mu)/b`` lies between sigma's lowest and highest slope. That
    interval is covered evenly, and a second time by the alphas whose steps land on an even grid of
    [-12, 12], outside of which every activation here is as good as straight. The candidates, in
    order, are cut into overlapping stretches and the best of each is refined: two valleys may be
    so close that the coarse search takes the wrong one.
    """
    shrink, k = 1 + lr * mu, lr * z_sq
    ends = torch.stack([share * b / shrink for share in slope_range])
    shares = torch.linspace(0, 1, 601, dtype=torch.float64)[:, None]
    # 1202 candidates in all: twelve stretches of 100 and the two points next to them.
    landings = torch.cat([torch.linspace(-12, 12, 601 - len(kinks)), torch.tensor(kinks)]).double()
    landing = ((s / shrink - landings[:, None]) / k).nan_to_num(0.0)
    alphas = torch.cat(
        [ends[0] + shares * (ends[1] - ends[0]), landing.clamp(ends.amin(0), ends.amax(0))]
    )
    stretches = alphas.sort(dim=0).values.unfold(0, 102, 100).movedim(-1, 0)

    def cost(alpha: Tensor) -> Tensor:
        return objective(sigma, alpha, s, b, z_sq, lr, mu)

    best = torch.cat([_refined(cost, stretches), torch.zeros_like(s)[None]])
    return best.gather(0, _lowest(cost(best), best))[0]


def _refined(cost: Function, alphas: Tensor) -> Tensor:
    """Cover the neighbourhood of the best point, between its two neighbours, again and again."""
    spread = torch.linspace(0, 1, 41, dtype=torch.float64)[:, None, None]
    for _ in range(9):
        best = alphas.gather(0, _lowest(cost(alphas), alphas))
        below = torch.where(alphas < best, alphas, alphas.amin(0)).amax(0, keepdim=True)
        above = torch.where(alphas > best, alphas, alphas.amax(0)).amin(0, keepdim=True)
        alphas = torch.cat([below + spread * (best - below), best + spread * (above - best)])
    return best[0]


def _lowest(cost: Tensor, alphas: Tensor) -> Tensor:
    """Return the index of the lowest cost, of the smallest alpha among equals."""
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
    high = torch.where(before_peak, peak, c.clamp(min=0) + 1.01 * target ** (1 / 3))
    low = target / (1 + torch.maximum(c**2, (high - c) ** 2))
    low = torch.where(folded & ~before_peak, valley, low)
    for _ in range(100):
        middle = low.sqrt() * high.sqrt()
        too_low = middle * (1 + (middle - c) ** 2) < target
        low, high = torch.where(too_low, middle, low), torch.where(too_low, high, middle)
    explicit = b / shrink / (1 + c**2)
    return torch.where(target > 0, torch.sign(b) * high / k, explicit)


def reference_softmax_q(s: Tensor, y: Tensor, k: Tensor, shrink: Tensor) -> Tensor:
    """Return q with ``shrink*q = s - k*(softmax(q) - y)`` for rows [rows, classes], by bisection.

    Given t = logsumexp(q), every class solves ``log p + p*k/shrink = c + y*k/shrink - t`` on its
    own, and the sum of the p falls as t grows. Accurate to a rounding of k.
    """
    c, rho = s / shrink, k / shrink
    span = (c.amax(-1, keepdim=True) - c.amin(-1, keepdim=True)) + rho + 50
    low, high = c.amin(-1, keepdim=True) - span, c.amax(-1, keepdim=True) + span
    for _ in range(90):
        t = (low + high) / 2
        too_low = _log_p(c + rho * y - t, rho).exp().sum(-1, keepdim=True) > 1
        low, high = torch.where(too_low, t, low), torch.where(too_low, high, t)
    return c - rho * (_log_p(c + rho * y - high, rho).exp() - y)


def _log_p(x: Tensor, rho: Tensor) -> Tensor:
    """Return the solution of ``log p + rho*p = x``.

    In log p the left side is convex and rising, so Newton's method descends to the root from any
    point above it, by one unit a step or faster; p = max(1, x/rho) is above.
    """
    log_p = torch.minimum(x, (x / rho).clamp(min=1).log())
    for _ in range(40):
        w = rho * log_p.exp()
        log_p = log_p - (log_p + w - x) / (1 + w)
    return log_p
