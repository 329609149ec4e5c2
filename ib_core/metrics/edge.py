"""The edge: the rate at which half the seeds break, and how far one method's is from another's.

A seed breaks at rate `r` with probability `1 / (1 + exp(-slope (log10 r - log10 edge)))`. The
posterior lies on a grid: edges evenly in log rate from two decades below the lowest tested rate
to two above the highest, slopes evenly in log slope, every pair as likely as any other
beforehand. That prior is weak: it only keeps the edge within sight of the grid.

The strip: what was tested and how it went, rate by rate, and the rates to use that follow from it.
"""

from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Literal

import numpy as np

from ib_core.metrics.number import (
    ADVISED_SEEDS,
    LEAST_SEEDS,
    Censored,
    Flags,
    Floats,
    Ints,
    Number,
    joined,
    listed,
    number_text,
    rate_text,
    ratio_side,
    seeds_note,
    unknown,
)
from ib_core.metrics.task_table import TaskTable

#: Decades between neighbouring edges of the posterior's grid, and how far it reaches beyond.
STEP, BEYOND = 0.02, 2.0
#: Slopes a decade: from "a share grows by a quarter over two decades" to a cliff.
SLOPES = np.geomspace(0.5, 100.0, 16)
TAILS = (0.025, 0.975)
#: Draws of an edge; draws to check a posterior with, and the share of them below which breaking
#: is called not monotone.
DRAWS, CHECKS, UNLIKELY = 2000, 200, 0.05
NOT_MONOTONE = "Breaking is not monotone in the rate, so the edge is a rough one."
_EVENLY = (np.arange(DRAWS) + 0.5) / DRAWS
State = Literal["good", "tested", "broken"]
THIN = "Thin margin: it lies above half the lower end of the edge's interval."


@dataclass(frozen=True, slots=True)
class Bracket:
    """What was seen, without a model.

    Attributes:
        sound_to: The highest tested rate with every seed sound there and at all lower ones.
        broken_from: The lowest tested rate at which half the seeds or more broke.
        before: The tested rate just below `broken_from`.
        text: Both in words.
    """

    sound_to: float | None
    broken_from: float | None
    before: float | None
    text: str


def bracket(table: TaskTable, series: int) -> Bracket:
    """Return between which tested rates a series broke."""
    tested = table.tested[series]
    rates = table.rates[tested].tolist()
    broke, count = table.broke[series][tested], table.count[series][tested]
    any_broke, half = broke > 0, 2 * broke >= count
    first = int(any_broke.argmax()) if any_broke.any() else len(rates)
    start = int(half.argmax()) if half.any() else None
    sound_to = rates[first - 1] if first else None
    broken_from = None if start is None else rates[start]
    before = rates[start - 1] if start else None
    return Bracket(sound_to, broken_from, before, _bracket_text(sound_to, broken_from, before))


def _bracket_text(sound: float | None, broken: float | None, before: float | None) -> str:
    sound_text = "Sound nowhere" if sound is None else f"Sound up to {number_text(sound)}"
    if broken is None:
        return f"{sound_text}, broken nowhere for half the seeds."
    some = "" if before == sound else ", some seeds broken in between"
    return f"{sound_text}, broken from {number_text(broken)}{some}."


@dataclass(frozen=True, slots=True)
class EdgePosterior:
    """What the seeds say about one series' edge.

    Attributes:
        edges: The grid, decimal logarithms of rates.
        chance: Posterior probability of each.
        rates: The tested rates, ascending.
        monotone: Whether breaking goes with the rate, as far as these seeds can tell.
    """

    edges: Floats
    chance: Floats
    rates: Floats
    monotone: bool

    def quantiles(self, shares: tuple[float, ...] | Floats) -> Floats:
        """Return quantiles of the edge, as rates."""
        upto = np.cumsum(self.chance) - self.chance / 2
        found: Floats = 10 ** np.interp(shares, upto, self.edges)
        return found

    def draws(self, rng: np.random.Generator) -> Floats:
        """Return draws of the edge, evenly spread and shuffled, kept to the tested rates."""
        found: Floats = rng.permutation(self.quantiles(_EVENLY))
        return np.clip(found, self.rates[0], self.rates[-1])


