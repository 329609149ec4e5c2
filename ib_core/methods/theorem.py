"""What the paper's theorem bounds (App. C), followed step by step for members that restart.

For decaying rates and restarts inside the level set it bounds

    A_T = sum over t < T of lr_t |g_t|^2  /  sum over t < T of lr_t

where g_t is what the step multiplies by its rate: the batch's gradient with the ridge for explicit
methods, and `(theta - theta')/lr` for implicit ones.
"""

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from ib_core.methods.base import Member
from ib_core.methods.slots import Slots
from ib_core.updates import global_norm

#: What is noted at an evaluation, besides the step.
NAMES = ("average", "gradient", "theta", "restarts")


class Averages:
    """The sums of every member so far, and what was noted of them.

    Args:
        slots: The stack's parameters and gradients.
        members: How each is trained; where none restarts nothing is summed.
    """

    def __init__(self, slots: Slots, members: Sequence[Member]) -> None:
        self.slots = slots
        self.wanted = [member.restart for member in members]
        # Sums over thousands of steps: in single precision small steps would be lost in them.
        self.weighted, self.rates, self.gradient = (
            torch.zeros(len(members), dtype=torch.float64, device=slots.like.device)
            for _ in range(3)
        )
        self.noted: list[list[tuple[float, ...]]] = [[] for _ in members]

    def take(self, lr: Tensor) -> None:
        """Take in one step, whose g the slots hold."""
        if any(self.wanted):
            self.gradient = global_norm(self.slots.grad_norms()).double()
            self.weighted += lr.double() * self.gradient.square()
            self.rates += lr.double()

    def keep(self, kept: Tensor) -> None:
        """Forget all members but these."""
        self.weighted, self.rates = self.weighted[kept], self.rates[kept]
        self.gradient = self.gradient[kept]
        self.wanted = [self.wanted[row] for row in kept.tolist()]
        self.noted = [self.noted[row] for row in kept.tolist()]

    def note(self, step: int, restarts: Tensor) -> None:
        """Note where every member is after `step` steps."""
        if not any(self.wanted):
            return
        theta = global_norm(self.slots.theta_norms())
        columns = (self.weighted / self.rates, self.gradient, theta, restarts)
        rows = zip(*(column.tolist() for column in columns), strict=True)
        for noted, row in zip(self.noted, rows, strict=True):
            noted.append((step, *row))

    def of(self, row: int) -> dict[str, Any]:
        """Return what a trial's record keeps of a member: a list a name, None where not finite."""
        if not self.wanted[row] or not self.noted[row]:
            return {}
        columns = zip(("step", *NAMES), zip(*self.noted[row], strict=True), strict=True)
        return {
            "theorem": {
                name: [value if math.isfinite(value) else None for value in values]
                for name, values in columns
            }
        }
