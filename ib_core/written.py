"""Numbers as people write them: what is understood, and what is said to the rest.

`1e-4`, `.5`, `1_000`, `+2` and a typographic minus are numbers; nothing is clamped, rounded or
guessed. The dashboard's `number_field.js` reads single numbers by the same rules while they are
typed; both are held to the same table of cases.
"""

import math
import re
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

DIGITS = r"[0-9]+(?:_[0-9]+)*"
NUMBER = re.compile(rf"[+-]?(?:{DIGITS}\.?(?:{DIGITS})?|\.{DIGITS})(?:[eE][+-]?[0-9]+)?")
ONE_COMMA = re.compile(r"[+-]?[0-9]*,[0-9]+")
#: Where a list may stand, this may be two numbers, or a fraction written with a comma.
FRACTION = re.compile(r"[+-]?0?,[0-9]+")
SEPARATORS = re.compile(r"[,;\s]+")
#: Longer texts are not repeated in full.
LONGEST = 40
#: Lower ends that only mean "above 0".
TINY = 1e-6
ORDINALS = (
    "first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth",
)  # fmt: skip


class Unreadable(Exception):
    """A text that is not what its field needs; the message is a sentence for who typed it."""


@dataclass(frozen=True, slots=True)
class NumberKind:
    """Which numbers a field takes.

    Attributes:
        what: The number's name, as a sentence begins with it.
        low: The lowest.
        high: The highest.
        beyond: Whether it must be above `low`, not only at it.
        whole: Whether only whole numbers make sense.
        needed: Whether the field may not be empty.
    """

    what: str
    low: float
    high: float
    beyond: bool = False
    whole: bool = False
    needed: bool = False

    @property
    def legal(self) -> str:
        """What is taken, in words."""
        noun = "a whole number" if self.whole else "a number"
        low, high = _end(self.low), _end(self.high)
        return (
            f"{noun} above {low}, at most {high}" if self.beyond else f"{noun} from {low} to {high}"
        )

    @property
    def noun(self) -> str:
        """Its name without the article, as in "the third learning rate"."""
        return re.sub(r"^(A|An|The) ", "", self.what)

    def accepts(self, value: float) -> bool:
        """Return whether a number is of this kind."""
        low = value > self.low if self.beyond else value >= self.low
        return low and value <= self.high and (not self.whole or float(value).is_integer())

    def as_props(self) -> dict[str, Any]:
        """Return what the field in the browser needs to know."""
        return {
            "what": self.what,
            "low": self.low,
            "high": self.high,
            "beyond": self.beyond,
            "whole": self.whole,
            "needed": self.needed,
            "legal": self.legal,
        }


def read_number(text: str, kind: NumberKind) -> int | float | None:
    """Return the number a text says; None for an empty one.

    Raises:
        Unreadable: With what was typed and what would work.
    """
    plain = _plain(text)
    if not plain:
        if kind.needed:
            raise Unreadable(f"{kind.what} is needed.")
        return None
    if not NUMBER.fullmatch(plain):
        raise Unreadable(_no_number(plain, kind))
    value = float(plain)
    vanished = value == 0 and re.search(r"[1-9]", re.split("[eE]", plain)[0]) is not None
    if not math.isfinite(value) or vanished or not kind.accepts(value):
        above = 0 < kind.low <= TINY and value <= 0 and not vanished
        legal = "above 0" if above else kind.legal
        raise Unreadable(f"{kind.what} must be {legal}; got {_shown(plain)}.")
    return int(value) if kind.whole else value


def check_number(value: Any, kind: NumberKind) -> int | float | None:
    """Return a number that came as one, such as from JSON; None for none.

    Raises:
        Unreadable: With what came and what would work.
    """
    if value is None:
        if kind.needed:
            raise Unreadable(f"{kind.what} is needed.")
        return None
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if not number or not math.isfinite(_as_float(value)) or not kind.accepts(value):
        raise Unreadable(f"{kind.what} must be {kind.legal}; got {shown(value)}.")
    return int(value) if kind.whole else float(value)


def _as_float(value: float) -> float:
    try:
        return float(value)
    except OverflowError:
        return math.inf


def shown(value: Any) -> str:
    """Return what came as an error repeats it: short, whatever it was."""
    if isinstance(value, list | tuple | dict):
        return f"a list of {len(value)}" if not isinstance(value, dict) else "an object"
    if isinstance(value, int) and abs(value) > 10**LONGEST:
        return f"a number of more than {LONGEST} digits"
    if isinstance(value, float):
        return {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}.get(repr(value), f"{value:g}")
    named = {None: "null", True: "true", False: "false"}
    return named[value] if value is None or isinstance(value, bool) else _shown(repr(value))


def words_in(text: str) -> list[str]:
    """Return the words of a list, separated by commas, semicolons or blanks."""
    return [word for word in SEPARATORS.split(text.strip()) if word]


