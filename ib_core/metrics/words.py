"""The numbers in words: advice for one series, the answer for a task.

All are put together from the same numbers and strips that tables and pictures show, so that they
cannot say anything else; a rate that is recommended is one that was trained.
"""

from collections.abc import Collection, Mapping

from ib_core.metrics.edge import THIN, RateCell, Strip
from ib_core.metrics.number import LEAST_SEEDS, Number, listed, number_text, rate_text
from ib_core.metrics.scoring import Row, TaskScore

#: Best losses closer than this are called equal.
EQUAL = 0.05


def advice(strip: Strip, row: Row) -> str:
    """Return which rates of a series to use, as they were tested.

    "Good at 0.1 and 0.3 (5 seeds). At 1, 5 of 5 broke. Between 0.3 and 1 nothing was tried. Start
    at 0.1." Below three seeds: what to run instead.
    """
    start = row["start_at"]
    if start.value is None:
        return start.note
    seeds = row["good_range"].n
    found = [f"Good at {listed(strip.run)} ({seeds} seed{'s' if seeds > 1 else ''})."]
    found += _above(strip)
    thin = ", with a thin margin" if THIN in start.note else ""
    return " ".join([*found, f"Start at {rate_text(start.value)}{thin}."])


def _above(strip: Strip) -> list[str]:
    """What is known beyond the run of good rates."""
    rates = [cell.lr for cell in strip.cells]
    following = rates.index(strip.run[-1]) + 1
    if following == len(rates):
        return ["Higher rates were not tried."]
    cell = strip.cells[following]
    last, first = rate_text(strip.run[-1]), rate_text(cell.lr)
    return [_went(cell), f"Between {last} and {first} nothing was tried."]


def _went(cell: RateCell) -> str:
    if cell.broke:
        return f"At {rate_text(cell.lr)}, {cell.broke} of {cell.n} broke."
    return f"At {rate_text(cell.lr)} none broke, but the loss is too high to be good."


def answer(
    score: TaskScore,
    *,
    lead: str = "ib",
    baseline: str = "eb",
    names: Mapping[str, str] | None = None,
    among: Collection[str] | None = None,
) -> str:
    """Return what a task says, in a few sentences.

    "IB holds to 1.7, EB to 0.55: 3.2 times higher (1.6 to 5.4). Start at 0.1 with either; at
    their best no difference shows." What beats the lead comes first.

    Args:
        score: The task's numbers.
        lead: Label of the series the question is about.
        baseline: Label of what it is compared with.
        names: What to call the series; by default their labels in capitals.
        among: Labels of those that may beat the lead, as they share its settings; None: all.
    """
    if not score.rows:
        return "Nothing has been trained yet."
    called = {label: (names or {}).get(label, label.upper()) for label in score.rows}
    present = [label for label in (lead, baseline) if label in score.rows] or [
        next(iter(score.rows))
    ]
    said = _Said(score, called)
    rivals = score.rows if among is None else among
    sentences = said.beaten(present, rivals) if len(score.rows) > 1 else []
    sentences.append(said.holding(present))
    sentences.append(said.starting(present))
    return " ".join(sentences)


