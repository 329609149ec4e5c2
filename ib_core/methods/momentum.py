"""SGD with momentum: `v = m v + g`, `theta' = theta - lr * v`, as torch has it.

A file of its own, however short: one method, one file with its step.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from ib_core.methods.base import Member
from ib_core.methods.mover import Mover, Rows, Step, column


class Momentum(Mover):
    """Moves members by their velocity."""

    def __init__(self, theta: Rows, members: Sequence[Member]) -> None:
        self.velocity = [torch.zeros_like(rows) for rows in theta]
        self.momentum = column(theta, [member.momentum for member in members])

    def move(self, step: Step) -> None:
        """Take one step."""
        for theta, grad, velocity in zip(step.theta, step.grad, self.velocity, strict=True):
            velocity.mul_(self.momentum).add_(grad)
            theta.addcmul_(velocity, step.lr, value=-1.0)

    def keep(self, rows: Tensor) -> None:
        """Forget the velocity of all members but these."""
        self.velocity = [velocity[rows] for velocity in self.velocity]
        self.momentum = self.momentum[rows]
