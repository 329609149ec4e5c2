"""Implicit update of a linear node (Table 1): the explicit one, shrunk by the ridge."""

import torch
from torch import Tensor

from ib_core.updates.node import Activation, Scalar, divided_, read_node


@torch.no_grad()
def linear_alpha(s: Tensor, b: Tensor, z_sq: Tensor, lr: Scalar, mu: Scalar = 0.0) -> Tensor:
    """Return ``alpha = b / (1 + lr*mu)``, the minimiser of eq. (8) when sigma(x) = x.

    Args:
        s: theta^T z before the step, [..., batch, out].
        b: Gradient of the loss at the node's output, [..., batch, out].
        z_sq: Squared norm of the layer's input, bias included, [..., batch, 1].
        lr: Learning rate, a number or a tensor that broadcasts.
        mu: Ridge strength, a number or a tensor that broadcasts.
    """
    node = read_node(s, b, z_sq, lr, mu)
    # Neither s nor z moves this alpha; 0 * s * k lets a NaN in either of them through.
    return divided_(torch.addcmul(node.b, node.s, node.k * 0), node.shrink)


ACTIVATION = Activation("linear", lambda s: s, lambda s, b: b + 0 * s, (1, 1), linear_alpha)
