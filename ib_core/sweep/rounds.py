"""The rounds of a search: a pure planner, from what is known to the trials to run next.

`edge`: a coarse round over the range, one rate a decade; then, series by series and seed by seed,
the interval between the last sound rate below the first broken one and that one is halved (in log
rate) until its ends are within the factor asked for. *Broken* is what `ib_core.metrics` calls so.
`best`: the same coarse round; then golden section around the rate with the lowest mean of seeds.

A round depends on nothing but what is known, so that whoever was killed between two rounds, or
plans one twice, comes to the same trials. Nothing here trains, and nothing needs torch.
"""

import math
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import fmean
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from ib_core.sweep.search import GOLDEN, Search

if TYPE_CHECKING:
    from ib_core.sweep.result import TrialResult
    from ib_core.sweep.spec import SweepSpec, TrialSpec

#: What an interval of the median should hold, if there are seeds enough.
SURE = 0.95

#: Where a seed's search is: `within` the factor, `below` or `above` the whole range, `stuck` for
#: want of a result, or still `open`.
Where = Literal["within", "open", "below", "above", "stuck"]


@dataclass(frozen=True, slots=True)
class Seen:
    """How a trial went: whether it broke, and the capped loss that rates are chosen by."""

    broken: bool
    loss: float

    @classmethod
    def of(
        cls,
        outcome: str,
        loss: float | None,
        initial: float | None,
        validation: float | None = None,
        at_zero: bool = False,
    ) -> "Seen":
        """Judge a trial that completed or diverged, by the project's own definitions."""
        from ib_core.metrics import SeedResult

        found = SeedResult(0, loss, initial, outcome, at_zero=at_zero)
        judge = found if validation is None else SeedResult(0, validation, initial, outcome)
        capped = judge.capped_loss if judge.capped_loss is not None else judge.finite_loss
        return cls(found.broken, math.inf if capped is None else capped)


#: What is known of each series' seeds: every rate asked for so far, None while it has no result.
Known = Mapping[Hashable, Mapping[int, Mapping[float, Seen | None]]]


class Ask(NamedTuple):
    """A trial that a round wants."""

    series: Hashable
    seed: int
    lr: float


def next_round(search: Search, known: Known) -> list[Ask]:
    """Return the trials of the next round; none if there is nothing left to find or to spend.

    What waits for a result is not asked again: call it once the last round has ended.
    """
    wanted = list(_first(search, known))
    if not wanted and search.find == "edge":
        wanted = list(_halves(search, known))
    elif not wanted:
        wanted = list(_golden(search, known))
    spent = sum(len(rates) for seeds in known.values() for rates in seeds.values())
    left = max(0, search.most - spent)
    if len(wanted) <= left:
        return [ask for _, ask in wanted]
    widest = sorted(range(len(wanted)), key=lambda i: -wanted[i][0])[:left]
    return [wanted[i][1] for i in sorted(widest)]


#: A trial, and how wide the interval is that it narrows.
_Wanted = Iterator[tuple[float, Ask]]


def _first(search: Search, known: Known) -> _Wanted:
    for series, seeds in known.items():
        for seed, rates in seeds.items():
            for lr in search.coarse:
                if lr not in rates:
                    yield math.inf, Ask(series, seed, lr)


def _halves(search: Search, known: Known) -> _Wanted:
    for series, seeds in known.items():
        for seed, rates in seeds.items():
            found = seed_edge(search, seed, rates)
            if found.where == "open" and found.low and found.high:
                middle = _between(found.low, found.high, 0.5)
                yield math.log(found.high / found.low), Ask(series, seed, middle)


def _golden(search: Search, known: Known) -> _Wanted:
    for series, seeds in known.items():
        found = series_best(search, seeds)
        if found.where == "open":
            width = math.log((found.high or search.high) / (found.low or search.low))
            for seed, rates in seeds.items():
                if found.next not in rates:
                    yield width, Ask(series, seed, found.next)


def _between(one: float, two: float, share: float) -> float:
    """Return the rate at a share of the way in log rate, with four digits as in a grid."""
    return float(f"{one * (two / one) ** share:.4g}")


@dataclass(frozen=True, slots=True)
class SeedEdge:
    """Between which rates a seed breaks.

    Attributes:
        seed: Which.
        low: The highest sound rate below `high`; None if it broke at the lowest.
        high: The lowest broken rate; None if none broke.
        where: How far the search is.
        monotone: Whether no rate above `high` was sound.
        trials: How many it took.
    """

    seed: int
    low: float | None
    high: float | None
    where: Where
    monotone: bool
    trials: int

    @property
    def edge(self) -> float | None:
        """The middle in log rate."""
        return math.sqrt(self.low * self.high) if self.low and self.high else None


