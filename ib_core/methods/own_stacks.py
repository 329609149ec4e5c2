"""Optimizers with a stack of their own: exact ISGD, and anybody's torch optimizer.

A torch optimizer moves its stack in one of three ways.

* `scaled`: one optimizer over all members at the largest rate; then each member's move is scaled by
  its rate over the largest. Right where an optimizer is element-wise and linear in its rate, which
  `ib_core.sweep.ways` finds out. Everything lies in one block of memory, so that the optimizer
  sees one parameter, whatever the model.
* `member`: an optimizer a member, over views of its part of the stack.
* `plain`: an optimizer over an ordinary model's own parameters, as anybody would have it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from ib_core.errors import MisuseError, first_line
from ib_core.methods.base import Member
from ib_core.methods.names import refuse_closures
from ib_core.methods.slots import Slot, Slots
from ib_core.methods.stack import Closure, StackOptimizer

Factory = Callable[..., torch.optim.Optimizer]
WAYS = ("scaled", "member", "plain")


def make_optimizer(
    factory: Factory, params: Iterable[Any], lr: float, options: Mapping[str, Any], name: str
) -> torch.optim.Optimizer:
    """Return a method's optimizer.

    Raises:
        MisuseError: In its own words, where it cannot be made.
    """
    try:
        made = factory(list(params), lr=lr, **options)
    except Exception as error:
        place = first_line(factory) or ""  # never the model's
        raise MisuseError(f"{name} could not be made: {error}").at(place) from error
    if not hasattr(made, "step") or not hasattr(made, "param_groups"):
        got = type(made).__name__
        place = first_line(factory) or ""
        raise MisuseError(f"The method {name} must return a torch optimizer; got {got}.").at(place)
    refuse_closures(made, name)
    return made


def in_one_pass(optimizer: torch.optim.Optimizer) -> torch.optim.Optimizer:
    """Let one of torch's own that moves a stack take a step in one pass, where it knows how.

    Called before its first step. One model alone keeps the step that anybody's loop takes.
    """
    of_torch = type(optimizer).__module__.startswith("torch.optim.")
    if of_torch and not optimizer.state:  # Adagrad has made up its mind by now
        for group in optimizer.param_groups:
            if "fused" in group and not group.get("differentiable"):
                group["fused"], group["foreach"] = True, False
    return optimizer


def padding(numbers: int) -> int:
    """Return how many numbers a block lacks to a multiple of what processors take at once.

    The last few of a fused pass are rounded in another way: without them a member's numbers do not
    depend on who stands before it.
    """
    return -numbers % 64


class TorchStack(StackOptimizer):
    """A stack moved by torch optimizers; all members have one method.

    Args:
        model: Its parameters have the members in front, or are one plain model's.
        members: How each is trained.
        way: `scaled`, `member` or `plain`.
        total_steps: Of the whole training, for schedules.
    """

    def __init__(
        self, model: nn.Module, members: Sequence[Member], *, way: str, total_steps: int
    ) -> None:
        self.way = way
        self._model = model
        first = members[0]
        assert first.factory is not None
        self.factory: Factory = first.factory
        self.options, self.total_steps = dict(first.options), total_steps
        super().__init__(
            model, members, total_steps=total_steps, slots=Slots(model, alone=way == "plain")
        )
        for layer in self.layers:  # a torch optimizer moves by gradients
            layer.implicit = False
        self._engines: list[Engine] = []

    @property
    def _bare(self) -> bool:
        """Whether nothing stands between one model's gradients and its optimizer."""
        return (
            self.way == "plain"
            and self._mu is None
            and self._clip is None
            and self._level_set is None
        )

    def _engine_kind(self) -> type[Engine]:
        return {"scaled": ScaledEngine, "member": MemberEngine, "plain": PlainEngine}[self.way]

    def step(self, closure: Closure) -> Tensor:
        """Move every member by one batch and return the losses before the step, [members]."""
        losses = closure()
        if not self._engines:
            with torch.no_grad():
                self._engines = [self._engine_kind()(self)]
        engine = self._engines[0]
        if self._bare:
            factor = self.members[0].rate_factor(self.steps, self.total_steps)
            engine.move(factor)
            self.steps += 1
            return losses
        with torch.no_grad():
            engine.gather()
            if self._mu is not None:
                self._add_ridge(self._lr, self._mu)
            self.clip()
            factor = self.members[0].rate_factor(self.steps, self.total_steps)
            with torch.enable_grad():  # as in anybody's loop: an optimizer says what it needs
                engine.move(factor)
            self.restart()
        self.steps += 1
        return losses

    def keep(self, kept: Tensor) -> None:
        """Keep only these members, their weights and all their optimizer remembers."""
        self.slots.keep(kept)
        self.restarts = self.restarts[kept.cpu()]
        self.averages.keep(kept)
        self._describe([self.members[i] for i in kept.tolist()])
        for engine in self._engines:
            engine.keep(kept)

    def evaluating(self, on: bool) -> None:
        """Tell optimizers that keep other weights for evaluation (schedule-free ones)."""
        for engine in self._engines:
            for optimizer in engine.optimizers:
                switch = getattr(optimizer, "eval" if on else "train", None)
                if callable(switch):
                    switch()


