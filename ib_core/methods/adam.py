"""Adam with torch's default betas (.9, .999) and eps 1e-8.

A file of its own, however short: one method, one file with its step.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from ib_core.methods.base import Member
from ib_core.methods.mover import Mover, Rows, Step


class Adam(Mover):
    """Moves members by their gradient's running mean over the root of its running square."""

    def __init__(self, theta: Rows, members: Sequence[Member]) -> None:
        del members
        self.mean = [torch.zeros_like(rows) for rows in theta]
        self.square = [torch.zeros_like(rows) for rows in theta]
        self.steps = 0

    def move(self, step: Step) -> None:
        """Take one step."""
        self.steps += 1
        lr = step.lr / (1 - 0.9**self.steps)
        parts = zip(step.theta, step.grad, self.mean, self.square, strict=True)
        for theta, grad, mean, square in parts:
            mean.lerp_(grad, 0.1)
            square.mul_(0.999).addcmul_(grad, grad, value=0.001)
            root = square.sqrt().div_((1 - 0.999**self.steps) ** 0.5).add_(1e-8)
            theta.sub_((mean / root).mul_(lr))

    def keep(self, rows: Tensor) -> None:
        """Forget the moments of all members but these."""
        self.mean = [mean[rows] for mean in self.mean]
        self.square = [square[rows] for square in self.square]
