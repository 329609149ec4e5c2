"""In which way a shard of trials trains: found out by trying it, with the reason kept.

The paper's networks are stacks written by hand. A user's model is stacked by torch where torch can,
where a member of the stack has the loss it has alone, and where that is faster than a loop; an
optimizer of torch's kind serves the whole stack or one member (`probe`).
"""

from __future__ import annotations

import time
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn

from ib_core.errors import MisuseError, said_where
from ib_core.methods import (
    Factory,
    Member,
    build_optimizer,
    find_method,
    in_one_pass,
    make_optimizer,
    padding,
)
from ib_core.sweep.spec import TrialSpec
from ib_core.tasks import PaperTask, Task, Workload, find_task, of_all

#: A stack's losses and buffers agree with those of models alone up to this, relative.
AGREEMENT = 1e-3
#: After so many steps, at a rate that is tame, and in evaluation mode on so many rows.
AGREEING_STEPS, AGREEING_RATE, AGREEING_ROWS = 3, 1e-3, 200
#: Steps that are timed of each way, after one that is not.
TIMED_STEPS = 3
#: Shorter trainings are stacked unmeasured: the measuring would take longer.
WORTH_TIMING = 6


@dataclass(frozen=True, slots=True)
class Way:
    """How a shard trains.

    Attributes:
        name: For records and tables.
        reason: Why this way.
        model: See `Task.workload`.
        optimizer: See `ib_core.methods.own_stacks`.
    """

    name: str
    reason: str
    model: str = "stacked"
    optimizer: str = "member"

    @property
    def one_by_one(self) -> bool:
        """Whether every trial trains as a model of its own."""
        return self.name == "one by one" and self.model == "each"

    def as_record(self) -> dict[str, str]:
        """Return what a trial's record keeps; nothing where there was nothing to choose."""
        return {} if self is BY_HAND else {"way": self.name, "why": self.reason}


#: The paper's networks under the catalogue's methods.
BY_HAND = Way("stacked", "written as a stack by hand")

_known: dict[Hashable, Way] = {}


def alone(trial: TrialSpec, reason: str) -> Way:
    """Return the way of one trial as one ordinary model."""
    if isinstance(find_task(trial.task), PaperTask):
        return Way("one by one", reason)
    if find_method(trial.method).factory is None:
        return Way("one by one", reason, model="bridged")
    return Way("one by one", reason, model="plain", optimizer="plain")


def member_of(trial: TrialSpec) -> Member:
    """Return how the trial's model is trained."""
    options, method = trial.options, find_method(trial.method)
    own = method.factory is not None
    return Member(
        method=trial.method if own else trial.method.partition("(")[0],
        lr=trial.lr,
        clip=trial.clip,
        mu=trial.mu,
        batch_rule=trial.batch_rule or "own",
        momentum=0.9 if options.momentum is None else options.momentum,
        restart=options.restart,
        decay_tau=options.decay.tau if options.decay else None,
        decay_power=options.decay.power if options.decay else 1.0,
        isgd_form=options.isgd_form or "text",
        inner_steps=options.inner_steps or 100,
        schedule=method.schedule,
        factory=method.factory,
        options=tuple(sorted(method.values.items())),
    )


def choose_way(trials: Sequence[TrialSpec], device: torch.device) -> Way:
    """Return the way these trials train fastest, and right."""
    first, task = trials[0], find_task(trials[0].task)
    method = find_method(first.method)
    if isinstance(task, PaperTask) and method.factory is None:
        return BY_HAND
    if len(trials) == 1 and not isinstance(task, PaperTask):
        return alone(first, "one trial: a plain loop")
    rates = tuple(sorted({trial.lr for trial in trials}))
    size = (first.batch_size, first.epochs, len(trials).bit_length(), str(device))
    key = (first.task, first.options, first.method, rates[0], rates[-1], *size)
    if key not in _known:
        _known[key] = _Choice(trials, device, task).made()
    return _known[key]