def edge_posteriors(table: TaskTable) -> tuple[EdgePosterior, ...]:
    """Return every series' posterior of its edge."""
    logs, edges, rises, falls = _grid(table.rates.tobytes())
    weight = 1 / _together(table)
    sound = (table.count - table.broke) * weight[:, None]
    likelihood = (table.broke * weight[:, None]) @ rises + sound @ falls
    found = []
    for series, row in enumerate(likelihood):
        at = np.flatnonzero(table.tested[series])
        reach = (edges >= logs[at[0]] - BEYOND) & (edges <= logs[at[-1]] + BEYOND)
        joint = row.reshape(edges.size, SLOPES.size)[reach]
        chance = np.exp(joint - joint.max())
        chance /= chance.sum()
        counts, broke = table.count[series][at], table.broke[series][at]
        monotone = _monotone(chance, edges[reach], logs[at], counts, broke)
        found.append(EdgePosterior(edges[reach], chance.sum(axis=1), table.rates[at], monotone))
    return tuple(found)


@lru_cache(maxsize=8)
def _grid(rates: bytes) -> tuple[Floats, Floats, Floats, Floats]:
    """Log rates, edges, and log chances to break and not to, [rates, edges * slopes]."""
    logs = np.log10(np.frombuffer(rates))
    edges = np.arange(logs[0] - BEYOND, logs[-1] + BEYOND + STEP / 2, STEP)
    steepness = SLOPES * (logs[:, None, None] - edges[:, None])
    flat = steepness.reshape(logs.size, -1)
    from scipy.special import log_expit

    return logs, edges, log_expit(flat), log_expit(-flat)


def _together(table: TaskTable) -> Floats:
    """How many times more a seed's broken rates vary than if its rates broke on their own.

    A seed that breaks at one rate is likelier to break at others; its trials then tell less than
    so many coins. At least 1, so that few seeds that happen to agree gain nothing, [series].
    """
    seeds = table.present.any(axis=1)
    n = seeds.sum(axis=1)
    share = table.broke / np.maximum(table.count, 1)
    alone = (share * (1 - share)).sum(axis=1)
    expected = np.where(table.present, share[:, :, None], 0).sum(axis=1)
    excess = np.where(seeds, table.broken.sum(axis=1) - expected, 0)
    with np.errstate(invalid="ignore", divide="ignore"):
        ratio = (excess**2).sum(axis=1) / np.maximum(n - 1, 1) / alone
    return np.where(np.isfinite(ratio), np.maximum(ratio, 1), 1)


def _monotone(chance: Floats, edges: Floats, logs: Floats, count: Ints, broke: Ints) -> bool:
    """Whether a drop of the broken share as large as the one seen is likely under the posterior."""
    seen = _largest_drop(broke / count)
    if seen <= 0:
        return True
    rng = np.random.default_rng(0)
    drawn = np.searchsorted(np.cumsum(chance), rng.random(CHECKS), side="right")
    drawn = np.minimum(drawn, chance.size - 1)
    edge, slope = np.unravel_index(drawn, chance.shape)
    steepness = SLOPES[slope][:, None] * (logs - edges[edge][:, None])
    from scipy.special import expit

    again = rng.binomial(count, expit(steepness)) / count
    return bool(np.mean(_largest_drop(again) >= seen - 1e-9) >= UNLIKELY)


def _largest_drop(shares: Floats) -> Floats:
    """The largest fall from a rate's broken share to a higher rate's, along the last axis."""
    drop: Floats = (np.maximum.accumulate(shares, axis=-1) - shares).max(axis=-1)
    return drop


