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
    from ib_core.layers import ImplicitLinear, ImplicitRNN
    from ib_core.methods import METHODS, Member, build_optimizer
    from ib_core.methods.stack import StackOptimizer
    from ib_core.sweep.engine import run_trials
    from ib_core.sweep.processes import run_sweep
    from ib_core.sweep.spec import SweepSpec
    from ib_core.updates import ALPHA_RULES

_HOMES = {
    "ALPHA_RULES": "ib_core.updates",
    "METHODS": "ib_core.methods",
    "ImplicitLinear": "ib_core.layers",
    "ImplicitRNN": "ib_core.layers",
    "ImplicitSGD": "ib_core.implicit_sgd",
    "Member": "ib_core.methods",
    "StackOptimizer": "ib_core.methods.stack",
    "SweepSpec": "ib_core.sweep.spec",
    "build_optimizer": "ib_core.methods",
    "run_sweep": "ib_core.sweep.processes",
    "run_trials": "ib_core.sweep.engine",
}

__all__ = [
    "ALPHA_RULES",
    "METHODS",
    "ImplicitLinear",
    "ImplicitRNN",
    "ImplicitSGD",
    "Member",
    "StackOptimizer",
    "SweepSpec",
    "build_optimizer",
    "run_sweep",
    "run_trials",
]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'ib_core' has no attribute {name!r}")
