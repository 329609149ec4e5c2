"""A stack's parameters and the gradients its next step is made of, one slot a parameter.

Every slot is one contiguous block [members, ...]: batched products write into it directly, and
all that a method does (clip, move, restart) is a handful of calls a slot, never a member.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from ib_core.errors import MisuseError
from ib_core.layers import ImplicitLayer

#: A parameter's values, its slot's g, and the alphas that g was made of.
Saved = tuple[Tensor, Tensor, Tensor | None]


@dataclass(slots=True)
class Slot:
    """One parameter, [members, ...], and its gradient-like `g` in `theta' = theta - lr * g`.

    Attributes:
        name: The parameter's name in the model.
        parameter: The parameter.
        grad: The last step's g, where it was written down.
        alpha: The alphas that g was made of, where it was not.
        alone: Whether the parameter is one model's own, without members in front.
    """

    name: str
    parameter: nn.Parameter
    grad: Tensor
    alpha: Tensor | None = None
    alone: bool = False

    @property
    def theta(self) -> Tensor:
        """The parameter's values, [members, numbers]."""
        return _as_rows(self.parameter.data, self.alone)

    def has_finite_gradient(self, member: int) -> bool:
        """Return whether the last step of a member was made of finite numbers."""
        made_of = self.grad if self.alpha is None else self.alpha
        return bool(torch.isfinite(made_of if self.alone else made_of[member]).all())

    @property
    def rows(self) -> Tensor:
        """The gradient as rows, [members, numbers]."""
        return _as_rows(self.grad, self.alone)


def _as_rows(tensor: Tensor, alone: bool) -> Tensor:
    if alone:
        return tensor.view(1, -1)
    return tensor.flatten(1) if tensor.dim() > 1 else tensor.unsqueeze(1)


class Slots:
    """All parameters of a stack that may move.

    Args:
        model: Whose parameters.
        alone: Whether it is one ordinary model.
    """

    def __init__(self, model: nn.Module, *, alone: bool = False) -> None:
        named = [(name, p) for name, p in model.named_parameters() if p.requires_grad]
        self.alone = alone
        if not alone:
            _check_stack(model, [p for _, p in named])
        self._slots = {
            id(p): Slot(
                name, p, torch.zeros_like(p, memory_format=torch.contiguous_format), alone=alone
            )
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
        return 1 if self.alone else self.like.shape[0]

    @property
    def numbers(self) -> int:
        """Parameters of one model."""
        return sum(slot.theta[0].numel() for slot in self)

    def grad_norms(self) -> list[Tensor]:
        """Return every parameter's gradient norms, [members] each."""
        return [torch.linalg.vector_norm(slot.rows, dim=1) for slot in self]

    def theta_norms(self) -> list[Tensor]:
        """Return every parameter's norms, [members] each."""
        return [torch.linalg.vector_norm(slot.theta, dim=1) for slot in self]

    def saved(self) -> list[Saved]:
        """Return copies of every parameter and of what its last step was made of."""
        return [(s.parameter.data.clone(), s.grad.clone(), s.alpha) for s in self]

    def rewind(self, saved: list[Saved]) -> None:
        """Take the parameters and their last step from copies."""
        for slot, (theta, grad, alpha) in zip(self, saved, strict=True):
            slot.parameter.data.copy_(theta)
            slot.parameter.grad, slot.grad, slot.alpha = None, grad, alpha

    def keep(self, kept: Tensor) -> None:
        """Keep only these members (indices, rising)."""
        for slot in self:
            slot.parameter.data = slot.parameter.data[kept]
            slot.parameter.grad = None
            slot.grad = slot.grad[kept]
            slot.alpha = None if slot.alpha is None else slot.alpha[kept]


#: Dimensions of the weights of torch's own layers: with the members in front there is one more.
_ORDINARY: dict[type[nn.Module], int] = {
    nn.Linear: 2,
    nn.Embedding: 2,
    nn.Conv1d: 3,
    nn.Conv2d: 4,
    nn.Conv3d: 5,
}


def _check_stack(model: nn.Module, parameters: list[nn.Parameter]) -> None:
    """Refuse what is no stack: a layer with as many filters as members looks like one."""
    moved = {id(parameter) for parameter in parameters}
    for path, module in model.named_modules():
        weight = getattr(module, "weight", None)
        ordinary = isinstance(weight, Tensor) and weight.dim() == _ORDINARY.get(type(module))
        if ordinary and id(weight) in moved:
            raise MisuseError(
                f"Every parameter of a stack must have the members in front; {path or 'the model'} "
                f"is an ordinary {type(module).__name__}, whose first dimension is its own."
            )
    counts = {p.shape[0] if p.dim() else None for p in parameters}
    if len(counts) != 1 or None in counts:
        raise MisuseError("Every parameter of a stack must have the members in front.")


def add_product(layer: ImplicitLayer, alpha: Tensor, z: Tensor, lr: Tensor) -> None:
    """Add `-lr * sum_rows alpha z` to a layer's weights, and likewise to its bias."""
    if len(lr) == 1 and lr.is_cpu:  # the product itself takes one rate, but not one a member
        rate = float(lr)
        layer.matrix.squeeze(0).addmm_(alpha.squeeze(0).mT, z.squeeze(0), alpha=-rate)
        if layer.bias is not None:
            layer.bias.sub_(alpha.sum(-2), alpha=rate)
        return
    step = alpha.mT * -lr.view(-1, 1, 1)
    layer.matrix.baddbmm_(step, z)
    if layer.bias is not None:
        layer.bias.add_(step.sum(-1))
