"""Losses of a stack: one number per member and row, averaged by whoever asks.

And torch's own losses, asked for under `vmap` by a user's code (`MappedLosses`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.func import vmap
from torch.overrides import TorchFunctionMode

from ib_core.errors import MisuseError, first_line
from ib_core.kernels import compilable, of_stack, stack_loops

if TYPE_CHECKING:
    from ib_core.tasks.task import Task


@dataclass(frozen=True, slots=True)
class Loss:
    """A loss and what is known about it.

    Attributes:
        per_row: (outputs [members, rows, out], targets) -> losses [members, rows].
        mean_of_one: Torch's own mean over the rows and outputs of one model, where it has it.
        classes: Whether targets are classes, so that accuracy has a meaning.
        output: Its name in `OUTPUT_ALPHAS`, where `ib_plus` can solve it under a linear layer.
        plain: `per_row` in torch's own functions, where it is not: those know second derivatives.
    """

    per_row: Callable[[Tensor, Tensor], Tensor]
    mean_of_one: Callable[[Tensor, Tensor], Tensor] | None = None
    classes: bool = False
    output: str | None = None
    plain: Callable[[Tensor, Tensor], Tensor] | None = None

    def twice_differentiable_mean(self, outputs: Tensor, targets: Tensor) -> Tensor:
        """Return `mean`, slower, with a graph that can be differentiated twice."""
        return (self.plain or self.per_row)(outputs, targets).mean(-1)

    def mean(self, outputs: Tensor, targets: Tensor) -> Tensor:
        """Return every member's loss, [members], the mean over its rows."""
        if len(outputs) > 1 or self.mean_of_one is None:
            return self.per_row(outputs, targets).mean(-1)
        return self.mean_of_one(outputs.squeeze(0), targets.squeeze(0)).unsqueeze(0)


def cross_entropy(outputs: Tensor, targets: Tensor) -> Tensor:
    """Return softmax cross-entropies; targets are classes [members, rows]."""
    losses: Tensor = _CrossEntropy.apply(outputs, targets)  # type: ignore[no-untyped-call]
    return losses


def _plain_cross_entropy(outputs: Tensor, targets: Tensor) -> Tensor:
    log_p = torch.log_softmax(outputs, dim=-1)
    return -log_p.gather(-1, targets.unsqueeze(-1)).squeeze(-1)


class _CrossEntropy(torch.autograd.Function):
    """Softmax and log loss as one node, over classes first: a stack's outputs lie that way."""

    @staticmethod
    def forward(ctx: Any, outputs: Tensor, targets: Tensor) -> Tensor:
        log_p = torch.log_softmax(outputs.mT, dim=-2)
        index = targets.unsqueeze(-2)
        ctx.save_for_backward(log_p, index)
        return log_p.gather(-2, index).squeeze(-2).neg_()

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        log_p, index = ctx.saved_tensors
        slope = log_p.exp()
        slope.scatter_add_(-2, index, slope.new_full((1,), -1.0).expand(index.shape))
        return slope.mul_(grad.unsqueeze(-2)).mT, None


def squared_error(outputs: Tensor, targets: Tensor) -> Tensor:
    """Return squared errors, mean over outputs (torch's `mse_loss`)."""
    losses: Tensor = _SquaredError.apply(outputs, targets)  # type: ignore[no-untyped-call]
    return losses


def _plain_squared_error(outputs: Tensor, targets: Tensor) -> Tensor:
    return (outputs - targets).square().mean(-1)


class _SquaredError(torch.autograd.Function):
    """Squared errors whose gradient lies in memory as the outputs do, whatever the targets do."""

    @staticmethod
    def forward(ctx: Any, outputs: Tensor, targets: Tensor) -> Tensor:
        error = torch.sub(outputs, targets, out=torch.empty_like(outputs))
        ctx.save_for_backward(error)
        return error.square().mean(-1)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        (error,) = ctx.saved_tensors
        return error * (grad * (2 / error.shape[-1])).unsqueeze(-1), None


