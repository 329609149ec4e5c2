"""The guide's example: two methods, seven rates, five seeds, scored by the functions all use.

The losses are made up; every number drawn or written from them is not.
"""

import math
from dataclasses import dataclass
from functools import lru_cache
from itertools import product

from dashboard.pages.guide.sketch import Sketch
from dashboard.theme import Scheme
from ib_core.metrics import Number, RateCurve, SeedResult, TaskScore, score_task

RATES = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0)
SEEDS = (1, 2, 3, 4, 5)
INITIAL = 2.3
METHODS = ("eb", "ib")
#: Measured steps of another network, to show what a cost looks like.
COST = Number(1.33, 1.31, 1.36, n=50)
ACROSS, UP = (0.006, 16.0), (0.0, 2.6)


@dataclass(frozen=True)
class Example:
    """What the pictures are drawn from.

    Attributes:
        curves: The losses, by method.
        score: Every number of them.
    """

    curves: dict[str, RateCurve]
    score: TaskScore

    def number(self, method: str, name: str) -> Number:
        """Return one number of one method."""
        return self.score.rows[method][name]

    def value(self, method: str, name: str) -> float:
        """Return the value of a number that the example has."""
        found = self.number(method, name).value
        assert found is not None, f"the example has no {name} of {method}"
        return found

    def ends(self, method: str, name: str) -> tuple[float, float]:
        """Return the interval of a number that the example has."""
        found = self.number(method, name)
        assert found.low is not None
        assert found.high is not None
        return found.low, found.high

    def capped(self, method: str, lr: float) -> list[float]:
        """Return the capped losses at a rate, a seed each."""
        point = next(point for point in self.curves[method].points if point.lr == lr)
        return [result.capped_loss or INITIAL for result in point.results]

    def mean(self, method: str, lr: float) -> float:
        """Return the mean capped loss at a rate."""
        return sum(self.capped(method, lr)) / len(SEEDS)

    def means(self, method: str) -> list[tuple[float, float]]:
        """Return rates and mean capped losses."""
        return [(lr, self.mean(method, lr)) for lr in RATES]

    def broken(self, method: str, lr: float) -> float:
        """Return the share of seeds that broke at a rate."""
        cell = next(cell for cell in self.score.strips[method].cells if cell.lr == lr)
        return cell.broke / cell.n


def loss(method: str, lr: float, seed: int) -> float:
    """Return a loss: EB's seeds break one after the other around .5, IB's around 2."""
    best, edge = {"eb": (0.3, 0.5), "ib": (0.36, 2.0)}[method]
    limit = edge * 2 ** (0.35 * (seed - 3))
    if lr > limit:
        return 1.5 * INITIAL
    wobble = 0.05 * math.sin(9 * seed + 3 * math.log10(lr))
    flat = 0.25 if method == "eb" else 0.18
    return min(best + flat * math.log10(lr / (0.25 * edge)) ** 2 + wobble, 0.97 * INITIAL)


@lru_cache
def example() -> Example:
    """Return the example, scored once a process."""
    curves = {
        method: RateCurve.from_results(
            (lr, SeedResult(seed, loss(method, lr, seed), INITIAL))
            for lr, seed in product(RATES, SEEDS)
        )
        for method in METHODS
    }
    return Example(curves, score_task(curves, step_costs={"ib": COST}, paper=True))


def curves_sketch(scheme: Scheme, *methods: str) -> Sketch:
    """Return the example's curves: means as lines, sound seeds as rings, broken ones as crosses."""
    found, sketch = example(), Sketch(scheme, ACROSS, UP)
    for method in methods or METHODS:
        ink = sketch.ink(method)
        dash = "dot" if method == "eb" else "solid"
        sketch.line(found.means(method), ink, width=2.2, dash=dash)
        for lr in RATES:
            point = next(one for one in found.curves[method].points if one.lr == lr)
            for result in point.results:
                if result.broken:
                    sketch.cross((lr, INITIAL), ink)
                else:
                    sketch.dot((lr, result.capped_loss or INITIAL), ink, size=2.5, filled=False)
            sketch.dot((lr, found.mean(method, lr)), ink)
        first = found.means(method)[0]
        shift = -10 if method == "ib" else 20
        sketch.word((0.012, first[1]), method.upper(), ink, anchor="start", shift=shift)
    return sketch
