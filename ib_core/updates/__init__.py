"""The implicit update rules: for every activation the alpha that solves eq. (8).

| module | holds |
| --- | --- |
| `linear`, `relu`, `leaky_relu`, `arctan`, `hardtanh`, `smoothstep` | one activation each: value, slope and alpha, in closed form |
| `activations` | `ACTIVATIONS`, `ALPHA_RULES`: all of `SOLVABLE`, by name; the smooth ones, whose rule solves for a piecewise cubic beside them |
| `piecewise_cubic` | the rule for any piecewise cubic |
| `node` | what an activation is, and what a rule reads; eq. (7): the alphas of a batch into new weights; clipping |
| `output_layer` | the rules of a linear output layer with its loss |
| `reference` | the slow twin of every rule |

An activation is listed once, in `SOLVABLE` here, which needs no torch: one that is solved exactly
is the module of its name. Names that need torch are imported when first used.
"""  # noqa: E501  a table is a table

from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from ib_core.updates.activations import (
        ACTIVATIONS,
        ALPHA_RULES,
        APPROXIMATION_ERROR,
        APPROXIMATIONS,
        alpha_rule,
    )
    from ib_core.updates.node import (
        Activation,
        AlphaRule,
        batch_alpha,
        clip_factor,
        global_norm,
        rows_scale,
    )
    from ib_core.updates.output_layer import OUTPUT_ALPHAS, refuse_soft_targets

__all__ = [
    "ACTIVATIONS",
    "ALPHA_RULES",
    "APPROXIMATIONS",
    "APPROXIMATION_ERROR",
    "OUTPUT_ALPHAS",
    "SOLVABLE",
    "Activation",
    "AlphaRule",
    "ErrorBound",
    "alpha_rule",
    "batch_alpha",
    "clip_factor",
    "global_norm",
    "refuse_soft_targets",
    "rows_scale",
]

_HOMES = {
    "activations": "ACTIVATIONS ALPHA_RULES APPROXIMATIONS APPROXIMATION_ERROR alpha_rule",
    "node": "Activation AlphaRule batch_alpha clip_factor global_norm rows_scale",
    "output_layer": "OUTPUT_ALPHAS refuse_soft_targets",
}


class ErrorBound(NamedTuple):
    """The largest error of a rule's stand-in for its activation, on the whole line."""

    value: float
    slope: float


#: Activations for which eq. (8) can be solved; None where the rule solves for the activation
#: itself, else how far its stand-in is from it.
SOLVABLE: dict[str, ErrorBound | None] = {
    "linear": None,
    "relu": None,
    "leaky_relu": None,
    "arctan": None,
    "hardtanh": None,
    "smoothstep": None,
    "tanh": ErrorBound(value=5.2e-4, slope=5.6e-3),
    "sigmoid": ErrorBound(value=5.8e-4, slope=5.7e-3),
    "gelu": ErrorBound(value=7.2e-4, slope=5.4e-3),
    "silu": ErrorBound(value=6.7e-4, slope=6.9e-3),
    "softplus": ErrorBound(value=8.4e-4, slope=4.2e-3),
    "elu": ErrorBound(value=8.1e-4, slope=4.8e-3),
}


def __getattr__(name: str) -> Any:
    for module, names in _HOMES.items():
        if name in names.split():
            return getattr(import_module(f"{__name__}.{module}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
