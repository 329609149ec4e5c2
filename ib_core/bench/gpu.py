"""What a GPU is asked: launches counted without one, and what only a real one can tell.

`etascope bench gpu` prints it as a table that anyone with a GPU can send. Where there is none it
says so and prints what can be counted without one.

On the device `meta` a step does everything but the arithmetic, and raises where it would wait for a
number. Each call of torch that is no mere view is a launch on a GPU, which takes it some five
microseconds whatever its size; small networks are little else.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from importlib.metadata import version
from importlib.util import find_spec
from typing import Any

import torch

from ib_core.bench.races import race
from ib_core.bench.steps import StepCase, engine_steps, trials_of
from ib_core.errors import InvalidSpec
from ib_core.kernels import torch_formulas
from ib_core.sweep import CudaGraph, Launches, SweepSpec, run_trials, stack_memory

#: By method, how many times EB's launches a step may take. Tests hold every task to it.
LAUNCH_BUDGET = {"ib": 1.5, "ib_plus": 1.5, "sps": 1.5, "ngn": 1.5}
#: What is counted, and by how many members: launches must not grow with them.
COUNTED = ("digits_mlp", "digits_autoencoder", "digits_conv", "music/procedural")
FEW, MANY = 4, 40


def count_launches(step: Callable[[], object]) -> Launches:
    """Return the torch calls of a step, after one that is not counted: it fills what is kept."""
    step()
    found = Launches()
    with found:
        step()
    return found


def launches_of(task: str, method: str, members: int, *, fused: bool = True) -> Launches:
    """Return the torch calls of one step of a stack.

    Args:
        task: A task of the catalogue's.
        method: A method of the catalogue's.
        members: Of the stack.
        fused: Whether with kernels of our own, or with torch calls alone.
    """
    case = StepCase(task, task, (method,), members=members)
    with nullcontext() if fused else torch_formulas():
        return count_launches(engine_steps(trials_of(case, method), 1, device="meta"))


@dataclass(frozen=True, slots=True)
class LaunchResult:
    """One line of the table: a step's launches, and those of torch calls alone."""

    task: str
    method: str
    few: int
    many: int
    in_torch: int
    over_eb: float


def count_steps(methods: Sequence[str], tell: Callable[[str], None]) -> Iterator[LaunchResult]:
    """Count the launches of a step of every counted task, by every method that fits it."""
    for task in COUNTED:
        tell(task)
        explicit = launches_of(task, "eb", MANY).total
        for method in methods:
            try:
                many = launches_of(task, method, MANY).total
            except InvalidSpec:  # ib_plus needs a linear output
                continue
            few = launches_of(task, method, FEW).total
            in_torch = launches_of(task, method, MANY, fused=False).total
            yield LaunchResult(task, method, few, many, in_torch, many / explicit)


#: Networks and their methods.
CASES = (
    ("digits_mlp", ("eb", "ib", "ib_plus")),
    ("digits_autoencoder", ("eb", "ib")),
    ("digits_conv", ("eb", "ib")),
    ("music/procedural", ("eb", "ib")),
)
#: Stacks of so many, and steps of one turn.
MEMBERS, STEPS = (1, 10, 100), 5


#: What only a GPU can tell of a step.
TOLD_BY_A_GPU = (
    "ms a step",
    "over EB",
    "CPU's over GPU's",
    "without kernels",
    "without a graph",
    "loss off by",
    "memory of forecast",
)


def gpu_here() -> dict[str, Any]:
    """Return what a table from this machine must say: the GPU, if there is one, and Triton."""
    there = torch.cuda.is_available()
    return {
        "gpu": torch.cuda.get_device_name() if there else None,
        "cuda": torch.version.cuda,
        "triton": version("triton") if find_spec("triton") else None,
    }


def missing_here(here: Mapping[str, Any]) -> str:
    """Return what keeps this machine from telling everything; empty if nothing does."""
    if here["gpu"] is None:
        why = "this torch is built without CUDA" if here["cuda"] is None else "torch sees none"
        return (
            f"No GPU here ({why}): launches were counted on tensors without numbers. Missing: "
            f"{', '.join(TOLD_BY_A_GPU)}. Run this on a machine with one and send what "
            "--markdown prints."
        )
    if here["triton"] is None:
        return (
            "Triton is not installed (the extra `gpu`): layers were solved by torch calls, so "
            "`without kernels` says nothing."
        )
    return ""


def measure_gpu(
    device: str | None, *, full: bool = False, tell: Callable[[str], None] = lambda _: None
) -> Iterator[dict[str, Any]]:
    """Return a line for every network, method and size of stack.

    Args:
        device: `cuda`, or what a test has in its place; None counts what can be counted without.
        full: Whether to measure the largest stacks as well.
        tell: Told what is measured.
    """
    for task, methods in CASES:
        for method in methods:
            for members in MEMBERS if full else MEMBERS[:2]:
                tell(f"{task}, {method}, {members}")
                known = {
                    "task": task,
                    "method": method,
                    "members": members,
                    "launches": launches_of(task, method, members).total,
                }
                measured = {} if device is None else _measured(task, method, members, device)
                yield known | measured


def _measured(task: str, method: str, members: int, device: str) -> dict[str, Any]:
    case = StepCase(task, task, (method,), members=members)
    trials = trials_of(case, method)
    there = engine_steps(trials, STEPS, device=device)
    on_cuda = device.startswith("cuda")

    def in_torch() -> None:
        with torch_formulas():
            there()

    contestants = {
        "here": engine_steps(trials, STEPS),
        "there": there,
        "in torch": in_torch,
        "eb": engine_steps(trials_of(case, "eb"), STEPS, device=device),
    }
    if on_cuda:
        contestants["graph"] = engine_steps(trials, STEPS, device=device, graph=CudaGraph)
    measured = race(contestants, rounds=9)
    return {
        "ms a step": f"{measured.median('there') / STEPS * 1e3:.3g}",
        "over EB": str(measured.ratio("there", "eb")),
        "CPU's over GPU's": str(measured.ratio("here", "there")),
        "without kernels": str(measured.ratio("in torch", "there")),
        "without a graph": str(measured.ratio("there", "graph")) if on_cuda else "",
        "loss off by": f"{_apart(task, method, device):.1e}",
        "memory of forecast": _memory(task, method, members, device),
    }


def _trials(task: str, method: str, members: int) -> Any:
    return SweepSpec.create(
        task, methods=(method,), learning_rates=[0.1], seeds=range(1, members + 1), epochs=1
    ).expand()


def _apart(task: str, method: str, device: str) -> float:
    """Return how far the losses of two trials on the device are from the processor's, relative."""
    trials = _trials(task, method, 2)
    here, there = run_trials(trials), run_trials(trials, device=device)
    return max(
        abs(one.train_loss - other.train_loss) / abs(one.train_loss)
        for one, other in zip(here, there, strict=True)
        if one is not None and other is not None
    )


def _memory(task: str, method: str, members: int, device: str) -> str:
    """Return a stack's peak memory over its forecast; nothing where none is counted."""
    if not device.startswith("cuda"):
        return ""
    trials = _trials(task, method, members)
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    run_trials(trials, device=device)
    return f"{(torch.cuda.max_memory_allocated() - before) / stack_memory(trials):.2f}"
