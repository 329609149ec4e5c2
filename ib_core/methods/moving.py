"""How a gradient becomes a step: plain, with momentum, or Adam's way.

A mover owns the state of one parameter of a run of neighbouring members.
"""

from collections.abc import Sequence
from typing import Protocol

import torch
from torch import Tensor

from ib_core.methods.base import Member


class Mover(Protocol):
    """Moves the rows it was made for."""

    def move(self, theta: Tensor, grad: Tensor, lr: Tensor) -> None:
        """Change theta [rows, numbers] in place, given lr [rows, 1]."""

    def keep(self, rows: Tensor) -> None:
        """Forget the state of all rows but these."""


class Plain:
    """`theta' = theta - lr * g`: EB and IB alike."""

    def __init__(self, theta: Tensor, members: Sequence[Member]) -> None:
        del theta, members  # no state

    def move(self, theta: Tensor, grad: Tensor, lr: Tensor) -> None:
        """Take one step."""
        theta.addcmul_(grad, lr, value=-1.0)

    def keep(self, rows: Tensor) -> None:
        """Nothing is remembered."""


class Momentum:
    """Torch's SGD with momentum: `v = m v + g`, `theta' = theta - lr * v`."""

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


class Adam:
    """Torch's Adam with its default betas (.9, .999) and eps 1e-8."""

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


#: Methods that move in their own way; all others move plainly.
MOVERS: dict[str, type[Plain] | type[Momentum] | type[Adam]] = {
    "momentum": Momentum,
    "adam": Adam,
}


def mover_kind(member: Member) -> type[Plain] | type[Momentum] | type[Adam]:
    """Return what moves this member."""
    return MOVERS.get(member.method, Plain)