def seed_edge(search: Search, seed: int, rates: Mapping[float, Seen | None]) -> SeedEdge:
    """Return what is known of a seed's edge."""
    broken = [lr for lr, seen in rates.items() if seen is not None and seen.broken]
    sound = [lr for lr, seen in rates.items() if seen is not None and not seen.broken]
    high = min(broken, default=None)
    low = max((lr for lr in sound if high is None or lr < high), default=None)
    where: Where = "open"
    if low is None or high is None:
        # Not where an end of the range has no result: the edge may lie before it.
        ended = rates.get(search.low if low is None else search.high)
        where = "stuck" if ended is None else "below" if low is None else "above"
        if not rates:
            where = "open"
    elif high <= low * search.within * (1 + 1e-9):
        where = "within"
    elif (middle := _between(low, high, 0.5)) in rates or not low < middle < high:
        where = "stuck"
    monotone = high is None or not any(lr > high for lr in sound)
    return SeedEdge(seed, low, high, where, monotone, len(rates))


@dataclass(frozen=True, slots=True)
class BestRate:
    """Around which rate the mean of seeds is lowest.

    Attributes:
        rate: The best of those tried; None if every one broke or none has ended.
        low: The tried rate below it; None at the lower end of the range.
        high: The tried rate above it; None at the upper end.
        loss: Its mean.
        where: How far the search is; `below` and `above` if the best is an end of the range.
        next: The rate to try next, while it is open.
    """

    rate: float | None
    low: float | None
    high: float | None
    loss: float | None
    where: Where
    next: float = math.nan


def series_best(search: Search, seeds: Mapping[int, Mapping[float, Seen | None]]) -> BestRate:
    """Return what is known of the best rate of a series, by the means of its seeds."""
    tried = sorted({lr for rates in seeds.values() for lr in rates})
    means: dict[float, float] = {}
    for lr in tried:
        seen = [rates[lr] for rates in seeds.values() if rates.get(lr) is not None]
        if len(seen) == len(seeds) and not all(one.broken for one in seen if one):
            means[lr] = fmean(one.loss for one in seen if one)
    if not tried or not means:
        return BestRate(None, None, None, None, "stuck" if tried else "open")
    best = min(means, key=lambda lr: (means[lr], lr))
    at = tried.index(best)
    low = tried[at - 1] if at else None
    high = tried[at + 1] if at + 1 < len(tried) else None
    far = math.log(search.within) * (1 + 1e-9)
    left = math.log(best / low) if low else 0.0
    right = math.log(high / best) if high else 0.0
    where: Where = "open"
    if max(left, right) <= far:
        where = "below" if low is None else "above" if high is None else "within"
        return BestRate(best, low, high, means[best], where)
    other = low if left >= right else high
    assert other is not None
    following = _between(best, other, GOLDEN)
    if following in tried:
        where = "stuck"
    return BestRate(best, low, high, means[best], where, following)


@dataclass(frozen=True, slots=True)
class SeriesFound:
    """What a search has found of one series.

    Attributes:
        series: Which.
        seeds: Every seed's edge; none where the best rate is looked for.
        value: The median of the seeds' edges, or the best rate; None outside the range.
        low: From here; None where it is not bounded.
        high: To here.
        coverage: How sure the interval holds the median of all seeds there could be; None of the
            best rate, whose ends are the rates tried beside it.
        loss: The mean at the best rate.
        where: How far its search is: that of its seed that is least far.
        monotone: Whether no seed was sound above a rate at which it broke.
    """

    series: Hashable
    seeds: tuple[SeedEdge, ...]
    value: float | None
    low: float | None
    high: float | None
    coverage: float | None
    loss: float | None
    where: Where
    monotone: bool

    @property
    def text(self) -> str:
        """The number with its interval in words."""
        value = in_words(self.value, self.where)
        if self.low is None and self.high is None:
            return value
        sure = "" if self.coverage is None else f", {self.coverage:.0%} sure"
        ends = " to ".join("?" if end is None else f"{end:.4g}" for end in (self.low, self.high))
        return f"{value} ({ends}{sure})"


def in_words(value: float | None, where: Where) -> str:
    """Return a rate that is searched for, or where it lies, in words."""
    if value is not None:
        return f"{value:.4g}"
    return {"below": "below the range", "above": "above the range"}.get(where, "not found yet")