class _Said:
    """Sentences about a task's series."""

    def __init__(self, score: TaskScore, called: Mapping[str, str]) -> None:
        self.score, self.called = score, called

    def beaten(self, present: list[str], rivals: Collection[str]) -> list[str]:
        """What another series does better than the lead, beyond doubt.

        How far the one holds that the lead is compared with is said afterwards anyway.
        """
        lead, found = present[0], []
        own = self.score.rows[lead]
        others = [label for label in self.score.rows if label != lead]
        price = own["price"]
        rival = min(others, key=lambda label: _or_infinite(self.score.rows[label]["best_mean"]))
        if price.low is not None and price.low > 0 and rival in rivals:
            found.append(
                f"At its best {self.called[rival]} does better than {self.called[lead]}, whose "
                f"lowest loss is {_percent(price)} higher."
            )
        strangers = [label for label in others if label in rivals and label not in present]
        farther = [one for one in strangers if _beyond(self.score.rows[one]["edge"], own["edge"])]
        if farther:
            rival = max(farther, key=lambda label: _reach(self.score.rows[label]["edge"]))
            found.append(
                f"{self.called[rival]} holds farther than {self.called[lead]}: "
                f"{self.holds(rival, 'it ')}."
            )
        return found

    def holds(self, label: str, subject: str = "") -> str:
        """How far a series holds: "IB holds to 1.7"."""
        who = subject or f"{self.called[label]} "
        edge, strip = self.score.rows[label]["edge"], self.score.strips[label]
        assert edge.value is not None
        if edge.censored == "above":
            half = "" if not any(cell.broke for cell in strip.cells) else "half its seeds "
            return f"{who}breaks {half}nowhere up to {rate_text(edge.value)}"
        if edge.censored == "below":
            return f"{who}breaks from {rate_text(edge.value)}, the lowest rate tried"
        for digits in (2, 3, 6):  # so many that rounding does not step over a tested rate
            value = number_text(edge.value, digits)
            if _agrees(strip, float(value)):
                return f"{who}holds to {value}"
        value = number_text(edge.value, 2)
        return f"{who}breaks half its seeds at about {value}, though not from one rate on"

    def holding(self, present: list[str]) -> str:
        """How far the lead and what it is compared with hold."""
        if len(present) == 1:
            return f"{self.holds(present[0])}."
        lead, other = present
        room = self.score.rows[lead]["headroom"]
        if room.value is None:
            return f"{self.holds(lead)}; {self.holds(other)}."
        first, second = (lead, other) if room.value >= 1 else (other, lead)
        one, two = self.holds(first), self.holds(second)
        if "holds to" in one:
            two = two.replace("holds to", "to")
        return f"{one}, {two}: {_times(room)}."

    def starting(self, present: list[str]) -> str:
        """Which rates to start at, and how the best losses compare."""
        starts = {label: self.score.rows[label]["start_at"].value for label in present}
        known = {label: value for label, value in starts.items() if value is not None}
        if not known:
            note = self.score.rows[present[0]]["start_at"].note
            return f"{self.called[present[0]]}: {note}" if len(self.score.rows) > 1 else note
        rates = set(known.values())
        if len(known) == 2 and len(rates) == 1:
            start = f"Start at {rate_text(rates.pop())} with either"
        else:
            each = (f"{rate_text(lr)} with {self.called[label]}" for label, lr in known.items())
            start = f"Start at {', at '.join(each)}"
        best = self.at_best(present) if len(present) == 2 else ""
        return f"{start}{best}."

    def at_best(self, present: list[str]) -> str:
        """How the best losses compare, unless that was said first."""
        own, other = (self.score.rows[label]["price"] for label in present)
        if own.high is None or other.high is None or own.low is None or other.low is None:
            return ""
        if own.low > 0:
            return ""
        if other.low > 0 and own.high == 0:
            return f"; at its best {self.called[present[0]]} has the lowest loss"
        if max(own.high, other.high) <= EQUAL:
            return "; at their best they are equal"
        return "; at their best no difference shows"


def _or_infinite(number: Number) -> float:
    return float("inf") if number.value is None else number.value


def _percent(price: Number) -> str:
    ends = (price.value, price.low, price.high)
    value, low, high = (number_text(100 * (end or 0.0), 2) for end in ends)
    return f"{value} % ({low} to {high})"


def _reach(edge: Number) -> float:
    return float("inf") if edge.censored == "above" else edge.value or 0.0


def _beyond(one: Number, two: Number) -> bool:
    """Whether one edge lies above another beyond doubt: their intervals do not meet."""
    return one.low is not None and two.high is not None and one.low > two.high


def _agrees(strip: Strip, value: float) -> bool:
    """Whether sound rates lie below a value and broken ones above it, as a reader expects."""
    return all((cell.lr <= value) == (cell.state != "broken") for cell in strip.cells)


def _times(room: Number) -> str:
    """How many times higher the higher edge is: "3.2 times higher (1.6 to 5.4)"."""
    assert room.value is not None
    value, low, high, side = room.value, room.low, room.high, room.censored
    if value < 1:
        value, low, high = 1 / value, high and 1 / high, low and 1 / low
        side = {"above": "below", "below": "above", "none": "none"}[side]  # type: ignore[assignment]
    bound = {"above": "at least ", "below": "at most ", "none": ""}[side]
    size = number_text(value, 2)
    text = "equally far" if size == "1" and not bound else f"{bound}{size} times higher"
    if room.n < LEAST_SEEDS:
        return text
    ends = ("…" if end is None else number_text(end, 2) for end in (low, high))
    told = "" if low is not None and low > 1 else ", which these seeds cannot tell from equal"
    return f"{text} ({' to '.join(ends)}){told}"
