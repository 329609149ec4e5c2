"""Implicit update of a leaky relu node, in closed form (Sec. 4.4 with two linear pieces)."""

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

NEGATIVE_SLOPE = 0.01


@torch.no_grad()
def leaky_relu_alpha(s: Tensor, b: Tensor, z_sq: Tensor, lr: Scalar, mu: Scalar = 0.0) -> Tensor:
    """Return the alpha that minimises eq. (8) when sigma is the leaky relu of slope ``a`` = 0.01.

    With ``k = lr*|z|^2`` and ``h = 1 + lr*mu``:

    * b > 0: ``s/k`` clipped to [a*b, b], over h: steep side, hinge or shallow side;
    * b < 0: ``b/h`` if ``s > k*b*(1+a)/2``, else ``a*b/h``: the better of the two sides.

    As for the relu both are one expression, ``x = min(b, max(a*b, s/k))`` where
    ``s > k*x*(1+a)/2`` and ``a*b`` elsewhere.

    Args:
        s: theta^T z before the step, [..., batch, out].
        b: Gradient of the loss at the node's output, [..., batch, out].
        z_sq: Squared norm of the layer's input, bias included, [..., batch, 1].
        lr: Learning rate, a number or a tensor that broadcasts.
        mu: Ridge strength, a number or a tensor that broadcasts.
    """
    alpha = solved("leaky_relu", s, b, z_sq, lr, mu)
    if alpha is not None:
        return alpha
    s, b, k, shrink = read_node(s, b, z_sq, lr, mu)
    shallow = b * NEGATIVE_SLOPE
    x = s * reciprocal_travel(k)
    torch.maximum(x, shallow, out=x)
    torch.minimum(x, b, out=x)
    gate = torch.addcmul(s, x, k, value=-(1 + NEGATIVE_SLOPE) / 2)
    return divided_(keep_where_positive_(x.sub_(shallow), gate).add_(shallow), shrink)


ACTIVATION = Activation(
    "leaky_relu",
    lambda s: F.leaky_relu(s, NEGATIVE_SLOPE),
    lambda s, b: torch.ops.aten.leaky_relu_backward(b, s, NEGATIVE_SLOPE, False),
    (NEGATIVE_SLOPE, 1),
    leaky_relu_alpha,
)
