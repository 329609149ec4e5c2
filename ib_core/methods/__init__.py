"""Methods: how weights move. A task says what is learnt, a method says how; they never meet.

| module | holds |
| --- | --- |
| `base` | `Method`: what one is, its look; `Schedule`, what its rate is multiplied by; `Member` |
| `catalogue` | `METHODS`: the list of all there are, with names, looks and places |
| `names` | `find_method`: the catalogue's, `torch.optim.NAME`, one's own, with options |
| `mover` | the interface of every method's step; plain steps and momentum |
| `proximal`, `adam` | the steps of the other methods, by kin |
| `stack` | `StackOptimizer`: many models at once; plain steps, EB's and IB's |
| `own_stacks` | exact ISGD, and any torch optimizer: optimizers with a stack of their own |
| `slots` | a stack's parameters and gradients, and the average of App. C's theorem |

A method is a line in `METHODS` and, if it does not step plainly, a mover in a module of its kin or
of its own. Names that need torch are imported when first used.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any

from ib_core.errors import MisuseError
from ib_core.methods.base import (
    OF_EVERY_METHOD,
    OTHER_LOOKS,
    OWN_METHODS,
    Look,
    Member,
    Method,
    Schedule,
    stayed_at_zero,
)
from ib_core.methods.catalogue import (
    IMPORTED_LOOK,
    METHODS,
    OF_A_METHOD,
    method_look,
    mup_of,
    place,
    series_look,
    steps_plainly,
)
from ib_core.methods.names import (
    canonical_name,
    find_method,
    method_of_class,
    optimizer_method,
    sayable,
    split_name,
    torch_optimizers,
)

if TYPE_CHECKING:
    from torch import nn

    from ib_core.methods.own_stacks import Factory, in_one_pass, make_optimizer, padding
    from ib_core.methods.slots import Slots, first_bad_layer, layer_of
    from ib_core.methods.stack import StackOptimizer

__all__ = [
    "IMPORTED_LOOK",
    "METHODS",
    "OF_A_METHOD",
    "OF_EVERY_METHOD",
    "OTHER_LOOKS",
    "OWN_METHODS",
    "Factory",
    "Look",
    "Member",
    "Method",
    "Schedule",
    "Slots",
    "StackOptimizer",
    "build_optimizer",
    "canonical_name",
    "find_method",
    "first_bad_layer",
    "in_one_pass",
    "layer_of",
    "make_optimizer",
    "method_look",
    "method_of_class",
    "mup_of",
    "optimizer_method",
    "padding",
    "place",
    "sayable",
    "series_look",
    "split_name",
    "stayed_at_zero",
    "steps_plainly",
    "torch_optimizers",
]

_HOMES = {
    "own_stacks": "Factory in_one_pass make_optimizer padding",
    "slots": "Slots first_bad_layer layer_of",
    "stack": "StackOptimizer",
}


def build_optimizer(
    model: nn.Module,
    members: Sequence[Member],
    *,
    output_loss: str | None = None,
    loss_at_zero: float | None = None,
    total_steps: int = 1,
    way: str = "member",
) -> StackOptimizer:
    """Return the optimizer of a stack; exact ISGD and torch's optimizers take stacks of their own.

    Args:
        model: Parameters with the members in front, [members, ...].
        members: How each member is trained.
        output_loss: See `StackOptimizer`.
        loss_at_zero: See `StackOptimizer`.
        total_steps: Of the whole training, for schedules.
        way: How a torch optimizer moves the stack, see `ib_core.methods.own_stacks`.
    """
    # Here, because whoever only names methods need not carry torch.
    from ib_core.methods.own_stacks import ExactISGD, TorchStack
    from ib_core.methods.stack import StackOptimizer

    if any(member.factory is not None for member in members):
        if len({(member.method, member.factory) for member in members}) > 1:
            raise MisuseError("A torch optimizer takes a stack of its own; train one at a time.")
        return TorchStack(model, members, way=way, total_steps=total_steps)
    exact = {METHODS[member.method].exact for member in members if member.method in METHODS}
    if exact == {True, False} or (len({m.inner_steps for m in members}) > 1 and True in exact):
        raise MisuseError(
            "Exact ISGD runs inner steps and cannot share a stack with other methods or with "
            "another number of inner steps; train it in a stack of its own."
        )
    kind = ExactISGD if True in exact else StackOptimizer
    return kind(
        model,
        members,
        output_loss=output_loss,
        loss_at_zero=loss_at_zero,
        total_steps=total_steps,
    )


def __getattr__(name: str) -> Any:
    for module, names in _HOMES.items():
        if name in names.split():
            return getattr(import_module(f"{__name__}.{module}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
