"""Trains trials of a bundle again and says which numbers hold.

Everything a bundle holds of a trial's end is compared: losses, accuracies and how it ended. A
trial that differs anywhere is trained again at rates a rounding error away, several times; if the
difference is at most three times as far as these alone spread, the trial is chaotic and says
nothing about the bundle. A loss that moved farther differs, however chaotic its rate: where some
roundings are not finite, it is held against those that are.
"""

import math
import random
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from itertools import islice, zip_longest
from statistics import fmean

from ib_core.datasets import DATASETS, Card, data_card
from ib_core.reproduction.bundle import Bundle
from ib_core.sweep import (
    SILENT,
    Observer,
    Outcome,
    TrialResult,
    TrialSpec,
    fingerprint,
    plan_shards,
    run_all,
)
from ib_core.tasks import find_task

#: Two numbers are the same up to rounding if they differ by no more than this share.
ROUNDING = 1e-3
#: And an accuracy if it differs by one example; a little more, as files keep nine digits.
EXAMPLES = 1.001
#: How many roundings a result that differs is trained with: enough to see how far they spread.
ROUNDINGS = 7
#: How many times as far as rounding alone spreads a number of a chaotic trial may have moved.
REACH = 3.0
#: What is compared; the first of the gravest verdict is shown.
NUMBERS = ("train_loss", "test_loss", "train_accuracy", "test_accuracy", "outcome", "initial_loss")
#: What moves in whole steps, and the loss whose movement shows that it may.
STEPPED = {
    "train_accuracy": "train_loss",
    "test_accuracy": "test_loss",
    "outcome": "train_loss",
}
#: Gravest first.
VERDICTS = ("differs", "chaotic", "agrees")
#: Opens what hears how so many trials go.
Watch = Callable[[int], AbstractContextManager[Observer]]


@dataclass(frozen=True, slots=True)
class Drawn:
    """A random sample of a bundle.

    Attributes:
        results: What to train again.
        missing: Trials that could not be drawn for want of data, by data set.
        too_long: Trials left out because they would take too long.
    """

    results: tuple[TrialResult, ...]
    missing: dict[str, int]
    too_long: int = 0


@dataclass(frozen=True, slots=True)
class Compared:
    """One number of a trial, then and now.

    Attributes:
        name: Which, as `TrialResult` calls it.
        spread: How far rounding alone moves it today, of finite numbers.
        verdict: `agrees`, `chaotic` or `differs`.
    """

    name: str
    spread: float
    verdict: str


@dataclass(frozen=True, slots=True)
class Check:
    """One trial, then and now.

    Attributes:
        kept: The bundle's result.
        again: Today's.
        nudged: Today's at rates a rounding error away; empty: not needed.
        card: The data of today.
    """

    kept: TrialResult
    again: TrialResult
    nudged: tuple[TrialResult, ...]
    card: Card

    @property
    def same_data(self) -> bool:
        """Whether data and engine are those of the bundle, by the content address."""
        return self.kept.fingerprint == fingerprint(self.kept.spec, self.card.sha256)

    @property
    def verdict(self) -> str:
        """`agrees`, `chaotic` or `differs`: the gravest of its numbers."""
        return self.worst.verdict

    @property
    def worst(self) -> Compared:
        """The number that decides; the training loss if all agree."""
        compared = [self._compare(name) for name in NUMBERS if self._is_kept(name)]
        return min(compared, key=lambda one: VERDICTS.index(one.verdict))

    def _is_kept(self, name: str) -> bool:
        """Return whether the bundle holds a number; a final loss it lacks was not finite."""
        value = getattr(self.kept, name)
        return value is not None and not (name == "initial_loss" and math.isnan(value))

    def _compare(self, name: str) -> Compared:
        kept, again = _number(self.kept, name), _number(self.again, name)
        spread = max(self._spread(name), self._spread_of_steps(name))
        if self._same(name, kept, again):
            return Compared(name, spread, "agrees")
        chaotic = self._is_explained(name, kept, again, spread)
        return Compared(name, spread, "chaotic" if chaotic else "differs")

    def _is_explained(self, name: str, kept: float, again: float, spread: float) -> bool:
        """Return whether rounding alone moves a number as far as from then to now.

        What was or is not finite asks for a rounding that ends like it; of a finite one that is
        gone today, the nearest finite rounding stands in.
        """
        values = self._values(name)
        finite = [value for value in values if math.isfinite(value)]
        if math.isnan(kept):
            return len(finite) < len(values)
        nearest = abs(again - kept)
        if math.isnan(again):
            nearest = min((abs(value - kept) for value in finite), default=math.inf)
        return nearest <= REACH * spread

    def _same(self, name: str, kept: float, again: float) -> bool:
        if math.isnan(kept) or math.isnan(again):
            return math.isnan(kept) and math.isnan(again)
        rows = {"train_accuracy": self.card.rows, "test_accuracy": self.card.test_rows}
        absolute = EXAMPLES / max(1, rows[name]) if name in rows else 1e-9
        return abs(again - kept) <= max(absolute, ROUNDING * abs(kept))

    def _values(self, name: str) -> tuple[float, ...]:
        return tuple(_number(one, name) for one in (self.again, *self.nudged))

    def _spread(self, name: str) -> float:
        """Return how far finite roundings lie apart."""
        return Roundings(tuple(filter(math.isfinite, self._values(name)))).spread

    def _spread_of_steps(self, name: str) -> float:
        """Return the share by which rounding moves the loss behind a number that moves in steps.

        A few roundings may all lie on one step while the next is as near: where the loss moves by
        a share, as large a share of the examples may change sides.
        """
        if name not in STEPPED:
            return 0.0
        if Roundings(self._values(STEPPED[name])).spread == math.inf:
            return 1.0  # rounding decides whether there is a loss at all
        moved = self._spread(STEPPED[name])
        loss = abs(_number(self.again, STEPPED[name]))
        return 0.0 if moved == 0 else 1.0 if not moved < loss else moved / loss