def series_found(search: Search, known: Known) -> list[SeriesFound]:
    """Return what has been found so far, series by series."""
    if search.find == "best":
        return [_best_found(search, series, seeds) for series, seeds in known.items()]
    return [_edge_found(search, series, seeds) for series, seeds in known.items()]


def _best_found(search: Search, series: Hashable, seeds: Any) -> SeriesFound:
    best = series_best(search, seeds)
    ends = (best.low or best.rate, best.high or best.rate)
    return SeriesFound(series, (), best.rate, *ends, None, best.loss, best.where, True)


def _edge_found(search: Search, series: Hashable, seeds: Any) -> SeriesFound:
    edges = tuple(seed_edge(search, seed, rates) for seed, rates in seeds.items())
    value, low, high, coverage = median_edge(edges)
    order: tuple[Where, ...] = ("open", "stuck", "below", "above", "within")
    states = {one.where for one in edges}
    where = next(state for state in order if state in states)
    monotone = all(one.monotone for one in edges)
    return SeriesFound(series, edges, value, low, high, coverage, None, where, monotone)


def median_edge(
    edges: Sequence[SeedEdge],
) -> tuple[float | None, float | None, float | None, float]:
    """Return the median of edges, its interval and the interval's coverage.

    From the k-th lowest `low` to the k-th highest `high`, with the largest k at which
    `1 - 2 P(Binomial(n, 1/2) < k) >= .95`; with too few seeds for that, from the first to the last.
    An edge below the range counts as 0, one above it as infinite.
    """
    n = len(edges)
    lows = sorted(edge.low or 0.0 for edge in edges)
    highs = sorted(edge.high or math.inf for edge in edges)
    middles = sorted(edge.edge or (math.inf if edge.low else 0.0) for edge in edges)
    one, two = middles[(n - 1) // 2], middles[n // 2]
    median = math.sqrt(one * two) if one > 0 and two < math.inf else None
    sure = [1 - 2 * sum(math.comb(n, j) for j in range(k)) / 2**n for k in range(1, n // 2 + 1)]
    k = max((k for k, chance in enumerate(sure, 1) if chance >= SURE), default=1)
    coverage = sure[k - 1] if sure else 0.0
    low, high = lows[k - 1], highs[n - k]
    return median, low or None, high if high < math.inf else None, coverage


@dataclass(slots=True)
class Book:
    """One sweep's search while it is run here: what was asked, and how it went."""

    spec: "SweepSpec"
    known: dict[Hashable, dict[int, dict[float, Seen | None]]] = field(default_factory=dict)
    rounds: int = 0

    def __post_init__(self) -> None:
        for trial in self.spec.expand():
            self.known.setdefault(series_of(trial), {}).setdefault(trial.seed, {})

    @property
    def search(self) -> Search:
        """What is looked for."""
        assert self.spec.search is not None
        return self.spec.search

    @property
    def trials(self) -> int:
        """How many were asked for so far."""
        return sum(len(rates) for seeds in self.known.values() for rates in seeds.values())

    @property
    def grid(self) -> int:
        """How many a grid that is as fine would take."""
        return self.search.grid * sum(len(seeds) for seeds in self.known.values())

    def plan(self) -> "list[TrialSpec]":
        """Return the trials of the next round, and count it."""
        asked = next_round(self.search, self.known)
        self.rounds += bool(asked)
        for ask in asked:
            self.known[ask.series][ask.seed][ask.lr] = None
        return [trial_of(ask) for ask in asked]

    def note(self, result: "TrialResult | None") -> None:
        """Take in how a trial went; one that failed tells nothing."""
        if result is None or result.outcome.value == "failed":
            return
        spec = result.spec
        self.known[series_of(spec)][spec.seed][spec.lr] = Seen.of(
            result.outcome.value,
            result.train_loss,
            result.initial_loss,
            result.validation_loss,
            result.at_zero,
        )


def series_of(trial: "TrialSpec") -> Hashable:
    """Return what trials of one series share: everything but rate and seed."""
    return replace(trial, lr=1.0, seed=0)


def trial_of(ask: Ask) -> "TrialSpec":
    """Return the trial that a round wants, where the series came from `series_of`."""
    template: Any = ask.series
    trial: TrialSpec = replace(template, lr=ask.lr, seed=ask.seed)
    return trial


def run_rounds(
    books: Sequence[Book],
    train: "Callable[[list[TrialSpec]], Sequence[TrialResult | None]]",
) -> None:
    """Search until nothing is left to find or to spend, every round of all sweeps together."""
    while asked := [(book, trial) for book in books for trial in book.plan()]:
        for (book, _), result in zip(asked, train([trial for _, trial in asked]), strict=True):
            book.note(result)
