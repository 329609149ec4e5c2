"""Whether an experiment is reproduced: stated rules, applied to numbers, never typed in."""

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum

from ib_core.metrics import KINDS, Number, number_text
from ib_core.reproduction.evidence import Evidence, RateFacts
from ib_core.reproduction.published import UNCLIPPED, published_better, published_claims
from ib_core.sweep import PRESETS


class Verdict(StrEnum):
    """What the runs say of a published statement."""

    REPRODUCED = "reproduced"
    DIFFERS = "differs"
    CANNOT_TELL = "cannot tell"
    NOT_TESTED = "not tested"


#: A count over fewer than this share of the paper's experiments says nothing.
COUNTED_SHARE = 0.5
#: Our mean may be this share away from the recorded one where it is outside its seeds.
CELL_TOLERANCE = 0.1
#: A cell that misses with fewer of our seeds is open.
SEEDS_NEEDED = 3
#: Two means are the same up to rounding if they differ by no more than this share.
SAME_SHARE = 1e-3
#: A miss by so many times is not told in percent.
BEYOND_WORDS = 100.0
#: Share of a curve's cells that must agree with the recorded runs, and how many must have been run.
CELLS_NEEDED, LEAST_CELLS = 0.8, 6

TEXT_RULE = (
    "Two things are asked. Whether the method the paper calls better is: the mean over rates and "
    "seeds of IB's loss minus EB's, both capped at the initial loss, with its 95% interval. And "
    "without clipping, whether IB breaks later: its edge, the rate at which half the seeds break, "
    "is at least 1.2 times EB's and the interval of the ratio lies above 1; it does not where the "
    "interval ends below 1.2. Reproduced if both hold, differs if one is refuted, cannot tell if "
    "one is left open: by its interval, or because no edge lies among the tested rates."
)
RECORDED_RULE = (
    "A cell is one method at one rate; it agrees if our mean lies within 10% of the recorded mean "
    "of the same seeds, or between the recorded lowest and highest seed, or neither mean is "
    "finite. A miss with fewer than three seeds is open: where training is chaotic, one seed in "
    "three lies outside of five others. The losses match if at least 80% of the cells agree, and "
    "differ if they do not whatever the open ones turn out; fewer than six cells (three rates of "
    "both methods) cannot tell. That they match says that what runs here is what the authors ran, "
    "not that the paper's claims hold of it: those are judged one by one, on the recorded runs and "
    "on ours."
)
#: What a verdict is called where our losses are held against recorded or printed ones.
OF_LOSSES = {
    Verdict.REPRODUCED: "losses match",
    Verdict.DIFFERS: "losses differ",
    Verdict.CANNOT_TELL: "cannot tell",
    Verdict.NOT_TESTED: "not tested",
}


@dataclass(frozen=True, slots=True)
class Judgement:
    """A verdict and the numbers it rests on.

    Attributes:
        verdict: What it says.
        reason: The numbers, in words.
        agreeing: Of a count of cells, how many agree.
        cells: Of how many.
        same: How many of those that agree do so up to rounding.
        in_range: How many agree only in lying between the recorded seeds.
        word: What the verdict is called where it is shown.
        beside: What must be read beside it.
    """

    verdict: Verdict
    reason: str
    agreeing: int = 0
    cells: int = 0
    same: int = 0
    in_range: int = 0
    word: str = ""
    beside: str = ""

    @property
    def shown(self) -> str:
        """What the verdict is called where it is shown."""
        return self.word or self.verdict.value


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


def verdict_of(holds: bool | None) -> Verdict:
    """Return the verdict of a rule that could be applied; None: its numbers leave it open."""
    if holds is None:
        return Verdict.CANNOT_TELL
    return Verdict.REPRODUCED if holds else Verdict.DIFFERS


def all_hold(parts: Iterable[bool | None]) -> bool | None:
    """Return whether all parts hold: one that does not decides, then one that is open."""
    found = list(parts)
    if False in found:
        return False
    return None if None in found else True


def sign(number: Number | None) -> int | None:
    """Return on which side of 0 a number lies beyond doubt; None where its interval holds 0."""
    if number is None or number.low is None or number.high is None:
        return None
    if number.low == number.high == 0:
        return 0
    return -1 if number.high < 0 else 1 if number.low > 0 else None


