"""Clipping: what the paper claims of it, and clipped minus unclipped losses (appendix E).

A clipped trial is paired with the same one without clipping: same task, profile, method, rate and
seed, whichever study holds it.
"""

from collections.abc import Callable
from dataclasses import dataclass

from ib_core.metrics import Number, RateCurve, SeedResult, number_text
from ib_core.reproduction.evidence import Evidence
from ib_core.reproduction.published import (
    CLIPPED,
    CLIPPED_AUTOENCODER,
    CLIPPED_CLASSIFIER,
    CLIPPED_MNIST,
    CLIPPED_MUSIC,
    losses_by_seed,
    published_claims,
    without_each,
)
from ib_core.reproduction.verdicts import (
    COUNTED_SHARE,
    Judgement,
    all_hold,
    not_tested,
    sign,
    title_of,
    too_few,
    verdict_of,
    written,
)

#: One mean is "at or below" another up to this share.
EQUAL = 0.01
#: A count of experiments agrees with the paper's if the shares differ by at most this.
COUNT_TOLERANCE = 0.15


@dataclass(frozen=True, slots=True)
class ClipPoint:
    """Clipped minus unclipped at one rate.

    Attributes:
        lr: The rate.
        mean: Mean over the seeds that both have, with its interval.
        seeds: The difference of each seed; None where a loss is not finite and has no cap.
    """

    lr: float
    mean: Number
    seeds: tuple[tuple[int, float | None], ...]


@dataclass(frozen=True, slots=True)
class ClipDifferences:
    """One method's losses with clipping minus without, rate by rate.

    Attributes:
        method: Which.
        on_test: Whether they are test losses; training losses are capped at the initial loss.
        points: By ascending rate.
    """

    method: str
    on_test: bool
    points: tuple[ClipPoint, ...]


def differences(evidence: Evidence, experiment: str) -> list[ClipDifferences]:
    """Return a clipped experiment's differences, methods in turn, training losses first."""
    plain = CLIPPED.get(experiment)
    found = []
    for on_test in (False, True):
        curves = evidence.test_curves if on_test else evidence.curves
        ours, theirs = curves.get(experiment, {}), curves.get(plain or "", {})
        for method in ("eb", "ib"):
            if method in ours and method in theirs:
                points = _points(ours[method], theirs[method], on_test)
                if points:
                    found.append(ClipDifferences(method, on_test, points))
    return found


def _points(clipped: RateCurve, plain: RateCurve, on_test: bool) -> tuple[ClipPoint, ...]:
    loss: Callable[[SeedResult], float | None] = (
        (lambda one: one.finite_loss) if on_test else (lambda one: one.capped_loss)
    )
    ours, theirs = losses_by_seed(clipped, loss), losses_by_seed(plain, loss)
    seeds = {
        lr: [
            {one.seed for one in point.results}
            for curve in (clipped, plain)
            for point in curve.points
            if point.lr == lr
        ]
        for lr in sorted(set(clipped.lrs) & set(plain.lrs))
    }
    found = []
    for lr, (one, two) in seeds.items():
        each = tuple(
            (seed, _gap(ours.get(seed, {}).get(lr), theirs.get(seed, {}).get(lr)))
            for seed in sorted(one & two)
        )
        known = [gap for _, gap in each if gap is not None]
        if each:
            mean = (
                without_each(known, lambda gaps: sum(gaps) / len(gaps)) if known else Number(None)
            )
            found.append(ClipPoint(lr, mean, each))
    return tuple(found)


def _gap(one: float | None, two: float | None) -> float | None:
    return None if one is None or two is None else one - two


def clipping_helps(evidence: Evidence) -> Judgement:
    """Count the clipped music experiments in which the upper half of the rates does better."""
    sides = {
        method: [
            sign(number)
            for name in CLIPPED_MUSIC
            if (number := evidence.number(name, method, "clipping")) is not None
        ]
        for method in ("eb", "ib")
    }
    tested = min(map(len, sides.values()))
    if not tested:
        return not_tested("No music experiment was run with and without clipping.")
    numbers = published_claims()["clipping_helps"].numbers
    words = ", ".join(f"{name.upper()} {_counted(found)}" for name, found in sides.items()) + "."
    if tested < COUNTED_SHARE * numbers["of"]:
        return too_few(words)
    parts = [
        _count_agrees(found, numbers[method] / numbers["of"]) for method, found in sides.items()
    ]
    return Judgement(verdict_of(all_hold(parts)), words)


def _counted(sides: list[int | None]) -> str:
    helped, hurt, same, left = (sides.count(side) for side in (-1, 1, 0, None))
    words = f"helped beyond doubt in {helped} of {len(sides)}"
    words += f", hurt in {hurt}" if hurt else ""
    words += f", without any effect in {same}" if same else ""
    return f"{words}, open in {left}"


def _count_agrees(sides: list[int | None], share: float) -> bool | None:
    """Return whether a count agrees with a published share, whatever the open ones turn out."""
    least, most = sides.count(-1) / len(sides), (sides.count(-1) + sides.count(None)) / len(sides)
    if least > share + COUNT_TOLERANCE or most < share - COUNT_TOLERANCE:
        return False
    inside = abs(least - share) <= COUNT_TOLERANCE and abs(most - share) <= COUNT_TOLERANCE
    return True if inside else None


