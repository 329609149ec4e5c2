"""Which way a torch optimizer may move a stack: found out by trying, not by a list.

One optimizer may serve a whole stack if (a) it is element-wise: a gradient that is not a number in
one member leaves the others' bits as they were; and (b) it is linear in its rate: members at both
ends of the grid end up where the optimizer alone would have taken them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from ib_core.errors import MisuseError
from ib_core.methods.own_stacks import Factory, in_one_pass, make_optimizer, padding

#: Steps of the comparison with the optimizer alone.
STEPS = 40
#: Each side of a parameter is tried with at most so many numbers.
LONGEST_SIDE = 6
#: What rounding may add up to, against a member's way, and against its weights.
OF_THE_WAY, OF_THE_WEIGHTS = 2e-5, STEPS * 1.2e-7


@dataclass(frozen=True, slots=True)
class Verdict:
    """A way, and why."""

    way: str
    reason: str


def probe(
    factory: Factory,
    options: Mapping[str, Any],
    shapes: Sequence[tuple[int, ...]],
    rates: Sequence[float],
    name: str,
) -> Verdict:
    """Return the way an optimizer may move a stack of such parameters over such rates.

    Args:
        factory: Of the method.
        options: What it is made with.
        shapes: Of one model's parameters; large ones are cut down.
        rates: Of the sweep.
        name: Of the method.

    Raises:
        MisuseError: If it cannot train one model either; in its own words.
    """
    small = [tuple(min(side, LONGEST_SIDE) for side in shape) for shape in shapes]
    ends = (max(rates), min(rates))
    # Weights about as large as the smallest rate's way, so that rounding hides nothing.
    trial = _Trial(factory, options, small, name, size=10 * min(rates))
    alone = [trial.alone(rate, member) for member, rate in enumerate(ends)]
    try:
        together = trial.together(ends)
        if not torch.equal(trial.together(ends, poisoned=True), together):
            return Verdict("member", "its members are not independent of each other")
    except Exception as error:
        return Verdict("member", f"it does not take a stack: {_first_line(error)}")
    for one, other, start in zip(together, alone, trial.start, strict=True):
        moved = (other - start).abs().max()
        allowed = OF_THE_WAY * moved + OF_THE_WEIGHTS * max(start.abs().max(), moved)
        if not bool((one - other).abs().max() <= allowed):
            return Verdict("member", "its steps are not proportional to the rate")
    return Verdict("scaled", "element-wise and proportional to the rate")


def _first_line(error: Exception) -> str:
    return (str(error) or type(error).__name__).splitlines()[0]


class _Trial:
    """Two members with made-up gradients; the third carries the poison."""

    def __init__(
        self,
        factory: Factory,
        options: Mapping[str, Any],
        shapes: Sequence[tuple[int, ...]],
        name: str,
        size: float,
    ) -> None:
        self.factory, self.options, self.shapes, self.name = factory, options, shapes, name
        draw = torch.Generator().manual_seed(17)
        self.sizes = [max(1, torch.Size(shape).numel()) for shape in shapes]
        total = sum(self.sizes)
        self.start = torch.randn(2, total, generator=draw) * size
        self.gradients = torch.randn(STEPS, 2, total, generator=draw)

    def alone(self, rate: float, member: int) -> Tensor:
        """Return where the optimizer takes one member over ordinary parameters."""
        parts = self.start[member].clone().split(self.sizes)
        params = [
            nn.Parameter(part.reshape(shape))
            for part, shape in zip(parts, self.shapes, strict=True)
        ]
        optimizer = self._ready(params, rate)
        for step in range(STEPS):
            grads = self.gradients[step, member].split(self.sizes)
            for parameter, grad in zip(params, grads, strict=True):
                parameter.grad = grad.reshape(parameter.shape).clone()
            self._step(optimizer)
        return torch.cat([parameter.detach().flatten() for parameter in params])

    def together(self, rates: Sequence[float], *, poisoned: bool = False) -> Tensor:
        """Return where one optimizer at the largest rate takes both, scaled; [2, numbers]."""
        largest = max(rates)
        members = torch.cat([self.start[:1], self.start]) if poisoned else self.start
        ratios = ([1.0] if poisoned else []) + [rate / largest for rate in rates]
        ratio = torch.tensor(ratios).view(-1, 1).expand_as(members).flatten()
        rest = torch.zeros(padding(members.numel()))
        ratio = torch.cat([ratio, rest])
        theta = nn.Parameter(torch.cat([members.flatten(), rest]))
        optimizer = in_one_pass(self._ready([theta], largest))
        for step in range(STEPS):
            grads = self.gradients[step]
            if poisoned:
                grads = torch.cat([torch.full_like(grads[:1], float("nan")), grads])
            theta.grad = torch.cat([grads.flatten(), rest])
            before = theta.detach().clone()
            self._step(optimizer)
            with torch.no_grad():
                theta.copy_(torch.lerp(before, theta, ratio))
        return theta.detach()[: members.numel()].view_as(members)[-2:]

    def _ready(self, params: Sequence[nn.Parameter], rate: float) -> torch.optim.Optimizer:
        optimizer = make_optimizer(self.factory, params, rate, self.options, self.name)
        train = getattr(optimizer, "train", None)
        if callable(train):
            train()
        return optimizer

    def _step(self, optimizer: torch.optim.Optimizer) -> None:
        try:
            optimizer.step()
        except Exception as error:
            raise MisuseError(
                f"{self.name} cannot step from gradients: {_first_line(error)}", field="methods"
            ) from error
