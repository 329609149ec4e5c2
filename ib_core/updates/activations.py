"""The activations themselves: value and slope, exactly as torch and its autograd have them."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from ib_core.updates.leaky_relu import NEGATIVE_SLOPE

_aten = torch.ops.aten


@dataclass(frozen=True)
class Activation:
    """An element-wise function sigma.

    Attributes:
        name: Its name in `ACTIVATIONS` and `ALPHA_RULES`.
        value: sigma(s).
        gradient: (s, b) -> sigma'(s)*b, as autograd computes it, in a hinge too, without a graph.
        slope_range: The lowest and the highest slope on the whole line.
    """

    name: str
    value: Callable[[Tensor], Tensor]
    gradient: Callable[[Tensor, Tensor], Tensor]
    slope_range: tuple[float, float]

    @property
    def monotone(self) -> bool:
        """Whether sigma never falls, so that alpha is 0 or has the sign of b."""
        return self.slope_range[0] >= 0

    def slope(self, s: Tensor) -> Tensor:
        """Return sigma'(s)."""
        return self.gradient(s, torch.ones_like(s))


def _smoothstep(s: Tensor) -> Tensor:
    x = s.clamp(-1, 1)
    return x * (1.5 - 0.5 * x * x)


def _smoothstep_gradient(s: Tensor, b: Tensor) -> Tensor:
    x = s.clamp(-1, 1)
    return (1 - x * x) * 1.5 * b


#: Highest slope of gelu, at sqrt(2), and of silu, at 2.39936; the lowest is 1 less it.
_GELU_STEEPEST = 0.5 + 0.5 * math.erf(1.0) + math.exp(-1.0) / math.sqrt(math.pi)
_SILU_STEEPEST = 1.0998393201

ACTIVATIONS: dict[str, Activation] = {
    activation.name: activation
    for activation in (
        Activation("linear", lambda s: s, lambda s, b: b + 0 * s, (1, 1)),
        Activation("relu", torch.relu, lambda s, b: _aten.threshold_backward(b, s, 0), (0, 1)),
        Activation(
            "leaky_relu",
            lambda s: F.leaky_relu(s, NEGATIVE_SLOPE),
            lambda s, b: _aten.leaky_relu_backward(b, s, NEGATIVE_SLOPE, False),
            (NEGATIVE_SLOPE, 1),
        ),
        Activation("arctan", torch.atan, lambda s, b: b / (s * s + 1), (0, 1)),
        Activation(
            "hardtanh", F.hardtanh, lambda s, b: _aten.hardtanh_backward(b, s, -1, 1), (0, 1)
        ),
        Activation("smoothstep", _smoothstep, _smoothstep_gradient, (0, 1.5)),
        Activation("tanh", torch.tanh, lambda s, b: _aten.tanh_backward(b, torch.tanh(s)), (0, 1)),
        Activation(
            "sigmoid",
            torch.sigmoid,
            lambda s, b: _aten.sigmoid_backward(b, torch.sigmoid(s)),
            (0, 0.25),
        ),
        Activation(
            "gelu",
            F.gelu,
            lambda s, b: _aten.gelu_backward(b, s),
            (1 - _GELU_STEEPEST, _GELU_STEEPEST),
        ),
        Activation(
            "silu",
            F.silu,
            lambda s, b: _aten.silu_backward(b, s),
            (1 - _SILU_STEEPEST, _SILU_STEEPEST),
        ),
        Activation(
            "softplus", F.softplus, lambda s, b: _aten.softplus_backward(b, s, 1, 20), (0, 1)
        ),
        Activation("elu", F.elu, lambda s, b: _aten.elu_backward(b, 1, 1, 1, False, s), (0, 1)),
    )
}
