"""IB with momentum: the implicit step is taken from a point ahead.

    y = theta + m (theta - theta_old),  theta' = IB's step from y

which is the proximal point method with momentum (SPPAM) where the step is exact. Losses are
evaluated at theta; only the training pass runs at y.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from ib_core.methods.base import Member
from ib_core.methods.mover import Mover, Rows, Step, column


class ImplicitMomentum(Mover):
    """Goes ahead by the last move, shortened; then steps as IB does."""

    looks_ahead = True

    def __init__(self, theta: Rows, members: Sequence[Member]) -> None:
        self.old = [rows.clone() for rows in theta]
        self.momentum = column(theta, [member.momentum for member in members])

    def look_ahead(self, theta: Rows) -> None:
        """Move to y and remember theta."""
        for rows, old in zip(theta, self.old, strict=True):
            ahead = torch.lerp(old, rows, 1 + self.momentum)
            old.copy_(rows)
            rows.copy_(ahead)

    def move(self, step: Step) -> None:
        """Step from y."""
        for theta, grad in zip(step.theta, step.grad, strict=True):
            theta.addcmul_(grad, step.lr, value=-1.0)

    def keep(self, rows: Tensor) -> None:
        """Forget where all members but these were."""
        self.old = [old[rows] for old in self.old]
        self.momentum = self.momentum[rows]
