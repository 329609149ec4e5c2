"""Whole sweeps: against a plain loop, how their cost grows, the edge finder against a grid.

Not a race: what is compared are numbers of trials and the edges found, so that a busy machine
changes nothing.
"""

import math
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import torch
from torch import Tensor

from ib_core.bench.races import Ratio, race, train_one
from ib_core.bench.steps import StepCase, engine_steps, trials_of
from ib_core.datasets import DATASETS
from ib_core.methods import Member, build_optimizer
from ib_core.sweep import (
    Book,
    Seen,
    SeriesFound,
    SweepSpec,
    TrialSpec,
    calibrate,
    lanes_here,
    plan_shards,
    run_all,
    run_rounds,
    run_trials,
    series_found,
    specs_of,
    stack_memory,
)
from ib_core.tasks import LOSSES, StackedRNN, find_task


@dataclass(frozen=True, slots=True)
class SweepCase:
    """One sweep to race.

    Attributes:
        name: What it is called in tables.
        spec: Our sweep; the loop trains as many trials, all of them EB.
        sample: How many trials of the loop are really trained; its time is scaled up to all.
    """

    name: str
    spec: SweepSpec
    sample: int


@dataclass(frozen=True, slots=True)
class SweepResult:
    """How a sweep went.

    Attributes:
        name: The case.
        trials: Its trials.
        speedup: The loop's seconds over ours.
        seconds: Ours.
        forecast: What the planner said, in seconds.
    """

    name: str
    trials: int
    speedup: Ratio
    seconds: float
    forecast: float


def _rates(count: int) -> list[float]:
    return [float(f"{0.001 * 1.5**i:.4g}") for i in range(count)]


def cases(*, quick: bool) -> Iterator[SweepCase]:
    """Yield the sweeps of the promise; those whose data is missing are left out."""
    epochs = 3 if quick else 10
    grids = (
        ("UCI car, 100 EB", "uci/car", ("eb",), 20, 5, epochs, 5),
        ("UCI car, 50 EB + 50 IB", "uci/car", ("eb", "ib"), 10, 5, epochs, 5),
        ("UCI letter, 50 EB + 50 IB", "uci/letter", ("eb", "ib"), 10, 5, 1 if quick else 3, 2),
        ("Digits autoencoder, 20 EB + 20 IB", "digits_autoencoder", ("eb", "ib"), 4, 5, epochs, 4),
        ("Digits MLP, 50 EB + 50 IB", "digits_mlp", ("eb", "ib"), 10, 5, epochs, 4),
        ("JSB RNN, 7 EB + 7 IB", "music/jsb_chorales", ("eb", "ib"), 7, 1, 1, 1),
    )
    for name, task, methods, rates, seeds, length, sample in grids:
        if DATASETS[find_task(task).dataset].present():
            spec = SweepSpec.create(
                task,
                methods=methods,
                learning_rates=_rates(rates),
                seeds=range(1, seeds + 1),
                epochs=length,
            )
            yield SweepCase(name, spec, sample)


def race_sweeps(
    *, quick: bool = True, tell: Callable[[str], None] = lambda _: None
) -> list[SweepResult]:
    """Race every case, interleaved, and return the speedups."""
    calibrate(again=True)
    results = []
    for case in cases(quick=quick):
        tell(case.name)
        results.append(_race_one(case, rounds=3 if quick else 5))
    return results


