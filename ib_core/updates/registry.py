"""Every activation and its rule, by name."""

from importlib import import_module

from ib_core.errors import lookup
from ib_core.updates import SOLVABLE
from ib_core.updates.approximations import SMOOTH
from ib_core.updates.node import Activation, AlphaRule

ACTIVATIONS: dict[str, Activation] = {
    name: SMOOTH[name] if bound else import_module(f"ib_core.updates.{name}").ACTIVATION
    for name, bound in SOLVABLE.items()
}
ALPHA_RULES: dict[str, AlphaRule] = {name: one.alpha for name, one in ACTIVATIONS.items()}


def alpha_rule(name: str) -> AlphaRule:
    """Return the rule of an activation, or raise `UnknownName` listing those that have one."""
    return lookup("activation", name, ALPHA_RULES)
