"""The same EB grid through other people's tools, each in a fresh process, start-up included.

`python -m ib_core.bench.peers NAME TASK EPOCHS RATES SEEDS` trains the grid with one of them.
Optuna and Ray come with the extra `bench`; whoever is missing is left out and said so.
"""

import importlib.util
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from statistics import median
from typing import Any

from ib_core.bench.races import Ratio
from ib_core.sweep import SweepSpec, TrialSpec

#: What each tool's process may take before it is given up, in seconds.
PATIENCE = 900
#: Take a minute or more for a grid, so only the full benchmark races them.
SLOW = ("loop", "ray")


@dataclass(frozen=True, slots=True)
class PeerCase:
    """A grid: task, epochs, rates, seeds."""

    name: str
    task: str
    epochs: int
    rates: int
    seeds: int

    def sweep(self) -> dict[str, Any]:
        """Return the grid as a sweep's body, all of it EB."""
        return {
            "task": self.task,
            "methods": ["eb"],
            "learning_rates": [float(f"{0.001 * 1.5**i:.4g}") for i in range(self.rates)],
            "seeds": list(range(1, self.seeds + 1)),
            "epochs": self.epochs,
        }

    def trials(self) -> list[TrialSpec]:
        """Return the grid's trials."""
        return SweepSpec.create(**self.sweep()).expand()


PEER_CASES = (
    PeerCase("UCI car, 100 EB", "uci/car", 10, 20, 5),
    PeerCase("UCI letter, 20 EB", "uci/letter", 2, 10, 2),
    PeerCase("Digits autoencoder, 20 EB", "digits_autoencoder", 5, 10, 2),
    PeerCase("JSB RNN, 4 EB", "music/jsb_chorales", 1, 4, 1),
)


def ours(case: PeerCase) -> None:
    """Train the grid as `etascope sweep` does."""
    from ib_core.sweep import run_all

    run_all(case.trials())


def loop(case: PeerCase) -> None:
    """Train the grid one trial after another."""
    from ib_core.bench.races import train_one

    for trial in case.trials():
        train_one(trial)


def optuna(case: PeerCase) -> None:
    """Train the grid as an Optuna study: grid sampler, default storage, 2 jobs."""
    import optuna as tool

    from ib_core.bench.races import train_one

    tool.logging.set_verbosity(tool.logging.WARNING)
    trials = case.trials()
    sampler = tool.samplers.GridSampler({"index": list(range(len(trials)))})

    def objective(trial: Any) -> float:
        chosen = trials[trial.suggest_int("index", 0, len(trials) - 1)]
        loss = train_one(chosen)
        return min(loss, 1e30) if loss == loss else 1e30  # Optuna fails trials that return NaN

    tool.create_study(sampler=sampler).optimize(objective, n_trials=len(trials), n_jobs=2)


def ray(case: PeerCase) -> None:
    """Train the grid with Ray Tune on 2 processors."""
    import ray as tool
    from ray import tune

    tool.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    trials = case.trials()

    def objective(config: dict[str, Any]) -> dict[str, float]:
        from ib_core.bench.races import train_one

        return {"loss": train_one(trials[config["index"]])}

    with tempfile.TemporaryDirectory() as folder:
        tune.Tuner(
            tune.with_resources(objective, {"cpu": 1}),
            param_space={"index": tune.grid_search(list(range(len(trials))))},
            run_config=tune.RunConfig(storage_path=folder, verbose=0),
        ).fit()
    tool.shutdown()


TOOLS: dict[str, Callable[[PeerCase], None]] = {
    "ours": ours,
    "loop": loop,
    "optuna": optuna,
    "ray": ray,
}


@dataclass(frozen=True, slots=True)
class PeerResult:
    """How many times longer a tool takes than we do; None if it is not installed."""

    name: str
    tool: str
    trials: int
    times: Ratio | None
    seconds: float | None


def race_peers(
    *, quick: bool = True, tell: Callable[[str], None] = lambda _: None
) -> Iterator[PeerResult]:
    """Race every tool on every grid whose data is here, in turns."""
    from ib_core.datasets import DATASETS
    from ib_core.tasks import find_task

    for case in PEER_CASES[:1] if quick else PEER_CASES:
        if DATASETS[find_task(case.task).dataset].present():
            yield from _race(case, rounds=1 if quick else 3, slow=not quick, tell=tell)


def _race(
    case: PeerCase, rounds: int, *, slow: bool, tell: Callable[[str], None]
) -> Iterator[PeerResult]:
    asked = [tool for tool in TOOLS if slow or tool not in SLOW]
    here = [t for t in asked if t in ("ours", "loop") or importlib.util.find_spec(t)]
    seconds: dict[str, list[float]] = {name: [] for name in here}
    for _ in range(rounds):
        for name in here:
            tell(f"{case.name}: {name}")
            seconds[name].append(_timed(name, case))
    for name in asked:
        if name not in seconds:
            yield PeerResult(case.name, name, case.rates * case.seeds, None, None)
        elif name != "ours":
            each = [a / b for a, b in zip(seconds[name], seconds["ours"], strict=True)]
            ratio = Ratio(median(each), min(each), max(each), rounds)
            taken = median(seconds[name])
            yield PeerResult(case.name, name, case.rates * case.seeds, ratio, taken)


def _timed(name: str, case: PeerCase) -> float:
    start = time.perf_counter()
    numbers = (case.epochs, case.rates, case.seeds)
    command = [sys.executable, "-m", __name__, name, case.task, *map(str, numbers)]
    environment = dict(os.environ, OMP_WAIT_POLICY="PASSIVE")
    subprocess.run(command, check=True, capture_output=True, timeout=PATIENCE, env=environment)
    return time.perf_counter() - start


if __name__ == "__main__":
    tool, task, *sizes = sys.argv[1:]
    TOOLS[tool](PeerCase(task, task, *map(int, sizes)))
