"""The edge finder against a dense grid: the same edges, from how many fewer trials.

Not a race: what is compared are numbers of trials and the edges found, so that a busy machine
changes nothing.
"""

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from statistics import median
from typing import Any

from ib_core.sweep import Book, Seen, SeriesFound, run_all, run_rounds, series_found, specs_of

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