def written(number: Number, digits: int = 2) -> str:
    """Write a number with its interval in a few digits."""
    if number.value is None:
        return "–"
    text = number_text(number.value, digits)
    if number.low is None or number.high is None:
        return text
    return f"{text} ({number_text(number.low, digits)} to {number_text(number.high, digits)})"


def judge_text(evidence: Evidence, experiment: str) -> Judgement:
    """Judge an experiment of the text profile against what the paper says of it."""
    if not evidence.has_pair(experiment):
        return not_tested("EB and IB were not both run in the text profile.")
    found = evidence.number(experiment, "ib", "mean_difference")
    if published_better(experiment) is None:
        reason = f"{_lower_words(found)}; the paper names no winner here to hold that against."
        return Judgement(Verdict.CANNOT_TELL, reason)
    holds = is_as_published(evidence, experiment)
    reason = f"{_lower_words(found)}, {_SAID[holds]}"
    if experiment in UNCLIPPED:
        room = evidence.number(experiment, "ib", "headroom")
        later = None if room is None else breaks_later(room)
        # What stands before the first semicolon is all that a row of the matrix shows.
        if holds and later is None:
            reason += ", but whether IB breaks later is open"
        if holds is not False and later is False:
            reason += ", but IB does not break later"
        reason += f"; {headroom_words(evidence, experiment)}"
        holds = all_hold((holds, later))
    return Judgement(verdict_of(holds), f"{reason}.")


_SAID = {True: "as published", False: "the paper says otherwise", None: "which decides nothing"}


def is_as_published(evidence: Evidence, experiment: str) -> bool | None:
    """Return whether the better method is the one the paper names; None where it is open."""
    side = sign(evidence.number(experiment, "ib", "mean_difference"))
    return None if side is None or side == 0 else (side < 0) == published_better(experiment)


def _lower_words(found: Number | None) -> str:
    if found is None or found.value is None:
        return "The losses of EB and IB have no common rate, seed and initial loss"
    if not found.has_interval:
        return (
            f"IB's capped loss minus EB's is {number_text(found.value, 2)} with {found.n} "
            f"seed{'s' if found.n != 1 else ''}, too few for an interval"
        )
    return f"IB's capped loss minus EB's is {written(found)}"


def breaks_later(room: Number) -> bool | None:
    """Return whether IB outlasts EB by the published 20%; None where the interval is open."""
    lowest = float(published_claims()["headroom"].numbers["lowest"])
    if room.value is None:
        return None
    if room.high is not None and room.high < lowest and room.censored != "above":
        return False
    late = room.value >= lowest and room.censored != "below"
    return True if late and room.low is not None and room.low > 1 else None


def headroom_words(evidence: Evidence, experiment: str) -> str:
    """Return how far EB and IB hold, as a sentence's part; then by the paper's own rule."""
    room = evidence.number(experiment, "ib", "headroom")
    ends = {name: evidence.number(experiment, name, "edge") for name in ("eb", "ib")}
    if room is None or None in ends.values():
        return "no edge is known"
    if room.value is None:
        highest = max(end.value or 0.0 for end in ends.values() if end is not None)
        words = f"both edges lie above {number_text(highest)}, the highest rate tried"
        if any(end is not None and end.censored == "below" for end in ends.values()):
            words = "both edges lie below the lowest rate tried"
    else:
        each = ", ".join(f"{name.upper()} {_edge(end)}" for name, end in ends.items() if end)
        words = f"edges {each}, a ratio of {KINDS['headroom'].write(room)}"
    return words + _by_the_papers_rule(evidence, experiment)


def _edge(end: Number) -> str:
    if end.censored == "above":
        return f"above {number_text(end.value or 0.0)}"
    return KINDS["edge"].write(end)


def _by_the_papers_rule(evidence: Evidence, experiment: str) -> str:
    own = evidence.number(experiment, "ib", "paper_headroom")
    if own is None or own.value is None:
        return ""
    return f"; by the paper's own rule the ratio is {KINDS['paper_headroom'].write(own)}"


Points = Mapping[str, tuple[RateFacts, ...]]


