"""The implicit update rules: for every activation the alpha that solves eq. (8)."""

from typing import Protocol

from torch import Tensor

from ib_core.errors import lookup
from ib_core.updates.approximations import APPROXIMATIONS, approximated_alpha
from ib_core.updates.arctan import arctan_alpha
from ib_core.updates.hardtanh import hardtanh_alpha
from ib_core.updates.leaky_relu import leaky_relu_alpha
from ib_core.updates.linear import linear_alpha
from ib_core.updates.node import Scalar
from ib_core.updates.relu import relu_alpha
from ib_core.updates.smoothstep import smoothstep_alpha

__all__ = ["ALPHA_RULES", "AlphaRule", "Scalar", "alpha_rule"]


class AlphaRule(Protocol):
    """Solves eq. (8) for every node of a layer and every row of a batch at once."""

    def __call__(self, s: Tensor, b: Tensor, z_sq: Tensor, lr: Scalar, mu: Scalar = 0.0) -> Tensor:
        """Return alpha, of the dtype of ``s`` and the shape the arguments broadcast to.

        ``lr*|z|^2 = 0`` gives the explicit alpha, b = 0 gives 0, NaN in any argument gives NaN.

        Args:
            s: theta^T z before the step, [..., batch, out].
            b: Gradient of the loss at the node's output, [..., batch, out].
            z_sq: Squared norm of the layer's input, bias included, [..., batch, 1].
            lr: Learning rate, a number or a tensor that broadcasts, such as [members, 1, 1].
            mu: Ridge strength, likewise.
        """
        ...


ALPHA_RULES: dict[str, AlphaRule] = {
    "linear": linear_alpha,
    "relu": relu_alpha,
    "leaky_relu": leaky_relu_alpha,
    "arctan": arctan_alpha,
    "hardtanh": hardtanh_alpha,
    "smoothstep": smoothstep_alpha,
    **{name: approximated_alpha(name) for name in APPROXIMATIONS},
}


def alpha_rule(name: str) -> AlphaRule:
    """Return the rule of an activation, or raise `UnknownName` listing those that have one."""
    return lookup("activation", name, ALPHA_RULES)
