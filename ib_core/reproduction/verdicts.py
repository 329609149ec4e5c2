"""Whether an experiment is reproduced: stated rules, applied to curves, never typed in."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from statistics import fmean

from ib_core.metrics import MetricValue, RateCurve, number_text, scorecard
from ib_core.reproduction.evidence import (
    UNCLIPPED,
    Evidence,
    means,
    published_better,
    published_claims,
)
from ib_core.sweep import PRESETS


class Verdict(StrEnum):
    """What the runs say of a published statement."""

    REPRODUCED = "reproduced"
    DIFFERS = "differs"
    NOT_TESTED = "not tested"


#: One mean is "at or below" another up to this share.
EQUAL = 0.01
#: A count over fewer than this share of the paper's experiments says nothing.
COUNTED_SHARE = 0.5
#: Our mean may be this share away from the recorded one where it is outside its seeds.
CELL_TOLERANCE = 0.1
#: A miss by so many times is not told in percent.
BEYOND_WORDS = 100.0
#: Share of a curve's cells that must agree with the recorded runs.
CELLS_NEEDED = 0.8

TEXT_RULE = (
    "Reproduced if the method the paper calls better has the lower mean over the grid of mean "
    "losses and, without clipping, IB diverges at a rate at least 20% above EB's wherever EB "
    "diverges on the grid and the grid goes on far enough to tell. A mean that is not finite is "
    "higher than any other; if each method has one where the other has not, neither is lower."
)
RECORDED_RULE = (
    "A cell is one method at one rate; it agrees if our mean lies between the recorded lowest and "
    "highest seed, or within 10% of the recorded mean, or neither mean is finite. Reproduced if "
    "at least 80% of the cells agree."
)


@dataclass(frozen=True, slots=True)
class Judgement:
    """A verdict and the numbers it rests on."""

    verdict: Verdict
    reason: str


def not_tested(reason: str) -> Judgement:
    """Return that there is nothing to judge."""
    return Judgement(Verdict.NOT_TESTED, reason)


def too_few(count: str) -> Judgement:
    """Return that a count is over too few of the paper's experiments."""
    return not_tested(f"{count} Fewer than half of the paper's experiments say nothing of it.")


def title_of(experiment: str) -> str:
    """Return an experiment's title."""
    preset = PRESETS.get(f"paper/{experiment}")
    return preset.title if preset else experiment


def verdict_of(holds: bool) -> Verdict:
    """Return the verdict of a rule that could be applied."""
    return Verdict.REPRODUCED if holds else Verdict.DIFFERS


def robustness(curves: Mapping[str, RateCurve]) -> dict[str, dict[str, MetricValue]]:
    """Return every method's robustness numbers, without intervals, EB first."""
    ordered = sorted(curves, key=lambda method: (method != "eb", method))
    return scorecard({method: curves[method] for method in ordered}, resamples=0)


def far_robustness(curves: Mapping[str, RateCurve]) -> dict[str, dict[str, MetricValue]]:
    """Return robustness numbers for grids that go on far past the rate at which EB breaks.

    There half of EB's highest loss bounds nothing, so where methods diverge is read from losses
    capped at the initial one.
    """
    capped = robustness({method: curve.capped() for method, curve in curves.items()})
    names = ("divergence_rate", "divergence_rate_interpolated", "headroom")
    return {
        method: row | {name: capped[method][name] for name in names}
        for method, row in robustness(curves).items()
    }


def judge_text(evidence: Evidence, experiment: str) -> Judgement:
    """Judge an experiment of the text profile against what the paper says of it."""
    pair = evidence.pair(experiment)
    if pair is None:
        return not_tested("EB and IB were not both run in the text profile.")
    eb, ib = pair
    numbers = robustness({"eb": eb, "ib": ib})["ib"]
    better = numbers["better_than_eb"]
    holds = better.value == float(published_better(experiment))
    whose = "Neither's losses are"
    if better.value is not None:
        whose = "IB's losses are" if better.value else "IB's losses are not"
    parts = [
        f"{whose} lower over the grid ({'as published' if holds else 'the paper says otherwise'})",
        _grid_words(eb, ib),
    ]
    if experiment in UNCLIPPED:
        headroom = numbers["headroom"]
        ample = enough_headroom(headroom)
        holds = holds and ample is not False
        parts.append(headroom_words(headroom) + _between_rates(eb, ib))
    return Judgement(verdict_of(holds), "; ".join(parts) + ".")


