"""Implicit backpropagation for torch, after *Robust Implicit Backpropagation* (2018).

From the paper's symbols to our names:

========================  =====================================================================
theta, z, s = theta^T z   `weight` and `bias`, the layer's input, its pre-activation
b                         gradient of the loss at a node's output, after the activation
eta, mu                   `lr`, `mu`
alpha, eq. (8)            `ib_core.updates.ALPHA_RULES[activation](s, b, z_sq, lr, mu)`
theta', eq. (7)           `ImplicitSGD` for one model, `StackOptimizer` for many at once
EB, IB, exact ISGD        methods `eb`, `ib`, `isgd`; `ib_plus` also solves a linear output layer
========================  =====================================================================

Names are imported when first used, so that the light parts stay light.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ib_core.implicit_sgd import ImplicitSGD
    from ib_core.layers import ImplicitConv2d, ImplicitLinear, ImplicitRNN
    from ib_core.methods import METHODS, Member, Method, StackOptimizer, build_optimizer
    from ib_core.options import choice, number, whole
    from ib_core.sweep import SweepSpec, run_sweep, run_trials
    from ib_core.tasks import Data, Task
    from ib_core.updates import ALPHA_RULES

_HOMES = {
    "implicit_sgd": "ImplicitSGD",
    "layers": "ImplicitConv2d ImplicitLinear ImplicitRNN",
    "methods": "METHODS Member Method StackOptimizer build_optimizer",
    "options": "choice number whole",
    "sweep": "SweepSpec run_sweep run_trials",
    "tasks": "Data Task",
    "updates": "ALPHA_RULES",
}

__all__ = [
    "ALPHA_RULES",
    "METHODS",
    "Data",
    "ImplicitConv2d",
    "ImplicitLinear",
    "ImplicitRNN",
    "ImplicitSGD",
    "Member",
    "Method",
    "StackOptimizer",
    "SweepSpec",
    "Task",
    "build_optimizer",
    "choice",
    "number",
    "run_sweep",
    "run_trials",
    "whole",
]


def __getattr__(name: str) -> Any:
    for module, names in _HOMES.items():
        if name in names.split():
            return getattr(import_module(f"{__name__}.{module}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
