"""A sweep as people write it: THE reader of request bodies, command words and filled-in forms.

`read_body` checks whatever came, setting by setting (`ib_core.sweep.settings`), and returns it in
canonical form; `body_of` and `command_words` go the way back. The grammar of numbers is in
`ib_core.written`. What a body asks to be trained says `ib_core.sweep.spec.specs_of`. Nothing here
needs torch: forms and schemas are drawn from it. Grids of rates and seeds are checked here too.
"""

import shlex
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from ib_core.errors import InvalidSpec, UnknownName
from ib_core.sweep.search import FINDS, MOST, WITHIN, search_text
from ib_core.sweep.settings import SETTINGS, Setting
from ib_core.sweep.values import (
    AGENTS,
    BATCH_RULES,
    ISGD_FORMS,
    POWER,
    PROFILES,
    RATE,
    RATE_COUNT,
    RECORDABLE,
    SEED_COUNT,
    TAU,
    InPart,
    refuse_repeats,
    spread,
)
from ib_core.written import Unreadable, shown, written

__all__ = [
    "AGENTS",
    "BATCH_RULES",
    "FINDS",
    "ISGD_FORMS",
    "MOST",
    "POWER",
    "PROFILES",
    "RATE",
    "RATE_COUNT",
    "RECORDABLE",
    "SEED_COUNT",
    "SETTINGS",
    "TAU",
    "WITHIN",
    "Setting",
    "body_of",
    "check",
    "check_rates",
    "check_seeds",
    "command_line",
    "command_words",
    "count_seeds",
    "log_grid",
    "read_body",
    "refuse_endless",
    "typed_form",
]

#: A preset is a study of given tasks and methods; everything else may be changed beside it.
DECIDED_BY_PRESET = ("task", "methods")
#: In all lists and objects of a body: of rates there are at most 1,000, and as many seeds.
MOST_WRITTEN = 20_000


def read_body(body: Mapping[str, Any], *, typed: bool = False) -> dict[str, Any]:
    """Return what a body says, every value checked and in canonical form, nothing empty.

    Args:
        body: As the API takes it.
        typed: Whether a person typed the values, so that texts stand for numbers.

    Raises:
        IBError: With one sentence, and the field it is about.
    """
    found: dict[str, Any] = {}
    options: dict[str, Any] = {}
    for name, value in _flat(body):
        setting = SETTINGS.get(name)
        if setting is None:
            known = sorted(one for one in SETTINGS)
            raise UnknownName("setting", name, known, field=name)
        try:
            read = setting.read(value, typed)
        except InPart as error:
            raise InvalidSpec(str(error), field=f"{name}.{error.part}") from None
        except Unreadable as error:
            raise InvalidSpec(str(error), field=name) from None
        if read is not None:
            place = options if name.startswith("options.") else found
            place[name.removeprefix("options.")] = read
    _check_preset(found)
    return {**found, "options": options} if options else found


def refuse_endless(body: Any) -> None:
    """Refuse a body with more values than any sweep has, having looked at no more than that."""
    left, seen = [body], 0
    while left:
        one = left.pop()
        if isinstance(one, dict | list):
            seen += len(one)
            left += one.values() if isinstance(one, dict) else one
        if seen > MOST_WRITTEN:
            raise InvalidSpec(f"A sweep is written in at most {MOST_WRITTEN:,} values.")


