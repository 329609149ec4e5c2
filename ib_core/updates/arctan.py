"""Implicit update of an arctan node (Sec. 4.3): the stationary point nearest zero.

Eq. (8) is stationary where ``q = c - beta/(1 + q^2)``: c = s/(1 + lr*mu) is the pre-activation
before the step and q the one after it, beta = b*lr*|z|^2/(1 + lr*mu) is the longest step, and
alpha = b/(1 + q^2)/(1 + lr*mu). In ``v = 3q - c`` this cubic has no square term,

    v^3 + 3u*v = w,   u = 3 - c^2,   w = 2c*(12 - u) - 27*beta,

and a Newton step, ``v <- 2v/3 + (w - 2u*v)/(3(v^2 + u))``, takes four passes over memory. Nothing
is lost by the shift: alpha depends on q alone, and |q| >= |c|/3 at the wanted root for large c.

**Which root.** Put ``m = sqrt(max(-u, 0))``. For c > 0 the root nearest zero displacement is the
largest v as long as ``w >= -2m^3``, and the only one, v <= -2m, below; c < 0 is the mirror image.
This root need not be the global minimum of eq. (8). The paper asks for it all the same.

**Where to start.** On either branch ``z = |v| - m`` solves ``z^2 (z + 3m) = T`` if u < 0 and
``z^2 (z + 3u/z) = T`` if not, with ``T = |w +- 2m^3|``. So with t the cube root of T, z is close
to ``sqrt(T/(t + 3m + 3u/t))``. With fitted shares of the three terms, two Newton steps leave a
relative error of 6e-6 in alpha and three 3e-11, also next to the fold, where two roots merge.
"""

from typing import NamedTuple

import torch
from torch import Tensor

from ib_core.kernels import OFF_BY, ONE_AS_INTEGER, SCALE, SHARE_OF_M, SHARE_OF_U, solved
from ib_core.updates.node import Activation, Scalar, divided_, read_node

#: Above twice this many elements the solve runs in blocks, whose scratch stays in the cache.
BLOCK = 1 << 17


class _Precision(NamedTuple):
    """What the solve needs to know of a floating-point type."""

    steps: int
    as_integer: torch.dtype
    one_as_integer: float


#: One Newton step more than the contract's 1e-5 and 1e-10 need. On recurrent networks at rates
#: around 1000 errors of 5e-6 in alpha were seen to decide whether training holds: with two steps
#: JSB Chorales ended its first epoch at a loss of 1.7, with three (rounding alone) at .15.
_PRECISION = {
    torch.float32: _Precision(3, torch.int32, ONE_AS_INTEGER),
    torch.float64: _Precision(4, torch.int64, 2**52 * (1023 - OFF_BY)),
}


@torch.no_grad()
def arctan_alpha(s: Tensor, b: Tensor, z_sq: Tensor, lr: Scalar, mu: Scalar = 0.0) -> Tensor:
    """Return the root nearest zero of eq. (8)'s stationarity condition when sigma is arctan.

    The relative error is at most 1e-5 in float32 and 1e-10 in float64, except next to the fold,
    where it grows as the problem's own sensitivity to its inputs does.

    Args:
        s: theta^T z before the step, [..., batch, out].
        b: Gradient of the loss at the node's output, [..., batch, out].
        z_sq: Squared norm of the layer's input, bias included, [..., batch, 1].
        lr: Learning rate, a number or a tensor that broadcasts.
        mu: Ridge strength, a number or a tensor that broadcasts.
    """
    alpha = solved("arctan", s, b, z_sq, lr, mu)
    if alpha is not None:
        return alpha
    dtype = s.dtype if s.dtype in _PRECISION else torch.float32
    node = read_node(s.to(dtype), b, z_sq, lr, mu)
    ridge = not (isinstance(node.shrink, float) and node.shrink == 1.0)
    c = (node.s / node.shrink if ridge else node.s).contiguous()
    reach = (node.k * (27 / node.shrink)).clamp_(max=torch.finfo(dtype).max)
    alpha = torch.mul(node.b, -reach).contiguous()
    size = alpha.numel() if alpha.numel() <= 2 * BLOCK else BLOCK
    scratch = c.new_empty((7, size))
    for block_c, block in zip(c.view(-1).split(size), alpha.view(-1).split(size), strict=True):
        _one_plus_q_squared(block_c, block, scratch[:, : block.numel()])
    torch.div(node.b, alpha, out=alpha)
    return divided_(alpha, node.shrink).to(s.dtype)


def _one_plus_q_squared(c: Tensor, w: Tensor, scratch: Tensor) -> None:
    """Overwrite ``w``, given as -27*beta, with 1 + q^2: the inverse of the slope at the landing."""
    limits = torch.finfo(c.dtype)
    near, u, numerator, denominator = scratch[:4]
    # Beyond this bound c^3 would overflow; a step is then far below the rounding of c.
    bound = limits.max ** (1 / 3) / 8
    torch.clamp(c, -bound, bound, out=near)
    torch.addcmul(c.new_tensor(3.0), near, near, value=-1, out=u)
    torch.add(c.new_tensor(12.0), u, alpha=-1, out=numerator)
    w.clamp_(-limits.max / 64, limits.max / 64).addcmul_(near, numerator, value=2)
    v = _start(near, u, w, scratch[2:])
    for _ in range(_PRECISION[c.dtype].steps):
        torch.addcmul(w, u, v, value=-2, out=numerator)
        torch.addcmul(u, v, v, out=denominator)
        v.mul_(2 / 3).addcdiv_(numerator, denominator, value=1 / 3)
    # q = c - (2c - v)/3, the step being taken off the true c rather than the bounded one.
    torch.add(c, v.sub_(near, alpha=2), alpha=1 / 3, out=v)
    torch.addcmul(c.new_ones(()), v, v, out=w)


def _start(c: Tensor, u: Tensor, w: Tensor, scratch: Tensor) -> Tensor:
    """Return the start of Newton's method, on the right branch and close to its root."""
    limits = torch.finfo(c.dtype)
    _, as_integer, one_as_integer = _PRECISION[c.dtype]
    m, half, t, extra, branch = scratch
    m_cubed = torch.neg(u, out=half).clamp_(min=limits.tiny**0.8)
    torch.rsqrt(m_cubed, out=m).mul_(m_cubed)
    m_cubed.mul_(m)
    # A fold met exactly counts as not yet passed (8 eps), and the start keeps away from it
    # (128 eps), where Newton's method would divide zero by zero.
    torch.sign(c, out=branch).mul_(m_cubed)
    torch.add(w, branch, alpha=2 + 16 * limits.eps, out=branch).sign_()
    m_cubed.addcmul_(branch, w, value=0.5 - 64 * limits.eps).clamp_(min=limits.tiny**0.5)
    extra.copy_(half.view(as_integer)).add_(2 * one_as_integer).mul_(1 / 3)
    t.view(as_integer).copy_(extra)
    torch.clamp(u, min=0, out=extra).div_(t)
    t.add_(extra, alpha=SHARE_OF_U).add_(m, alpha=SHARE_OF_M)
    half.div_(t)
    torch.rsqrt(half, out=t)
    m.addcmul_(half, t, value=SCALE)
    start: Tensor = branch.mul_(m)
    return start


ACTIVATION = Activation("arctan", torch.atan, lambda s, b: b / (s * s + 1), (0, 1), arctan_alpha)
