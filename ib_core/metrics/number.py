"""A number with its interval, how many seeds stand behind it, and how it is written."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from math import isfinite
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]
Censored = Literal["none", "above", "below"]

# Sums of equal numbers in different order differ in the last bits; that is no difference.
ROUNDING = 1e-12
LEVEL = 0.95
#: Below this many seeds no interval is given, and no advice.
LEAST_SEEDS = 3
#: Below this many seeds an interval comes with the advice to run so many.
ADVISED_SEEDS = 10
DASH = "–"


@dataclass(frozen=True, slots=True)
class Number:
    """One number of one series.

    Attributes:
        value: The number, or the bound where it is censored; None where it is undefined.
        low: Lower end of the 95 % interval; None: open, or no interval.
        high: Upper end, likewise.
        censored: ``"above"``: the truth is at least `value`; ``"below"``: at most.
        n: Seeds behind it.
        definition: What it is, in words.
        note: Why there is no value, or what to bear in mind.
    """

    value: float | None
    low: float | None = None
    high: float | None = None
    censored: Censored = "none"
    n: int = 0
    definition: str = ""
    note: str = ""

    @property
    def has_interval(self) -> bool:
        """Whether one end at least is known."""
        return self.low is not None or self.high is not None


def unknown(n: int, note: str) -> Number:
    """Return a number that is undefined, and say why."""
    return Number(None, n=n, note=note)


def ratio_side(one: Censored, two: Censored) -> Censored:
    """Return on which side of one / two the truth lies; of two bounds on one side none is known."""
    if "above" in (one, _OPPOSITE[two]):
        return "above"
    return "below" if "below" in (one, _OPPOSITE[two]) else "none"


_OPPOSITE: dict[Censored, Censored] = {"above": "below", "below": "above", "none": "none"}


def seeds_note(n: int) -> str:
    """Return what so few seeds call for; empty from ten on."""
    if n < LEAST_SEEDS:
        return f"Below {LEAST_SEEDS} seeds no interval is given; {ADVISED_SEEDS} seeds advised."
    return f"{ADVISED_SEEDS} seeds advised." if n < ADVISED_SEEDS else ""


def joined(*notes: str) -> str:
    """Return sentences as one note, leaving out empty ones."""
    return " ".join(note for note in notes if note)


@dataclass(frozen=True, slots=True)
class Bounds:
    """Where a number can lie at all: an interval never reaches beyond."""

    low: float = -np.inf
    high: float = np.inf


ANYWHERE = Bounds()


#: How far out the one more seed lies that `jackknife` allows for: at the farthest one, or so many
#: times the seeds' whole spread beyond it; the last is for plain losses.
AT_FARTHEST, AS_FAR_AGAIN, FAR_BEYOND = 0.0, 1.0, 4.0


def jackknife(
    values: Floats, n: int, *, beyond: float = AS_FAR_AGAIN
) -> tuple[Floats, Floats] | None:
    """Return a number's interval from leaving out one seed at a time.

    With `v` of all seeds and `v_i` without seed i, `se^2 = (n - 1)/n sum_i (v_i - mean v_i)^2`
    and the interval is `v +- t(n - 1) se`. For a mean this is Student's interval.

    Losses have a long tail: a few seeds hold more than their share, and a handful of seeds often
    has none of them. So the end on the side of the longer tail also allows for one more seed. In
    terms of pseudo-values `p_i = n v - (n - 1) v_i` (for a mean, the losses) that seed is at
    `max p + beyond (max p - min p)`, and the end moves by its distance from `v` over n + 1.

    Args:
        values: `v`, then one `v_i` for every seed, [1 + seeds, ...].
        n: Seeds behind the number; those it does not depend on leave it unchanged.
        beyond: `AT_FARTHEST`, `AS_FAR_AGAIN` or `FAR_BEYOND`.

    Returns:
        Both ends; None below three seeds or where a value is undefined.
    """
    if n < LEAST_SEEDS or not np.isfinite(values).all():
        return None
    value, without = values[0], values[1:]
    spread = ((without - without.mean(axis=0)) ** 2).sum(axis=0)
    half = _student(n) * np.sqrt((n - 1) / n * spread)
    pseudo = (n - 1) * (value - without)  # p_i - v
    top, bottom = pseudo.max(axis=0), pseudo.min(axis=0)
    further = beyond * (top - bottom)
    even = np.abs(top + bottom) <= 1e-9 * (top - bottom)  # neither tail is the longer one
    above = np.where((top > -bottom) & ~even, top + further, 0) / (n + 1)
    below = np.where((-bottom > top) & ~even, further - bottom, 0) / (n + 1)
    return value - half - below, value + half + above


@lru_cache
def _student(n: int) -> float:
    """The quantile of Student's t with n - 1 degrees of freedom that leaves half of 5 % above."""
    from scipy.special import stdtrit  # 15 MB that a web process can do without

    return float(stdtrit(n - 1, (1 + LEVEL) / 2))


