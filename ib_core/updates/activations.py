"""Every activation by name with its rule; and the smooth ones' piecewise-cubic stand-ins.

One that is solved exactly is the module of its name. For a smooth one the rule of Sec. 4.4 solves
for a stand-in, which is once continuously differentiable, has the exact slopes of its activation in
both tails, is monotone if its activation is, and is nowhere further from it than
`APPROXIMATION_ERROR` says. The knots were placed, and values and slopes in them chosen, to make the
largest error smallest with as few pieces as keep it below 1e-3 in value and 1e-2 in slope: the
rule's cost is in their number.

By symmetry one half-line tells all. Tables are of the gap between an activation and the line it
approaches, (distance from 0, gap, slope of the gap), up to the distance where the gap is taken
to be constant. For tanh and the sigmoid it is the gap below their upper limit 1, for gelu, silu
and softplus the gap above 0 on the left, which is also the one above x on the right, and for elu
the gap above its lower limit -1.
"""

import math
from importlib import import_module
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from ib_core.errors import lookup
from ib_core.kernels import CUBICS, solved
from ib_core.updates import SOLVABLE, ErrorBound
from ib_core.updates.node import Activation, AlphaRule, Scalar
from ib_core.updates.piecewise_cubic import Knot, PiecewiseCubic


class _Gap(NamedTuple):
    distance: float
    gap: float
    slope: float


_TANH = (
    _Gap(0.0, -1.0, 1.005579),
    _Gap(0.5837, -0.474142, 0.725221),
    _Gap(1.9529, -0.039845, 0.079529),
    _Gap(2.8512, -0.006988, 0.012768),
    _Gap(4.4343, -0.000248, 0.0),
)
_SIGMOID = (
    _Gap(0.0, -0.5, 0.25562),
    _Gap(1.7646, -0.145965, 0.120752),
    _Gap(4.3375, -0.013426, 0.012057),
    _Gap(7.5533, -0.000497, 0.0),
)
_GELU = (
    _Gap(0.0, -0.000459, -0.5),
    _Gap(0.8058, -0.169202, 0.027486),
    _Gap(1.5856, -0.089003, 0.128405),
    _Gap(3.6528, -0.000603, 0.0),
)
_SILU = (
    _Gap(0.0, -0.000659, -0.5),
    _Gap(1.3767, -0.277392, 0.026874),
    _Gap(2.7811, -0.161686, 0.095838),
    _Gap(7.4088, -0.0049, 0.004913),
    _Gap(10.5758, -0.00037, 0.0),
)
_SOFTPLUS = (
    _Gap(0.0, 0.69231, -0.5),
    _Gap(3.2097, 0.039831, -0.042993),
    _Gap(4.3081, 0.013783, -0.012114),
    _Gap(7.6036, 0.000471, 0.0),
)
_ELU = (
    _Gap(0.0, 1.0, -1.0),
    _Gap(0.8793, 0.415859, -0.413921),
    _Gap(2.1488, 0.117383, -0.115344),
    _Gap(4.0047, 0.018921, -0.017),
    _Gap(7.2212, 0.00069, 0.0),
)


def _smooth(x: float, value: float, slope: float) -> Knot:
    return Knot(x, value, slope, slope)


def _step_like(gaps: tuple[_Gap, ...], low: float) -> PiecewiseCubic:
    """Return the function that rises from ``low`` to 1 with the same gap at both ends."""
    left = [_smooth(-x, low - gap, slope) for x, gap, slope in gaps[:0:-1]]
    right = [_smooth(x, 1 + gap, slope) for x, gap, slope in gaps]
    return PiecewiseCubic((*left, *right))


def _ramp_like(gaps: tuple[_Gap, ...]) -> PiecewiseCubic:
    """Return the function that turns from 0 into x with the same gap on both sides."""
    left = [_smooth(-x, gap, -slope) for x, gap, slope in gaps[:0:-1]]
    right = [_smooth(x, x + gap, 1 + slope) for x, gap, slope in gaps]
    return PiecewiseCubic((*left, *right))


def _elu_like(gaps: tuple[_Gap, ...]) -> PiecewiseCubic:
    """Return the function that rises from -1 to 0 and goes on as x."""
    return PiecewiseCubic(tuple(_smooth(-x, gap - 1, -slope) for x, gap, slope in gaps[::-1]))


APPROXIMATIONS: dict[str, PiecewiseCubic] = {
    "tanh": _step_like(_TANH, low=-1.0),
    "sigmoid": _step_like(_SIGMOID, low=0.0),
    "gelu": _ramp_like(_GELU),
    "silu": _ramp_like(_SILU),
    "softplus": _ramp_like(_SOFTPLUS),
    "elu": _elu_like(_ELU),
}

APPROXIMATION_ERROR: dict[str, ErrorBound] = {
    name: bound for name, bound in SOLVABLE.items() if bound is not None
}


CUBICS.update(
    {name: table for name, cubic in APPROXIMATIONS.items() if (table := cubic.table()) is not None}
)


def _alpha(name: str) -> AlphaRule:
    """Return the rule of an approximated activation, compiled where it can be."""
    cubic = APPROXIMATIONS[name]

    @torch.no_grad()
    def alpha(s: Tensor, b: Tensor, z_sq: Tensor, lr: Scalar, mu: Scalar = 0.0) -> Tensor:
        found = solved(name, s, b, z_sq, lr, mu)
        return cubic.alpha(s, b, z_sq, lr, mu) if found is None else found

    return alpha


_aten = torch.ops.aten
#: Highest slope of gelu, at sqrt(2), and of silu, at 2.39936; the lowest is 1 less it.
_GELU_STEEPEST = 0.5 + 0.5 * math.erf(1.0) + math.exp(-1.0) / math.sqrt(math.pi)
_SILU_STEEPEST = 1.0998393201

#: The activations themselves; only their rules use the stand-ins.
SMOOTH: dict[str, Activation] = {
    name: Activation(name, value, gradient, slope_range, _alpha(name))
    for name, value, gradient, slope_range in (
        ("tanh", torch.tanh, lambda s, b: _aten.tanh_backward(b, torch.tanh(s)), (0, 1)),
        (
            "sigmoid",
            torch.sigmoid,
            lambda s, b: _aten.sigmoid_backward(b, torch.sigmoid(s)),
            (0, 0.25),
        ),
        (
            "gelu",
            F.gelu,
            lambda s, b: _aten.gelu_backward(b, s),
            (1 - _GELU_STEEPEST, _GELU_STEEPEST),
        ),
        (
            "silu",
            F.silu,
            lambda s, b: _aten.silu_backward(b, s),
            (1 - _SILU_STEEPEST, _SILU_STEEPEST),
        ),
        ("softplus", F.softplus, lambda s, b: _aten.softplus_backward(b, s, 1, 20), (0, 1)),
        ("elu", F.elu, lambda s, b: _aten.elu_backward(b, 1, 1, 1, False, s), (0, 1)),
    )
}

ACTIVATIONS: dict[str, Activation] = {
    name: SMOOTH[name] if bound else import_module(f"ib_core.updates.{name}").ACTIVATION
    for name, bound in SOLVABLE.items()
}
ALPHA_RULES: dict[str, AlphaRule] = {name: one.alpha for name, one in ACTIVATIONS.items()}


def alpha_rule(name: str) -> AlphaRule:
    """Return the rule of an activation, or raise `UnknownName` listing those that have one."""
    return lookup("activation", name, ALPHA_RULES)