def clipping_mnist(evidence: Evidence) -> Judgement:
    """See whether clipping lowers the losses of both methods on MNIST at the higher rates."""
    if not any(name in evidence.facts for name in CLIPPED_MNIST):
        return not_tested("MNIST was not run with clipping.")
    words: list[str] = []
    parts: list[bool | None] = []
    for name, plain in CLIPPED_MNIST.items():
        numbers = {method: evidence.number(name, method, "clipping") for method in ("eb", "ib")}
        for method, number in numbers.items():
            side = sign(number)
            parts.append(None if side is None else side < 0)
            if number is not None:
                words.append(f"{title_of(plain)}, {method.upper()} {written(number)}")
        if None in numbers.values():
            words.append(f"{title_of(plain)}: {_why_no_rate(evidence, name, plain)}")
    return Judgement(
        verdict_of(all_hold(parts)), f"With clipping minus without: {'; '.join(words)}."
    )


def _why_no_rate(evidence: Evidence, clipped: str, plain: str) -> str:
    """Return why nothing can be said of an experiment's higher rates."""
    rates = [
        {point.lr for points in evidence.facts.get(name, {}).values() for point in points}
        for name in (clipped, plain)
    ]
    if not all(rates):
        return "it was not run both with and without clipping"
    common = sorted(rates[0] & rates[1])
    if not common:
        return "no rate was run both with and without clipping"
    shared = ", ".join(map(number_text, common))
    return f"no higher rate was run both with and without clipping, only {shared}"


def against_clipped_eb(evidence: Evidence) -> Judgement:
    """Find where EB with clipping is below IB without."""
    allowed = set(published_claims()["against_clipped_eb"].numbers["exceptions"])
    above: dict[str, list[float]] = {}
    parts: dict[str, bool | None] = {}
    for name in CLIPPED_MUSIC:
        rows = numbers_by_rate(evidence, name, "beside_clipped")
        if rows:
            above[name] = [lr for lr, number in rows.items() if _is_above(number)]
            parts[name] = all_hold(_at_or_below(number) for number in rows.values())
    if not parts:
        return not_tested("No music experiment was run with clipping.")
    words = "; ".join(
        f"{title_of(name)} at rate {', '.join(map(number_text, rates))}"
        for name, rates in above.items()
        if rates
    )
    reason = f"At or below at all rates in {list(parts.values()).count(True)} of {len(parts)}"
    reason += f", open in {list(parts.values()).count(None)}"
    reason += f"; above beyond doubt in {words}." if words else "; above beyond doubt in none."
    judged = [part for name, part in parts.items() if name not in allowed]
    return Judgement(verdict_of(all_hold(judged)), reason)


def numbers_by_rate(evidence: Evidence, experiment: str, name: str) -> dict[float, Number]:
    """Return IB's numbers of one kind, `difference@5` for one, by ascending rate."""
    found = {
        float(kind.partition("@")[2]): number
        for (where, method, kind), number in evidence.numbers.items()
        if where == experiment and method == "ib" and kind.startswith(f"{name}@")
    }
    return dict(sorted(found.items()))


def _is_above(number: Number) -> bool:
    return number.low is not None and number.low > EQUAL


def _at_or_below(number: Number) -> bool | None:
    """Return whether a share is at most `EQUAL`; its interval may reach as far as it likes down."""
    if number.low is None or number.high is None:
        return None
    return False if number.low > EQUAL else True if number.high <= EQUAL else None


def clipped_classifier(evidence: Evidence) -> Judgement:
    """See whether IB is at or below EB at every rate of the clipped classifier."""
    return _uniformly(evidence, CLIPPED_CLASSIFIER, "IB at or below EB", turned=False)


def clipped_autoencoder(evidence: Evidence) -> Judgement:
    """See whether EB is at or below IB at every rate of the clipped autoencoder."""
    return _uniformly(evidence, CLIPPED_AUTOENCODER, "EB at or below IB", turned=True)


def _uniformly(evidence: Evidence, experiment: str, words: str, *, turned: bool) -> Judgement:
    rows = numbers_by_rate(evidence, experiment, "difference")
    if not rows:
        return not_tested("It was not run.")
    parts = {lr: _at_or_below(_turned(one) if turned else one) for lr, one in rows.items()}
    against = [lr for lr, part in parts.items() if part is False]
    reason = f"{words} at {list(parts.values()).count(True)} of {len(parts)} rates"
    if against:
        reason += f", above at {', '.join(map(number_text, against))}"
    open_ = [lr for lr, part in parts.items() if part is None]
    if open_:
        reason += f", open at {', '.join(map(number_text, open_))}"
    return Judgement(verdict_of(all_hold(parts.values())), reason + ".")


def _turned(number: Number) -> Number:
    """Return the number seen from the other method."""
    if number.value is None or number.low is None or number.high is None:
        return number
    return Number(-number.value, -number.high, -number.low, n=number.n)
