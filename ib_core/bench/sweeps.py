"""Whole sweeps: our engine against training the same trials one after another."""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from ib_core.bench.measure import Ratio, race
from ib_core.bench.plain import train_one
from ib_core.datasets import DATASETS
from ib_core.sweep import SweepSpec, TrialSpec, calibrate, lanes_here, plan_shards, run_all
from ib_core.tasks import find_task


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
