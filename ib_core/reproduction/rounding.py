"""How far rounding alone moves a result.

At stable rates a trial gives the same number on every machine, up to its last digits. At high
rates training is chaotic: one other rounding, of a neighbour in the stack or of another
processor, leads elsewhere. A rate that differs by about half a unit in float32's last place
makes another rounding and nothing else, so a trial and its nudged twins are equally right.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import fmean

from ib_core.sweep.local import run_all
from ib_core.sweep.spec import TrialSpec

#: Difference between neighbouring nudged rates, as a share; float32 resolves 1.2e-7.
NUDGE = 1e-7
#: Roundings that agree to this share are called the same.
SAME = 1e-2


@dataclass(frozen=True, slots=True)
class Roundings:
    """One number, computed with several equally right roundings.

    Attributes:
        values: The number by each of them.
    """

    values: tuple[float, ...]

    @property
    def spread(self) -> float:
        """Largest less smallest; infinite where rounding decides on being a number."""
        if all(math.isnan(value) for value in self.values):
            return 0.0
        if not all(map(math.isfinite, self.values)):
            return math.inf
        return max(self.values) - min(self.values)

    @property
    def chaotic(self) -> bool:
        """Whether rounding alone moves the number noticeably."""
        return self.spread > SAME * min(map(abs, self.values))

    def between(self, low: float, high: float) -> int:
        """Return how many lie in a range."""
        return sum(low <= value <= high for value in self.values)

    def covers(self, value: float) -> bool:
        """Return whether a number lies among them."""
        if self.spread == math.inf:
            return True
        return min(self.values) <= value <= max(self.values)

    def __str__(self) -> str:
        """Say where they lie."""
        return f"{len(self.values)} roundings give {min(self.values):.5g} to {max(self.values):.5g}"


def nudged(trial: TrialSpec, count: int) -> list[TrialSpec]:
    """Return equally right twins of a trial, each with a rounding of its own."""
    return [replace(trial, lr=trial.lr * (1 + step * NUDGE)) for step in range(1, count + 1)]


def roundings(trials: Sequence[TrialSpec], count: int) -> Roundings:
    """Return the mean training loss of some trials with several roundings, trained together."""
    twins = [nudged(trial, count) for trial in trials]
    losses = iter(
        [
            math.nan if r is None else r.train_loss
            for r in run_all([t for row in twins for t in row])
        ]
    )
    by_trial = [[next(losses) for _ in row] for row in twins]
    return Roundings(tuple(map(fmean, zip(*by_trial, strict=True))))
