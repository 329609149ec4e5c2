"""Learning rates and seeds as people write them, turned into plain tuples."""

import math
from collections.abc import Iterable, Sequence

from ib_core.errors import InvalidSpec

#: A seed has to fit a signed 32-bit column and torch's generators alike.
LARGEST_SEED = 2**31 - 1
MOST_RATES = 1000
MOST_SEEDS = 1000


def log_grid(low: float, high: float, count: int) -> tuple[float, ...]:
    """Return `count` log-spaced rates from `low` to `high`, both included.

    Inner rates are rounded to four significant digits, so that a rate reads well, can be typed
    again, and is the same trial when two grids meet in it.
    """
    _check_rate(low)
    _check_rate(high)
    if not 1 <= count <= MOST_RATES:
        raise InvalidSpec(
            f"A grid needs 1 to {MOST_RATES} learning rates; got {count}.", field="learning_rates"
        )
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


def parse_rates(text: str) -> tuple[float, ...]:
    """Read `0.01:100:13` (log-spaced) or `0.1,1,10`."""
    try:
        if ":" in text:
            low, high, count = text.split(":")
            return log_grid(float(low), float(high), int(count))
        return check_rates([float(part) for part in text.split(",") if part.strip()])
    except ValueError:
        raise InvalidSpec(
            f"Cannot read learning rates from {text!r}; write 0.1,1,10 or from:to:count.",
            field="learning_rates",
        ) from None


def parse_seeds(text: str) -> tuple[int, ...]:
    """Read `5` (seeds 1 to 5) or `1,2,7`; a trailing comma makes a list of one: `7,`."""
    try:
        if "," in text:
            return check_seeds([int(part) for part in text.split(",") if part.strip()])
        return count_seeds(int(text))
    except ValueError:
        raise InvalidSpec(
            f"Cannot read seeds from {text!r}; write 5 (means 1 to 5) or 1,2,7.", field="seeds"
        ) from None


def count_seeds(count: int) -> tuple[int, ...]:
    """Return the seeds 1 to `count`."""
    if not 1 <= count <= MOST_SEEDS:
        raise InvalidSpec(
            f"The number of seeds must be 1 to {MOST_SEEDS}; got {count}.", field="seeds"
        )
    return tuple(range(1, count + 1))


def check_rates(rates: Iterable[float]) -> tuple[float, ...]:
    """Return the rates in rising order, or say which one cannot be used."""
    found = tuple(float(rate) for rate in rates)
    for rate in found:
        _check_rate(rate)
    if not found:
        raise InvalidSpec("Give at least one learning rate.", field="learning_rates")
    if len(found) > MOST_RATES:
        raise InvalidSpec(
            f"At most {MOST_RATES} learning rates; got {len(found)}.", field="learning_rates"
        )
    _refuse_repeats(found, "learning rate", "learning_rates")
    return tuple(sorted(found))


def check_seeds(seeds: Iterable[int]) -> tuple[int, ...]:
    """Return the seeds as given, or say which one cannot be used."""
    found = tuple(seeds)
    for seed in found:
        if not 0 <= seed <= LARGEST_SEED:
            raise InvalidSpec(
                f"A seed must be a whole number from 0 to {LARGEST_SEED}; got {seed}.",
                field="seeds",
            )
    if not 1 <= len(found) <= MOST_SEEDS:
        raise InvalidSpec(f"Give 1 to {MOST_SEEDS} seeds; got {len(found)}.", field="seeds")
    _refuse_repeats(found, "seed", "seeds")
    return found


def _check_rate(rate: float) -> None:
    if not (math.isfinite(rate) and 1e-12 <= rate <= 1e12):
        raise InvalidSpec(
            f"A learning rate must be a number from 1e-12 to 1e12; got {rate:g}.",
            field="learning_rates",
        )


def _refuse_repeats(values: Sequence[float], what: str, field: str) -> None:
    seen: set[float] = set()
    for value in values:
        if value in seen:
            raise InvalidSpec(f"The {what} {value:g} is given twice.", field=field)
        seen.add(value)
