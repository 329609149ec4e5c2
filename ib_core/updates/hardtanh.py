"""Implicit update of a hardtanh node, in closed form (Sec. 4.4 with three linear pieces)."""

import torch
import torch.nn.functional as F
from torch import Tensor

from ib_core.kernels import solved
from ib_core.updates.node import (
    Activation,
    Scalar,
    divided_,
    keep_where_positive_,
    read_node,
    reciprocal_travel,
)


@torch.no_grad()
def hardtanh_alpha(s: Tensor, b: Tensor, z_sq: Tensor, lr: Scalar, mu: Scalar = 0.0) -> Tensor:
    """Return the alpha that minimises eq. (8) when sigma clips to [-1, 1].

    Mirrored so that b > 0 (sigma is odd), a step lowers ``c = s/h``. With ``k = lr*|z|^2`` and
    ``h = 1 + lr*mu`` the best step that ends on the slope is ``x = clip((s + h)/k, 0, b)``: all of
    b, or as much as reaches the hinge at -1. It beats standing still exactly if it gains height,
    ``k*x*(1 - x/(2b)) > s - h``, which holds by itself when the node starts at or below +1.

    Args:
        s: theta^T z before the step, [..., batch, out].
        b: Gradient of the loss at the node's output, [..., batch, out].
        z_sq: Squared norm of the layer's input, bias included, [..., batch, 1].
        lr: Learning rate, a number or a tensor that broadcasts.
        mu: Ridge strength, a number or a tensor that broadcasts.
    """
    alpha = solved("hardtanh", s, b, z_sq, lr, mu)
    if alpha is not None:
        return alpha
    s, b, k, shrink = read_node(s, b, z_sq, lr, mu)
    sign, size = torch.sign(b), b.abs()
    s = s * sign
    x = (s + shrink).mul_(reciprocal_travel(k)).clamp_(min=0)
    torch.minimum(x, size, out=x)
    # A node with b = 0 divides 0 by 0 here; a NaN gate keeps x, which is then 0.
    gate = torch.div(x, size, out=size).mul_(-0.5).add_(1).mul_(x).mul_(k).sub_(s).add_(shrink)
    return divided_(keep_where_positive_(x, gate).mul_(sign), shrink)


ACTIVATION = Activation(
    "hardtanh",
    F.hardtanh,
    lambda s, b: torch.ops.aten.hardtanh_backward(b, s, -1, 1),
    (0, 1),
    hardtanh_alpha,
)