def smooth(
    values: Floats,
    n: int,
    *,
    unseen: Sequence[float] = (),
    bounds: Bounds = ANYWHERE,
    note: str = "",
) -> Number:
    """Return a number with its jackknife interval.

    Args:
        values: As for `jackknife`.
        n: As there.
        unseen: The number if a seed did what none here does. What it is off by on either side
            counts beside the jackknife's half width, as squares do.
        bounds: Where the number can lie.
        note: What to bear in mind.
    """
    if not isfinite(values[0]):
        return unknown(n, note)
    value = float(values[0])
    found = Number(value, n=n, note=joined(note, seeds_note(n)))
    ends = jackknife(values, n)
    if ends is None:
        return found
    low, high = widened((ends[0], ends[1]), values[0], unseen)
    low, high = (np.clip(end, bounds.low, bounds.high) for end in (low, high))
    return replace(found, low=min(float(low), value), high=max(float(high), value))


def widened(
    ends: tuple[Floats, Floats], value: Floats, unseen: Sequence[Floats | float]
) -> tuple[Floats, Floats]:
    """Return the ends of an interval moved out by what no seed showed."""
    low, high = value - ends[0], ends[1] - value
    for one in unseen:
        low, high = (
            np.hypot(low, np.maximum(value - one, 0)),
            np.hypot(high, np.maximum(one - value, 0)),
        )
    return value - low, value + high


def log_ends(values: Floats, n: int, *, beyond: float = FAR_BEYOND) -> tuple[Floats, Floats] | None:
    """Return the interval of a loss's logarithm; None unless it is positive throughout."""
    return jackknife(np.log(values), n, beyond=beyond) if (values > 0).all() else None


_BOUND: dict[Censored, str] = {"none": "", "above": "at least ", "below": "at most "}


@dataclass(frozen=True, slots=True)
class Writing:
    """How numbers of a kind are written; called, it writes value and interval.

    Attributes:
        part: Writes one value, or one end of an interval.
        as_ends: Whether the ends are the number itself: a range.
    """

    part: Callable[[float], str]
    as_ends: bool = False

    def __call__(self, number: Number) -> str:
        """Write value and interval: ``"0.55 (0.33 to 0.9)"``, ``"at least 3 (1.6 to ...)"``."""
        value, interval = self.value(number), self.interval(number)
        return f"{value} ({interval})" if interval else value

    def value(self, number: Number) -> str:
        """Write the value alone: ``"0.55"``, ``"at least 3"``, or a dash."""
        if number.value is None:
            return DASH
        if self.as_ends:
            return self._ends(number) if number.low != number.high else self.part(number.value)
        return _BOUND[number.censored] + self.part(number.value)

    def interval(self, number: Number) -> str:
        """Write the interval alone: ``"0.33 to 0.9"``, ``"1.6 to ..."``, or nothing."""
        bare = number.value is None or self.as_ends or not number.has_interval
        return "" if bare else self._ends(number)

    def _ends(self, number: Number) -> str:
        low, high = ("…" if end is None else self.part(end) for end in (number.low, number.high))
        return f"{low} to {high}"


def number_text(value: float, digits: int = 3) -> str:
    """Write a number with a few significant digits and no needless exponent."""
    return f"{float(f'{value:.{digits}g}'):g}"


#: A loss, a rate or a ratio; a share or a chance in per cent; the ends of a range of tested rates.
as_number = Writing(number_text)
as_share = Writing(lambda value: f"{number_text(100 * value)} %")
as_range = Writing(number_text, as_ends=True)


def listed(rates: Sequence[float]) -> str:
    """Write rates as a list: "0.1, 0.3 and 1"."""
    words = [rate_text(lr) for lr in rates]
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"


def rate_text(lr: float) -> str:
    """Write a rate as it was trained, every digit of it."""
    short = f"{lr:.6g}"
    return short if float(short) == lr else repr(lr)


Better = Literal["higher", "lower", "neither"]


@dataclass(frozen=True, slots=True)
class NumberKind:
    """A number and what it means.

    Attributes:
        name: Stable name, the key in the API.
        title: What a screen calls it.
        unit: What it is counted in.
        better: Whether a higher or a lower one speaks for a method, or neither.
        definition: What it is, in words.
        write: How a number of this kind is written.
        function: What computes it, from a task's results and the place of a series in them.
        paper: Whether it is the paper's own and belongs to the paper's studies only.
    """

    name: str
    title: str
    unit: str
    better: Better
    definition: str
    write: Writing
    function: Callable[[Any, int], Number]
    paper: bool = False
