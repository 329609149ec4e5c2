"""Trains trials of a bundle again and says which numbers hold.

A result that differs is trained again at rates a rounding error away; if these alone spread over
a tenth of the difference or more, the trial is chaotic and says nothing about the bundle.
"""

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass

from ib_core.datasets import DATASETS, data_hash
from ib_core.reproduction.agreement import within
from ib_core.reproduction.bundle import Bundle
from ib_core.reproduction.rounding import Roundings, nudged
from ib_core.sweep.fingerprint import fingerprint
from ib_core.sweep.local import run_all
from ib_core.sweep.result import TrialResult
from ib_core.sweep.shard import plan_shards
from ib_core.tasks import find_task

#: Two losses are the same up to rounding if they differ by no more than this share.
ROUNDING = 1e-3
#: How many roundings a result that differs is trained with.
ROUNDINGS = 3
#: Share of a difference that rounding alone must move for the trial to be chaotic.
CHAOS = 0.1


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
class Check:
    """One trial, then and now.

    Attributes:
        kept: The bundle's result.
        again: Today's loss.
        nudged: Today's losses at rates a rounding error away; empty: not needed.
        same_data: Whether data and engine are those of the bundle, by the content address.
    """

    kept: TrialResult
    again: float
    nudged: tuple[float, ...]
    same_data: bool

    @property
    def spread(self) -> float:
        """How far rounding alone moves today's loss; infinite where it decides on NaN."""
        return Roundings((self.again, *self.nudged)).spread

    @property
    def verdict(self) -> str:
        """`agrees`, `chaotic` or `differs`."""
        if _same(self.again, self.kept.train_loss):
            return "agrees"
        gap = abs(self.again - self.kept.train_loss)
        chaotic = self.spread == math.inf or 0 < CHAOS * gap <= self.spread
        return "chaotic" if chaotic else "differs"


def draw(bundle: Bundle, count: int, *, seed: int = 1, most_seconds: float = math.inf) -> Drawn:
    """Return random trials of a bundle that can be trained here, each equally likely.

    Args:
        bundle: Where from.
        count: How many.
        seed: Of the choice.
        most_seconds: Trials that would exceed this in all are passed over.
    """
    order = sorted(bundle.results.values(), key=lambda result: result.fingerprint)
    random.Random(seed).shuffle(order)
    chosen: list[TrialResult] = []
    missing: dict[str, int] = {}
    too_long, left = 0, most_seconds
    for result in order:
        if len(chosen) == count:
            break
        dataset = find_task(result.spec.task).dataset
        if not DATASETS[dataset].present():
            missing[dataset] = missing.get(dataset, 0) + 1
            continue
        seconds = sum(shard.seconds for shard in plan_shards([result.spec]))
        if seconds > left:
            too_long += 1
            continue
        left -= seconds
        chosen.append(result)
    return Drawn(tuple(chosen), missing, too_long)


def check(results: Sequence[TrialResult]) -> list[Check]:
    """Train trials again; those that differ once more, a rounding error away."""
    again = run_all([result.spec for result in results])
    pairs = list(zip(results, again, strict=True))
    differing = [
        kept for kept, new in pairs if new is None or not _same(new.train_loss, kept.train_loss)
    ]
    moved = run_all([twin for r in differing for twin in nudged(r.spec, ROUNDINGS)])
    losses = [math.nan if new is None else new.train_loss for new in moved]
    twins = {
        kept.fingerprint: tuple(losses[i * ROUNDINGS : (i + 1) * ROUNDINGS])
        for i, kept in enumerate(differing)
    }
    return [
        Check(
            kept=kept,
            again=math.nan if new is None else new.train_loss,
            nudged=twins.get(kept.fingerprint, ()),
            same_data=kept.fingerprint == _address(kept),
        )
        for kept, new in pairs
    ]


def _same(one: float, two: float) -> bool:
    return within(one, two, absolute=1e-9, relative=ROUNDING)


def _address(result: TrialResult) -> str:
    return fingerprint(result.spec, data_hash(find_task(result.spec.task).dataset))
