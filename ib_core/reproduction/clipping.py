"""What the paper claims of gradient clipping, judged on means over seeds."""

from statistics import fmean

from ib_core.metrics import RateCurve, number_text
from ib_core.reproduction.evidence import Evidence, means
from ib_core.reproduction.facts import (
    CLIPPED_AUTOENCODER,
    CLIPPED_CLASSIFIER,
    CLIPPED_MUSIC,
    published_claims,
)
from ib_core.reproduction.verdicts import (
    COUNTED_SHARE,
    EQUAL,
    Judgement,
    not_tested,
    title_of,
    too_few,
    verdict_of,
)

#: A count of experiments agrees with the paper's if the shares differ by at most this.
COUNT_TOLERANCE = 0.15


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
