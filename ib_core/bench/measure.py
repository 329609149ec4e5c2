"""Time several ways of doing one thing, interleaved, and report ratios.

Machines are noisy and shared. Contestants take turns within every round, so that a slow minute
slows all of them, and a ratio is the median over rounds of the ratio within a round.
"""

import gc
import math
import os
import platform
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from statistics import median, quantiles
from typing import Any

import torch


@dataclass(frozen=True, slots=True)
class Ratio:
    """How many times longer one contestant takes than another.

    Attributes:
        value: Median over rounds.
        low: Lower quartile: half of the rounds lie between the two.
        high: Upper quartile.
        rounds: How many.
    """

    value: float
    low: float
    high: float
    rounds: int

    def __str__(self) -> str:
        return f"{self.value:.3g} ({self.low:.3g} to {self.high:.3g})"


@dataclass(frozen=True, slots=True)
class Race:
    """Seconds of every contestant in every round."""

    seconds: Mapping[str, tuple[float, ...]]

    def ratio(self, slower: str, faster: str) -> Ratio:
        """Return how many times longer `slower` takes than `faster`."""
        rounds = [a / b for a, b in zip(self.seconds[slower], self.seconds[faster], strict=True)]
        low, middle, high = quantiles(rounds, n=4, method="inclusive") if rounds[1:] else rounds * 3
        return Ratio(middle, low, high, len(rounds))

    def median(self, name: str) -> float:
        """Return a contestant's median seconds."""
        return median(self.seconds[name])


#: Fewer rounds than these have no median worth the name.
FEWEST_ROUNDS = 3


def race(
    contestants: Mapping[str, Callable[[], object]],
    *,
    rounds: int = 5,
    seconds: float = math.inf,
    clock: Callable[[], float] = time.perf_counter,
) -> Race:
    """Time every contestant once a round, after one unmeasured warm-up each.

    Args:
        contestants: What to time.
        rounds: At most so many.
        seconds: No further round is begun after so long, but three are always run.
        clock: What is measured: time by default; `time.thread_time` is the work of one thread,
            which neighbours on a busy machine change less.
    """
    for work in contestants.values():
        work()
    gc.collect()
    gc.freeze()  # what stays is not looked at again before every turn
    taken: dict[str, list[float]] = {name: [] for name in contestants}
    order, begin = list(contestants), time.perf_counter()
    for done in range(rounds):
        if done >= FEWEST_ROUNDS and time.perf_counter() - begin > seconds:
            break
        for name in order:
            gc.collect()
            start = clock()
            contestants[name]()
            taken[name].append(clock() - start)
        order.reverse()  # nobody always runs on a cache that another one has filled
    gc.unfreeze()
    return Race({name: tuple(each) for name, each in taken.items()})


def surroundings() -> dict[str, Any]:
    """Return what a ratio was measured on: cores, threads and versions."""
    return {
        "cores": os.cpu_count(),
        "threads": torch.get_num_threads(),
        "torch": torch.__version__,
        "python": platform.python_version(),
        "load": round(os.getloadavg()[0], 2),
    }
