"""The paper's claims, each judged by a stated rule on numbers that carry intervals.

Every judge is a pure function of evidence, so that the same rule speaks about the authors'
recorded runs and about ours. What the intervals leave open is `cannot tell`.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from ib_core.metrics import Number, number_text
from ib_core.reproduction import clipping, uci
from ib_core.reproduction.clipping import EQUAL
from ib_core.reproduction.evidence import Evidence, RateFacts
from ib_core.reproduction.published import (
    CLASSIFIER,
    CLIPPED_MUSIC,
    UNCLIPPED,
    PublishedClaim,
    bounds,
    published_claims,
)
from ib_core.reproduction.verdicts import (
    COUNTED_SHARE,
    Judgement,
    all_hold,
    breaks_later,
    headroom_words,
    not_tested,
    percent,
    sign,
    title_of,
    too_few,
    verdict_of,
    written,
)

#: Two means are near-identical up to this share.
NEAR = 0.1
#: More experiments than these are not listed.
MOST_NAMED = 3
#: Exact ISGD is flat if its highest mean is at most so many times its lowest.
FLAT = 1.5
MUSIC = tuple(name for name in UNCLIPPED if name in CLIPPED_MUSIC.values())


@dataclass(frozen=True, slots=True)
class Claim:
    """A published claim, the rule it is judged by, and the function that applies it."""

    published: PublishedClaim
    rule: str
    judge: Callable[[Evidence], Judgement]


def small_rates(evidence: Evidence) -> Judgement:
    """Compare EB and IB at the smallest rate of every experiment without clipping."""
    gaps = {
        (name, rates[0]): number
        for name in UNCLIPPED
        if (rates := evidence.common_rates(name))
        and (number := evidence.number(name, "ib", f"difference@{rates[0]:g}"))
    }
    if not gaps:
        return not_tested("No experiment without clipping was run.")
    words = "; ".join(
        f"{title_of(name)} at rate {number_text(lr)}: {_percents(gap)}"
        for (name, lr), gap in gaps.items()
    )
    return Judgement(
        verdict_of(all_hold(_is_near(gap) for gap in gaps.values())), f"IB minus EB, {words}."
    )


def _is_near(gap: Number) -> bool | None:
    if gap.value is None or gap.low is None or gap.high is None:
        return None
    if gap.low >= -NEAR and gap.high <= NEAR:
        return True
    return False if gap.low > NEAR or gap.high < -NEAR else None


def _percents(gap: Number) -> str:
    if gap.value is None:
        return "–"
    ends = [gap.value, *(end for end in (gap.low, gap.high) if end is not None)]
    value, *both = (f"{number_text(100 * end, 2)}%" for end in ends)
    return f"{value} ({' to '.join(both)})" if len(both) == 2 else value


def headroom(evidence: Evidence) -> Judgement:
    """Compare the edges of EB and IB, data set by data set."""
    run = [name for name in UNCLIPPED if evidence.has_pair(name)]
    if not run:
        return not_tested("No experiment without clipping was run.")
    rooms = (evidence.number(name, "ib", "headroom") for name in run)
    words = "; ".join(f"{title_of(name)}: {headroom_words(evidence, name)}" for name in run)
    parts = [None if room is None else breaks_later(room) for room in rooms]
    return Judgement(verdict_of(all_hold(parts)), words + ".")


def better(evidence: Evidence) -> Judgement:
    """Count the experiments in which IB's losses are lower than EB's."""
    run = [name for name in sorted(evidence.facts) if evidence.has_pair(name)]
    if not run:
        return not_tested("No experiment was run.")
    means = {name: evidence.number(name, "ib", "mean_difference") for name in run}
    sides = {name: sign(mean) for name, mean in means.items()}
    won = [name for name in run if sides[name] == -1]
    lost = [name for name in run if sides[name] == 1]
    numbers = published_claims()["better"].numbers
    reason = f"Lower in {len(won)} of {len(run)}"
    if lost:
        reason += f", higher in {len(lost)} ({'; '.join(map(title_of, lost))})"
    left = len(run) - len(won) - len(lost)
    short = sum(mean is None or mean.low is None for mean in means.values())
    reason += f"; in {left - short} the interval holds 0" if left > short else ""
    reason += f"; {short} with too few seeds for an interval" if short else ""
    won_by_sign, signs = _by_signs(means)
    reason += f".{signs}"
    if len(run) < COUNTED_SHARE * numbers["of"]:
        return too_few(reason)
    spare = numbers["of"] - numbers["count"]
    holds = True if len(lost) + left <= spare else False if len(lost) > spare else None
    return Judgement(verdict_of(holds), reason, beside=f"by sign alone {won_by_sign}")


def _by_signs(means: Mapping[str, Number | None]) -> tuple[str, str]:
    """Return the count by the signs of the means alone, in short and at length."""
    known = {name: one.value for name, one in means.items() if one and one.value is not None}
    above = [title_of(name) for name, value in known.items() if value > 0]
    count = f"{sum(value < 0 for value in known.values())} of {len(known)}"
    but = f", all but {'; '.join(above)}" if 0 < len(above) <= MOST_NAMED else ""
    return count, f" By the sign of the mean alone IB is lower in {count}{but}."


def music_variance(evidence: Evidence) -> Judgement:
    """Compare standard deviations over seeds and means at the upper half of the rates, on music."""
    found = {
        title_of(name): number
        for name in MUSIC
        if (number := evidence.number(name, "ib", "spread")) is not None
    }
    if not found:
        return not_tested("No music experiment without clipping was run.")
    words = "; ".join(
        f"{name} {written(number) if number.value is not None else 'too few finite seeds'}"
        for name, number in found.items()
    )
    parts = [_is_below_one(number) for number in found.values()]
    means = [
        sign(number)
        for name in MUSIC
        if (rates := clipping.numbers_by_rate(evidence, name, "difference"))
        for number in list(rates.values())[len(rates) // 2 :]
    ]
    parts += [None if side is None else side < 0 for side in means]
    return Judgement(
        verdict_of(all_hold(parts)),
        f"IB's standard deviation over EB's: {words}. Its mean is lower beyond doubt at "
        f"{means.count(-1)} of {len(means)} higher rates, higher at {means.count(1)}.",
    )


def _is_below_one(number: Number) -> bool | None:
    if number.low is None or number.high is None:
        return None
    return True if number.high < 1 else False if number.low > 1 else None


def exact_isgd(evidence: Evidence) -> Judgement:
    """See whether exact ISGD is the best at each of its rates, and flat over the paper's grid."""
    methods = evidence.facts.get(CLASSIFIER, {})
    if not {"eb", "ib", "isgd"} <= methods.keys():
        return not_tested("Exact ISGD was not run.")
    points = {name: {point.lr: point for point in methods[name]} for name in ("isgd", "eb", "ib")}
    common = sorted(points["isgd"].keys() & points["eb"].keys() & points["ib"].keys())
    if not common:
        return not_tested("Exact ISGD shares no rate with EB and IB.")
    best = [_is_best(*(points[name][lr] for name in points)) for lr in common]
    losses = [points["isgd"][lr].train.mean or 0.0 for lr in common]
    spread = max(losses) / max(min(losses), 1e-12)
    n = min(points["isgd"][lr].n for lr in common)
    reason = (
        f"Below every seed of EB and IB at {best.count(True)} of {len(common)} rates; its losses "
        f"over them differ by a factor of {number_text(spread)} ({n} seed{'s' if n > 1 else ''})."
    )
    verdict = verdict_of(all_hold([*best, spread <= FLAT]))
    return Judgement(verdict, reason + _beyond(points, common))