class Engine:
    """Moves the slots of a stack; made at the first step, when it is known what has gradients."""

    optimizers: list[torch.optim.Optimizer]

    def __init__(self, stack: TorchStack) -> None:
        self.stack = stack
        for slot in stack.slots:
            slot.idle = slot.parameter.grad is None
        self.slots = stack.slots.moving()
        self.rates: list[list[float]] = []

    def make(self, params: Sequence[Any], lr: float) -> torch.optim.Optimizer:
        """Return an optimizer, in training mode, its groups' rates remembered."""
        stack = self.stack
        name = stack.members[0].method
        optimizer = make_optimizer(stack.factory, params, lr, stack.options, name)
        self.rates.append([float(group["lr"]) for group in optimizer.param_groups])
        train = getattr(optimizer, "train", None)
        if callable(train):
            train()
        return optimizer

    def set_rates(self, factor: float) -> None:
        """Give every group its rate at this step."""
        if factor == 1.0 and not getattr(self, "_moved", False):
            return
        self._moved = True
        for optimizer, rates in zip(self.optimizers, self.rates, strict=True):
            for group, rate in zip(optimizer.param_groups, rates, strict=True):
                group["lr"] = rate * factor

    def used(self) -> list[Slot]:
        """Return the slots that move.

        Raises:
            RuntimeError: If others had a gradient at first: then trials train one by one.
        """
        for slot in self.stack.slots:
            if slot.idle is not (slot.parameter.grad is None):
                raise RuntimeError(f"the parameter {slot.name} had a gradient in some steps only")
        return self.slots

    def gather(self) -> None:
        """Bring the gradients to where they are needed."""

    def move(self, factor: float) -> None:
        """Take one step."""

    def keep(self, kept: Tensor) -> None:
        """Keep only these members."""


class ScaledEngine(Engine):
    """One optimizer over one block of memory."""

    def __init__(self, stack: TorchStack) -> None:
        super().__init__(stack)
        self.largest = max(member.lr for member in stack.members)
        self._lay_out()
        self.theta = nn.Parameter(self.block)
        self.theta.grad = self.grad
        self.optimizers = [in_one_pass(self.make([self.theta], self.largest))]

    def _lay_out(self) -> None:
        """Put the members' weights into one block, parameter after parameter."""
        like = self.slots[0].parameter.data
        self.members = len(self.stack.members)
        sizes = [slot.parameter.numel() for slot in self.slots]
        rest = like.new_zeros(padding(sum(sizes)))
        self.block = torch.cat([*(slot.parameter.data.flatten() for slot in self.slots), rest])
        self.grad = torch.zeros_like(self.block)
        whole = [*sizes, len(rest)]
        parts = zip(self.slots, self.block.split(whole), self.grad.split(whole), strict=False)
        for slot, theta, grad in parts:
            slot.parameter.data = theta.view(slot.parameter.shape)
            slot.grad = grad.view(slot.parameter.shape)
        ratios = [member.lr / self.largest for member in self.stack.members]
        self.alike = all(ratio == 1.0 for ratio in ratios)
        self.before = torch.empty_like(self.block[:0] if self.alike else self.block)
        ratio = self.block.new_tensor(ratios)
        each = [ratio.repeat_interleave(slot.parameter[0].numel()) for slot in self.slots]
        self.ratio = torch.cat([*each, rest])

    def gather(self) -> None:
        """Copy the gradients into their block."""
        used = self.used()
        fresh = [slot.parameter.grad for slot in used if slot.parameter.grad is not None]
        torch._foreach_copy_([slot.grad for slot in used], fresh)
        for slot in used:
            slot.parameter.grad = None

    def move(self, factor: float) -> None:
        """Step at the largest rate, then take of each move what its rate is of that."""
        self.set_rates(factor)
        if self.alike:
            self.optimizers[0].step()
            return
        with torch.no_grad():
            self.before.copy_(self.block)
        self.optimizers[0].step()
        with torch.no_grad():
            torch.lerp(self.before, self.block, self.ratio, out=self.block)

    def keep(self, kept: Tensor) -> None:
        """Take out the others' weights and all that is remembered of them."""
        count, places = len(self.ratio), self._places(kept)
        old, optimizer = self.theta, self.optimizers[0]
        state = optimizer.state.pop(old, {})
        self._lay_out()
        self.theta.data, self.theta.grad = self.block, self.grad
        for name, value in state.items():
            if isinstance(value, Tensor) and value.shape == (count,):
                rest = value.new_zeros(len(self.ratio) - len(places))
                state[name] = torch.cat([value[places], rest])
        optimizer.state[self.theta] = state

    def _places(self, kept: Tensor) -> Tensor:
        """Return where the members' numbers lie in the present block."""
        start, found = 0, []
        for slot in self.slots:
            each = slot.parameter[0].numel()
            rows = kept.unsqueeze(1) * each + torch.arange(each, device=kept.device)
            found.append(rows.flatten() + start)
            start += self.members * each
        return torch.cat(found)


