"""A stack's parameters and the gradients its next step is made of, and what is summed of them.

There is a slot for every parameter, one contiguous block [members, ...]: batched products write
into it directly, and all that a method does (clip, move, restart) is a handful of calls a slot,
never a member.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from ib_core.errors import MisuseError
from ib_core.layers import ImplicitLayer
from ib_core.methods.base import Member
from ib_core.updates import global_norm

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
        idle: Whether no gradient reached it in this step: then nothing moves it, as in torch.
    """

    name: str
    parameter: nn.Parameter
    grad: Tensor
    alpha: Tensor | None = None
    alone: bool = False
    idle: bool = False

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
        self._fed: set[int] = set()

    def __iter__(self) -> Iterator[Slot]:
        return iter(self._slots.values())

    def of(self, parameter: nn.Parameter) -> Slot:
        """Return a parameter's slot."""
        return self._slots[id(parameter)]

    def fed(self, parameter: nn.Parameter) -> Slot:
        """Return the slot of a parameter whose gradient a layer's record gives."""
        self._fed.add(id(parameter))
        return self._slots[id(parameter)]

    def take_gradients(self) -> None:
        """Take torch's gradients off the parameters; what had none is idle, its g zero."""
        for key, slot in self._slots.items():
            gradient = slot.parameter.grad
            slot.idle = gradient is None and key not in self._fed
            if gradient is not None:
                slot.grad.copy_(gradient)
                slot.parameter.grad = None
            elif slot.idle:
                slot.grad.zero_()
        self._fed.clear()

    def moving(self) -> list[Slot]:
        """Return the slots that a gradient has reached in this step."""
        return [slot for slot in self if not slot.idle]

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
        if layer.bias is not None and layer.bias_moves:
            layer.bias.sub_(alpha.sum(-2), alpha=rate)
        return
    step = alpha.mT * -lr.view(-1, 1, 1)
    layer.matrix.baddbmm_(step, z)
    if layer.bias is not None and layer.bias_moves:
        layer.bias.add_(step.sum(-1))


# --- The average of the paper's theorem (App. C), for members that restart


#: What is noted at an evaluation, besides the step.
NAMES = ("average", "gradient", "theta", "restarts")


class Averages:
    """The sums of every member so far, and what was noted of them: the theorem's average.

        A_T = sum over t < T of lr_t |g_t|^2  /  sum over t < T of lr_t

    where g_t is what the step multiplies by its rate: the batch's gradient with the ridge for
    explicit methods, and `(theta - theta')/lr` for implicit ones. For decaying rates and restarts
    outside the level set, the same with the expected gradient tends to 0; a batch's noise stays.

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
        if any(self.wanted):  # in place: a replayed step writes where the recorded one did
            self.gradient.copy_(global_norm(self.slots.grad_norms()))
            self.weighted += lr.double() * self.gradient.square()
            self.rates += lr.double()

    @property
    def sums(self) -> tuple[Tensor, ...]:
        """What steps change; nothing where nobody restarts."""
        return (self.weighted, self.rates, self.gradient) if any(self.wanted) else ()

    def saved(self) -> tuple[Tensor, ...]:
        """Return a copy of what steps change, for `rewind`."""
        return tuple(one.clone() for one in self.sums)

    def rewind(self, saved: tuple[Tensor, ...]) -> None:
        """Go back to where a copy was taken."""
        if saved:
            self.weighted, self.rates, self.gradient = saved

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


def layer_of(parameter: str) -> str:
    """Return `layers.2` for `layers.2.weight`, and a name alone as it is."""
    return parameter.rpartition(".")[0] or parameter


def first_bad_layer(slots: Slots, row: int) -> tuple[str, str | None]:
    """Return (`gradient` | `weight` | `loss`, layer).

    The slots still know what made the present weights. If that is not finite,
    the layer nearest the output is named, because gradients flow down from there; if only the
    weights are, the lr-sized step overflowed; if both are finite, the loss itself did.
    """
    bad_weights = [slot.name for slot in slots if not slot.theta[row].isfinite().all()]
    if not bad_weights:
        return "loss", None
    bad_gradients = [slot.name for slot in slots if not slot.has_finite_gradient(row)]
    if bad_gradients:
        return "gradient", layer_of(bad_gradients[-1])
    return "weight", layer_of(bad_weights[0])