def _beyond(points: Mapping[str, Mapping[float, RateFacts]], common: list[float]) -> str:
    """Return where exact ISGD breaks beyond the grid of the others, in words."""
    exact = {lr: point.train.mean for lr, point in points["isgd"].items()}
    lowest = min(loss for loss in exact.values() if loss is not None)
    broken = [
        lr
        for lr, loss in exact.items()
        if lr > max(common) and (loss is None or loss > FLAT * lowest)
    ]
    return f" Beyond the grid it breaks at rate {number_text(min(broken))}." if broken else ""


def _is_best(exact: RateFacts, eb: RateFacts, ib: RateFacts) -> bool | None:
    loss = exact.train.mean
    if loss is None:
        return False
    if all(other.train.lowest is None or loss <= other.train.lowest for other in (eb, ib)):
        return True
    means = (other.train.mean for other in (eb, ib))
    return False if any(mean is not None and loss > mean * (1 + EQUAL) for mean in means) else None


def run_time(evidence: Evidence) -> Judgement:
    """Compare IB's overheads with the bound, and those measured with the highest published."""
    numbers = published_claims()["run_time"].numbers
    bound = max(bounds().values())
    if not evidence.overheads:
        found = _shares(evidence.result_overheads)
        older = f" The result runs' own times are of an older, slower solver: {found}."
        return not_tested("No times were measured for it." + (older if found else ""))
    at_most = all(share <= numbers["highest"] for share in evidence.overheads.values())
    return Judgement(
        verdict_of(at_most and bound <= numbers["bound"]),
        f"The bound is at most {percent(bound)}; measured: {_shares(evidence.overheads)}.",
    )


