"""What moves a run of neighbouring members: every method's interface, plain steps and momentum.

A mover sees all parameters of its members at once, because some methods need the norm of a whole
gradient, or remember a whole model. It is made once and forgets members that leave.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from importlib import import_module
from itertools import groupby
from typing import Any, NamedTuple, TypeVar

import torch
from torch import Tensor

from ib_core.errors import MisuseError
from ib_core.layers import ImplicitLayer
from ib_core.methods.base import Member, Method
from ib_core.methods.catalogue import METHODS

Rows = Sequence[Tensor]
T = TypeVar("T")


class Step(NamedTuple):
    """What a step is made of, for a run of members.

    Attributes:
        theta: Every parameter, [rows, numbers] each, to be changed in place.
        grad: The gradient-like g of each, ridge and clipping done; may be written over.
        lr: Rates at this step, [rows, 1].
        loss: The batch's losses, ridge included, [rows, 1].
    """

    theta: Rows
    grad: Rows
    lr: Tensor
    loss: Tensor


class Mover(ABC):
    """Moves the members it was made for.

    Args:
        theta: Every parameter, [rows, numbers] each.
        members: How each row is trained.

    Attributes:
        looks_ahead: Whether `look_ahead` does anything.
        shapes: Every parameter's shape in one model, for movers to which a matrix is more than
            its numbers; told by the stack.
    """

    looks_ahead = False
    shapes: Sequence[torch.Size] = ()

    def __init__(self, theta: Rows, members: Sequence[Member]) -> None:
        del theta, members

    def look_ahead(self, theta: Rows) -> None:  # noqa: B027  few methods do
        """Change, in place, the weights at which the coming gradient is taken."""

    def came_from(self) -> Rows:
        """Return the weights as they were before `look_ahead`."""
        return ()

    def take(self, step: Step, idle: Sequence[bool]) -> None:
        """Take a step in which some parameters may have had no gradient.

        Those stay as they are, and so does what is remembered of them (lists with an entry a
        parameter): torch's optimizers skip them, too.
        """
        if not any(idle):
            self.move(step)
            return
        self._move_some(step, idle)
        if self.looks_ahead:
            for still, rows, before in zip(idle, step.theta, self.came_from(), strict=True):
                if still:
                    rows.copy_(before)

    def _move_some(self, step: Step, idle: Sequence[bool]) -> None:
        places = [place for place, still in enumerate(idle) if not still]
        remembered = {
            name: value
            for name, value in vars(self).items()
            if isinstance(value, list) and len(value) == len(idle)
        }
        for name, value in remembered.items():
            setattr(self, name, [value[place] for place in places])
        if places:
            theta, grad = ([rows[place] for place in places] for rows in (step.theta, step.grad))
            self.move(Step(theta, grad, step.lr, step.loss))
        for name, value in remembered.items():
            for place, changed in zip(places, getattr(self, name), strict=True):
                value[place] = changed
            setattr(self, name, value)

    @abstractmethod
    def move(self, step: Step) -> None:
        """Change `step.theta` in place."""

    def keep(self, rows: Tensor) -> None:  # noqa: B027  plain steps remember nothing
        """Forget all members but these (indices, rising)."""


MoverKind = Callable[[Rows, Sequence[Member]], Mover]


class Plain(Mover):
    """`theta' = theta - lr * g`: EB and IB alike."""

    def move(self, step: Step) -> None:
        """Take one step."""
        for theta, grad in zip(step.theta, step.grad, strict=True):
            theta.addcmul_(grad, step.lr, value=-1.0)


_OTHER = Method(None, step="plain")


def method_of(member: Member) -> Method:
    """Return a member's method; one with an optimizer of its own steps explicitly."""
    return METHODS[member.method] if member.factory is None else _OTHER


def check_output(
    last: Sequence[ImplicitLayer], members: Sequence[Member], output_loss: str | None
) -> None:
    """Refuse to solve the last implicit layer under a loss that does not read it."""
    solving = [member.method for member in members if method_of(member).implicit_output]
    if solving and output_loss and any(layer.gives_output is False for layer in last):
        raise MisuseError(
            f"{solving[0]} solves the model's output layer under its loss, but what the last "
            "implicit layer returns is not what the model returns: make a linear "
            "ImplicitLinear the model's last layer, used once, or use ib."
        )


def mover_kind(member: Member) -> MoverKind:
    """Return what moves this member: plain steps, or its method's own mover."""
    method = method_of(member)
    if method.step == "plain":
        return Plain
    module, _, name = method.step.partition(".")
    if not name:
        raise MisuseError(
            f"The method {member.method!r} does not say how it steps: give it an optimizer, as in "
            "Method(torch.optim.SGD), or the mover of its steps."
        )
    kind: MoverKind = getattr(import_module(f"ib_core.methods.{module}"), name)
    return kind


def squared_norm(rows: Rows) -> Tensor:
    """Return |g|^2 over all parameters together, [rows, 1]."""
    return inner_product(rows, rows)


def inner_product(one: Rows, other: Rows) -> Tensor:
    """Return <u, v> over all parameters together, [rows, 1]."""
    parts = [torch.linalg.vecdot(u, v) for u, v in zip(one, other, strict=True)]
    return torch.stack(parts).sum(0).unsqueeze(1)


def column(like: Rows, values: Sequence[float]) -> Tensor:
    """Return one number a member, [rows, 1]."""
    return like[0].new_tensor(values).unsqueeze(1)


def said(like: Rows, members: Sequence[Member], option: str) -> Tensor:
    """Return an option of the method's, its default where a member's name does not say it."""
    default: Any = METHODS[members[0].method].options[option].default
    return column(like, [float(dict(member.options).get(option, default)) for member in members])


def at_most(lr: Tensor, value: Tensor, square: Tensor) -> Tensor:
    """Return `min(lr, max(value, 0) / square)`; lr where there is no gradient to divide by."""
    return torch.where(square > 0, torch.minimum(lr, value.clamp(min=0) / square), lr)


def runs_of(keys: Sequence[T]) -> list[tuple[slice, T]]:
    """Return (slice, key) for every run of equal neighbours."""
    found, start = [], 0
    for key, group in groupby(keys):
        length = len(list(group))
        found.append((slice(start, start + length), key))
        start += length
    return found


class Momentum(Mover):
    """SGD with momentum: `v = m v + g`, `theta' = theta - lr * v`, as torch has it."""

    def __init__(self, theta: Rows, members: Sequence[Member]) -> None:
        self.velocity = [torch.zeros_like(rows) for rows in theta]
        self.momentum = column(theta, [member.momentum for member in members])

    def move(self, step: Step) -> None:
        """Take one step."""
        for theta, grad, velocity in zip(step.theta, step.grad, self.velocity, strict=True):
            velocity.mul_(self.momentum).add_(grad)
            theta.addcmul_(velocity, step.lr, value=-1.0)

    def keep(self, rows: Tensor) -> None:
        """Forget the velocity of all members but these."""
        self.velocity = [velocity[rows] for velocity in self.velocity]
        self.momentum = self.momentum[rows]
