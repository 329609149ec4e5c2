"""What a sweep's settings take: their limits, and how each value is read or refused.

A reader returns the canonical JSON value of what came, None for nothing. Its second argument says
whether a person typed it, so that a text stands for a number. `settings` lists who reads what.
"""

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from ib_core.errors import InvalidSpec
from ib_core.written import (
    LONGEST,
    NumberKind,
    Unreadable,
    check_number,
    ordinal,
    read_norms,
    read_number,
    read_rates,
    read_seeds,
    refuse_fraction,
    shown,
    words_in,
)

RATE = NumberKind("A learning rate", 1e-12, 1e12)
RATE_COUNT = NumberKind("The number of rates", 1, 1000, whole=True)
#: A seed has to fit a signed 32-bit column and torch's generators alike.
SEED = NumberKind("A seed", 0, 2**31 - 1, whole=True)
SEED_COUNT = NumberKind("The number of seeds", 1, 1000, whole=True)
NORM = NumberKind("A clipping norm", 1e-12, 1e12)
TAU = NumberKind("The decay’s tau", 1e-6, 1e12, needed=True)
#: App. C needs rates whose sum diverges while that of their squares does not.
POWER = NumberKind("The decay’s power", 0.5, 1.0, beyond=True)

#: What of a trial's way can be recorded.
RECORDABLE = ("norms", "sharpness", "activations")
PROFILES = ("text", "authors")
BATCH_RULES = ("own", "share")
ISGD_FORMS = ("text", "authors")
#: Who trains: this service's workers, or anybody's programs that claim cell by cell.
WORKERS, AGENTS = "workers", "agents"
MOST_OWN, LONGEST_OWN, LARGEST_OWN = 50, 1000, 1e15
LONGEST_WORD, MOST_METHODS, MOST_CLIPS, MOST_VALUES = 100, 200, 20, 50


Reader = Callable[[Any, bool], Any]


class InPart(Unreadable):
    """A part of a setting that cannot be read, such as the `to` of a grid."""

    def __init__(self, part: str, message: str) -> None:
        super().__init__(message)
        self.part = part


def refusal(what: str, legal: str, value: Any) -> Unreadable:
    """Return an error that says what was expected."""
    return Unreadable(f"{what} must be {legal}; got {shown(value)}.")


def read_values(
    value: Any, typed: bool, read: Reader, kind: NumberKind | None = None, *, off: bool = False
) -> Any:
    """Read one value, or several as a list or typed as `16, 64`: a family.

    Args:
        value: What came.
        typed: Whether a person typed it.
        read: Reads one of them.
        kind: Which numbers they are, if they are numbers.
        off: Whether "none" is one of them.
    """
    if typed and isinstance(value, str):
        value = _typed_values(value, kind)
    if not isinstance(value, list | tuple):
        return read(value, typed)
    if not 1 <= len(value) <= MOST_VALUES:
        raise Unreadable(f"Give one value or up to {MOST_VALUES} of them; got {shown(value)}.")
    found: list[Any] = []
    for index, one in enumerate(value):
        is_off = off and (one is None or (typed and str(one).strip() == "none"))
        try:
            found.append(None if is_off else read(one, typed))
        except Unreadable as error:
            raise InPart(str(index), str(error)) from None
        if found[-1] is None and not off:
            raise InPart(str(index), f"The {ordinal(index)} value is empty; got {shown(one)}.")
        if found[-1] in found[:-1]:
            raise InPart(str(index), f"The {ordinal(index)} value is given twice.")
    return found[0] if len(found) == 1 else found


def _typed_values(text: str, kind: NumberKind | None) -> str | list[str]:
    refuse_fraction(text, kind)
    words = re.split(r"\s*[,;]\s*", text.strip())
    if kind and len(text) <= LONGEST and any(re.search(r"\s", word) for word in words):
        # Not taken for two: `1 000` may be a thousand.
        several = ", ".join(words_in(text))
        raise Unreadable(f"Write {several}, with commas, for several values; got {text.strip()}.")
    return [word for word in words if word.strip()] if len(words) > 1 else text


def read_word(value: Any, what: str) -> str | None:
    """Read a name."""
    if value is None or value == "":
        return None
    if not isinstance(value, str) or len(value) > LONGEST_WORD:
        raise refusal(what, f"a name of at most {LONGEST_WORD} characters", value)
    return value.strip()


