"""How the cost of a sweep grows: with its trials, with the width of a network, with time steps."""

import math
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from ib_core.bench.measure import race
from ib_core.bench.steps import StepCase, engine_steps, trials_of
from ib_core.methods import Member, build_optimizer
from ib_core.sweep import SweepSpec, run_trials, stack_memory
from ib_core.tasks import LOSSES, StackedRNN


@dataclass(frozen=True, slots=True)
class Growth:
    """Seconds at several sizes and the power of the size they grow with.

    Attributes:
        of: What grows, and from where to where.
        exponent: Slope of a straight line through log(seconds) against log(size).
        seconds: Seconds at every size, in words.
    """

    of: str
    exponent: float
    seconds: str


def measure_growth(
    *, quick: bool = True, tell: Callable[[str], None] = lambda _: None
) -> Iterator[Growth]:
    """Measure all three."""
    rounds = 3 if quick else 7
    tell("growth with trials")
    counts = (10, 30, 100, 300, 1000)
    stacks = {str(n): _steps("bundled/wine", n) for n in counts}
    yield _growth("trials (10 steps of wine)", counts, stacks, rounds)
    tell("growth with width")
    widths = (32, 64, 128, 256, 512)
    wide = {str(w): _steps("digits_mlp", 8, width=w) for w in widths}
    yield _growth("width (10 steps of 8 digits MLPs)", widths, wide, rounds)
    tell("growth with time steps")
    lengths = (25, 50, 100, 200, 400)
    long = {str(n): _music_steps(n) for n in lengths}
    yield _growth("time steps (8 music RNNs)", lengths, long, rounds)


def _steps(task: str, members: int, width: int | None = None) -> Callable[[], object]:
    options = {} if width is None else {"width": width}
    case = StepCase(task, task, ("ib",), members=members, steps=10)
    return engine_steps(trials_of(case, "ib", options), case.steps)


def _music_steps(length: int, members: int = 8) -> Callable[[], object]:
    """Return what takes one step on a piece of music of random notes."""
    draw = torch.Generator().manual_seed(1)
    notes = (torch.rand(members, 1, length + 1, 88, generator=draw) < 0.05).float()
    model = StackedRNN(88, 100, "arctan", "arctan", members, authors=False)
    optimizer = build_optimizer(model, [Member("ib", lr=0.01)] * members)
    loss = LOSSES["note_loss"]

    def forward_backward() -> Tensor:
        losses = loss.per_row(model(notes[:, :, :-1]), notes[:, :, 1:]).mean((1, 2))
        losses.sum().backward()
        return losses.detach()

    return lambda: optimizer.step(forward_backward)


def _growth(
    of: str, sizes: Sequence[int], work: dict[str, Callable[[], object]], rounds: int
) -> Growth:
    measured = race(work, rounds=rounds)
    seconds = [measured.median(name) for name in work]
    logs = [(math.log(n), math.log(s)) for n, s in zip(sizes, seconds, strict=True)]
    told = f"{of}, {', '.join(map(str, sizes))}"
    return Growth(told, _slope(logs), ", ".join(f"{s:.2g}" for s in seconds))


def _slope(points: Sequence[tuple[float, float]]) -> float:
    """Return the slope of the least-squares line."""
    mean_x = sum(x for x, _ in points) / len(points)
    mean_y = sum(y for _, y in points) / len(points)
    return sum((x - mean_x) * (y - mean_y) for x, y in points) / sum(
        (x - mean_x) ** 2 for x, _ in points
    )


#: What one measurement of memory may take, in seconds.
PATIENCE = 120
MEMORY_CASES = (("digits_autoencoder", 200), ("music/procedural", 40), ("digits_mlp", 400))


def measure_memory(tell: Callable[[str], None] = lambda _: None) -> Iterator[tuple[str, float]]:
    """Yield measured over forecast peak memory of some stacks, each in a process of its own."""
    for task, members in MEMORY_CASES:
        tell(f"memory of {task}")
        command = [sys.executable, "-m", __name__, task, str(members)]
        told = subprocess.check_output(command, text=True, timeout=PATIENCE)
        yield f"{members} of {task}", float(told)


def peak_over_forecast(task: str, members: int) -> float:
    """Train a stack and return the memory it needed at its peak over what was forecast."""
    spec = SweepSpec.create(
        task, methods=("ib",), learning_rates=[0.01], seeds=range(1, members + 1), epochs=1
    )
    trials = spec.expand()
    run_trials(trials[:1])  # what is loaded once is not the stack's
    before = _peak_bytes()
    run_trials(trials)
    return (_peak_bytes() - before) / stack_memory(trials)


def _peak_bytes() -> int:
    """Return this process's highest memory so far.

    Not `getrusage`, whose highest memory is the parent's where that had more.
    """
    status = Path("/proc/self/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) * 1024


if __name__ == "__main__":
    sys.stdout.write(f"{peak_over_forecast(sys.argv[1], int(sys.argv[2]))}\n")
