"""The implicit update rules: for every activation the alpha that solves eq. (8).

| module | holds |
| --- | --- |
| `linear`, `relu`, `leaky_relu`, `arctan`, `hardtanh`, `smoothstep` | one activation each: value, slope and alpha, in closed form |
| `approximations` | the smooth activations, whose rule solves for a piecewise cubic beside them |
| `piecewise_cubic` | the rule for any piecewise cubic |
| `node` | what an activation is, and what a rule reads |
| `output_layer` | the rule of a linear output layer with its loss |
| `step` | eq. (7): the alphas of a batch into new weights |
| `reference` | the slow twin of every rule |

An activation is listed once, in `ib_core.solvable`, which needs no torch: one that is solved
exactly is the module of its name here.
"""  # noqa: E501  a table is a table

from importlib import import_module

from ib_core.errors import lookup
from ib_core.solvable import SOLVABLE
from ib_core.updates.approximations import APPROXIMATION_ERROR, APPROXIMATIONS, SMOOTH
from ib_core.updates.node import Activation, AlphaRule, Scalar
from ib_core.updates.step import (
    OUTPUT_ALPHAS,
    batch_alpha,
    cross_entropy_output,
    refuse_soft_targets,
    rows_scale,
    squared_output,
)

__all__ = [
    "ACTIVATIONS",
    "ALPHA_RULES",
    "APPROXIMATIONS",
    "APPROXIMATION_ERROR",
    "OUTPUT_ALPHAS",
    "Activation",
    "AlphaRule",
    "Scalar",
    "alpha_rule",
    "batch_alpha",
    "cross_entropy_output",
    "refuse_soft_targets",
    "rows_scale",
    "squared_output",
]

ACTIVATIONS: dict[str, Activation] = {
    name: SMOOTH[name] if bound else import_module(f"ib_core.updates.{name}").ACTIVATION
    for name, bound in SOLVABLE.items()
}
ALPHA_RULES: dict[str, AlphaRule] = {name: one.alpha for name, one in ACTIVATIONS.items()}


def alpha_rule(name: str) -> AlphaRule:
    """Return the rule of an activation, or raise `UnknownName` listing those that have one."""
    return lookup("activation", name, ALPHA_RULES)
