"""Methods: how weights move. A task says what is learnt, a method says how; they never meet."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ib_core.errors import MisuseError
from ib_core.methods.base import METHODS, Member, Method

if TYPE_CHECKING:
    from torch import nn

    from ib_core.methods.stack import StackOptimizer

__all__ = ["METHODS", "Member", "Method", "build_optimizer"]


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
    from ib_core.methods.exact_isgd import ExactISGD
    from ib_core.methods.stack import StackOptimizer

    exact = {METHODS[member.method].exact for member in members if member.method in METHODS}
    if exact == {True, False} or (len({m.inner_steps for m in members}) > 1 and True in exact):
        raise MisuseError(
            "Exact ISGD runs inner steps and cannot share a stack with other methods or with "
            "another number of inner steps; train it in a stack of its own."
        )
    kind = ExactISGD if True in exact else StackOptimizer
    return kind(model, members, output_loss=output_loss, loss_at_zero=loss_at_zero)
