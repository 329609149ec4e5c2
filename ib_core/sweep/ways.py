"""In which way a shard of trials trains: found out by trying it, with the reason kept.

The paper's networks are stacks written by hand. A user's model is stacked by torch where torch can,
where a member of the stack has the loss it has alone, and where that is faster than a loop; an
optimizer of torch's kind serves the whole stack or one member (`ib_core.methods.probes`).
"""

from __future__ import annotations

import time
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from ib_core.errors import MisuseError
from ib_core.methods import Member, build_optimizer, find_method, probe
from ib_core.sweep.spec import TrialSpec
from ib_core.tasks import PaperTask, Task, Workload, find_task

#: A stack's first losses agree with those of models alone up to this, relative.
AGREEMENT = 1e-3
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
    key = (
        first.task,
        first.options,
        first.method,
        first.batch_size,
        first.epochs,
        (rates[0], rates[-1]),
        len(trials).bit_length(),
        str(device),
    )
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
            self._agree(one)
        except MisuseError:
            raise
        except Exception as error:
            return Way("one by one", f"torch cannot stack it: {_words(error)}", model="each")
        return self._faster(moved)

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

    def _agree(self, one: Workload) -> None:
        """Raise unless members of a stack have the losses they have alone."""
        ends = [self.trials[0], self.trials[-1]]
        stack = self._workload(ends, "stacked")
        together = _first_losses(stack)
        each = [_first_losses(one)]
        each.append(_first_losses(self._workload(ends[1:], "plain")))
        apart = torch.cat(each)
        near = (together - apart).abs() <= AGREEMENT * apart.abs().clamp_min(1e-6)
        if not bool((near | ~torch.isfinite(apart)).all()):
            raise RuntimeError("a member of the stack has another loss than the model alone")

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
            return replace(stacked, reason=f"{stacked.reason}; {gain:.1f} times a loop")
        return Way("one by one", f"a loop is {1 / gain:.1f} times a stack", model="each")

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
            values=first.options.of_task,
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
        losses.sum().backward()
        return losses.detach()


def _first_losses(workload: Workload) -> Tensor:
    model = workload.model()
    workload.begin_epoch()
    workload.load_batch(0)
    losses = workload.losses(model)
    losses.sum().backward()
    return losses.detach()


def _words(error: Exception) -> str:
    return (str(error) or type(error).__name__).strip().splitlines()[0]
