"""The paper's claims, each judged on means over seeds by a stated rule.

Every judge is a pure function of evidence, so that the same rule speaks about the authors'
recorded runs and about ours.
"""

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from statistics import fmean

from ib_core.metrics import RateCurve, number_text
from ib_core.reproduction.evidence import (
    CLASSIFIER,
    CLIPPED_AUTOENCODER,
    CLIPPED_CLASSIFIER,
    CLIPPED_MUSIC,
    UNCLIPPED,
    Evidence,
    PublishedClaim,
    means,
    published_claims,
)
from ib_core.reproduction.timing import bounds
from ib_core.reproduction.uci import judge_accuracy
from ib_core.reproduction.verdicts import (
    COUNTED_SHARE,
    EQUAL,
    Judgement,
    Verdict,
    enough_headroom,
    headroom_words,
    not_tested,
    percent,
    robustness,
    title_of,
    too_few,
    verdict_of,
)


def clipping_helps(evidence: Evidence) -> Judgement:
    """Count the clipped music experiments in which the upper half of the rates does better."""
    helped = {
        method: [
            _upper(clipped[method]) < _upper(plain[method])
            for clipped, plain in _clipped_music(evidence)
        ]
        for method in ("eb", "ib")
    }
    tested = len(helped["eb"])
    if not tested:
        return not_tested("No music experiment was run with and without clipping.")
    numbers = published_claims()["clipping_helps"].numbers
    holds = all(
        abs(sum(helped[method]) / tested - numbers[method] / numbers["of"]) <= COUNT_TOLERANCE
        for method in helped
    )
    words = f"EB in {sum(helped['eb'])} of {tested}, IB in {sum(helped['ib'])} of {tested}."
    if tested < COUNTED_SHARE * numbers["of"]:
        return too_few(words)
    return Judgement(verdict_of(holds), words)


def against_clipped_eb(evidence: Evidence) -> Judgement:
    """Find where EB with clipping is below IB without."""
    broken: dict[str, list[float]] = {}
    tested = 0
    for name, plain in CLIPPED_MUSIC.items():
        clipped, unclipped = evidence.curves.get(name, {}), evidence.curves.get(plain, {})
        if "eb" not in clipped or "ib" not in unclipped:
            continue
        tested += 1
        eb, ib = means(clipped["eb"]), means(unclipped["ib"])
        above = [lr for lr in sorted(eb.keys() & ib.keys()) if ib[lr] > eb[lr] * (1 + EQUAL)]
        if above:
            broken[name] = above
    if not tested:
        return not_tested("No music experiment was run with clipping.")
    allowed = set(published_claims()["against_clipped_eb"].numbers["exceptions"])
    holds = set(broken) <= allowed
    words = "; ".join(
        f"{title_of(name)} at rate {', '.join(number_text(lr) for lr in rates)}"
        for name, rates in broken.items()
    )
    reason = f"{tested - len(broken)} of {tested} at all rates"
    return Judgement(verdict_of(holds), f"{reason}; IB is above in {words}." if words else reason)


def clipped_classifier(evidence: Evidence) -> Judgement:
    """See whether IB is at or below EB at every rate of the clipped classifier."""
    return _uniformly(evidence, CLIPPED_CLASSIFIER, lower="ib", upper="eb")


def clipped_autoencoder(evidence: Evidence) -> Judgement:
    """See whether EB is at or below IB at every rate of the clipped autoencoder."""
    return _uniformly(evidence, CLIPPED_AUTOENCODER, lower="eb", upper="ib")


def _uniformly(evidence: Evidence, experiment: str, *, lower: str, upper: str) -> Judgement:
    pair = evidence.pair(experiment)
    if pair is None:
        return not_tested("It was not run.")
    by_method = dict(zip(("eb", "ib"), map(means, pair), strict=True))
    low, high = by_method[lower], by_method[upper]
    broken = [lr for lr in low if low[lr] > high[lr] * (1 + EQUAL)]
    names = f"{lower.upper()} at or below {upper.upper()}"
    reason = f"{names} at {len(low) - len(broken)} of {len(low)} rates"
    if broken:
        reason += f", not at {', '.join(map(number_text, broken))}"
    return Judgement(verdict_of(not broken), reason + ".")