def read_methods(value: Any, typed: bool) -> list[str] | None:
    """Read a list of methods."""
    if value is None or (typed and value in ("", [])):
        return None
    words = _method_words(value) if isinstance(value, str) else value
    if not isinstance(words, list | tuple) or not all(isinstance(word, str) for word in words):
        raise refusal("Methods", "a list of names, as eb,ib", value)
    if not 1 <= len(words) <= MOST_METHODS:
        raise Unreadable(f"Give 1 to {MOST_METHODS} methods; got {len(words)}.")
    return [word.strip() for word in words]


def _method_words(text: str) -> list[str]:
    """Return the methods of a list; commas inside their brackets belong to them."""
    return re.findall(r"[^,;\s(]+(?:\([^)]*\))?", text)


def read_vary(value: Any, typed: bool) -> dict[str, list[Any]] | None:
    """Read `{"width": [16, 64]}`, or typed `width=16,64`, several of them in a list."""
    if value is None or (typed and value in ("", [], {})):
        return None
    if typed and isinstance(value, str | list | tuple):
        value = _typed_families([value] if isinstance(value, str) else value)
    if not isinstance(value, Mapping) or not value:
        raise refusal("Vary", 'an object of lists, as {"width": [16, 64]}', value)
    found: dict[str, list[Any]] = {}
    for name, values in value.items():
        listed = list(values) if isinstance(values, list | tuple) else [values]
        scalars = all(one is None or isinstance(one, str | int | float) for one in listed)
        if not 1 <= len(listed) <= MOST_VALUES or not scalars:
            raise InPart(str(name), f"Give 1 to {MOST_VALUES} values of {name}.")
        found[str(name)] = listed
    return found


def _typed_families(texts: Any) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for text in texts:
        for family in re.split(r"[;\s]+", str(text).strip()):
            name, _, values = family.partition("=")
            if not name or not values.strip(","):
                raise Unreadable(f"Vary is said as name=value,value; got {shown(family)}.")
            found.setdefault(name, []).extend(one for one in values.split(",") if one)
    return found


def read_learning_rates(value: Any, typed: bool) -> Any:
    """Read a list of rates, a text such as 0.01:100:9, or a grid."""
    if value is None:
        return None
    if isinstance(value, str):
        return read_rates(value, RATE, RATE_COUNT)
    if isinstance(value, Mapping):
        return _read_grid(value, typed)
    if not isinstance(value, list | tuple):
        raise refusal("Learning rates", "a list, from:to:count, or from, to and count", value)
    return _each(value, RATE, "learning rates", RATE_COUNT.high)


def _read_grid(value: Mapping[str, Any], typed: bool) -> dict[str, Any]:
    kinds = {
        "from": replace(RATE, needed=True),
        "to": replace(RATE, needed=True),
        "count": replace(RATE_COUNT, needed=True),
    }
    for name in value:
        if name not in kinds:
            raise InPart(str(name), f"A grid has from, to and count, and no {shown(name)}.")
    grid = {}
    for name, kind in kinds.items():
        given = value.get(name)
        try:
            asked = given if given is not None else ""
            text = typed or asked == ""
            grid[name] = read_number(str(asked), kind) if text else check_number(asked, kind)
        except Unreadable as error:
            raise InPart(name, str(error)) from None
    return grid


def _each(values: Any, one: NumberKind, what: str, most: float) -> list[Any]:
    if not 1 <= len(values) <= most:
        raise Unreadable(f"Give 1 to {most:,.0f} {what}; got {len(values)}.")
    return [_nth(value, index, replace(one, needed=True)) for index, value in enumerate(values)]


def _nth(value: Any, index: int, one: NumberKind) -> Any:
    try:
        return check_number(value, replace(one, what=f"The {ordinal(index)} {one.noun}"))
    except Unreadable as error:
        raise InPart(str(index), str(error)) from None


def read_seed_list(value: Any, typed: bool) -> Any:
    """Read a list of seeds, or how many."""
    if isinstance(value, str):
        return read_seeds(value, SEED_COUNT, SEED)
    if isinstance(value, list | tuple):
        return _each(value, SEED, "seeds", SEED_COUNT.high)
    return check_number(value, SEED_COUNT)