class _Choice:
    """What is known about a shard while its way is chosen."""

    def __init__(self, trials: Sequence[TrialSpec], device: torch.device, task: Task) -> None:
        self.trials, self.device, self.task = trials, device, task
        self.method = find_method(trials[0].method)

    def made(self) -> Way:
        """Return the way."""
        one = self._workload([self.trials[0]], "plain")
        shapes = [tuple(p.shape) for p in one.model().parameters() if p.requires_grad]
        if isinstance(self.task, PaperTask):
            shapes = [shape[1:] for shape in shapes]
        moved = self._moved(shapes)
        if isinstance(self.task, PaperTask):
            return moved
        try:
            self._agree()
            return self._faster(moved)
        except MisuseError:
            raise
        except Exception as error:
            return Way("one by one", f"torch cannot stack it: {_words(error)}", model="each")

    def _moved(self, shapes: Sequence[tuple[int, ...]]) -> Way:
        """Return how a stack's optimizer moves it."""
        if self.method.factory is None:
            return Way("stacked", "a step written for stacks", optimizer="scaled")
        verdict = probe(
            self.method.factory,
            self.method.values,
            shapes,
            [trial.lr for trial in self.trials],
            self.trials[0].method,
        )
        name = "stacked" if verdict.way == "scaled" else "stacked, an optimizer a member"
        return Way(name, verdict.reason, optimizer=verdict.way)

    def _agree(self) -> None:
        """Raise unless members of a stack have the losses and the buffers they have alone."""
        ends = [self.trials[0], self.trials[-1]]
        losses, buffers = self._rehearsed(ends, "stacked")
        for row, trial in enumerate(ends):
            one_losses, one_buffers = self._rehearsed([trial], "bridged")
            if not _near(losses[:, row], one_losses[:, 0], least=1e-6):
                raise RuntimeError("a member of the stack has another loss than the model alone")
            for one, other in zip(buffers, one_buffers, strict=True):
                if not _near(one[row], other, least=1e-3):
                    raise RuntimeError("a member of the stack has other buffers than a model alone")

    def _rehearsed(self, trials: Sequence[TrialSpec], way: str) -> tuple[Tensor, list[Tensor]]:
        """Return the losses of a few steps and of an evaluation, [times, members]; the buffers."""
        workload = self._workload(trials, way)
        model = workload.model()
        used: set[tuple[bool, ...]] = set()
        rate = min(AGREEING_RATE, *(trial.lr for trial in self.trials))
        optimizer = build_optimizer(model, [Member("eb", rate) for _ in trials])
        forward_backward = _Pass(workload, model)

        def passed() -> Tensor:
            losses = forward_backward()
            used.add(tuple(slot.parameter.grad is None for slot in optimizer.slots))
            return losses

        losses = []
        workload.begin_epoch()
        for step in range(AGREEING_STEPS):
            workload.load_batch(step % workload.steps_per_epoch)
            losses.append(optimizer.step(passed))
        if len(used) > 1:
            raise RuntimeError("a parameter has a gradient in some steps only")
        with torch.no_grad():
            losses.append(workload.sampled_losses(model, AGREEING_ROWS))
        return torch.stack(losses), list(model.buffers())

    def _faster(self, stacked: Way) -> Way:
        """Return the stacked way, or one by one where that takes less time."""
        first = self.trials[0]
        one_way = alone(first, "")
        steps = first.epochs * self._workload([first], one_way.model).steps_per_epoch
        if steps < WORTH_TIMING:
            return stacked
        together = self._seconds(self.trials, stacked)
        apart = len(self.trials) * self._seconds([first], one_way)
        gain = apart / together
        if gain >= 1.0:
            return replace(stacked, reason=f"{stacked.reason}; {gain:.1f} times as fast as a loop")
        reason = f"a loop is {1 / gain:.1f} times as fast as a stack"
        return Way("one by one", reason, model="each")

    def _seconds(self, trials: Sequence[TrialSpec], way: Way) -> float:
        """Return what a step takes, the best of a few."""
        workload = self._workload(trials, way.model)
        model = workload.model()
        members = [member_of(trial) for trial in trials]
        optimizer = build_optimizer(
            model, members, total_steps=100, way=way.optimizer, loss_at_zero=1.0
        )
        workload.begin_epoch()
        # Work, not waiting: other processes of a busy machine would decide otherwise.
        clock = time.thread_time if self.device.type == "cpu" else time.perf_counter
        best = float("inf")
        for step in range(1 + TIMED_STEPS):
            workload.load_batch(step % workload.steps_per_epoch)
            start = clock()
            optimizer.step(_Pass(workload, model))
            if step:
                best = min(best, clock() - start)
        return max(best, 1e-9)

    def _workload(self, trials: Sequence[TrialSpec], way: str) -> Workload:
        first = trials[0]
        return self.task.workload(
            seeds=[trial.seed for trial in trials],
            batch_size=first.batch_size,
            values=first.of_task,
            device=self.device,
            profile=first.profile,
            activation=first.activation,
            validation=first.options.validation,
            way=way,
        )


class _Pass:
    """One forward and backward pass, as an optimizer asks for it."""

    def __init__(self, workload: Workload, model: Any) -> None:
        self.workload, self.model = workload, model

    def __call__(self) -> Tensor:
        losses = self.workload.losses(self.model)
        of_all(losses).backward()
        return losses.detach()


def _near(one: Tensor, other: Tensor, *, least: float) -> bool:
    """Return whether numbers agree, where the other is finite; below `least`, absolutely."""
    one, other = one.double(), other.double()
    near = (one - other).abs() <= AGREEMENT * other.abs().clamp_min(least)
    return bool((near | ~torch.isfinite(other)).all())


def _words(error: Exception) -> str:
    return (str(error) or type(error).__name__).strip().splitlines()[0]


# --- Which way a torch optimizer may move a stack: found out by trying, not by a list


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
    try:
        alone = [trial.alone(rate, member) for member, rate in enumerate(ends)]
    except MisuseError:  # better in words that name the model's own sizes
        whole = [nn.Parameter(torch.zeros(shape)) for shape in shapes]
        make_optimizer(factory, whole, ends[0], options, name)
        raise
    try:
        together = trial.together(ends)
        if not torch.equal(trial.together(ends, poisoned=True), together):
            return Verdict("member", "its members are not independent of each other")
    except Exception as error:
        return Verdict("member", f"it does not take a stack: {_words(error)}")
    for one, other, start in zip(together, alone, trial.start, strict=True):
        moved = (other - start).abs().max()
        allowed = OF_THE_WAY * moved + OF_THE_WEIGHTS * max(start.abs().max(), moved)
        if not bool((one - other).abs().max() <= allowed):
            return Verdict("member", "its steps are not proportional to the rate")
    return Verdict("scaled", "element-wise and proportional to the rate")


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
                f"{self.name} cannot step from gradients: {said_where(error)}", field="methods"
            ).at("") from error
