"""SGD with momentum: `v = m v + g`, `theta' = theta - lr * v`, as torch has it.

A file of its own, however short: one method, one file with its step.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from ib_core.methods.base import Member


class Momentum:
    """Moves rows by their velocity."""

    def __init__(self, theta: Tensor, members: Sequence[Member]) -> None:
        self.velocity = torch.zeros_like(theta)
        self.momentum = theta.new_tensor([member.momentum for member in members]).unsqueeze(1)

    def move(self, theta: Tensor, grad: Tensor, lr: Tensor) -> None:
        """Take one step."""
        self.velocity.mul_(self.momentum).add_(grad)
        theta.addcmul_(self.velocity, lr, value=-1.0)

    def keep(self, rows: Tensor) -> None:
        """Forget the velocity of all rows but these."""
        self.velocity, self.momentum = self.velocity[rows], self.momentum[rows]


MOVER = Momentum