def half_squared_error(outputs: Tensor, targets: Tensor) -> Tensor:
    """Return `|output - target|^2 / 2`, the loss of Fig. 1."""
    return (outputs - targets).square().sum(-1) / 2


def thousandth_squared_error(outputs: Tensor, targets: Tensor) -> Tensor:
    """Return squared errors / 1000, what the authors' autoencoder runs on pixels 0..255 used."""
    return squared_error(outputs, targets) / 1000


def note_loss(outputs: Tensor, targets: Tensor) -> Tensor:
    """Return the log loss of 88 note probabilities `(arctan + pi/2) / pi`, mean over notes.

    Targets are 0 or 1. Torch's `binary_cross_entropy` clamps (logs at -100, the gradient's
    denominator at 1e-12) are part of it: IB uses the gradient before the activation's slope, so
    they matter where arctan saturates. Torch's own function raises for NaN, ours passes it on.
    """
    losses: Tensor = _NoteLoss.apply(outputs, targets)  # type: ignore[no-untyped-call]
    return losses


def _plain_note_loss(outputs: Tensor, targets: Tensor) -> Tensor:
    p = (outputs + math.pi / 2) / math.pi
    right = torch.where(targets > 0.5, p, 1 - p)
    return -right.clamp(1e-12, 1.0).log().mean(-1)


class _NoteLoss(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, outputs: Tensor, targets: Tensor) -> Tensor:
        p = ((outputs + math.pi / 2) / math.pi).clamp_(0.0, 1.0)
        ctx.save_for_backward(p, targets)
        right = torch.where(targets > 0.5, p.log(), (-p).log1p())
        return right.clamp_(min=-100.0).mean(-1).neg_()

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        p, targets = ctx.saved_tensors
        slope = torch.sub(p, targets, out=torch.empty_like(p)).div_((p * (1 - p)).clamp_(min=1e-12))
        return slope.mul_((grad / (p.shape[-1] * math.pi)).unsqueeze(-1)), None


LOSSES: dict[str, Loss] = {
    "cross_entropy": Loss(
        cross_entropy,
        F.cross_entropy,
        classes=True,
        output="cross_entropy",
        plain=_plain_cross_entropy,
    ),
    "squared_error": Loss(
        squared_error, F.mse_loss, output="squared_error", plain=_plain_squared_error
    ),
    "half_squared_error": Loss(half_squared_error, output="half_squared_error"),
    "thousandth_squared_error": Loss(
        thousandth_squared_error, plain=lambda o, t: _plain_squared_error(o, t) / 1000
    ),
    "note_loss": Loss(note_loss, plain=_plain_note_loss),
}


def accuracy(outputs: Tensor, targets: Tensor) -> Tensor:
    """Return the share of rows whose largest output is the target class, [members].

    A row whose largest output is not finite gives no answer and is wrong.
    """
    best = outputs.mT.max(dim=-2)
    hit = (best.indices == targets) & torch.isfinite(best.values)
    return hit.to(outputs.dtype).mean(-1)


def of_all(losses: Tensor) -> Tensor:
    """Return what a stack's backward pass begins at: the members' sum, or the only one's loss."""
    return losses if len(losses) == 1 else losses.sum()  # a sum of one takes torch as long


# --- Anybody's losses, and torch's own in a stack of anybody's models


def one_number(loss: Tensor, task: Task, members: int) -> Tensor:
    """Return a loss, or refuse one that is not a number a member."""
    if not isinstance(loss, Tensor) or loss.dim() != members or loss.is_complex():
        got: Any = type(loss).__name__
        if isinstance(loss, Tensor):
            got = "a complex one" if loss.is_complex() else tuple(loss.shape[members:])
        raise MisuseError(
            f"The loss of {task.name} must return one number, the mean over rows; got {got}."
        ).at(first_line(task.loss))
    return loss


#: What rounding may do to a mean.
ROUNDING = 1e-5