def edge(table: TaskTable, series: int, posterior: EdgePosterior) -> Number:
    """Return the rate at which half the seeds break, with its interval and the bracket.

    The ends of the interval stay within the tested rates: beyond them it is open.
    """
    seen = bracket(table, series)
    tested = table.tested[series]
    broke, count = table.broke[series][tested], table.count[series][tested]
    low, middle, high = posterior.quantiles((TAILS[0], 0.5, TAILS[1])).tolist()
    lowest, highest = posterior.rates[[0, -1]].tolist()
    side: Censored = "none"
    if not broke.any() or middle >= highest:
        side, middle = "above", highest
    elif bool((broke == count).all()) or middle <= lowest:
        side, middle = "below", lowest
    n = _seeds_at(table, series, seen)
    ends = _ends((low, high), (lowest, highest), side) if n >= LEAST_SEEDS else (None, None)
    rough = "" if posterior.monotone else NOT_MONOTONE
    return Number(middle, *ends, side, n, note=joined(seen.text, rough, seeds_note(n)))


def _ends(
    ends: tuple[float, float], tested: tuple[float, float], side: Censored
) -> tuple[float | None, float | None]:
    low, high = ends
    lowest, highest = tested
    known_low = None if side == "below" or low < lowest else min(low, highest)
    known_high = None if side == "above" or high > highest else max(high, lowest)
    return known_low, known_high


def _seeds_at(table: TaskTable, series: int, seen: Bracket) -> int:
    """The fewest seeds at the rates that bear on the edge: around it, or the grid's last."""
    rates = table.rates_of(series)
    count = table.count[series][table.tested[series]]
    upper = rates.size - 1 if seen.broken_from is None else rates.tolist().index(seen.broken_from)
    return int(count[max(upper - 1, 0) : upper + 1].min())


def headroom(ours: EdgePosterior, theirs: EdgePosterior, edges: tuple[Number, Number]) -> Number:
    """Return how many times higher one edge lies than another, from draws of both posteriors.

    Args:
        ours: Posterior of the method.
        theirs: Of the one it is compared with.
        edges: Both edges.
    """
    one, two = edges
    n = min(one.n, two.n)
    if one.value is None or two.value is None:
        return unknown(n, "One of the edges is unknown.")
    if one.censored == two.censored != "none":
        where = "above the highest" if one.censored == "above" else "below the lowest"
        return unknown(n, f"Both edges lie {where} tested rate.")
    rng = np.random.default_rng(0)
    ratio = np.quantile(ours.draws(rng) / theirs.draws(rng), TAILS)
    value = one.value / two.value
    low = None if one.low is None or two.high is None else min(float(ratio[0]), value)
    high = None if one.high is None or two.low is None else max(float(ratio[1]), value)
    if n < LEAST_SEEDS:
        low = high = None
    side = ratio_side(one.censored, two.censored)
    rough = "" if ours.monotone and theirs.monotone else NOT_MONOTONE
    return Number(value, low, high, side, n, note=joined(rough, seeds_note(n)))


@dataclass(frozen=True, slots=True)
class RateCell:
    """One tested rate of one series.

    Attributes:
        lr: The rate.
        state: ``good``; ``broken``, for half its seeds or more; else ``tested``.
        n: Seeds.
        broke: How many of them broke.
    """

    lr: float
    state: State
    n: int
    broke: int


@dataclass(frozen=True, slots=True)
class Strip:
    """Every tested rate of one series, ascending.

    Attributes:
        cells: The rates.
        best: The rate with the lowest mean of those that did not break; None if all did.
        run: The neighbouring good rates around the best one; empty if none is good.
        to_test: The gap in which half the seeds begin to break, between two neighbours; None
            where no tested rate broke half of them, or the lowest did.
    """

    cells: tuple[RateCell, ...]
    best: float | None
    run: tuple[float, ...]
    to_test: tuple[float, float] | None

    @property
    def gaps(self) -> tuple[tuple[float, float], ...]:
        """Pairs of neighbouring tested rates: in between nothing was tried."""
        return tuple((one.lr, two.lr) for one, two in pairwise(self.cells))