def _clipped_music(
    evidence: Evidence,
) -> list[tuple[dict[str, RateCurve], dict[str, RateCurve]]]:
    """Return EB and IB with and without clipping, at the rates all four have."""
    found = []
    for name, plain in CLIPPED_MUSIC.items():
        with_clip, without = evidence.pair(name), evidence.pair(plain)
        if with_clip is None or without is None:
            continue
        common = set(with_clip[0].lrs) & set(without[0].lrs)
        if common:
            both = [
                {
                    method: RateCurve(tuple(p for p in curve.points if p.lr in common))
                    for method, curve in zip(("eb", "ib"), pair, strict=True)
                }
                for pair in (with_clip, without)
            ]
            found.append((both[0], both[1]))
    return found


def _upper(curve: RateCurve) -> float:
    """Return the mean of the mean losses over the upper half of the rates."""
    rates = sorted(curve.lrs)
    losses = means(curve)
    return fmean(losses[lr] for lr in rates[len(rates) // 2 :])


#: Two means are near-identical up to this share.
NEAR = 0.1
#: Exact ISGD is flat if its highest mean is at most so many times its lowest.
FLAT = 1.5


@dataclass(frozen=True, slots=True)
class Claim:
    """A published claim, the rule it is judged by, and the function that applies it."""

    published: PublishedClaim
    rule: str
    judge: Callable[[Evidence], Judgement]


def small_rates(evidence: Evidence) -> Judgement:
    """Compare EB and IB at the smallest rate of every experiment without clipping."""
    gaps = {}
    for name, (eb, ib) in _pairs(evidence, UNCLIPPED):
        rate = min(eb.lrs)
        one, two = means(eb)[rate], means(ib)[rate]
        gaps[name] = abs(two - one) / one if math.isfinite(one) and one else math.inf
    if not gaps:
        return not_tested("No experiment without clipping was run.")
    words = ", ".join(f"{title_of(name)} {percent(gap)}" for name, gap in gaps.items())
    return Judgement(verdict_of(max(gaps.values()) <= NEAR), f"Apart by: {words}.")


def headroom(evidence: Evidence) -> Judgement:
    """Compare the rates at which EB and IB diverge, data set by data set."""
    found = {
        name: robustness({"eb": eb, "ib": ib})["ib"]["headroom"]
        for name, (eb, ib) in _pairs(evidence, UNCLIPPED)
    }
    judged = [enough_headroom(value) for value in found.values()]
    words = "; ".join(f"{title_of(name)}: {headroom_words(v)}" for name, v in found.items())
    if not any(holds is not None for holds in judged):
        return not_tested(words + "." if words else "No experiment without clipping was run.")
    return Judgement(verdict_of(all(holds is not False for holds in judged)), words + ".")


def better(evidence: Evidence) -> Judgement:
    """Count the experiments in which IB's mean over the grid is lower than EB's."""
    won: list[str] = []
    lost: list[str] = []
    for name, (eb, ib) in _pairs(evidence, sorted(evidence.curves)):
        value = robustness({"eb": eb, "ib": ib})["ib"]["better_than_eb"].value
        (won if value else lost).append(name)  # where nobody can tell, IB is not better either
    if not won and not lost:
        return not_tested("No experiment was run.")
    numbers = published_claims()["better"].numbers
    exceptions = f", not in {'; '.join(map(title_of, lost))}" if lost else ""
    reason = f"{len(won)} of {len(won) + len(lost)}{exceptions}."
    if len(won) + len(lost) < COUNTED_SHARE * numbers["of"]:
        return too_few(reason)
    return Judgement(verdict_of(len(lost) <= numbers["of"] - numbers["count"]), reason)


def exact_isgd(evidence: Evidence) -> Judgement:
    """See whether exact ISGD is the best at each of its rates, and flat over the paper's grid."""
    methods = evidence.curves.get(CLASSIFIER, {})
    if not {"eb", "ib", "isgd"} <= methods.keys():
        return not_tested("Exact ISGD was not run.")
    exact, eb, ib = (means(methods[name]) for name in ("isgd", "eb", "ib"))
    common = sorted(exact.keys() & eb.keys() & ib.keys())
    if not common:
        return not_tested("Exact ISGD shares no rate with EB and IB.")
    best = [lr for lr in common if exact[lr] <= min(eb[lr], ib[lr]) * (1 + EQUAL)]
    spread = max(exact[lr] for lr in common) / min(exact[lr] for lr in common)
    reason = (
        f"Best at {len(best)} of {len(common)} rates; its losses over them differ by a factor of "
        f"{number_text(spread)}."
    )
    beyond = {lr: loss for lr, loss in exact.items() if lr > max(common)}
    broken = [lr for lr, loss in beyond.items() if loss > FLAT * min(exact.values())]
    if broken:
        reason += f" Beyond the grid it breaks at rate {number_text(min(broken))}."
    return Judgement(verdict_of(len(best) == len(common) and spread <= FLAT), reason)


def run_time(evidence: Evidence) -> Judgement:
    """Compare IB's overheads with the bound, and those measured with what the paper measured."""
    numbers = published_claims()["run_time"].numbers
    bound = max(bounds().values())
    if not evidence.overheads:
        found = _shares(evidence.result_overheads)
        older = f" The result runs' own times are of an older, slower solver: {found}."
        return not_tested("No times were measured for it." + (older if found else ""))
    measured = evidence.overheads.values()
    inside = all(numbers["lowest"] <= share <= numbers["highest"] for share in measured)
    return Judgement(
        verdict_of(inside and bound <= numbers["bound"]),
        f"The bound is at most {percent(bound)}; measured: {_shares(evidence.overheads)}.",
    )


def _shares(overheads: Mapping[str, float]) -> str:
    return ", ".join(f"{name} {share:+.0%}" for name, share in overheads.items())


def _pairs(
    evidence: Evidence, names: Iterable[str]
) -> Iterable[tuple[str, tuple[RateCurve, RateCurve]]]:
    for name in names:
        pair = evidence.pair(name)
        if pair is not None:
            yield name, pair


_JUDGES: dict[str, tuple[str, Callable[[Evidence], Judgement]]] = {
    "small_rates": (
        "At the smallest rate of each experiment without clipping the means are at most 10% apart.",
        small_rates,
    ),
    "headroom": (
        "In every experiment without clipping where EB diverges on the grid, IB's divergence rate "
        "is at least 1.2 times EB's; more than the published 3 times counts too. A grid that ends "
        "before 1.2 times EB's rate proves nothing.",
        headroom,
    ),
    "better": (
        "IB's mean over the grid of mean losses is lower than EB's in all experiments but two, and "
        "at least half of them were run.",
        better,
    ),
    "clipping_helps": (
        "Clipping helps if the mean loss over the upper half of the rates is lower with it; the "
        "shares of experiments are within .15 of 7/9 for EB and 2/9 for IB, of at least half of "
        "them.",
        clipping_helps,
    ),
    "against_clipped_eb": (
        "IB's mean without clipping exceeds EB's with clipping by no more than 1% at any rate, "
        "except on Piano-midi.de with clip .1.",
        against_clipped_eb,
    ),
    "clipped_classifier": (
        "IB's mean exceeds EB's by no more than 1% at any rate.",
        clipped_classifier,
    ),
    "clipped_autoencoder": (
        "EB's mean exceeds IB's by no more than 1% at any rate.",
        clipped_autoencoder,
    ),
    "exact_isgd": (
        "Exact ISGD's loss is the lowest (to 1%) at every rate of the grid it was run at, and its "
        "highest is at most 1.5 times its lowest.",
        exact_isgd,
    ),
    "uci_accuracy": (
        "For each table and method the rate with the lowest training loss is chosen; IB's mean "
        "test accuracy minus EB's is within .05 points of the published .13.",
        judge_accuracy,
    ),
    "run_time": (
        "The flop bound of every network is at most 12%, and every overhead of IB over EB that was "
        "measured for its own sake is between 16% and 216%.",
        run_time,
    ),
}

CLAIMS: dict[str, Claim] = {
    name: Claim(published, *_JUDGES[name]) for name, published in published_claims().items()
}

__all__ = ["CLAIMS", "Claim", "Verdict"]


#: A count of experiments agrees with the paper's if the shares differ by at most this.
COUNT_TOLERANCE = 0.15