def draw(bundle: Bundle, count: int, *, seed: int = 1, most_seconds: float = math.inf) -> Drawn:
    """Return random trials of a bundle that can be trained here, from as many tasks as can be.

    Families of tasks (`uci`, `music`, `mnist_classifier`, ...) take turns, and in a family its
    tasks do, so that the largest family does not crowd out the others; of one task's trials each
    is equally likely, except that those which would take too long are passed over.

    Args:
        bundle: Where from.
        count: How many.
        seed: Of the choice.
        most_seconds: Trials that would exceed this in all are passed over.
    """
    order = sorted(bundle.results.values(), key=lambda result: result.fingerprint)
    random.Random(seed).shuffle(order)
    trials = Counter(find_task(result.spec.task).dataset for result in order)
    missing = {name: trials[name] for name in trials if not DATASETS[name].present()}
    here = [result for result in order if find_task(result.spec.task).dataset not in missing]
    chosen: list[TrialResult] = []
    too_long, left = 0, most_seconds
    for result in _in_turn(here):
        if len(chosen) == count:
            break
        seconds = sum(shard.seconds for shard in plan_shards([result.spec]))
        if seconds > left:
            too_long += 1
            continue
        left -= seconds
        chosen.append(result)
    return Drawn(tuple(chosen), missing, too_long)


def _unwatched(count: int) -> AbstractContextManager[Observer]:
    del count
    return nullcontext(SILENT)


def check(results: Sequence[TrialResult], *, watch: Watch = _unwatched) -> list[Check]:
    """Train trials again; those that differ once more, a rounding error away.

    Args:
        results: What is held against today's.
        watch: Asked for an observer of each of the two.
    """
    again = _train([result.spec for result in results], watch)
    checks = [
        Check(kept, new, (), data_card(find_task(kept.spec.task).dataset))
        for kept, new in zip(results, again, strict=True)
    ]
    twins = [nudged(one.kept.spec, ROUNDINGS) for one in checks if one.verdict != "agrees"]
    moved = iter(_train([twin for row in twins for twin in row], watch))
    return [
        one if one.verdict == "agrees" else replace(one, nudged=tuple(islice(moved, ROUNDINGS)))
        for one in checks
    ]


def _train(trials: Sequence[TrialSpec], watch: Watch) -> list[TrialResult]:
    if not trials:
        return []
    with watch(len(trials)) as observer:  # who watches drops no trial
        return [one for one in run_all(trials, observer=observer) if one is not None]


def _in_turn(results: Iterable[TrialResult]) -> list[TrialResult]:
    """Return results so that families of tasks take turns, and in a family its tasks."""
    families: dict[str, dict[str, list[TrialResult]]] = {}
    for result in results:
        task = result.spec.task
        families.setdefault(task.partition("/")[0], {}).setdefault(task, []).append(result)
    return _merge(_merge(tasks.values()) for tasks in families.values())


def _merge(rows: Iterable[list[TrialResult]]) -> list[TrialResult]:
    """Return the first of every row, then the second of every row, and so on."""
    return [one for turn in zip_longest(*rows) for one in turn if one is not None]


def _number(result: TrialResult, name: str) -> float:
    """Return a number of a result; NaN for all that are not finite, as files have it."""
    if name == "outcome":
        return float(tuple(Outcome).index(result.outcome))
    value = getattr(result, name)
    return value if value is not None and math.isfinite(value) else math.nan


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