def read_clip(value: Any, typed: bool) -> list[float | None] | None:
    """Read one clipping norm or several; None among them is no clipping."""
    if isinstance(value, str):
        return read_norms(value, NORM)
    if not isinstance(value, list | tuple):
        found = check_number(value, NORM)
        return None if found is None else [found]
    if not 1 <= len(value) <= MOST_CLIPS:
        raise Unreadable(f"Give 1 to {MOST_CLIPS} clipping norms; got {len(value)}.")
    return [_nth(norm, index, NORM) for index, norm in enumerate(value)]


def read_decay(value: Any, typed: bool) -> dict[str, Any] | None:
    """Read `{"tau": 100, "power": 0.75}`, or typed `100` or `100:0.75`."""
    if value is None or (typed and value in ("", {})):
        return None
    if typed and isinstance(value, str):
        tau, _, power = value.partition(":")
        value = {"tau": tau, "power": power}
    if not isinstance(value, Mapping) or not value.keys() <= {"tau", "power"}:
        raise refusal("A decay", "its tau and perhaps its power", value)
    parts = {}
    for name, kind in (("power", POWER), ("tau", TAU)):
        given = value.get(name)
        try:
            text = given is None or (typed and isinstance(given, str))
            parts[name] = read_number(given or "", kind) if text else check_number(given, kind)
        except Unreadable as error:
            raise InPart(name, str(error)) from None
    return {name: parts[name] for name in ("tau", "power") if parts[name] is not None}


def read_restart(value: Any, typed: bool) -> bool | None:
    """Read whether a trial restarts."""
    if typed and isinstance(value, str):
        value = {"": None, "1": True, "yes": True, "true": True, "no": False, "false": False}.get(
            value.strip().lower(), value
        )
    if value is None or isinstance(value, bool):
        return value or None
    raise refusal("Restart", "true or false", value)


def read_record(value: Any, typed: bool) -> list[str] | None:
    """Read what to record of every trial's way."""
    if value is None or value in ("", [], ()):
        return None
    words = re.split(r"[,;\s]+", value.strip()) if isinstance(value, str) else value
    if not isinstance(words, list | tuple) or not set(map(str, words)) <= set(RECORDABLE):
        raise refusal("Record", f"a list out of {', '.join(RECORDABLE)}", value)
    return [word for word in RECORDABLE if word in words]


def read_note(value: Any, typed: bool) -> str | None:
    """Read a note."""
    if value is None or value == "":
        return None
    halves = isinstance(value, str) and any("\ud800" <= one <= "\udfff" for one in value)
    if not isinstance(value, str) or len(value) > 10_000 or "\x00" in value or halves:
        raise Unreadable("A note is a text of at most 10,000 characters, without NUL.")
    return value


def read_own(value: Any, typed: bool) -> dict[str, Any] | None:
    """Read settings that only the program of an agent understands: names and plain values."""
    if value is None or value == {}:
        return None
    if not isinstance(value, Mapping) or len(value) > MOST_OWN:
        raise refusal("Settings", f"an object of at most {MOST_OWN} names and values", value)
    for name, one in value.items():
        if not isinstance(name, str) or not 1 <= len(name) <= LONGEST_WORD:
            raise refusal("A setting’s name", f"1 to {LONGEST_WORD} characters", name)
        if not name.isprintable() or not _is_plain(one):
            raise InPart(str(name)[:LONGEST_WORD], "A setting is a text, a finite number or true.")
    return dict(value)


def _is_plain(value: Any) -> bool:
    if isinstance(value, str):
        return len(value) <= LONGEST_OWN and value.isprintable()
    return value is None or (isinstance(value, int | float) and abs(value) <= LARGEST_OWN)


def spread(low: float, high: float, count: int) -> tuple[float, ...]:
    """Return `count` log-spaced rates from `low` to `high`, both included.

    Inner rates are rounded to four significant digits, so that a rate reads well, can be typed
    again, and is the same trial when two grids meet in it.
    """
    start, ratio = math.log10(low), math.log10(high / low)
    inner = (10 ** (start + ratio * i / (count - 1)) for i in range(1, count - 1))
    ends = (low,) if count == 1 else (low, high)
    return (ends[0], *(float(f"{rate:.4g}") for rate in inner), *ends[1:])


def refuse_repeats(values: Sequence[Any], what: str, field: str) -> None:
    """Refuse a list that holds something twice."""
    seen: set[Any] = set()
    for value in values:
        if value in seen:
            said = f"{value:g}" if isinstance(value, int | float) else value
            raise InvalidSpec(f"The {what} {said} is given twice.", field=field)
        seen.add(value)