def check_share(task: Task, share: Any, *, members: int = 1) -> None:
    """Refuse what is no share a member; one that is not a number says nothing."""
    if share is None:
        return
    try:
        found = torch.as_tensor(share)
        wrong = found[~((found >= 0) & (found <= 1 + ROUNDING) | (found != found))]
    except (TypeError, ValueError, RuntimeError):  # words, or complex numbers
        got: Any = type(share).__name__
    else:
        if found.dim() == members and not len(wrong):
            return
        got = tuple(found.shape) if found.dim() != members else wrong[0].item()
    raise MisuseError(
        f"The metric of {task.name or 'the task'} must return one number from 0 to 1, a share "
        f"averaged over rows; got {got}."
    ).at(first_line(task.metric))


class MappedLosses(TorchFunctionMode):
    """While active, two of torch's losses under `vmap` are one function of the whole stack.

    Mapped by torch they fall apart into some ten passes over memory, several times what they take
    in a loop.
    """

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        """Answer such a loss as people mostly ask for it; leave the rest to torch."""
        asked = dict(kwargs or {})
        if (whole := _WHOLE.get(func)) is None or len(args) > 2:
            return func(*args, **asked)
        given = dict(zip(("input", "target"), args, strict=False)) | asked
        x, y = given.pop("input", None), given.pop("target", None)
        if not all(map(_is_usual, given.items())) or not whole.fits(x, y):
            return func(*args, **asked)
        return of_stack(whole, x, y)


#: What people do not say, or torch's modules say for them: a mean over rows, nothing weighted.
_USUAL = {"reduction": "mean", "ignore_index": -100, "label_smoothing": 0.0}


def _is_usual(said: tuple[str, Any]) -> bool:
    name, value = said
    return not isinstance(value, Tensor) and value == _USUAL.get(name)


class _OfAStack(torch.autograd.Function):
    """A mean over a member's rows, made for all members at once; only `vmap` calls it."""

    @staticmethod
    def fits(x: Tensor, y: Tensor) -> bool:
        """Return whether it knows such outputs and targets of one member: of one shape, here."""
        return _mapped(x) and isinstance(y, Tensor) and x.shape == y.shape

    @staticmethod
    def means(x: Tensor, y: Tensor) -> Tensor:
        """Return the members' losses, of outputs and targets with the members in front."""
        raise MisuseError("A loss of a stack says how it is made.")

    @staticmethod
    def forward(*_: Tensor) -> Tensor:
        """Refuse: outside of a stack torch's own is used."""
        raise MisuseError("A loss of a stack is asked for under vmap only.")

    @staticmethod
    def setup_context(*_: Any) -> None:
        """Keep nothing."""

    @classmethod
    def vmap(cls, info: Any, dims: tuple[int | None, ...], *args: Tensor) -> tuple[Tensor, int]:
        """Return every member's loss."""
        x, y = (
            one.expand(info.batch_size, *one.shape) if dim is None else one.movedim(dim, 0)
            for one, dim in zip(args, dims, strict=True)
        )
        return cls.means(x, y), 0


def _mapped(x: Any) -> bool:
    return isinstance(x, Tensor) and torch._C._functorch.is_batchedtensor(x)


class _Classes(_OfAStack):
    """`F.cross_entropy` of rows: torch's softmax is slow on short ones, and knows no slopes yet."""

    @staticmethod
    def fits(x: Tensor, y: Tensor) -> bool:
        # Elsewhere nothing is gained, and to look at targets would be to wait for them.
        here = _mapped(x) and x.device.type == "cpu"
        rows = here and x.dim() == 2 and x.dtype in (torch.float32, torch.float64)
        classes = isinstance(y, Tensor) and y.dim() == 1 and y.dtype == torch.int64
        if not rows or not classes:
            return False
        compiled = compilable(x) and stack_loops("cross_entropy") is not None
        return compiled or x.shape[1] < FEW_CLASSES

    @staticmethod
    def means(x: Tensor, y: Tensor) -> Tensor:
        lowest, highest = torch.aminmax(y)
        if lowest < 0 or highest >= x.shape[2]:  # some are ignored, or refused
            return vmap(F.cross_entropy)(x, y)
        if compilable(x) and stack_loops("cross_entropy") is not None:
            losses: Tensor = _ByKernel.apply(x, y)  # type: ignore[no-untyped-call]
            return losses
        return cross_entropy(x, y).mean(-1)


