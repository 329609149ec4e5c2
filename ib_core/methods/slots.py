"""A stack's parameters and the gradients its next step is made of, one slot a parameter.

Every slot is one contiguous block [members, ...]: batched products write into it directly, and
all that a method does (clip, move, restart) is a handful of calls a slot, never a member.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from ib_core.errors import MisuseError


@dataclass(slots=True)
class Slot:
    """One parameter, [members, ...], and its gradient-like `g` in `theta' = theta - lr * g`.

    Attributes:
        name: The parameter's name in the model.
        parameter: The parameter.
        grad: The last step's g, where it was written down.
        alpha: The alphas that g was made of, where it was not.
    """

    name: str
    parameter: nn.Parameter
    grad: Tensor
    alpha: Tensor | None = None

    @property
    def theta(self) -> Tensor:
        """The parameter's values, [members, numbers]."""
        return self.parameter.data.flatten(1)

    def has_finite_gradient(self, member: int) -> bool:
        """Return whether the last step of a member was made of finite numbers."""
        made_of = self.grad if self.alpha is None else self.alpha
        return bool(torch.isfinite(made_of[member]).all())

    @property
    def rows(self) -> Tensor:
        """The gradient as rows, [members, numbers]."""
        return self.grad.flatten(1)


class Slots:
    """All parameters of a stack that may move."""

    def __init__(self, model: nn.Module) -> None:
        named = [(name, p) for name, p in model.named_parameters() if p.requires_grad]
        counts = {p.shape[0] if p.dim() > 1 else None for _, p in named}
        if len(counts) != 1 or None in counts:
            raise MisuseError("Every parameter of a stack must have the members in front.")
        self._slots = {
            id(p): Slot(name, p, torch.zeros_like(p, memory_format=torch.contiguous_format))
            for name, p in named
        }

    def __iter__(self) -> Iterator[Slot]:
        return iter(self._slots.values())

    def of(self, parameter: nn.Parameter) -> Slot:
        """Return a parameter's slot."""
        return self._slots[id(parameter)]

    @property
    def like(self) -> Tensor:
        """Some parameter, for its device and dtype."""
        return next(iter(self)).parameter.data

    @property
    def members(self) -> int:
        """How many models are in the stack."""
        return self.like.shape[0]

    @property
    def numbers(self) -> int:
        """Parameters of one model."""
        return sum(slot.parameter[0].numel() for slot in self)

    def grad_norms(self) -> list[Tensor]:
        """Return every parameter's gradient norms, [members] each."""
        return [torch.linalg.vector_norm(slot.rows, dim=1) for slot in self]

    def theta_norms(self) -> list[Tensor]:
        """Return every parameter's norms, [members] each."""
        return [torch.linalg.vector_norm(slot.theta, dim=1) for slot in self]

    def keep(self, kept: Tensor) -> None:
        """Keep only these members (indices, rising)."""
        for slot in self:
            slot.parameter.data = slot.parameter.data[kept]
            slot.parameter.grad = None
            slot.grad = slot.grad[kept]
            slot.alpha = None if slot.alpha is None else slot.alpha[kept]
