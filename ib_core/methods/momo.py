"""MoMo: Polyak's step on an averaged model of the loss (Schaipp et al., arXiv 2305.07583).

Averages with weight m of what came before, begun at their first values:

    d = m d + (1 - m) g,  fbar = m fbar + (1 - m) f,  gbar = m gbar + (1 - m) <g, theta>
    h = fbar + <d, theta> - gbar,  theta' = theta - min(lr, max(h - f*, 0)/|d|^2) d,  f* = 0
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from ib_core.methods.base import Member
from ib_core.methods.mover import Mover, Rows, Step, at_most, column, inner_product, squared_norm


class MoMo(Mover):
    """SPS with momentum: the averages are those of gradients, losses and tangents."""

    def __init__(self, theta: Rows, members: Sequence[Member]) -> None:
        self.direction = [torch.zeros_like(rows) for rows in theta]
        self.loss = self.tangent = torch.zeros_like(theta[0][:, :1])
        self.momentum = column(theta, [member.momentum for member in members])
        self.begun = False

    def move(self, step: Step) -> None:
        """Take one step."""
        weight = 1 - self.momentum if self.begun else torch.ones_like(self.momentum)
        self.begun = True
        for direction, grad in zip(self.direction, step.grad, strict=True):
            direction.lerp_(grad, weight)
        tangent = inner_product(step.grad, step.theta)
        self.loss = torch.lerp(self.loss, step.loss, weight)
        self.tangent = torch.lerp(self.tangent, tangent, weight)
        height = self.loss + inner_product(self.direction, step.theta) - self.tangent
        rate = at_most(step.lr, height, squared_norm(self.direction))
        for theta, direction in zip(step.theta, self.direction, strict=True):
            theta.addcmul_(direction, rate, value=-1.0)

    def keep(self, rows: Tensor) -> None:
        """Forget the averages of all members but these."""
        self.direction = [direction[rows] for direction in self.direction]
        self.loss, self.tangent = self.loss[rows], self.tangent[rows]
        self.momentum = self.momentum[rows]
