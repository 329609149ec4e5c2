"""How often 95 % intervals hold the truth, tried on the recorded populations."""

import math
from collections import defaultdict

import numpy as np

from ib_core.metrics.number import Number
from ib_core.metrics.scoring import score_task
from tests.ib_core.metrics.populations import SEEDS, TASKS, Population, population

SEEDS_TRIED = (5, 10)
RESAMPLES = 500
#: The band around the curve of the best of k is tried at its ends too.
ENDS = (1, 20)

Rates = dict[str, dict[tuple[str, int], float]]


def numbers_of(curves) -> dict[tuple[str, str], Number]:
    """Return every number with an interval, by series and name."""
    score = score_task(curves)
    found = {
        (label, name): number
        for label, row in score.rows.items()
        for name, number in row.items()
        if name != "good_range"
    }
    for label, numbers in score.best_of.items():
        found |= {(label, f"best_of_{k}"): numbers[k - 1] for k in ENDS}
    return found


def holds(number: Number, truth: Number) -> bool:
    """Whether an interval holds the truth; one beyond the tested rates needs an open end."""
    low = -math.inf if number.low is None else number.low
    high = math.inf if number.high is None else number.high
    if truth.censored != "none":
        return (high == math.inf) if truth.censored == "above" else (low == -math.inf)
    assert truth.value is not None
    return low <= truth.value <= high


def of_population(people: Population, seeds: int, resamples: int) -> dict[tuple[str, str], float]:
    """Return by series and name how often so many seeds give an interval that holds the truth.

    Seeds are drawn with replacement: each sample is as good as fresh seeds of the population,
    whose own number is the truth.
    """
    truth = numbers_of(people.curves())
    rng = np.random.default_rng(seeds)
    held: defaultdict[tuple[str, str], list[bool]] = defaultdict(list)
    for _ in range(resamples):
        for key, number in numbers_of(people.curves(rng.integers(0, SEEDS, seeds))).items():
            if truth[key].value is not None and (number.has_interval or number.value is None):
                held[key].append(holds(number, truth[key]))
    return {key: float(np.mean(found)) for key, found in held.items()}


def measure(resamples: int = RESAMPLES) -> Rates:
    """Return by number, task and seeds the lowest coverage of all series."""
    found: Rates = defaultdict(dict)
    for task in TASKS:
        people = population(task)
        for seeds in SEEDS_TRIED:
            for (_, name), rate in of_population(people, seeds, resamples).items():
                lowest = found[name].get((task, seeds), 1.0)
                found[name][task, seeds] = min(rate, lowest)
    return found
