"""Adam with torch's default betas (.9, .999) and eps 1e-8.

A file of its own, however short: one method, one file with its step.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from ib_core.methods.base import Member


class Adam:
    """Moves rows by their gradient's running mean over the root of its running square."""

    def __init__(self, theta: Tensor, members: Sequence[Member]) -> None:
        del members
        self.mean, self.square, self.steps = torch.zeros_like(theta), torch.zeros_like(theta), 0

    def move(self, theta: Tensor, grad: Tensor, lr: Tensor) -> None:
        """Take one step."""
        self.steps += 1
        self.mean.lerp_(grad, 0.1)
        self.square.mul_(0.999).addcmul_(grad, grad, value=0.001)
        root = self.square.sqrt().div_((1 - 0.999**self.steps) ** 0.5).add_(1e-8)
        theta.sub_((self.mean / root).mul_(lr / (1 - 0.9**self.steps)))

    def keep(self, rows: Tensor) -> None:
        """Forget the moments of all rows but these."""
        self.mean, self.square = self.mean[rows], self.square[rows]


MOVER = Adam
