"""Implicit update of a relu node, in closed form (Sec. 4.2, Table 1)."""

import torch
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
def relu_alpha(s: Tensor, b: Tensor, z_sq: Tensor, lr: Scalar, mu: Scalar = 0.0) -> Tensor:
    """Return the alpha that minimises eq. (8) when sigma is the relu.

    With ``k = lr*|z|^2`` and ``h = 1 + lr*mu``:

    * b > 0: ``min(b, relu(s)/k)/h``, the step stops at the hinge;
    * b < 0: ``b/h`` if ``s > k*b/2``, else 0, the step can look past the hinge. (Sec. 4.2 prints
      "sign(b) = +1" for this case too; Table 1 has it right.)

    Both are ``x = min(b, relu(s)/k)`` where ``s > k*x/2`` and 0 elsewhere: for b < 0, x is b; for
    b > 0, x = 0 at or below the hinge and otherwise ``k*x <= s``, so the condition always holds.

    Args:
        s: theta^T z before the step, [..., batch, out].
        b: Gradient of the loss at the node's output, [..., batch, out].
        z_sq: Squared norm of the layer's input, bias included, [..., batch, 1].
        lr: Learning rate, a number or a tensor that broadcasts.
        mu: Ridge strength, a number or a tensor that broadcasts.
    """
    alpha = solved("relu", s, b, z_sq, lr, mu)
    if alpha is not None:
        return alpha
    s, b, k, shrink = read_node(s, b, z_sq, lr, mu)
    x = torch.relu(s).mul_(reciprocal_travel(k))
    torch.minimum(x, b, out=x)
    gate = torch.addcmul(s, x, k, value=-0.5)
    return divided_(keep_where_positive_(x, gate), shrink)


ACTIVATION = Activation(
    "relu",
    torch.relu,
    lambda s, b: torch.ops.aten.threshold_backward(b, s, 0),
    (0, 1),
    relu_alpha,
)
