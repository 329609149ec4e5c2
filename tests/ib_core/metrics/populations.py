"""Many seeds of two tasks, recorded: what a handful of seeds is drawn from to try intervals.

Made, and made again, by `python -m tests.ib_core.metrics.populations` (half an hour on two
processors). Only losses and outcomes are kept.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ib_core.metrics import RateCurve, SeedResult

RECORDED = Path(__file__).with_name("populations.npz")
TASKS = {"digits": "digits_mlp", "wine": "bundled/wine"}
METHODS = ("eb", "ib", "ib_plus")
RATES = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1000.0)
SEEDS = 120
EPOCHS = 10
TABLES = ("initial", "train", "test", "diverged")


@dataclass(frozen=True)
class Population:
    """Every seed of one task.

    Attributes:
        initial: Loss before the first step, [methods, rates, seeds].
        train: Final training loss, NaN where it is not finite.
        test: Final test loss, likewise.
        diverged: Whether the trial diverged.
    """

    initial: NDArray[np.float64]
    train: NDArray[np.float64]
    test: NDArray[np.float64]
    diverged: NDArray[np.bool_]

    def curves(self, seeds: NDArray[np.int64] | None = None) -> dict[str, RateCurve]:
        """Return the curves of some seeds, which may occur twice, or of all."""
        chosen = np.arange(self.train.shape[-1]) if seeds is None else seeds
        return {
            method: RateCurve.from_results(
                (lr, self._result(i, k, int(seed), place))
                for k, lr in enumerate(RATES)
                for place, seed in enumerate(chosen)
            )
            for i, method in enumerate(METHODS)
        }

    def _result(self, method: int, rate: int, seed: int, place: int) -> SeedResult:
        at = (method, rate, seed)
        outcome = "diverged" if self.diverged[at] else "completed"
        return SeedResult(place, float(self.train[at]), float(self.initial[at]), outcome)


def population(name: str) -> Population:
    """Return a recorded population: `digits` or `wine`."""
    with np.load(RECORDED) as found:
        tables = [found[f"{name}_{table}"] for table in TABLES]
    losses = [table.astype(np.float64) for table in tables[:3]]
    return Population(*losses, tables[3].astype(bool))


def record() -> None:
    """Train both populations and write them down."""
    from ib_core import SweepSpec, run_sweep  # torch is needed for this alone

    found = {}
    for name, task in TASKS.items():
        spec = SweepSpec.create(
            task,
            methods=METHODS,
            learning_rates=RATES,
            seeds=range(1, SEEDS + 1),
            epochs=EPOCHS,
            device="cpu",
        )
        shape = (len(METHODS), len(RATES), SEEDS)
        results = [result for result in run_sweep(spec) if result is not None]
        # A trial's place in the list is its place in the table: methods, then rates, then seeds.
        numbers = [
            (one.initial_loss, one.train_loss, one.test_loss, one.outcome == "diverged")
            for one in results
        ]
        for table, values in zip(TABLES, zip(*numbers, strict=True), strict=True):
            kind = np.bool_ if table == "diverged" else np.float32
            with np.errstate(over="ignore"):
                cells = np.array(values, dtype=np.float64).astype(kind)
            found[f"{name}_{table}"] = cells.reshape(shape)
    np.savez_compressed(RECORDED, **found)


if __name__ == "__main__":
    record()