def _flat(body: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for name, value in body.items():
        if name != "options":
            # What is an option may be said without that word: `"width": [16, 64]`.
            inner = f"options.{name}"
            yield (inner if name not in SETTINGS and inner in SETTINGS else str(name)), value
        elif isinstance(value, Mapping):
            yield from ((f"options.{inner}", one) for inner, one in value.items())
        elif value is not None:
            raise InvalidSpec(f"Options must be an object; got {shown(value)}.", field="options")


def _check_preset(body: Mapping[str, Any]) -> None:
    if "preset" not in body:
        return
    for name in DECIDED_BY_PRESET:
        if name in body:
            raise InvalidSpec(
                f"The preset {body['preset']!r} decides {name}; leave {name} out, or the preset.",
                field=name,
            )


def check(name: str, value: Any) -> None:
    """Refuse a value that is not what a setting takes.

    Raises:
        InvalidSpec: With a sentence, and the setting as its field.
    """
    if SETTINGS[name].listed and isinstance(value, list | tuple):
        raise InvalidSpec(f"One sweep has one {name}; got {shown(value)}.", field=name)
    read_body(dict([_nested(name, value)]))


def _nested(name: str, value: Any) -> tuple[str, Any]:
    inner = name.removeprefix("options.")
    return (name, value) if inner == name else ("options", {inner: value})


def body_of(spec: Mapping[str, Any]) -> dict[str, Any]:
    """Return the body that asks for a stored sweep's grid again.

    Args:
        spec: A `SweepSpec` as the API answers it.
    """
    named = {"clip" if name == "clips" else name: value for name, value in spec.items()}
    if spec.get("search"):
        named["learning_rates"] = spec["search"]
    kept = {name: value for name, value in named.items() if name in SETTINGS and value != ()}
    if kept.get("clip") in ([None], (None,)):
        del kept["clip"]
    options = dict(spec.get("options") or {})
    options |= dict(options.pop("own", ()))
    given = {name: value for name, value in options.items() if f"options.{name}" in SETTINGS}
    own = {
        name: [value]
        for name, value in options.items()
        if name not in given and name not in ("code", "method_code")
    }
    return read_body({**kept, "options": given, "vary": own or None})


def command_words(body: Mapping[str, Any]) -> list[str]:
    """Return the task and the flags by which the command line asks for a body's sweeps."""
    words = [str(body["task"])] if "task" in body else []
    for name, value in _flat(body):
        flag = SETTINGS[name].flag
        if name == "task" or not flag:
            continue
        if name == "options.restart" and isinstance(value, list):  # its flag takes no value
            words += ["--vary", f"restart={typed_form(name, value)}"]
        else:
            words += [flag] if value is True else [flag, typed_form(name, value)]
    return words


def typed_form(name: str, value: Any) -> str:
    """Return a canonical value as a person would type it; reading it gives the value again."""
    if value is None:
        return ""
    if name == "learning_rates" and isinstance(value, Mapping):
        if "find" in value:
            return search_text(value)
        return ":".join(written(value[part]) for part in ("from", "to", "count"))
    if isinstance(value, list | tuple):
        # A number of seeds alone would mean 1 to that number.
        alone = "," if name == "seeds" and len(value) == 1 else ""
        return ",".join(typed_form(name, part) or "none" for part in value) + alone
    if name == "options.decay":
        return ":".join(written(value[part]) for part in ("tau", "power") if part in value)
    if name == "vary":
        return ";".join(f"{key}={','.join(map(_one, one))}" for key, one in value.items())
    return _one(value)


def _one(value: Any) -> str:
    if value is None:
        return "none"
    if isinstance(value, bool):
        return str(value).lower()
    return written(value) if isinstance(value, int | float) else str(value)


def command_line(program: str, body: Mapping[str, Any], *more: str) -> str:
    """Return a line for the shell that asks for a body's sweeps."""
    return shlex.join([*program.split(), *command_words(body), *more])


def log_grid(low: float, high: float, count: int) -> tuple[float, ...]:
    """Return `count` log-spaced rates from `low` to `high`, checked."""
    check("learning_rates", {"from": low, "to": high, "count": count})
    if count == 1 and low != high:
        raise InvalidSpec(
            "A grid of one learning rate must start and end at it.", field="learning_rates"
        )
    if low >= high and count > 1:
        raise InvalidSpec(f"A grid must rise; got {low:g} to {high:g}.", field="learning_rates")
    return check_rates(spread(low, high, count))


def count_seeds(count: int) -> tuple[int, ...]:
    """Return the seeds 1 to `count`."""
    check("seeds", count)
    return tuple(range(1, count + 1))


def check_rates(rates: Iterable[float]) -> tuple[float, ...]:
    """Return the rates in rising order, or say which one cannot be used."""
    found = tuple(rates)
    check("learning_rates", found)
    refuse_repeats(found, "learning rate", "learning_rates")
    return tuple(sorted(float(rate) for rate in found))


def check_seeds(seeds: Iterable[int]) -> tuple[int, ...]:
    """Return the seeds as given, or say which one cannot be used."""
    found = tuple(seeds)
    check("seeds", found)
    refuse_repeats(found, "seed", "seeds")
    return found
