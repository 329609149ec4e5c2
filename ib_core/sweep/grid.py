"""Grids: learning rates and seeds, checked, and log-spaced where two ends are given."""

import math
from collections.abc import Iterable, Sequence
from typing import Any

from ib_core.errors import InvalidSpec
from ib_core.sweep import request


def log_grid(low: float, high: float, count: int) -> tuple[float, ...]:
    """Return `count` log-spaced rates from `low` to `high`, both included.

    Inner rates are rounded to four significant digits, so that a rate reads well, can be typed
    again, and is the same trial when two grids meet in it.
    """
    request.check("learning_rates", {"from": low, "to": high, "count": count})
    if count == 1 and low != high:
        raise InvalidSpec(
            "A grid of one learning rate must start and end at it.", field="learning_rates"
        )
    if low >= high and count > 1:
        raise InvalidSpec(f"A grid must rise; got {low:g} to {high:g}.", field="learning_rates")
    start, ratio = math.log10(low), math.log10(high / low)
    inner = (10 ** (start + ratio * i / (count - 1)) for i in range(1, count - 1))
    ends = (low,) if count == 1 else (low, high)
    return check_rates((ends[0], *(float(f"{rate:.4g}") for rate in inner), *ends[1:]))


def count_seeds(count: int) -> tuple[int, ...]:
    """Return the seeds 1 to `count`."""
    request.check("seeds", count)
    return tuple(range(1, count + 1))


def check_rates(rates: Iterable[float]) -> tuple[float, ...]:
    """Return the rates in rising order, or say which one cannot be used."""
    found = tuple(rates)
    request.check("learning_rates", found)
    refuse_repeats(found, "learning rate", "learning_rates")
    return tuple(sorted(float(rate) for rate in found))


def check_seeds(seeds: Iterable[int]) -> tuple[int, ...]:
    """Return the seeds as given, or say which one cannot be used."""
    found = tuple(seeds)
    request.check("seeds", found)
    refuse_repeats(found, "seed", "seeds")
    return found


def refuse_repeats(values: Sequence[Any], what: str, field: str) -> None:
    """Refuse a list that holds something twice."""
    seen: set[Any] = set()
    for value in values:
        if value in seen:
            said = f"{value:g}" if isinstance(value, int | float) else value
            raise InvalidSpec(f"The {what} {said} is given twice.", field=field)
        seen.add(value)
