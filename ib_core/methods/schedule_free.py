"""Schedule-free AdamW: an average takes the place of a schedule (Defazio et al. 2405.15682).

    y = .1 z + .9 x,  g = gradient at y,  v = .999 v + .001 g^2
    z' = z - lr (g/(sqrt(v/(1 - .999^t)) + 1e-8) + w y),  x' = (1 - c) x + c z'

with `c = lr_t^2 / sum of lr_i^2`, rates counted at the largest there has been: the plain mean
where the rate is constant. x is what is evaluated and kept; only the training pass runs at y.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from ib_core.methods.adam import B2, EPS
from ib_core.methods.base import Member
from ib_core.methods.mover import Mover, Rows, Step, said

#: How much of y is x.
TOWARDS_X = 0.9


class ScheduleFree(Mover):
    """Steps z from y, between z and the average x; theta is x outside of a step."""

    looks_ahead = True

    def __init__(self, theta: Rows, members: Sequence[Member]) -> None:
        self.z = [rows.clone() for rows in theta]
        self.x = [rows.clone() for rows in theta]
        self.square = [torch.zeros_like(rows) for rows in theta]
        self.decay = said(theta, members, "weight_decay")
        self.largest = self.total = torch.zeros_like(theta[0][:, :1])
        self.steps = 0

    def look_ahead(self, theta: Rows) -> None:
        """Move to y and remember x."""
        for rows, x, z in zip(theta, self.x, self.z, strict=True):
            x.copy_(rows)
            torch.lerp(z, x, TOWARDS_X, out=rows)

    def move(self, step: Step) -> None:
        """Step z, and take it into the average."""
        self.steps += 1
        self.largest = torch.maximum(self.largest, step.lr)
        weight = self.largest.square()
        self.total = self.total + weight
        share = torch.where(self.total > 0, weight / self.total, torch.zeros_like(weight))
        scale = (1 - B2**self.steps) ** 0.5
        parts = zip(step.theta, step.grad, self.z, self.x, self.square, strict=True)
        for theta, grad, z, x, square in parts:
            square.mul_(B2).addcmul_(grad, grad, value=1 - B2)
            moved = grad / square.sqrt().div_(scale).add_(EPS)
            z.sub_(moved.addcmul_(theta, self.decay).mul_(step.lr))
            torch.lerp(x, z, share, out=theta)

    def keep(self, rows: Tensor) -> None:
        """Forget all members but these."""
        self.z, self.x = [z[rows] for z in self.z], [x[rows] for x in self.x]
        self.square = [square[rows] for square in self.square]
        self.decay, self.largest = self.decay[rows], self.largest[rows]
        self.total = self.total[rows]
