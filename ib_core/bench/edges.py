"""The edge finder against a dense grid: the same edges, from how many fewer trials.

Not a race: what is compared are numbers of trials and the edges found, so that a busy machine
changes nothing.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from ib_core.sweep import Book, Search, SeriesFound, run_all, run_rounds, series_found, specs_of

#: Small tasks, and methods that differ in kind; every pair is one line.
TASKS = ("bundled/iris", "bundled/wine", "bundled/breast_cancer", "digits_mlp")
METHODS = ("eb", "ib", "sps", "ngn", "adam")
#: Only solves a linear output.
LINEAR = {"digits_mlp": ("ib_plus",)}
ASKED = {"find": "edge", "from": 0.01, "to": 1000, "within": 1.1}
SEEDS, EPOCHS = 5, 2


@dataclass(frozen=True, slots=True)
class EdgeResult:
    """What a search and a grid as fine found on one task with one method.

    Attributes:
        task: Which.
        method: Which.
        found: The search's median edge with its interval.
        dense: The grid's.
        trials: What the search took.
        grid: What the grid took.
    """

    task: str
    method: str
    found: SeriesFound
    dense: SeriesFound
    trials: int
    grid: int

    @property
    def apart(self) -> float | None:
        """The factor between the two medians; 1 if both lie beyond the same end of the range."""
        one, two = self.found.value, self.dense.value
        if one is None or two is None:
            same = one is two and self.found.low == self.dense.low
            return 1.0 if same else None
        return max(one / two, two / one)

    @property
    def fewer(self) -> float:
        """How many times fewer trials the search took."""
        return self.grid / self.trials


def compare_edges(
    *, quick: bool = True, tell: Callable[[str], None] = lambda name: None
) -> Iterator[EdgeResult]:
    """Search every pair's edges, train a grid as fine as well, and compare.

    Args:
        quick: With few epochs; else with as many as each task has.
        tell: Told what is measured next.
    """
    for task in TASKS:
        body = {
            "task": task,
            "methods": [*METHODS, *LINEAR.get(task, ())],
            "learning_rates": ASKED,
            "seeds": SEEDS,
            **({"epochs": EPOCHS} if quick else {}),
        }
        (spec,) = specs_of(body)
        book = Book(spec)
        tell(f"the edges on {task}, searched for")
        run_rounds([book], lambda trials: run_all(trials, device="cpu"))
        tell(f"the edges on {task}, on a grid of {book.grid} trials")
        yield from _compared(book, _dense(body, book.search))


def _dense(body: dict[str, object], search: Search) -> Book:
    """Return what a grid as fine finds, read as a search reads its trials."""
    grid = {"from": search.low, "to": search.high, "count": search.grid}
    (searching,), (spec,) = specs_of(body), specs_of({**body, "learning_rates": grid})
    book = Book(searching)
    for result in run_all(spec.expand(), device="cpu"):
        book.note(result)
    return book


def _compared(book: Book, dense: Book) -> Iterator[EdgeResult]:
    both = zip(
        series_found(book.search, book.known), series_found(dense.search, dense.known), strict=True
    )
    for found, whole in both:
        trial = next(one for one in book.spec.expand() if one.method == _method(found))
        count = sum(len(rates) for rates in book.known[found.series].values())
        grid = sum(len(rates) for rates in dense.known[whole.series].values())
        yield EdgeResult(trial.task, trial.method, found, whole, count, grid)


def _method(found: SeriesFound) -> str:
    return str(getattr(found.series, "method", ""))


def worst(results: list[EdgeResult]) -> float:
    """Return the largest factor between two medians; infinite where only one was found."""
    return max((math.inf if one.apart is None else one.apart) for one in results)