def _no_number(plain: str, kind: NumberKind) -> str:
    if ONE_COMMA.fullmatch(plain):
        if kind.whole:
            return f"One whole number belongs here, without a comma; got {_shown(plain)}."
        pointed = plain.replace(",", ".")
        return f"Write {_shown(pointed)}, with a point; got {_shown(plain)}."
    if SEPARATORS.search(plain):
        return f"One number belongs here, not a list; got {_shown(plain)}."
    example = "20" if kind.whole else "0.01 or 1e-2"
    return f"That is no number: write it as {example}; got {_shown(plain)}."


def _plain(text: str) -> str:
    return str(text).strip().replace("\u2212", "-")


def _shown(text: str) -> str:
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}…"


def _end(value: float) -> str:
    if value == 0 or TINY < abs(value) < 1e11:
        return f"{value:,.0f}" if float(value).is_integer() else f"{value:g}"
    return re.sub(r"e([+-])0*", lambda found: "e" + found[1].replace("+", ""), f"{value:g}")


def read_numbers(text: str, one: NumberKind) -> list[int | float]:
    """Return the numbers of a list, separated by commas, semicolons or blanks.

    Raises:
        Unreadable: With the one that cannot be read.
    """
    refuse_fraction(text, one)
    words = [word for word in SEPARATORS.split(_plain(text)) if word]
    found = (
        read_number(word, replace(one, what=f"The {ordinal(index)} {one.noun}", needed=True))
        for index, word in enumerate(words)
    )
    return [value for value in found if value is not None]


def refuse_fraction(text: str, kind: NumberKind | None) -> None:
    """Refuse `0,5` where a list of fractions may stand: nobody can tell which was meant.

    Raises:
        Unreadable: With both ways to write it.
    """
    plain = _plain(text)
    if kind and not kind.whole and FRACTION.fullmatch(plain):
        pointed, apart = plain.replace(",", "."), plain.replace(",", ", ")
        raise Unreadable(f"Write {_shown(pointed)}, with a point, or {_shown(apart)} for two.")


def read_rates(
    text: str, rate: NumberKind, count: NumberKind
) -> list[int | float] | dict[str, Any]:
    """Return the rates of a list, or the grid of `from:to:count`, as the API takes them."""
    parts = [part.strip() for part in _plain(text).split(":")]
    if len(parts) == 1:
        found = read_numbers(text, rate)
        if not found:
            raise Unreadable("Write at least one rate, as 0.1, 1, 10, or a grid, as 0.01:100:9.")
        return found
    if len(parts) != 3 or any(SEPARATORS.search(part) for part in parts):
        raise Unreadable(
            f"Write a grid alone, as 0.01:100:9 (from, to, how many); got {_shown(_plain(text))}."
        )
    low, high = (
        read_number(part, replace(rate, what=f"The grid’s {end}", needed=True))
        for part, end in zip(parts, ("start", "end"), strict=False)
    )
    number = read_number(parts[2], replace(count, what="The grid’s number of rates", needed=True))
    return {"from": low, "to": high, "count": number}


def read_seeds(text: str, count: NumberKind, seed: NumberKind) -> int | list[int] | None:
    """Return how many seeds (`5`), or which (`1, 2, 7`; `7,` is a list of one)."""
    plain = _plain(text)
    if re.fullmatch(r"[0-9]+\s*(?:-|\.\.|:)\s*[0-9]+", plain):
        raise Unreadable(
            f"Write 5 for seeds 1 to 5, or name them, as 2, 3, 4; got {_shown(plain)}."
        )
    if SEPARATORS.search(plain):
        return [int(value) for value in read_numbers(plain, seed)] or None
    found = read_number(plain, count)
    return None if found is None else int(found)


def read_norms(text: str, norm: NumberKind) -> list[float | None] | None:
    """Return clipping norms; `none` among them stands for a run without clipping."""
    refuse_fraction(text, norm)
    words = [word for word in SEPARATORS.split(_plain(text)) if word]
    found: list[float | None] = []
    for index, word in enumerate(words):
        what = f"The {ordinal(index)} {norm.noun}"
        if word.lower() == "none":
            found.append(None)
        else:
            found.append(read_number(word, replace(norm, what=what, needed=True)))
    return found or None


def ordinal(index: int) -> str:
    """Return "first" for 0, and so on."""
    return ORDINALS[index] if index < len(ORDINALS) else f"{index + 1}th"


def written(value: float | None) -> str:
    """Return a number as the field in the browser writes it: all its digits, and no more."""
    if value is None:
        return ""
    if value == 0 or not 1e-6 <= abs(value) < 1e21:
        return re.sub(r"e([+-])0*", r"e\1", f"{value!r}") if value else "0"
    return f"{Decimal(repr(value)).normalize():f}"


#: A spreadsheet runs a cell that starts with one of these as a formula.
FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")


def inert(value: Any) -> Any:
    """Return a cell of a CSV file that no spreadsheet runs; numbers stay numbers."""
    if isinstance(value, str) and value.startswith(FORMULA_STARTS):
        return f"'{value}"
    return value