def _shares(overheads: Mapping[str, float]) -> str:
    return ", ".join(f"{name} {share:+.0%}" for name, share in overheads.items())


_JUDGES: dict[str, tuple[str, Callable[[Evidence], Judgement]]] = {
    "small_rates": (
        "At the smallest rate of each experiment without clipping the capped means are at most 10% "
        "apart, the whole interval of their paired difference included.",
        small_rates,
    ),
    "headroom": (
        "In every experiment without clipping IB's edge (half its seeds broken) is at least 1.2 "
        "times EB's, the interval of the ratio above 1; refuted where the interval ends below 1.2. "
        "More than the published 3 times counts too.",
        headroom,
    ),
    "better": (
        "The mean over rates and seeds of IB's capped loss minus EB's is below 0, interval "
        "included, in all experiments but two; refuted if it is above 0 in more than two. At least "
        "half of them were run. The count by the signs of the means alone is told beside it.",
        better,
    ),
    "music_variance": (
        "On every music set without clipping, at the upper half of the rates: the standard "
        "deviation over seeds, IB's over EB's, geometric mean, is below 1 with its interval, and "
        "IB's capped mean below EB's at each rate, interval included; refuted where an interval "
        "lies on the other side.",
        music_variance,
    ),
    "clipping_helps": (
        "Clipping helps if the mean capped loss over the higher rates is lower with it, "
        "interval included; the shares of experiments are within .15 of 7/9 for EB and 2/9 for IB "
        "whatever the open ones turn out, of at least half of them.",
        clipping.clipping_helps,
    ),
    "against_clipped_eb": (
        "IB's capped mean without clipping exceeds EB's with clipping by no more than 1% at any "
        "rate, interval included, except on Piano-midi.de with clip .1.",
        clipping.against_clipped_eb,
    ),
    "clipping_mnist": (
        "With clipping the mean capped loss over the higher rates is lower, interval included, for "
        "EB and IB on both MNIST tasks. Higher are the common rates in the upper half of those "
        "without clipping and above the lowest with it; a task without one leaves it open.",
        clipping.clipping_mnist,
    ),
    "clipped_classifier": (
        "IB's capped mean exceeds EB's by no more than 1% at any rate, interval included.",
        clipping.clipped_classifier,
    ),
    "clipped_autoencoder": (
        "EB's capped mean exceeds IB's by no more than 1% at any rate, interval included.",
        clipping.clipped_autoencoder,
    ),
    "exact_isgd": (
        "Exact ISGD's mean loss lies below every seed of EB and IB at every rate of the grid it "
        "was run at, and its highest is at most 1.5 times its lowest. The recorded runs pull "
        "towards the old weights with weight 1 where the text has 1/rate, and so aim at the step "
        "of rate 1 whatever the rate is: that they are flat says little of robustness.",
        exact_isgd,
    ),
    "uci_accuracy": (
        "For each table and method the rate with the lowest training loss is chosen. Reproduced if "
        "the 95% interval over tables of IB's test accuracy minus EB's holds the published .13 "
        "points and lies above 0; differs if it does not hold .13.",
        uci.judge_accuracy,
    ),
    "uci_explosion": (
        "For each table and method the loss one rate above the best, over the best loss. "
        "Reproduced if the 95% interval over tables of its mean holds 892 and lies above 1.",
        uci.judge_explosion,
    ),
    "run_time": (
        "The flop bound of every network is at most 12%, and every overhead of IB over EB that was "
        "measured for its own sake is at most 216%: less is no contradiction.",
        run_time,
    ),
}

CLAIMS: dict[str, Claim] = {
    name: Claim(published, *_JUDGES[name]) for name, published in published_claims().items()
}
