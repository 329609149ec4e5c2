"""Implicit update of a smoothstep node, in closed form (Sec. 4.4 with one cubic piece)."""

import torch
from torch import Tensor

from ib_core.kernels import solved
from ib_core.updates.node import Activation, Scalar, divided_, keep_where_positive_, read_node


@torch.no_grad()
def smoothstep_alpha(s: Tensor, b: Tensor, z_sq: Tensor, lr: Scalar, mu: Scalar = 0.0) -> Tensor:
    """Return the alpha that minimises eq. (8) when sigma is -1, (3x - x^3)/2, 1.

    Mirrored so that b > 0 (sigma is odd), with ``c = s/h``, ``B = b*lr*|z|^2/h`` and u the distance
    of the new pre-activation from the left end -1, a step to u takes the share ``r = 3u(2 - u)/2``
    of b: the slope where it lands. Eq. (8) is stationary where ``c + 1 - u = B*r``, whose lower
    root, the minimum, is without cancellation

        u = 2A / (1 + sqrt(1 - wA)),   A = (c + 1)/(1 + 3B),   w = 6B/(1 + 3B) = 2 - 2/(1 + 3B).

    It beats standing still on the plateau exactly if ``9/4*B*u^2 < 1 + u``. Where there is no root
    the same test, or u leaving [0, 2], gives the right answer 0.

    Args:
        s: theta^T z before the step, [..., batch, out].
        b: Gradient of the loss at the node's output, [..., batch, out].
        z_sq: Squared norm of the layer's input, bias included, [..., batch, 1].
        lr: Learning rate, a number or a tensor that broadcasts.
        mu: Ridge strength, a number or a tensor that broadcasts.
    """
    alpha = solved("smoothstep", s, b, z_sq, lr, mu)
    if alpha is not None:
        return alpha
    s, b, k, shrink = read_node(s, b, z_sq, lr, mu)
    reach = b.abs().mul_(k / shrink).clamp_(max=torch.finfo(s.dtype).max / 8)
    damping = (reach * 3).add_(1).reciprocal_()
    a = divided_(s * torch.sign(b), shrink).add_(1).mul_(damping)
    root = damping.mul_(2).sub_(2).mul_(a).add_(1).clamp_(min=torch.finfo(s.dtype).tiny)
    u = a.mul_(2).div_(torch.addcmul(root.new_ones(()), root, root.rsqrt())).clamp_(0, 2)
    gate = reach.mul_(u).mul_(-2.25).add_(1).mul_(u).add_(1)
    share = torch.rsub(u, 2).mul_(u).mul_(1.5)
    return divided_(keep_where_positive_(share, gate).mul_(b), shrink)


def _value(s: Tensor) -> Tensor:
    x = s.clamp(-1, 1)
    return x * (1.5 - 0.5 * x * x)


def _gradient(s: Tensor, b: Tensor) -> Tensor:
    x = s.clamp(-1, 1)
    return (1 - x * x) * 1.5 * b


ACTIVATION = Activation("smoothstep", _value, _gradient, (0, 1.5), smoothstep_alpha)
