"""NGN: a Gauss-Newton step on the root of the loss (Orvieto & Xiao, arXiv 2407.04358).

With r = sqrt(f), f the batch's loss, the proximal step on the square of r's tangent,
`min over p: (r + <r', p>)^2 + |p|^2/(2 lr)` with r' = g/(2r), is

    p = -lr/(1 + lr |g|^2/(2 f)) g

so steps shrink smoothly where EB's would overshoot. `momentum` is NGN-M (arXiv 2508.15071):
`theta' = theta - (1 - m) p + m (theta - theta_old)`.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from ib_core.methods.base import Member
from ib_core.methods.mover import Mover, Rows, Step, column, squared_norm


def ngn_rate(step: Step) -> Tensor:
    """Return `lr/(1 + lr |g|^2/(2 f))`, [rows, 1]; 0 where the loss is."""
    bend = step.lr * squared_norm(step.grad) / (2 * step.loss)
    return torch.where(step.loss > 0, step.lr / (1 + bend), torch.zeros_like(step.lr))


class NGN(Mover):
    """`theta' = theta - lr/(1 + lr |g|^2/(2 f)) g`."""

    def move(self, step: Step) -> None:
        """Take one step."""
        rate = ngn_rate(step)
        for theta, grad in zip(step.theta, step.grad, strict=True):
            theta.addcmul_(grad, rate, value=-1.0)


class NGNMomentum(Mover):
    """`v = m v - (1 - m) rate g`, `theta' = theta + v`."""

    def __init__(self, theta: Rows, members: Sequence[Member]) -> None:
        self.velocity = [torch.zeros_like(rows) for rows in theta]
        self.momentum = column(theta, [member.momentum for member in members])

    def move(self, step: Step) -> None:
        """Take one step."""
        rate = (1 - self.momentum) * ngn_rate(step)
        for theta, grad, velocity in zip(step.theta, step.grad, self.velocity, strict=True):
            velocity.mul_(self.momentum).addcmul_(grad, rate, value=-1.0)
            theta.add_(velocity)

    def keep(self, rows: Tensor) -> None:
        """Forget the velocity of all members but these."""
        self.velocity = [velocity[rows] for velocity in self.velocity]
        self.momentum = self.momentum[rows]
