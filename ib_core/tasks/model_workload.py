"""Anybody's model as a workload: K of them as one program, or one alone as people train it.

The parameters of one copy are replaced by stacks, [members, ...], and the forward pass is mapped
over them with `torch.func`; the graph is torch's ordinary one, so that everything that moves a
stack moves these, implicit layers included. Initial weights are those of
`torch.manual_seed(seed)` and then `model(**options)`, whatever the way.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from typing import TYPE_CHECKING, Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.func import functional_call, vmap
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils._pytree import tree_leaves, tree_map

from ib_core.errors import MisuseError, first_line
from ib_core.layers import ImplicitLayer
from ib_core.tasks.losses import ROUNDING, MappedLosses, check_share, one_number
from ib_core.tasks.mapped import ANSWERS, MappedFunctions, make_rows_of_layers
from ib_core.tasks.randomness import (
    ChanceSeen,
    SeededChance,
    build_model,
    evenly,
    generator,
    hold_out,
    tensor_hash,
)
from ib_core.tasks.stacked_model import Bridge, Inputs, Rows, Stack
from ib_core.tasks.task import EVALUATION_ROWS, Evaluation
from ib_core.tasks.twins import make_stackable

if TYPE_CHECKING:
    from ib_core.tasks.task import Task

#: Torch's losses under which `ib_plus` can solve a linear layer.
_LOSSES: dict[Any, str] = {F.cross_entropy: "cross_entropy", F.mse_loss: "squared_error"}


def name_of_loss(loss: Any) -> str | None:
    """Return the name under which `ib_plus` knows a loss; None if it does not."""
    if type(loss) in (nn.CrossEntropyLoss, nn.MSELoss):
        plain = type(loss)()
        arguments = ("reduction", "ignore_index", "label_smoothing")
        if getattr(loss, "weight", None) is not None or any(
            getattr(loss, name, None) != getattr(plain, name, None) for name in arguments
        ):
            return None
        return "cross_entropy" if isinstance(plain, nn.CrossEntropyLoss) else "squared_error"
    try:
        return _LOSSES.get(loss)
    except TypeError:
        return None


class ModelWorkload:
    """A user's model and data; see `Workload`.

    Args:
        task: Whose model, data and loss.
        seeds: One a member.
        batch_size: Rows a step.
        values: Of the model's options.
        device: Where.
        validation: Share of the training rows to hold out, where the data have no such rows.
        way: See `Task.workload`.
    """

    def __init__(
        self,
        task: Task,
        seeds: Sequence[int],
        batch_size: int,
        values: Mapping[str, Any],
        device: torch.device,
        *,
        validation: float | None = None,
        way: str = "stacked",
    ) -> None:
        self.task, self.seeds, self.device, self.way = task, list(seeds), device, way
        self.values, self.batch_size = dict(values), batch_size
        data = task.data()
        self.train = data.rows("train").to(device)
        self.validation: Rows | None = None
        if data.validation is not None:
            self.validation = data.rows("validation").to(device)
        elif validation is not None:
            kept, held = hold_out(len(self.train), validation)
            self.train, self.validation = self.train.part(kept), self.train.part(held)
        self.test = self.train if data.test is None else data.rows("test").to(device)
        self.steps_per_epoch = -(-len(self.train) // batch_size)
        self.shuffled = self.steps_per_epoch > 1
        self._orders = {seed: generator(seed, "order") for seed in dict.fromkeys(self.seeds)}
        self._hashes = dict.fromkeys(self._orders, "")
        self._steps: tuple[Tensor, ...] = ()  # the rows of every step of the epoch
        self._batch: tuple[Inputs, Tensor] = self.train.between(0, 1)
        self._step = 0
        self.base = build_model(task, self.seeds[0], values).to(device)
        self.metric = task.metric or default_metric(task.loss, self.train.y)
        self.chance = self._looks_at_a_copy()
        self._stack = Stack(self.base) if way == "stacked" else None

    def model(self) -> nn.Module:
        """Return the model: its parameters are the members' initial weights."""
        if self._stack is not None:
            make_stackable(self.base)
            make_rows_of_layers(self.base)
            self._stack.fill(
                [self.base, *(self._build(seed) for seed in self._others())], self._rows()
            )
        elif self.way == "bridged":
            return Bridge(self.base)
        return self.base

    def _build(self, seed: int) -> nn.Module:
        return build_model(self.task, seed, self.values).to(self.device)

    def _others(self) -> list[int]:
        return list(dict.fromkeys(self.seeds))[1:]

    def _rows(self) -> list[int]:
        places = {seed: place for place, seed in enumerate(dict.fromkeys(self.seeds))}
        return [places[seed] for seed in self.seeds]

    def begin_epoch(self, *, ahead: bool = True) -> None:
        """Draw the next epoch's order for every seed; all rows at once stay in theirs."""
        del ahead
        rows = len(self.train)
        orders = {
            seed: torch.randperm(rows, generator=source) if self.shuffled else torch.arange(rows)
            for seed, source in self._orders.items()
        }
        for seed, order in orders.items():
            before = torch.tensor(list(self._hashes[seed].encode()))
            self._hashes[seed] = tensor_hash(before, order)
        order = torch.stack([orders[seed] for seed in self.seeds]).to(self.device)
        self._steps = (order[0] if self._stack is None else order).split(self.batch_size, dim=-1)

    def load_batch(self, step: int) -> None:
        """Make step `step` of the epoch the present batch."""
        self._step += 1
        if not self.shuffled:
            self._batch = self.train.between(0, len(self.train))
            return
        self._batch = self.train.take(self._steps[step])

    def draw_masks(self) -> None:
        """Do nothing: a step's chance is its own."""

    def losses(self, model: nn.Module) -> Tensor:
        """Return every member's loss on the present batch, [members], with its graph."""
        del model  # it is `self.base`, or stands for it
        if not self.base.training:
            self.base.train()
        found = self._losses(*self._batch)
        if not found.requires_grad and torch.is_grad_enabled():
            raise MisuseError(
                f"The loss of {self.task.name} does not depend on the model's weights: something "
                "on its way has no gradient, as .item(), .detach(), argmax or a plain number."
            ).at(first_line(self.task.loss))
        return found

    def _losses(self, x: Inputs, y: Tensor) -> Tensor:
        if self._stack is None:
            return self._loss_alone(x, y).unsqueeze(0)
        tied = self._stack.tied
        self._stack.remember_buffers(self._step)
        shared = 0 if self.shuffled else None

        def loss(tensors: dict[str, Tensor], member: Tensor, x: Inputs, y: Tensor) -> Tensor:
            whole = MappedFunctions() if self.asks else nullcontext()
            with self._chance_of(self._step, member), whole:
                output = functional_call(self.base, tensors, x, tie_weights=tied)
                with MappedLosses():
                    return self.task.loss(output, y)

        mapped = vmap(loss, (0, 0, shared, shared), randomness="error")
        return one_number(self._of_stack(mapped, x, y), self.task, 1)

    def _of_stack(self, mapped: Callable[..., Any], *args: Any) -> Any:
        """Return what a mapped function makes of the stack, its members' numbers, and more."""
        assert self._stack is not None
        args = (torch.arange(len(self.seeds), device=self.device), *args)
        with sdpa_kernel(SDPBackend.MATH):  # torch cannot map its other attentions over members
            try:
                return mapped(self._stack.tensors(), *args)
            except RuntimeError as error:
                if "view size is not compatible" not in str(error):
                    raise
                make_stackable(self.base, rows_last=False)  # it looks at outputs as they lie
                return mapped(self._stack.tensors(), *args)

    def _loss_alone(self, x: Inputs, y: Tensor) -> Tensor:
        with self._chance_of(self._step):
            return one_number(self.task.loss(self.base(*x), y), self.task, 0)

    def _chance_of(self, step: int, member: Tensor | None = None) -> AbstractContextManager[Any]:
        """Return what answers random functions; evaluations are counted below zero."""
        return SeededChance(self.seeds, step, member) if self.chance else nullcontext()

    @torch.no_grad()
    def evaluate(self, model: nn.Module) -> Evaluation:
        """Return whole-set losses in evaluation mode."""
        del model
        train, train_metric = self._measure(self.train)
        same = self.test is self.train
        test, test_metric = (train, train_metric) if same else self._measure(self.test)
        held = (None, None) if self.validation is None else self._measure(self.validation)
        return Evaluation(train, test, train_metric, test_metric, *held)

    def sampled_losses(self, model: nn.Module, rows: int) -> Tensor:
        """Return every member's mean loss over some training rows; see `Workload`."""
        del model
        self.base.eval()
        x, y = self.train.take(evenly(len(self.train), rows).to(self.device))

        def loss(tensors: dict[str, Tensor], member: Tensor) -> Tensor:
            with self._chance_of(-1, member):
                return self.task.loss(functional_call(self.base, tensors, x), y)

        with sdpa_kernel(SDPBackend.MATH):  # the one that knows second derivatives
            if self._stack is not None:
                return one_number(self._of_stack(vmap(loss)), self.task, 1)
            with self._chance_of(-1):
                return one_number(self.task.loss(self.base(*x), y), self.task, 0).unsqueeze(0)

    @torch.no_grad()
    def loss_at_zero(self) -> float:
        """Return the training set's data loss at theta = 0 (App. C)."""
        zero = ModelWorkload(
            self.task, self.seeds[:1], self.batch_size, self.values, self.device, way="plain"
        )
        for parameter in zero.base.parameters():
            parameter.zero_()
        return zero._measure(self.train)[0].item()

    def order_hash(self, member: int) -> str:
        """Return the hash of every batch order the member has seen so far."""
        return self._hashes[self.seeds[member]]

    def keep(self, kept: Tensor) -> None:
        """Keep only these members (indices, rising)."""
        self.seeds = [self.seeds[i] for i in kept.tolist()]
        self._orders = {seed: self._orders[seed] for seed in dict.fromkeys(self.seeds)}
        if self._stack is None:
            return
        self._stack.keep_buffers(kept, self._step)
        if self.shuffled and self._steps:
            x, y = self._batch
            self._steps = tuple(rows[kept] for rows in self._steps)
            if self._step:
                self._batch = tuple(part[kept] for part in x), y[kept]

    def _measure(self, rows: Rows) -> tuple[Tensor, Tensor | None]:
        """Return every member's mean loss and metric over all rows, in evaluation mode."""
        self.base.eval()
        members = len(self.seeds)
        losses = torch.zeros(members, dtype=torch.float64, device=self.device)
        shares = torch.zeros_like(losses)
        for start in range(0, len(rows), EVALUATION_ROWS):
            x, y = rows.between(start, start + EVALUATION_ROWS)
            loss, share = self._measured(x, y, -1 - start)
            if self.task.metric is not None and not loss.is_meta:
                check_share(self.task, share)
            if len(rows) <= EVALUATION_ROWS:
                return loss, share
            losses += loss.double() * len(y)
            shares += 0.0 if share is None else share.double() * len(y)
        mean = (losses / len(rows)).float()
        return mean, None if self.metric is None else (shares / len(rows)).float()

    def _measured(self, x: Inputs, y: Tensor, step: int) -> tuple[Tensor, Tensor | None]:
        metric = self.metric or (lambda output, target: torch.zeros(()))

        def both(tensors: dict[str, Tensor], member: Tensor | None) -> tuple[Tensor, Tensor]:
            with self._chance_of(step, member):
                output = functional_call(self.base, tensors, x) if tensors else self.base(*x)
                return self.task.loss(output, y), metric(output, y)

        if self._stack is None:
            loss, share = both({}, None)
            loss, share = loss.unsqueeze(0), torch.as_tensor(share).float().unsqueeze(0)
        else:
            # Members are cut, never rows: a member's numbers do not depend on how many there are.
            mapped = vmap(both, chunk_size=max(1, EVALUATION_ROWS // len(y)))
            loss, share = self._of_stack(mapped)
        return loss, share.to(self.device) if self.metric else None

    def _looks_at_a_copy(self) -> bool:
        """Return whether the model asks for chance while it trains, by one pass of a copy.

        The pass tells besides whether the last implicit layer is the model's output, and another
        in evaluation mode what loss and metric are.
        """
        copy = self._build(self.seeds[0]).train()
        x, y = self.train.between(0, min(2, len(self.train)))
        returned = Returned(copy)
        with torch.no_grad(), torch.random.fork_rng(devices=[]):
            before = torch.get_rng_state()
            with ChanceSeen() as seen:
                output = copy(*x)
                returned.tell(self.base, output)
                one_number(self.task.loss(output, y), self.task, 0)
            if self.device.type != "meta":
                check_means(self.task, copy, self.train)
            self.asks = not seen.functions.isdisjoint(ANSWERS)
            return seen.seen or not torch.equal(before, torch.get_rng_state())


#: Rows on which loss and metric are looked at.
LOOKED_AT = 8


def check_means(task: Task, model: nn.Module, rows: Rows) -> None:
    """Refuse a loss that is a sum over rows, and a metric that is no share.

    Batches and evaluations are of any size, and a rate would mean another thing in each: a loss of
    the same rows twice must not be twice the loss. Whatever else it makes of them is its own
    business, as that of losses that compare rows with each other. One that draws at random, or
    breaks on so few rows, cannot be looked at.
    """
    x, y = rows.take(evenly(len(rows), LOOKED_AT).to(rows.y.device))
    output, count = model.eval()(*x), len(y)

    def loss(times: int) -> float:
        def repeated(part: Any) -> Any:
            of_rows = isinstance(part, Tensor) and part.dim() and len(part) == count
            return torch.cat([part] * times) if of_rows else part

        with suppress(Exception), warnings.catch_warnings(action="ignore"):
            return float(task.loss(tree_map(repeated, output), repeated(y)))
        return math.nan

    if task.metric is not None:
        check_share(task, _share_or_none(task.metric, output, y), members=0)
    once, twice = loss(1), loss(2)
    leaves = [part for part in tree_leaves(output) if isinstance(part, Tensor) and part.dim()]
    if once != loss(1) or any(len(part) != count for part in leaves):
        return
    if once and abs(twice - 2 * once) <= ROUNDING * abs(twice):
        raise MisuseError(
            f"The loss of {task.name or 'the task'} must be a mean over rows: of {count} rows it "
            f"is {once:.6g}, and {twice:.6g} of the same rows twice. Return a mean, not a sum."
        ).at(first_line(task.loss))


def _share_or_none(metric: Any, output: Any, y: Tensor) -> Any:
    with suppress(Exception):
        return metric(output, y)
    return None


def default_metric(loss: Any, y: Tensor) -> Callable[[Tensor, Tensor], Tensor] | None:
    """Return accuracy under torch's cross-entropy of classes, None elsewhere."""
    if name_of_loss(loss) != "cross_entropy" or y.is_floating_point():
        return None
    return share_right


def share_right(output: Tensor, target: Tensor) -> Tensor:
    """Return the share of rows whose largest output is the target class."""
    best = output.max(dim=1)
    right = best.values.isfinite() & (best.indices == target)
    return right.to(output.dtype).mean()


class Returned:
    """Listens to what a model's last implicit layer returns."""

    def __init__(self, model: nn.Module) -> None:
        self.seen: list[tuple[Tensor, int]] = []
        for layer in _last_implicit(model):
            layer.register_forward_hook(
                lambda module, given, made: self.seen.append((made, made._version))
            )

    def tell(self, model: nn.Module, output: Any) -> None:
        """Tell the like layer of another copy whether its output is the model's, unchanged."""
        for layer in _last_implicit(model):
            made, version = self.seen[0] if len(self.seen) == 1 else (None, 0)
            layer.gives_output = (
                isinstance(made, Tensor)
                and isinstance(output, Tensor)
                and made.untyped_storage().data_ptr() == output.untyped_storage().data_ptr()
                and made.numel() == output.numel()
                and output._version == version
            )


def _last_implicit(model: nn.Module) -> list[ImplicitLayer]:
    return [layer for layer in model.modules() if isinstance(layer, ImplicitLayer)][-1:]