@dataclass(frozen=True, slots=True)
class RecordedCell:
    """One method at one rate: our mean beside the recorded runs.

    Attributes:
        method: Which.
        lr: Rate.
        ours: Our mean; infinite where it is not finite.
        theirs: The recorded one, likewise: of the same seeds where they were recorded.
        agrees: By `RECORDED_RULE`.
        gap: How far off, as a share.
        how: In what it agrees: `same` up to rounding, `near` within 10%, `range` only in lying
            between the recorded seeds; empty where it does not.
        n: Our seeds.
    """

    method: str
    lr: float
    ours: float
    theirs: float
    agrees: bool
    gap: float
    how: str
    n: int


def recorded_cells(ours: Points, recorded: Points) -> list[RecordedCell]:
    """Return every cell of EB and IB that was both run and recorded."""
    found = []
    for method in ("eb", "ib"):
        theirs = {point.lr: point for point in recorded.get(method, ())}
        found += [
            _cell(method, point, theirs[point.lr])
            for point in ours.get(method, ())
            if point.lr in theirs
        ]
    return found


def judge_recorded(ours: Points, recorded: Points) -> Judgement:
    """Judge our authors profile against the authors' recorded runs, cell by cell."""
    cells = recorded_cells(ours, recorded)
    if not ours:
        return not_tested("It was not run in the authors profile.")
    if not cells:
        return not_tested("No rate was both run and recorded.")
    ways = Counter(cell.how for cell in cells)
    agreeing = sum(cell.agrees for cell in cells)
    open_ = sum(not cell.agrees and cell.n < SEEDS_NEEDED for cell in cells)
    worst = max((cell.gap for cell in cells if not cell.agrees), default=0.0)
    reason = f"{agreeing} of {len(cells)} means agree with the recorded runs"
    reason += agreement_words(ways["same"], ways["near"], ways["range"])
    if worst >= BEYOND_WORDS:
        reason += "; at the largest miss one mean is not finite or over a hundred times the other"
    elif worst:
        reason += f"; the largest miss is {100 * worst:.0f}%"
    if open_:
        reason += f"; open for want of {SEEDS_NEEDED} seeds: {open_}"
    if len(cells) < LEAST_CELLS:
        reason += ", too few to say of the whole curve"
    holds = None if len(cells) < LEAST_CELLS else _enough(agreeing, open_, len(cells))
    return of_losses(
        Judgement(
            verdict_of(holds), reason + ".", agreeing, len(cells), ways["same"], ways["range"]
        )
    )


def _enough(agreeing: int, open_: int, cells: int) -> bool | None:
    """Return whether enough cells agree; None where the open ones decide."""
    if agreeing >= CELLS_NEEDED * cells:
        return True
    return None if agreeing + open_ >= CELLS_NEEDED * cells else False


def of_losses(found: Judgement) -> Judgement:
    """Return a judgement of losses beside others, called what it is: whether they match."""
    return replace(found, word=OF_LOSSES[found.verdict])


def agreement_words(same: int, near: int, in_range: int) -> str:
    """Return in what means agree, as a sentence's part; empty where none does."""
    parts = [
        *([f"{same} to .1%"] if same else []),
        *([f"{near} within 10%"] if near else []),
        *([f"{in_range} only in lying between the recorded seeds"] if in_range else []),
    ]
    return f" ({', '.join(parts)})" if parts else ""


def _cell(method: str, ours: RateFacts, recorded: RateFacts) -> RecordedCell:
    mean, whole = (
        math.inf if point.train.mean is None else point.train.mean for point in (ours, recorded)
    )
    same_seeds = recorded.mean_of(ours.by_seed)
    theirs = whole if same_seeds is None else same_seeds
    if mean == theirs:
        return RecordedCell(method, ours.lr, mean, theirs, True, 0.0, "same", ours.n)
    gap = abs(mean - theirs) / abs(theirs) if theirs not in (0.0, math.inf) else math.inf
    low, high = recorded.train.lowest, recorded.train.highest
    inside = low is not None and high is not None and low <= mean <= high
    near = "same" if gap <= SAME_SHARE else "near" if gap <= CELL_TOLERANCE else ""
    how = near or ("range" if inside else "")
    return RecordedCell(method, ours.lr, mean, theirs, bool(how), gap, how, ours.n)


def percent(share: float) -> str:
    """Write a share as percent."""
    return f"{number_text(100 * share)}%"
