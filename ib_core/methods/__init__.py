"""Methods: how weights move. A task says what is learnt, a method says how; they never meet.

| module | holds |
| --- | --- |
| `base` | `METHODS`: the list of all there are, with names, looks and places; `Member` |
| `stack` | `StackOptimizer`: many models at once; plain steps, EB's and IB's |
| `momentum`, `adam` and so on | the step of the method of that name |
| `isgd` | exact ISGD, an optimizer of its own |
| `slots` | a stack's parameters and gradients |

A method is a line in `METHODS` and, if it does not step plainly, the module of its name. Names
that need torch are imported when first used.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any

from ib_core.errors import MisuseError
from ib_core.methods.base import METHODS, Look, Member, Method, place

if TYPE_CHECKING:
    from torch import nn

    from ib_core.methods.slots import Slots
    from ib_core.methods.stack import StackOptimizer

__all__ = [
    "METHODS",
    "Look",
    "Member",
    "Method",
    "Slots",
    "StackOptimizer",
    "build_optimizer",
    "place",
]

_HOMES = {
    "slots": "Slots",
    "stack": "StackOptimizer",
}


def build_optimizer(
    model: nn.Module,
    members: Sequence[Member],
    *,
    output_loss: str | None = None,
    loss_at_zero: float | None = None,
) -> StackOptimizer:
    """Return the optimizer of a stack; exact ISGD takes stacks of its own.

    Args:
        model: Parameters with the members in front, [members, ...].
        members: How each member is trained.
        output_loss: See `StackOptimizer`.
        loss_at_zero: See `StackOptimizer`.
    """
    # Here, because whoever only names methods need not carry torch.
    from ib_core.methods.isgd import ExactISGD
    from ib_core.methods.stack import StackOptimizer

    exact = {METHODS[member.method].exact for member in members if member.method in METHODS}
    if exact == {True, False} or (len({m.inner_steps for m in members}) > 1 and True in exact):
        raise MisuseError(
            "Exact ISGD runs inner steps and cannot share a stack with other methods or with "
            "another number of inner steps; train it in a stack of its own."
        )
    kind = ExactISGD if True in exact else StackOptimizer
    return kind(model, members, output_loss=output_loss, loss_at_zero=loss_at_zero)


def __getattr__(name: str) -> Any:
    for module, names in _HOMES.items():
        if name in names.split():
            return getattr(import_module(f"{__name__}.{module}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