class _Logits(_OfAStack):
    """`F.binary_cross_entropy_with_logits`."""

    @staticmethod
    def means(x: Tensor, y: Tensor) -> Tensor:
        if x.device.type == "cpu" and x.dtype == y.dtype and x.dim() > 1:
            losses: Tensor = _LogitsInParts.apply(x, y)  # type: ignore[no-untyped-call]
            return losses
        each = F.binary_cross_entropy_with_logits(x, y, reduction="none")
        return each.flatten(1).mean(-1) if each.dim() > 1 else each


class _InParts(torch.autograd.Function):
    """Members' mean losses and their slopes, a few members at a time, which stay in the cache.

    What a large stack's losses cost is the way to memory and back, once a torch call. The slope is
    made on the way forward, when all that it needs is at hand.
    """

    @staticmethod
    def part(x: Tensor, y: Tensor, slope: Tensor) -> Tensor:
        """Return some members' mean losses; write the slopes of their sums."""
        raise MisuseError("A loss made in parts says how.")

    @classmethod
    def forward(cls, ctx: Any, x: Tensor, y: Tensor) -> Tensor:
        """Return the means, [members]."""
        slope, losses = torch.empty_like(x), x.new_empty(len(x))
        count = losses.numel() and y[0].numel()
        step = max(1, CACHED // max(1, x[0].numel()))
        for start in range(0, len(x), step):
            some = slice(start, start + step)
            losses[some] = cls.part(x[some], y[some], slope[some])
            slope[some].div_(count)
        ctx.save_for_backward(slope)
        return losses

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        """Return the slopes of what was made of the means."""
        (slope,) = ctx.saved_tensors
        if bool((grad == 1).all()):  # as mostly: the sum of all members
            return slope, None
        return slope * grad.view(-1, *(1,) * (slope.dim() - 1)), None


class _LogitsInParts(_InParts):
    """Of `max(x, 0) - x y + log(1 + exp(-|x|))`; the slope is `sigmoid(x) - y`."""

    @staticmethod
    def part(x: Tensor, y: Tensor, slope: Tensor) -> Tensor:
        torch.sigmoid(x, out=slope).sub_(y)
        each = torch.addcmul(x, x, y, value=-1).sub_(F.logsigmoid(x))
        return each.mean(tuple(range(1, x.dim())))


class _ByKernel(_InParts):
    """Of softmax cross-entropy: row after row, or where classes are few, rows side by side."""

    @classmethod
    def forward(cls, ctx: Any, x: Tensor, y: Tensor) -> Tensor:
        few = x.shape[2] < FEW_CLASSES
        x, y = (x.mT if few else x).contiguous(), y.contiguous()
        slope, losses = torch.empty_like(x), x.new_empty(y.shape)
        addresses = [part.data_ptr() for part in (x, y, slope, losses)]
        lengths = x.shape if few else (y.numel(), x.shape[2])
        loop = stack_loops("few_classes" if few else "cross_entropy")
        loop(*addresses, *lengths, float(y.shape[1]))
        ctx.save_for_backward(slope.mT if few else slope)
        return losses.mean(-1)


#: How many numbers of one tensor are worked on at once, so that all that is made of them stays in
#: a core's cache.
CACHED = 65_536
#: From so many classes on torch's softmax over rows is the faster one.
FEW_CLASSES = 32
_WHOLE: dict[Callable[..., Any], type[_OfAStack]] = {
    F.cross_entropy: _Classes,
    F.binary_cross_entropy_with_logits: _Logits,
}