def _race_one(case: SweepCase, rounds: int) -> SweepResult:
    trials = case.spec.expand()
    chosen = trials[:: max(1, len(trials) // case.sample)][: case.sample]
    lanes = lanes_here("cpu")
    shards = plan_shards(trials, lanes=lanes)
    measured = race(
        {"loop": lambda: _loop(chosen), "stack": lambda: run_all(trials)}, rounds=rounds
    )
    ratio = measured.ratio("loop", "stack")
    scale = len(trials) / len(chosen)
    return SweepResult(
        name=case.name,
        trials=len(trials),
        speedup=Ratio(ratio.value * scale, ratio.low * scale, ratio.high * scale, ratio.rounds),
        seconds=measured.median("stack"),
        forecast=sum(shard.seconds for shard in shards) / min(lanes, len(shards)),
    )


def _loop(trials: list[TrialSpec]) -> float:
    start = time.perf_counter()
    for trial in trials:
        train_one(trial)
    return time.perf_counter() - start


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


#: Small tasks, and methods that differ in kind; every pair is one line.
CASES: tuple[tuple[str, tuple[str, ...], int | None], ...] = (
    ("toy/quadratic", ("eb", "ib", "momentum"), None),
    ("bundled/iris", ("eb", "ib", "sps", "momentum", "ib_momentum", "adam"), None),
    ("bundled/wine", ("eb", "ib", "sps", "momentum", "ib_momentum", "adam"), None),
    ("bundled/breast_cancer", ("eb", "ib", "momentum", "adam"), None),
    ("digits_mlp", ("eb", "ib", "ib_plus", "adam"), 1),
)
ASKED = {"find": "edge", "from": 0.01, "to": 1000, "within": 1.1}


@dataclass(frozen=True, slots=True)
class EdgeResult:
    """What a search and a grid as fine found on one task with one method.

    Attributes:
        task: Which.
        method: Which.
        found: The search's median edge with its interval.
        dense: The median edge on the grid; infinite if half the seeds break nowhere.
        ragged: Seeds that are sound above a rate at which they broke, on the grid.
        seeds: How many there are.
        trials: What the search took.
        grid: What the grid took.
    """

    task: str
    method: str
    found: SeriesFound
    dense: float
    ragged: int
    seeds: int
    trials: int
    grid: int

    @property
    def apart(self) -> float:
        """The factor between the two medians; 1 if both lie beyond the same end of the range."""
        outside = {"above": math.inf, "below": 0.0}
        mine = self.found.value
        if mine is None:
            ends = sorted(outside.get(seed.where, 1.0) for seed in self.found.seeds)
            mine = ends[len(ends) // 2]
        if mine == self.dense:
            return 1.0
        return max(mine / self.dense, self.dense / mine) if mine and self.dense else math.inf

    @property
    def fewer(self) -> float:
        """How many times fewer trials the search took."""
        return self.grid / self.trials


def compare_edges(
    *, quick: bool = True, tell: Callable[[str], None] = lambda name: None
) -> Iterator[EdgeResult]:
    """Search every pair's edges, train a grid as fine as well, and compare.

    Args:
        quick: With few seeds.
        tell: Told what is measured next.
    """
    for task, methods, epochs in CASES:
        body = {"task": task, "methods": list(methods), "seeds": 11 if quick else 31}
        body |= {} if epochs is None else {"epochs": epochs}
        (spec,) = specs_of({**body, "learning_rates": ASKED})
        book = Book(spec)
        tell(f"the edges on {task}, searched for")
        run_rounds([book], lambda trials: run_all(trials, device="cpu"))
        tell(f"the edges on {task}, on a grid of {book.grid} trials")
        grid = {"from": ASKED["from"], "to": ASKED["to"], "count": book.search.grid}
        (dense,) = specs_of({**body, "learning_rates": grid})
        whole = Book(spec)
        for result in run_all(dense.expand(), device="cpu"):
            whole.note(result)
        for found in series_found(book.search, book.known):
            yield _compared(task, found, book.known[found.series], whole.known[found.series])


def _compared(task: str, found: SeriesFound, mine: Any, dense: Any) -> EdgeResult:
    return EdgeResult(
        task=task,
        method=str(getattr(found.series, "method", "")),
        found=found,
        dense=median(best_split(rates) for rates in dense.values()),
        ragged=sum(_is_ragged(rates) for rates in dense.values()),
        seeds=len(dense),
        trials=sum(map(len, mine.values())),
        grid=sum(map(len, dense.values())),
    )


def best_split(rates: Mapping[float, Seen | None]) -> float:
    """Return a seed's edge as one reads it off a grid: few exceptions on either side.

    The middle, in log rate, of the two neighbours between which the fewest rates are broken below
    or sound above; of several such places the middle one. 0 below all rates, infinite above.
    """
    tried = sorted((lr, seen.broken) for lr, seen in rates.items() if seen is not None)
    wrong = [
        sum(broken for _, broken in tried[:cut]) + sum(not broken for _, broken in tried[cut:])
        for cut in range(len(tried) + 1)
    ]
    cuts = [cut for cut, count in enumerate(wrong) if count == min(wrong)]
    cut = cuts[len(cuts) // 2]
    if cut in (0, len(tried)):
        return math.inf if cut else 0.0
    return math.sqrt(tried[cut - 1][0] * tried[cut][0])


def _is_ragged(rates: Mapping[float, Seen | None]) -> bool:
    seen = [rates[lr] for lr in sorted(rates)]
    broke = [one.broken for one in seen if one is not None]
    return broke != sorted(broke)