def strip(table: TaskTable, series: int) -> Strip:
    """Return how a series went at every rate it was tested at."""
    seen = bracket(table, series)
    good = table.good[series]
    cells = []
    for at in np.flatnonzero(table.tested[series]).tolist():
        n, broke = int(table.count[series, at]), int(table.broke[series, at])
        state: State = "good" if good[at] else "broken" if 2 * broke >= n else "tested"
        cells.append(RateCell(float(table.rates[at]), state, n, broke))
    gap = None
    if seen.before is not None and seen.broken_from is not None:
        gap = (seen.before, seen.broken_from)
    sound = table.tested[series] & (2 * table.broke[series] < table.count[series])
    run = _run(cells, _best_of(table, series, good))
    return Strip(tuple(cells), _best_of(table, series, sound), run, gap)


def _best_of(table: TaskTable, series: int, allowed: Flags) -> float | None:
    """The allowed rate with the lowest mean that rates are chosen by."""
    if not allowed.any() or not table.known[series]:
        return None
    at = int(np.where(allowed, table.chooser[series, 0], np.inf).argmin())
    return float(table.rates[at])


def _run(cells: list[RateCell], best: float | None) -> tuple[float, ...]:
    if best is None:
        return ()
    at = next(i for i, cell in enumerate(cells) if cell.lr == best)
    first = last = at
    while first > 0 and cells[first - 1].state == "good":
        first -= 1
    while last + 1 < len(cells) and cells[last + 1].state == "good":
        last += 1
    return tuple(cell.lr for cell in cells[first : last + 1])


def good_range(table: TaskTable, series: int, found: Strip) -> Number:
    """Return the best good rate, with the run of good rates around it as `low` and `high`."""
    n = table.fewest(series)
    if not table.known[series]:
        return unknown(n, "The initial loss was not recorded for every trial.")
    if not found.run:
        return unknown(n, "No tested rate is good.")
    n = _seeds(found, found.run)
    best = _best_of(table, series, table.good[series])
    note = f"Tested in it: {listed(found.run)}."
    return Number(best, found.run[0], found.run[-1], n=n, note=note)


def _seeds(found: Strip, rates: tuple[float, ...]) -> int:
    return min(cell.n for cell in found.cells if cell.lr in rates)


def start_at(table: TaskTable, series: int, found: Strip, its_edge: Number) -> Number:
    """Return the best good rate at most half the lower end of the edge's interval.

    Else the best good one, with the note that its margin is thin. Below three seeds none.
    """
    if not found.run:
        return unknown(table.fewest(series), what_to_run(found))
    enough = table.good[series] & (table.count[series] >= LEAST_SEEDS)
    if not enough.any():
        return unknown(_seeds(found, found.run), what_to_run(found))
    safe = enough & (table.rates <= (its_edge.low or 0.0) / 2)
    rate = _best_of(table, series, safe if safe.any() else enough)
    assert rate is not None
    note = joined("" if safe.any() else THIN, _broke_below(found, rate))
    return Number(rate, n=_seeds(found, (rate,)), note=note)


def _broke_below(found: Strip, rate: float) -> str:
    below = [cell.lr for cell in found.cells if cell.lr < rate and cell.broke]
    return f"Seeds broke below it, at {rate_text(below[-1])}." if below else ""


def what_to_run(found: Strip) -> str:
    """Return what has to be run before any rate can be advised."""
    if found.run:
        many = f"{LEAST_SEEDS} or more, better {ADVISED_SEEDS},"
        return f"Too few seeds for advice: run {many} at {listed(found.run)}."
    rates = [cell.lr for cell in found.cells]
    if all(cell.state == "broken" for cell in found.cells):
        return f"Every tested rate broke: run lower ones than {rate_text(rates[0])}."
    if found.best is None:
        return "The initial loss was not recorded for every trial."
    at = rates.index(found.best)
    where = "" if at == 0 else f"above {rate_text(rates[at - 1])}"
    if at + 1 < len(rates):
        where += f"{' and ' if where else ''}below {rate_text(rates[at + 1])}"
    best = rate_text(found.best)
    return (
        f"No tested rate is good: run more {where}, around its best, {best}."
        if where
        else (f"No tested rate is good: run others than {best}.")
    )
