"""The start page's race: stored trials by learning rate, and what they show in words."""

import math
from collections.abc import Sequence
from functools import lru_cache
from statistics import median
from typing import Literal

from backend.schemas.illustrations import RaceLane, RaceRate, RaceRead
from ib_core.errors import CorruptData
from ib_core.reproduction import RACE, Bundle, race_folder
from ib_core.sweep import ENGINE_VERSION, Outcome, TrialResult

#: How a method fares at a rate, judged on its runs.
Fate = Literal["breaks", "recovers", "falters", "struggles", "crawls", "learns"]
#: What sentences call the methods.
STEPS = {"eb": "explicit", "ib": "implicit", "ib_plus": "IB+"}
#: A method has learnt if its median loss is below this share of the loss before training.
LEARNT = 0.2
#: And stays there for so many epochs: at large rates one good epoch is luck.
SETTLED = 3
NUMBERS = ("no", "one", "two", "three", "four", "five")


@lru_cache(maxsize=1)
def race() -> RaceRead:
    """Return the stored race, which comes with the program and never changes while it runs."""
    return read_race(Bundle(race_folder()).results_of(RACE))


def read_race(results: Sequence[TrialResult]) -> RaceRead:
    """Return a race as the API tells it: its curves by rate and method, each with its words.

    Raises:
        CorruptData: If there is no trial of this engine version to show.
    """
    held = [one for one in results if one.record.get("engine") == ENGINE_VERSION]
    if not held:
        raise CorruptData("The stored race has no trial of this engine version.")
    by_rate: dict[float, dict[str, list[TrialResult]]] = {}
    for result in held:
        by_rate.setdefault(result.spec.lr, {}).setdefault(result.spec.method, []).append(result)
    initial = median(result.initial_loss for result in held)
    lanes = {
        lr: [_lane(method, sorted(runs, key=_seed)) for method, runs in methods.items()]
        for lr, methods in sorted(by_rate.items())
    }
    first = held[0]
    return RaceRead(
        task=first.spec.task,
        epochs=[point.epoch for point in first.curve],
        initial=_short(initial),
        seeds=len({result.spec.seed for result in held}),
        trials=len(held),
        engine=ENGINE_VERSION,
        rates=[
            RaceRate(lr=lr, words=words(lr, lanes, initial), ahead=ahead(lr, lanes), lanes=here)
            for lr, here in lanes.items()
        ],
    )


def _seed(result: TrialResult) -> int:
    return result.spec.seed


def _lane(method: str, runs: Sequence[TrialResult]) -> RaceLane:
    """Return one method at one rate; a run that left the numbers stays above all others."""
    curves = [[point.train_loss for point in run.curve] for run in runs]
    most = max(map(len, curves))
    full = [[*curve, *[math.inf] * (most - len(curve))] for curve in curves]
    finite = [[loss if math.isfinite(loss) else math.inf for loss in curve] for curve in full]
    return RaceLane(
        method=method,
        losses=[[_short(loss) for loss in curve] for curve in finite],
        median=[_short(median(column)) for column in zip(*finite, strict=True)],
        broken=sum(run.outcome is Outcome.DIVERGED for run in runs),
    )


def _short(loss: float) -> float | None:
    """Return a loss with four digits, all that a picture can show; None: not finite."""
    return float(f"{loss:.4g}") if math.isfinite(loss) else None


Lanes = dict[float, list[RaceLane]]


def fate(lane: RaceLane, *, initial: float, rising: bool) -> Fate:
    """Return how a method fares; `rising`: its best rate is still to come."""
    ends = [math.inf if loss is None else loss for loss in lane.median[-SETTLED:]]
    if lane.broken == len(lane.losses):
        return "recovers" if ends[-1] <= LEARNT * initial else "breaks"
    if lane.broken:
        return "falters"
    if max(ends) <= LEARNT * initial:
        return "learns"
    return "crawls" if rising else "struggles"


def words(lr: float, lanes: Lanes, initial: float) -> str:
    """Return what happens at a rate, in one sentence; methods that fare alike share a part."""
    told: dict[str, list[str]] = {}
    broken = any(lane.broken for lane in lanes[lr])
    for lane in lanes[lr]:
        found = fate(lane, initial=initial, rising=lr < best_rate(lane.method, lanes))
        told.setdefault(_told(found, lane, still=broken), []).append(STEPS[lane.method])
    parts = [
        f"all {NUMBERS[len(names)]} {what}"
        if len(names) == len(lanes[lr])
        else f"{' and '.join(names)} steps {what}"
        for what, names in told.items()
    ]
    return f"At {lr:g} {'; '.join(parts)}."


def _told(found: Fate, lane: RaceLane, *, still: bool) -> str:
    runs = NUMBERS[len(lane.losses)]
    return {
        "breaks": f"break in all {runs} runs",
        "recovers": f"break in all {runs} runs before they recover",
        "falters": f"break in {NUMBERS[lane.broken]} of {runs} runs",
        "struggles": "hold, but learn little",
        "crawls": "learn slowly",
        "learns": "still learn" if still else "learn well",
    }[found]


def best_rate(method: str, lanes: Lanes) -> float:
    """Return the rate at which a method's median run ends lowest."""
    ends = {
        lr: lane.median[-1]
        for lr, here in lanes.items()
        for lane in here
        if lane.method == method and not lane.broken
    }
    return min(ends, key=lambda lr: math.inf if ends[lr] is None else ends[lr] or 0.0, default=0.0)


def ahead(lr: float, lanes: Lanes) -> str:
    """Return what turning the rate further up will break next."""
    whole = [lane.method for lane in lanes[lr] if not lane.broken]
    limits = {method: first_break(method, lanes, above=lr) for method in whole}
    known = {method: limit for method, limit in limits.items() if limit is not None}
    if known:
        soonest = min(known.values())
        names = [STEPS[method] for method, limit in known.items() if limit == soonest]
        return f"Next to break: {' and '.join(names)} steps, at {soonest:g}."
    if whole:
        names = [STEPS[method] for method in whole]
        return f"Up to {max(lanes):g} no run of the {' and '.join(names)} steps breaks."
    return "Turn the rate back until the curves fall again."


def first_break(method: str, lanes: Lanes, *, above: float) -> float | None:
    """Return the first rate beyond one at which a method loses a run; None: there is none."""
    for lr, here in sorted(lanes.items()):
        if lr > above and any(lane.method == method and lane.broken for lane in here):
            return lr
    return None
