"""The y scale: chosen for the runs one can learn from, not stretched by the exploded ones.

And how far a rate reaches on the x axis.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from backend.schemas import DifferencesRead, Metric, SeriesRead

ScaleName = Literal["focus", "log", "full"]
Floats = NDArray[np.floating[Any]]

#: Share of the learning runs that the focused scale must hold.
HELD = 0.9
#: What lies within so many times that span is held too, rather than sent to the rail.
STRETCH = 2.0
#: Without an initial loss, what is so many times the best loss has not learnt.
MOST_TIMES_BEST = 20.0
#: A full scale spanning more than this factor is logarithmic: nothing else could be read.
LINEAR_SPAN = 200.0
#: A logarithmic scale ends here above the initial loss; what is higher goes to the rail.
LOG_REACH = 100.0
#: That of differences reaches so many times the difference that this share stays within.
PAIRS_REACH, PAIRS_HELD = 2.5, 0.6


@dataclass(frozen=True, slots=True)
class Scale:
    """An axis.

    Attributes:
        low: Lower end.
        high: Upper end; what is above it goes to the rail.
        log: Whether it is logarithmic.
    """

    low: float
    high: float
    log: bool = False

    @property
    def range(self) -> list[float]:
        """The ends as plotly wants them."""
        return [math.log10(self.low), math.log10(self.high)] if self.log else [self.low, self.high]

    @property
    def tick(self) -> str | int | None:
        """Distance of the ticks as plotly wants it: one a decade, more where there is one only."""
        if not self.log:
            return None
        return "D2" if self.high < 100 * self.low else 1

    def share(self, value: float) -> float:
        """Return how far up the axis a value stands, from 0 to 1."""
        if self.log:
            return math.log(max(value, 1e-300) / self.low) / math.log(self.high / self.low)
        return (value - self.low) / (self.high - self.low)

    def shares(self, values: Floats) -> Floats:
        """Return how far up the axis values stand."""
        if self.log:
            above = np.log(np.maximum(values, np.float32(1e-30)) / np.float32(self.low))
            return above / np.float32(math.log(self.high / self.low))
        return (values - self.low) / (self.high - self.low)

    def moved(self, values: Floats, share: float) -> Floats:
        """Return values moved up by a share of the axis."""
        if self.log:
            return values * np.float32((self.high / self.low) ** share)
        return values + np.float32(share * (self.high - self.low))

    def lifted(self, share: float) -> float:
        """Return the value that stands so far up the axis; beyond 1 it is above it."""
        if self.log:
            return float(self.low * (self.high / self.low) ** share)
        return self.low + share * (self.high - self.low)

    def holds(self, value: float) -> bool:
        """Whether a value is not above the scale."""
        return value <= self.high


def choose_scale(
    series: Sequence[SeriesRead], metric: Metric, name: ScaleName, initial: float | None = None
) -> Scale:
    """Return the axis of a picture.

    Args:
        series: All curves in it.
        metric: What they show.
        name: focus: for the runs that learn; log: likewise, logarithmic; full: all finite ones.
        initial: The loss before training, where it is known.
    """
    values = [value for line in series for value in _all_values(line)]
    if not values:
        return Scale(0.0, 1.0)
    if metric.endswith("accuracy"):
        return _share_scale(values)
    low, high = min(values), max(values)
    if name == "full":
        return _log(values, high) if low > 0 and high > LINEAR_SPAN * low else _linear(low, high)
    if name == "log" and high > 0:
        return _log(values, min(high, LOG_REACH * (initial or _learnt(series, initial))))
    if metric == "seconds":
        return _linear(0.0, high)
    return _linear(low, _focus(low, high, _learnt(series, initial), initial))


def _all_values(line: SeriesRead) -> Iterable[float]:
    for point in line.points:
        yield from (seed.value for seed in point.seeds if seed.value is not None)
        yield from (edge for edge in (point.mean, point.low) if edge is not None)


def _learnt(series: Sequence[SeriesRead], initial: float | None) -> float:
    """Return a loss below which most rates that learn lie."""
    bound = _guessed_bound(series) if initial is None else initial
    means = sorted(
        point.mean
        for line in series
        for point in line.points
        if point.mean is not None and not point.diverged and point.mean <= bound
    )
    if not means:
        finite = [value for line in series for value in _all_values(line)]
        return min(max(finite), bound)
    best = [
        min(own)
        for line in series
        if (own := [p.mean for p in line.points if p.mean is not None and p.mean <= bound])
    ]
    return max(means[math.ceil(HELD * len(means)) - 1], *best)


def _guessed_bound(series: Sequence[SeriesRead]) -> float:
    """Return about where losses start: near what the lowest rates, which hardly learn, end at."""
    firsts = [line.points[0].mean for line in series if line.points and line.points[0].mean]
    means = [p.mean for line in series for p in line.points if p.mean is not None]
    return max([MOST_TIMES_BEST * min(means, default=math.inf), *(1.5 * first for first in firsts)])


def _focus(low: float, high: float, learnt: float, initial: float | None) -> float:
    span = max(learnt - low, 1e-9)
    if high <= low + STRETCH * span:
        return high
    reach = low + 1.25 * span
    # The initial loss is drawn where it costs little room.
    return initial if initial is not None and reach < initial <= low + STRETCH * span else reach


def _linear(low: float, high: float) -> Scale:
    margin = 0.05 * (high - low) or 0.05 * abs(high) or 1.0
    return Scale(max(0.0, low - margin) if low >= 0 else low - margin, high + margin)


def _log(values: Sequence[float], high: float) -> Scale:
    low = min(value for value in values if value > 0)
    return Scale(low / 1.25, max(high, low * 1.5) * 1.25, log=True)


def _share_scale(values: Sequence[float]) -> Scale:
    low, high = min(values), max(values)
    margin = 0.05 * (high - low) or 0.05
    return Scale(max(0.0, low - margin), min(1.0, high) + margin)


def focus(view: DifferencesRead, *, full: bool, initial: float | None = None) -> float:
    """Return how far the scale reaches either way: for runs that learn, or for all finite ones.

    Every difference is to be seen, so it is the widest of their own. Pairs without any do not
    count: both are at the same cap, or at a rate so low that neither has learnt.
    """
    found = [
        sorted(abs(pair.difference) for pair in item.pairs if pair.difference)
        for item in view.items
    ]
    highest = max((own[-1] for own in found if own), default=0.0)
    if not highest or full:
        return 1.1 * highest or 1.0
    learning = [[v for v in own if initial is None or v <= initial] for own in found]
    if not any(learning):
        learning = found
    return 1.1 * max(_reach(own) for own in learning if own)


def _reach(known: Sequence[float]) -> float:
    middle = PAIRS_REACH * known[min(int(PAIRS_HELD * len(known)), len(known) - 1)]
    return known[-1] if known[-1] <= 2 * middle else middle


def shared_decades(traces: Sequence[Mapping[str, Any]], axes: Sequence[str]) -> dict[str, Any]:
    """Return one range for these axes: panels of one quantity can be compared."""
    every = [value for one in traces if one["yaxis"] in axes for value in one["y"]]
    held = [value for value in every if value is not None and value > 0]
    low, high = (math.log10(min(held)), math.log10(max(held))) if held else (-1.0, 1.0)
    room = max(0.06 * (high - low), 0.1)
    ticks = {"dtick": "D2"} if high - low < 1.5 else {"dtick": max(1, round((high - low) / 4))}
    shown = {"range": [low - room, high + room], **ticks}
    return {one.replace("y", "yaxis", 1): shown for one in axes}


def step_edges(rates: Sequence[float]) -> list[float]:
    """Return where each rate's step begins and ends: half way to its neighbours in log rate."""
    logs = [math.log10(rate) for rate in rates]
    half = 0.25 if len(logs) < 2 else (logs[-1] - logs[0]) / (len(logs) - 1) / 2
    middles = [(left + right) / 2 for left, right in pairwise(logs)]
    return [10**edge for edge in (logs[0] - half, *middles, logs[-1] + half)]
