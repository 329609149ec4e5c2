"""Anybody's models: our stacks against the plain loop that people write, interleaved.

The plain loop trains one ordinary model after another with a torch optimizer each; `fused` is the
same with torch's fused optimizer. What is timed is the step: batch, passes, and moves; and of it
the work of one thread on one core, which neighbours on a busy machine change little.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn

from ib_core.bench.races import Ratio, race, with_threads
from ib_core.methods import build_optimizer
from ib_core.own import enter_task
from ib_core.sweep import (
    TrialSpec,
    Way,
    alone,
    choose_way,
    keep_pages,
    lanes_here,
    member_of,
    run_all,
    specs_of,
)
from ib_core.tasks import Data, Task, find_task, of_all

ADAMW, A_MEMBER = "torch.optim.AdamW", "torch.optim.Adafactor"
#: How many trials train at once.
COUNTS = (1, 10, 100)


@dataclass(frozen=True, slots=True)
class OwnResult:
    """One model at one number of trials.

    Attributes:
        name: Of the model.
        members: How many trials.
        way: How we trained them.
        times: How many times faster we are than a plain loop.
        times_fused: The same against a loop with `fused=True`; None where there is none.
        floor: What it must not be below.
    """

    name: str
    members: int
    way: str
    times: Ratio
    times_fused: Ratio | None
    floor: float | None


@dataclass(frozen=True, slots=True)
class _Case:
    name: str
    task: Callable[[], Task]
    batch_size: int
    floor: float
    method: str = ADAMW


def _table(rows: int, columns: int, classes: int) -> Data:
    draw = torch.Generator().manual_seed(1)
    x = torch.randn(rows, columns, generator=draw)
    return Data(train=(x, torch.randint(classes, (rows,), generator=draw)))


def _mlp(sizes: tuple[int, ...], norm: bool = False) -> nn.Module:
    layers: list[nn.Module] = []
    for inputs, outputs in pairwise(sizes[:-1]):
        layers += [nn.Linear(inputs, outputs), *([nn.BatchNorm1d(outputs)] if norm else [])]
        layers.append(nn.ReLU())
    return nn.Sequential(*layers, nn.Linear(sizes[-2], sizes[-1]))


def _own(name: str, model: Callable[[], nn.Module], data: Data) -> Task:
    task = Task(model, data, loss=F.cross_entropy)
    return enter_task(task, f"bench:{name}", "bench", {})


_TINY = partial(_own, "tiny", partial(_mlp, (13, 13, 13, 13, 3)))
_DIGITS = partial(_own, "digits", partial(_mlp, (64, 32, 32, 10), norm=True))
CASES = (
    _Case("tiny MLP 13-13-13-13-3", lambda: _TINY(_table(1000, 13, 3)), 100, 15.0),
    _Case("digits MLP with BatchNorm", lambda: _DIGITS(_table(1000, 64, 10)), 50, 5.0),
    _Case("GPT, batch 2", lambda: find_task("gpt_bytes"), 2, 4.0),
    _Case("GPT, batch 8", lambda: find_task("gpt_bytes"), 8, 1.5),
    _Case("residual CNN with BatchNorm", lambda: find_task("digits_resnet"), 50, 2.0),
    _Case("LSTM", lambda: find_task("procedural_lstm"), 10, 1.8),
    _Case(
        "digits MLP, an optimizer a member",
        lambda: _DIGITS(_table(1000, 64, 10)),
        50,
        1.4,
        A_MEMBER,
    ),
)
#: No model, at any number of trials, may be below this of the plain loop.
NEVER_BELOW = 0.95


def _normed() -> nn.Module:
    """Return a model that torch cannot map over members: its layers keep what they looked at."""
    spectral_norm = nn.utils.parametrizations.spectral_norm
    layers = (nn.Linear(64, 64), nn.Linear(64, 64))
    hidden = [part for layer in layers for part in (spectral_norm(layer), nn.ReLU())]
    return nn.Sequential(*hidden, nn.Linear(64, 10))


_LOOPED = partial(_own, "looped", _normed)
#: Whole sweeps in two processes beside the same in one; so many trials of so many epochs. A
#: hundred, as above: of fewer, two processes would be given smaller stacks than one.
SIDE_BY_SIDE = (
    (_Case("GPT, batch 2", lambda: find_task("gpt_bytes"), 2, 1.6), 100, 1),
    (_Case("MLP with spectral norms", lambda: _LOOPED(_table(1000, 64, 10)), 50, 1.6), 100, 3),
)


def race_own(*, quick: bool, tell: Callable[[str], None]) -> Iterator[OwnResult]:
    """Race every model at 1, 10 and 100 trials; then two processes with one."""
    cores = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else set()
    keep_pages()  # as every process that trains does, and the plain loop beside it
    if cores:
        os.sched_setaffinity(0, {max(cores)})
    try:
        with with_threads(1):
            for case in CASES:
                for count in COUNTS:
                    tell(f"{case.name}, {count} trials")
                    yield _raced(case, count, rounds=5 if quick else 15)
    finally:
        if cores:
            os.sched_setaffinity(0, cores)
    yield from _race_processes(quick=quick, tell=tell)


def _race_processes(*, quick: bool, tell: Callable[[str], None]) -> Iterator[OwnResult]:
    """Race sweeps in two processes with the same sweeps in one: how long everything takes."""
    if lanes_here("cpu") < 2:
        return
    for case, count, epochs in SIDE_BY_SIDE:
        tell(f"{case.name}, {count} trials in two processes and in one")
        trials, ways = _trials(case, count, epochs), set[str]()

        def sweep(lanes: int, trials: list[TrialSpec] = trials, ways: set[str] = ways) -> None:
            for result in run_all(trials, lanes=lanes):
                assert result is not None
                assert result.error is None
                ways.add(str(result.record["way"]))

        contestants = {"one": partial(sweep, 1), "two": partial(sweep, 2)}
        measured = race(contestants, rounds=3 if quick else 7, seconds=60.0)
        yield OwnResult(
            name=f"{case.name}: two processes against one",
            members=count,
            way=", ".join(sorted(ways)),
            times=measured.ratio("one", "two"),
            times_fused=None,
            floor=case.floor,
        )


def _trials(case: _Case, count: int, epochs: int = 1) -> list[TrialSpec]:
    (spec,) = specs_of(
        {
            "task": case.task().name,
            "methods": [case.method],
            "learning_rates": [1e-4 * (1 + i) for i in range(count)],
            "seeds": 1,
            "epochs": epochs,
            "batch_size": case.batch_size,
        }
    )
    return spec.expand()


def _raced(case: _Case, count: int, rounds: int) -> OwnResult:
    task = case.task()
    trials = _trials(case, count)
    way = choose_way(trials, torch.device("cpu"))
    contestants: dict[str, Any] = {
        "ours": _steps(trials, way),
        "plain": _loop(task, trials, fused=False),
    }
    if case.method == ADAMW:
        contestants["fused"] = _loop(task, trials, fused=True)
    measured = race(contestants, rounds=rounds, seconds=60.0, clock=time.thread_time)
    return OwnResult(
        name=case.name,
        members=count,
        way=way.name,
        times=measured.ratio("plain", "ours"),
        times_fused=measured.ratio("fused", "ours") if "fused" in contestants else None,
        floor=case.floor if count == max(COUNTS) else NEVER_BELOW,
    )


def _steps(trials: list[TrialSpec], way: Way) -> Callable[[], None]:
    """Return what takes some steps of all trials in our way."""
    if way.one_by_one:
        each = [_steps([trial], alone(trial, "")) for trial in trials]

        def all_of_them() -> None:
            for one in each:
                one()

        return all_of_them
    first = trials[0]
    workload = find_task(first.task).workload(
        seeds=[trial.seed for trial in trials],
        batch_size=first.batch_size,
        values=first.of_task,
        device=torch.device("cpu"),
        way=way.model,
    )
    model = workload.model()
    optimizer = build_optimizer(
        model, [member_of(trial) for trial in trials], total_steps=1000, way=way.optimizer
    )
    workload.begin_epoch()

    def closure() -> torch.Tensor:
        losses = workload.losses(model)
        of_all(losses).backward()
        return losses.detach()

    def run() -> None:
        for step in range(STEPS):
            workload.load_batch(step % workload.steps_per_epoch)
            optimizer.step(closure)

    return run


#: Steps of every trial in one turn of a race.
STEPS = 3


def _loop(task: Task, trials: list[TrialSpec], *, fused: bool) -> Callable[[], None]:
    """Return what takes the same steps in a plain loop over ordinary models."""
    x, y = task.data().train
    models = [task.model(**trial.of_task).train() for trial in trials]
    kind = getattr(torch.optim, trials[0].method.rpartition(".")[2])
    more = {"fused": True} if fused else {}
    optimizers = [
        kind(model.parameters(), lr=trial.lr, **more)
        for model, trial in zip(models, trials, strict=True)
    ]
    size, order = trials[0].batch_size, torch.randperm(len(y))

    def run() -> None:
        for model, optimizer in zip(models, optimizers, strict=True):
            for step in range(STEPS):
                rows = order[step * size : (step + 1) * size]
                optimizer.zero_grad()
                task.loss(model(x[rows]), y[rows]).backward()
                optimizer.step()

    return run