class MemberEngine(Engine):
    """An optimizer a member, over views of the stack."""

    def __init__(self, stack: TorchStack) -> None:
        super().__init__(stack)
        self.views = [
            [nn.Parameter(slot.parameter.data[row]) for slot in self.slots]
            for row in range(len(stack.members))
        ]
        self.optimizers = [
            self.make(views, member.lr)
            for views, member in zip(self.views, stack.members, strict=True)
        ]

    def gather(self) -> None:
        """Hand every member its part of the gradients."""
        for slot in self.used():
            assert slot.parameter.grad is not None
            slot.grad, slot.parameter.grad = slot.parameter.grad, None
        for place, slot in enumerate(self.slots):
            for views, grad in zip(self.views, slot.grad.unbind(), strict=True):
                views[place].grad = grad

    def move(self, factor: float) -> None:
        """Step them one after another."""
        self.set_rates(factor)
        for optimizer in self.optimizers:
            optimizer.step()

    def keep(self, kept: Tensor) -> None:
        """Forget the others; look at where the members are now."""
        rows = kept.tolist()
        self.views = [self.views[row] for row in rows]
        self.optimizers = [self.optimizers[row] for row in rows]
        self.rates = [self.rates[row] for row in rows]
        for row, views in enumerate(self.views):
            for view, slot in zip(views, self.slots, strict=True):
                view.data = slot.parameter.data[row]


class PlainEngine(Engine):
    """An optimizer over an ordinary model's parameters."""

    def __init__(self, stack: TorchStack) -> None:
        super().__init__(stack)
        trained = [p for p in stack._model.parameters() if p.requires_grad]
        self.optimizers = [self.make(trained, stack.members[0].lr)]

    def gather(self) -> None:
        """Let the slots look at the gradients, which stay where they are."""
        for slot in self.stack.slots:
            slot.idle = slot.parameter.grad is None
            slot.grad = slot.grad.zero_() if slot.parameter.grad is None else slot.parameter.grad

    def move(self, factor: float) -> None:
        """Step, and take the gradients off the model."""
        self.set_rates(factor)
        self.optimizers[0].step()
        for slot in self.stack.slots:  # a step that breaks is told by what it was made of
            parameter = slot.parameter
            if (grad := parameter.grad) is not None:
                slot.grad, parameter.grad = grad, None


# --- Exact ISGD


class ExactISGD(StackOptimizer):
    """Minimises `2*lr*(loss + mu/2 |theta|^2) + |theta - theta_t|^2` by inner gradient steps.

    The inner learning rate is lr/10 (Sec. 5). Two forms of the inner gradient:

    * `text`: the objective divided by 2*lr, `grad loss + mu*theta + (theta - theta_t)/lr`. The
      inner iteration contracts while `lr * curvature < 19`; where the loss is steeper than that,
      lr/10 is too large, the inner iteration itself diverges, and the member is reported as
      diverged like any other. It needs more inner steps with a smaller rate there, not a fix.
    * `authors`: `theta -= lr/10 * (grad loss + theta - theta_t)`, whose pull has weight 1
      whatever lr is. It aims at the ISGD step of rate 1, so a flat curve says little. Clipping
      is never applied, as in the recorded runs.

    Clipping in the `text` form acts on `(theta_t - theta') / lr`, as for IB. All members of such
    a stack use exact ISGD with one number of inner steps.
    """

    def step(self, closure: Closure) -> Tensor:
        """Move every member by one batch and return the losses before the step, [members]."""
        first = closure()  # before anything else: members may leave the stack inside it
        lr = self.current_lr().unsqueeze(1)
        starts = [slot.theta.clone() for slot in self.slots]
        authors = self._authors
        pull = torch.where(authors, 1.0, 1.0 / lr)
        for inner in range(self.members[0].inner_steps):
            if inner > 0:
                closure()
            with torch.no_grad():
                self.collect(lr.squeeze(1))
                for slot, start in zip(self.slots, starts, strict=True):
                    slot.rows.addcmul_(slot.theta - start, pull)
                    slot.theta.addcmul_(slot.rows, lr, value=-0.1)
        with torch.no_grad():
            if self._clip is not None:
                self._clip_whole_step(starts, lr, authors)
            self.restart()
        self.steps += 1
        return first

    def _describe(self, members: Sequence[Member]) -> None:
        super()._describe(members)
        self._authors = self._tensor([[float(m.isgd_form == "authors")] for m in members]) > 0

    def _clip_whole_step(self, starts: list[Tensor], lr: Tensor, authors: Tensor) -> None:
        reached = [slot.theta.clone() for slot in self.slots]
        for slot, start in zip(self.slots, starts, strict=True):
            torch.sub(start, slot.theta, out=slot.rows).div_(lr)
        self.clip()
        for slot, start, end in zip(self.slots, starts, reached, strict=True):
            clipped = torch.addcmul(start, slot.rows, lr, value=-1.0)
            slot.theta.copy_(torch.where(authors, end, clipped))
