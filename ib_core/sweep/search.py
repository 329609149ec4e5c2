"""What to search for instead of listing rates: each seed's edge, or the best rate of a series.

Reads it as people write it, and says what it may take. How it is found: `ib_core.sweep.rounds`.
Nothing here needs torch.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from ib_core.errors import InvalidSpec
from ib_core.sweep.values import RATE, InPart, read_learning_rates, spread
from ib_core.written import NumberKind, Unreadable, check_number, read_number, shown, written

if TYPE_CHECKING:
    from ib_core.sweep.spec import SweepSpec

FINDS = ("edge", "best")
#: Rates have four digits; a finer factor could not be told apart everywhere.
WITHIN = NumberKind("The factor within", 1.01, 10.0)
MOST = NumberKind("The most trials", 1, 20_000, whole=True)
USUAL_WITHIN = 1.1
PARTS = ("from", "to", "within", "most")
#: How far rounding to four digits moves a rate, as a share of it.
ROUNDING = 5e-4
#: Of a segment, from its end at the best rate: where golden section looks next.
GOLDEN = (3 - math.sqrt(5)) / 2


@dataclass(frozen=True, slots=True)
class Search:
    """What to find, where, how exactly, and at the price of how many trials at most."""

    find: str
    low: float
    high: float
    within: float = USUAL_WITHIN
    most: int = 300

    @classmethod
    def of(cls, asked: Mapping[str, Any], usual: Sequence[float], runs: int) -> "Search":
        """Return the search of a body in canonical form.

        Args:
            asked: As `read_rates` returns it.
            usual: The task's own rates, whose ends stand for those that were not given.
            runs: Series times seeds; where no limit was given, all of them may come to an end.

        Raises:
            InvalidSpec: The range does not rise, or the limit does not even pay the first round.
        """
        low, high = asked.get("from", min(usual)), asked.get("to", max(usual))
        if low >= high:
            raise InvalidSpec(
                f"A search must rise; got {low:g} to {high:g}.", field="learning_rates"
            )
        found = cls(asked["find"], float(low), float(high), asked.get("within", USUAL_WITHIN))
        most = asked.get("most", min(runs * found.longest, int(MOST.high)))
        first = runs * len(found.coarse)
        if first > most:
            raise InvalidSpec(
                f"The first round alone takes {first:,} trials; most allows {most:,}.",
                field="learning_rates.most",
                hint="Ask for fewer methods or seeds, a shorter range, or allow more trials.",
            )
        return replace(found, most=most)

    def as_dict(self) -> dict[str, Any]:
        """Return the JSON form, which `read_rates` reads again."""
        ends = {"from": self.low, "to": self.high}
        return {"find": self.find, **ends, "within": self.within, "most": self.most}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> "Search":
        """Rebuild a search from `as_dict`."""
        return cls(data["find"], data["from"], data["to"], data["within"], data["most"])

    @property
    def coarse(self) -> tuple[float, ...]:
        """The rates of the first round: about one a decade, both ends included."""
        return spread(self.low, self.high, max(2, round(math.log10(self.high / self.low)) + 1))

    @property
    def longest(self) -> int:
        """Trials that one seed may take."""
        widest = max(math.log(b / a) for a, b in pairwise(self.coarse))
        steps = _halvings if self.find == "edge" else lambda gap, far: _sections(gap, gap, far)
        return len(self.coarse) + steps(widest, math.log(self.within))

    @property
    def grid(self) -> int:
        """Rates of a grid that is as fine as the search."""
        return math.ceil(math.log(self.high / self.low) / math.log(self.within) - 1e-9) + 1


def searching(spec: "SweepSpec", asked: Mapping[str, Any], usual: Sequence[float]) -> "SweepSpec":
    """Return a sweep that searches, its first round's rates in place of a grid's."""
    found = Search.of(asked, usual, spec.size // len(spec.learning_rates))
    return replace(spec, learning_rates=found.coarse, search=found)


def _halvings(gap: float, far: float) -> int:
    steps = 0
    while gap > far:
        gap, steps = gap / 2 + ROUNDING, steps + 1
    return steps


@cache
def _sections(left: float, right: float, far: float) -> int:
    """How often golden section may have to look at worst, from segments of these lengths."""
    if max(left, right) <= far:
        return 0
    longer, other = max(left, right), min(left, right)
    near, rest = GOLDEN * longer, (1 - GOLDEN) * longer
    return 1 + max(
        _sections(near + ROUNDING, rest + ROUNDING, far), _sections(other, near + ROUNDING, far)
    )


def read_rates(value: Any, typed: bool) -> Any:
    """Read rates as `read_learning_rates` does, or a search.

    `{"find": "edge", "from": 0.01, "to": 1000, "within": 1.1, "most": 300}`, or the text
    `edge:0.01:1000:1.1:300`, of which all but the first word may be left out.
    """
    if isinstance(value, str) and value.strip().partition(":")[0].strip().lower() in FINDS:
        find, *given = (part.strip() for part in value.strip().split(":"))
        if len(given) > len(PARTS):
            raise Unreadable(
                f"Write a search as edge:0.01:1000:1.1:300 (from, to, within, most); "
                f"got {shown(value)}."
            )
        parts = {name: part for name, part in zip(PARTS, given, strict=False) if part}
        return _read_search({"find": find.lower(), **parts}, True)
    if isinstance(value, Mapping) and "find" in value:
        return _read_search(value, typed)
    return read_learning_rates(value, typed)


def _read_search(value: Mapping[str, Any], typed: bool) -> dict[str, Any]:
    if value["find"] not in FINDS:
        raise InPart("find", f"Find is one of {', '.join(FINDS)}; got {shown(value['find'])}.")
    for name in value:
        if name not in ("find", *PARTS):
            raise InPart(str(name), f"A search has find, {', '.join(PARTS)}, no {shown(name)}.")
    read = {"find": value["find"]}
    for name, kind in zip(PARTS, (RATE, RATE, WITHIN, MOST), strict=True):
        given = value.get(name)
        try:
            if typed and isinstance(given, str):
                number = read_number(given, kind)
            else:
                number = check_number(given, kind)
        except Unreadable as error:
            raise InPart(name, str(error)) from None
        if number is not None:
            read[name] = number
    return read


def search_text(value: Mapping[str, Any]) -> str:
    """Return a search in canonical form as a person would type it."""
    parts = [written(value[name]) if name in value else "" for name in PARTS]
    return ":".join([value["find"], *parts]).rstrip(":")
