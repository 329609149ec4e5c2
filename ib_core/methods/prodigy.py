"""Prodigy: Adam that finds its rate by itself (Mishchenko & Defazio, arXiv 2306.06101).

d, the distance to the solution as far as it is known, begins at 1e-6 and only grows:

    m = .9 m + .1 d g,   v = .999 v + .001 d^2 g^2
    r = q r + (1 - q) lr d^2 <g, theta_0 - theta>,   s = q s + (1 - q) lr d^2 g,   q = sqrt(.999)
    theta' = theta - lr d m/(sqrt(v) + d 1e-8),   d' = max(d, r/|s|_1)

The learning rate multiplies what it finds and is meant to be 1.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from ib_core.methods.adam import B1, B2, EPS
from ib_core.methods.base import Member
from ib_core.methods.mover import Mover, Rows, Step

START = 1e-6
Q = B2**0.5


class Prodigy(Mover):
    """Adam's steps, scaled by the distance every member has found."""

    def __init__(self, theta: Rows, members: Sequence[Member]) -> None:
        del members
        self.start = [rows.clone() for rows in theta]
        self.mean, self.square, self.pull = (
            [torch.zeros_like(rows) for rows in theta] for _ in range(3)
        )
        self.distance = torch.full_like(theta[0][:, :1], START)
        self.gain = torch.zeros_like(self.distance)

    def move(self, step: Step) -> None:
        """Take one step; the distance found in it counts from the next."""
        d, weight = self.distance, (1 - Q) * step.lr * self.distance.square()
        gain, length = torch.zeros_like(d), torch.zeros_like(d)
        parts = zip(
            step.theta, step.grad, self.start, self.mean, self.square, self.pull, strict=True
        )
        for theta, grad, start, mean, square, pull in parts:
            gain = gain + torch.linalg.vecdot(grad, start - theta).unsqueeze(1)
            pull.mul_(Q).addcmul_(grad, weight)
            length = length + pull.abs().sum(1, keepdim=True)
            scaled = grad * d
            mean.lerp_(scaled, 1 - B1)
            square.mul_(B2).addcmul_(scaled, scaled, value=1 - B2)
            theta.sub_((mean / (square.sqrt() + d * EPS)).mul_(step.lr * d))
        self.gain = Q * self.gain + weight * gain
        found = torch.where(length > 0, self.gain / length, torch.zeros_like(d))
        self.distance = torch.maximum(d, found)

    def keep(self, rows: Tensor) -> None:
        """Forget all members but these."""
        for name in ("start", "mean", "square", "pull"):
            setattr(self, name, [part[rows] for part in getattr(self, name)])
        self.distance, self.gain = self.distance[rows], self.gain[rows]