def _grid_words(eb: RateCurve, ib: RateCurve) -> str:
    """Return what decides who is lower: the means over the grid, or the rates without a mean."""
    by_method = {"EB": means(eb), "IB": means(ib)}
    lost = {
        name: {lr for lr in found if math.isinf(found[lr])} for name, found in by_method.items()
    }
    decisive = {name: lost[name] - lost[other] for name, other in (("EB", "IB"), ("IB", "EB"))}
    if any(decisive.values()):
        return " and ".join(
            f"{name}'s mean is not finite at {_rates_without_mean(curve, decisive[name])}"
            for name, curve in (("EB", eb), ("IB", ib))
            if decisive[name]
        )
    kept = sorted(by_method["EB"].keys() - lost["EB"])
    if not kept:
        return "no mean of either is finite"
    words = [
        f"{name} {number_text(fmean(found[lr] for lr in kept), 4)}"
        for name, found in by_method.items()
    ]
    return f"mean over it: {', '.join(words)}"


def _rates_without_mean(curve: RateCurve, rates: set[float]) -> str:
    points = [point for point in curve.points if point.lr in rates]
    return ", ".join(
        f"{number_text(point.lr)} ({point.n - point.n_finite} of {point.n} seeds)"
        for point in points
    )


def _between_rates(eb: RateCurve, ib: RateCurve) -> str:
    """Return IB's headroom interpolated: one step of a coarse grid may be most of it."""
    rows = robustness({"eb": eb, "ib": ib})
    ends = [rows[name]["divergence_rate_interpolated"] for name in ("eb", "ib")]
    low, high = (end.value if end.censored == "none" else None for end in ends)
    if low is None or high is None:
        return ""
    between, on_grid = number_text(high / low), number_text(rows["ib"]["headroom"].value or 0.0)
    return f" ({between} times between the rates of the grid)" if between != on_grid else ""


def enough_headroom(headroom: MetricValue) -> bool | None:
    """Return whether IB outlasts EB by the published 20%.

    None where EB does not diverge on the grid, or where the grid ends before IB could show it.
    """
    lowest = float(published_claims()["headroom"].numbers["lowest"])
    if headroom.value is None or (headroom.censored == "above" and headroom.value < lowest):
        return None
    return headroom.value >= lowest and headroom.censored != "below"


def headroom_words(headroom: MetricValue) -> str:
    """Return a headroom as a sentence's part."""
    if headroom.value is None:
        return headroom.note.rstrip(".").replace("Neither this method nor", "neither IB nor")
    times = number_text(headroom.value)
    if headroom.value == 1:
        return {
            "none": "IB diverges at EB's rate",
            "above": "IB outlasts the grid, which ends where EB diverges",
            "below": "IB diverges where EB outlasts the grid",
        }[headroom.censored]
    return {
        "none": f"IB diverges at {times} times EB's rate",
        "above": f"IB outlasts the grid, which ends at {times} times EB's rate",
        "below": f"IB diverges at no more than {times} times EB's rate",
    }[headroom.censored]


def judge_recorded(ours: Mapping[str, RateCurve], recorded: Mapping[str, RateCurve]) -> Judgement:
    """Judge our authors profile against the authors' recorded runs, cell by cell."""
    cells = [
        _cell(ours[method], recorded[method], lr)
        for method in ("eb", "ib")
        if method in ours and method in recorded
        for lr in sorted(set(ours[method].lrs) & set(recorded[method].lrs))
    ]
    if not ours:
        return not_tested("It was not run in the authors profile.")
    if not cells:
        return not_tested("There are no recorded runs here to compare with.")
    agreeing = sum(agrees for agrees, _ in cells)
    worst = max((gap for agrees, gap in cells if not agrees), default=0.0)
    reason = f"{agreeing} of {len(cells)} means agree with the recorded runs"
    if worst >= BEYOND_WORDS:
        reason += "; at the largest miss one mean is not finite or over a hundred times the other"
    elif worst:
        reason += f"; the largest miss is {100 * worst:.0f}%"
    return Judgement(verdict_of(agreeing >= CELLS_NEEDED * len(cells)), reason + ".")


def _cell(ours: RateCurve, recorded: RateCurve, lr: float) -> tuple[bool, float]:
    """Return whether a cell agrees, and how far off it is as a share."""
    mean, theirs = means(ours)[lr], means(recorded)[lr]
    seeds = next(point.finite for point in recorded.points if point.lr == lr)
    if mean == theirs:
        return True, 0.0
    gap = abs(mean - theirs) / abs(theirs) if theirs not in (0.0, float("inf")) else float("inf")
    inside = bool(seeds) and min(seeds) <= mean <= max(seeds)
    return inside or gap <= CELL_TOLERANCE, gap


def percent(share: float) -> str:
    """Write a share as percent."""
    return f"{number_text(100 * share)}%"
