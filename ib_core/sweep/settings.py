"""Everything a sweep can say, each setting once: what it takes, its limits, its flag, its help.

`ib_core.sweep.request` reads whole sweeps by this list; the command line's flags, the API's schema
and the form's fields are drawn from it. Nothing here needs torch.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from ib_core.written import (
    NumberKind,
    Unreadable,
    check_number,
    ordinal,
    read_norms,
    read_number,
    read_rates,
    read_seeds,
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

PROFILES = ("text", "authors")
BATCH_RULES = ("own", "share")
ISGD_FORMS = ("text", "authors")
LONGEST_WORD, MOST_METHODS, MOST_CLIPS = 100, 20, 20

Schema = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Setting:
    """One thing a sweep can say.

    Attributes:
        name: Its place in a body, as a dotted path.
        help: For documentation and `--help`.
        read: Returns the canonical JSON value of what came, None for nothing; the second argument
            says whether it was typed by a person, so that a text stands for a number.
        schema: What is taken, as JSON schema.
        flag: How the command line says it.
        kind: Of a single number.
        choices: Of a word out of few.
    """

    name: str
    help: str
    read: Callable[[Any, bool], Any]
    schema: Schema = field(repr=False)
    flag: str = ""
    kind: NumberKind | None = None
    choices: tuple[str, ...] = ()


def _refusal(what: str, legal: str, value: Any) -> Unreadable:
    return Unreadable(f"{what} must be {legal}; got {shown(value)}.")


def _nullable(*schemas: Schema) -> Schema:
    return {"anyOf": [*schemas, {"type": "null"}]}


def _schema_of(kind: NumberKind) -> Schema:
    low = "exclusiveMinimum" if kind.beyond else "minimum"
    return {"type": "integer" if kind.whole else "number", low: kind.low, "maximum": kind.high}


def _number(name: str, help: str, kind: NumberKind) -> Setting:
    def read(value: Any, typed: bool) -> Any:
        if typed and isinstance(value, str):
            return read_number(value, kind)
        return check_number(value, kind)

    return Setting(name, help, read, _nullable(_schema_of(kind)), _flag(name), kind=kind)


def _word(name: str, what: str, help: str) -> Setting:
    schema = {"type": "string", "minLength": 1, "maxLength": LONGEST_WORD}
    return Setting(
        name,
        help,
        lambda value, typed: _read_word(value, what),
        _nullable(schema),
        _flag(name),
    )


def _read_word(value: Any, what: str) -> str | None:
    if value is None or value == "":
        return None
    if not isinstance(value, str) or len(value) > LONGEST_WORD:
        raise _refusal(what, f"a name of at most {LONGEST_WORD} characters", value)
    return value.strip()


def _choice(name: str, what: str, choices: tuple[str, ...], help: str) -> Setting:
    def read(value: Any, typed: bool) -> str | None:
        if value is None or (typed and value == ""):
            return None
        if value not in choices:
            raise _refusal(what, f"one of {', '.join(choices)}", value)
        return str(value)

    schema = _nullable({"type": "string", "enum": list(choices)})
    return Setting(name, help, read, schema, _flag(name), choices=choices)


def _flag(name: str) -> str:
    return "--" + name.removeprefix("options.").replace("_", "-")


def _read_methods(value: Any, typed: bool) -> list[str] | None:
    if value is None or (typed and value in ("", [])):
        return None
    words = words_in(value) if isinstance(value, str) else value
    if not isinstance(words, list | tuple) or not all(isinstance(word, str) for word in words):
        raise _refusal("Methods", "a list of names, as eb,ib", value)
    if not 1 <= len(words) <= MOST_METHODS:
        raise Unreadable(f"Give 1 to {MOST_METHODS} methods; got {len(words)}.")
    return [word.strip() for word in words]


def _read_rates(value: Any, typed: bool) -> Any:
    if value is None:
        return None
    if isinstance(value, str):
        return read_rates(value, RATE, RATE_COUNT)
    if isinstance(value, Mapping):
        return _read_grid(value, typed)
    if not isinstance(value, list | tuple):
        raise _refusal("Learning rates", "a list, from:to:count, or from, to and count", value)
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


def _read_seeds(value: Any, typed: bool) -> Any:
    if isinstance(value, str):
        return read_seeds(value, SEED_COUNT, SEED)
    if isinstance(value, list | tuple):
        return _each(value, SEED, "seeds", SEED_COUNT.high)
    return check_number(value, SEED_COUNT)


def _read_clip(value: Any, typed: bool) -> list[float | None] | None:
    if isinstance(value, str):
        return read_norms(value, NORM)
    if not isinstance(value, list | tuple):
        found = check_number(value, NORM)
        return None if found is None else [found]
    if not 1 <= len(value) <= MOST_CLIPS:
        raise Unreadable(f"Give 1 to {MOST_CLIPS} clipping norms; got {len(value)}.")
    return [_nth(norm, index, NORM) for index, norm in enumerate(value)]


def _read_decay(value: Any, typed: bool) -> dict[str, Any] | None:
    """Read `{"tau": 100, "power": 0.75}`, or typed `100` or `100:0.75`."""
    if value is None or (typed and value in ("", {})):
        return None
    if typed and isinstance(value, str):
        tau, _, power = value.partition(":")
        value = {"tau": tau, "power": power}
    if not isinstance(value, Mapping) or not value.keys() <= {"tau", "power"}:
        raise _refusal("A decay", "its tau and perhaps its power", value)
    parts = {}
    for name, kind in (("power", POWER), ("tau", TAU)):
        given = value.get(name)
        try:
            text = given is None or (typed and isinstance(given, str))
            parts[name] = read_number(given or "", kind) if text else check_number(given, kind)
        except Unreadable as error:
            raise InPart(name, str(error)) from None
    return {name: parts[name] for name in ("tau", "power") if parts[name] is not None}


def _read_restart(value: Any, typed: bool) -> bool | None:
    if typed and isinstance(value, str):
        value = {"": None, "1": True, "yes": True, "true": True, "no": False, "false": False}.get(
            value.strip().lower(), value
        )
    if value is None or isinstance(value, bool):
        return value or None
    raise _refusal("Restart", "true or false", value)


def _read_note(value: Any, typed: bool) -> str | None:
    if value is None or value == "":
        return None
    if not isinstance(value, str) or len(value) > 10_000 or "\x00" in value:
        raise Unreadable("A note is a text of at most 10,000 characters, without NUL.")
    return value


class InPart(Unreadable):
    """A part of a setting that cannot be read, such as the `to` of a grid."""

    def __init__(self, part: str, message: str) -> None:
        super().__init__(message)
        self.part = part


_TEXT: Schema = {"type": "string", "minLength": 1, "maxLength": 100_000}
_GRID: Schema = {
    "type": "object",
    "description": "Log-spaced, both ends included.",
    "properties": {
        "from": _schema_of(RATE),
        "to": _schema_of(RATE),
        "count": _schema_of(RATE_COUNT),
    },
    "required": ["from", "to", "count"],
    "additionalProperties": False,
    "examples": [{"from": 0.01, "to": 100, "count": 13}],
}
_DECAY: Schema = {
    "type": "object",
    "properties": {"tau": _schema_of(TAU), "power": _schema_of(POWER)},
    "required": ["tau"],
    "additionalProperties": False,
}


def _list_of(item: Schema, most: float, **more: Any) -> Schema:
    return {"type": "array", "items": item, "minItems": 1, "maxItems": int(most), **more}


def _whole(what: str, high: int) -> NumberKind:
    return NumberKind(what, 1, high, whole=True)


#: Every setting of a sweep, in the order in which people say them.
SETTINGS: dict[str, Setting] = {
    setting.name: setting
    for setting in (
        _word("task", "A task", "A name from the catalogue; needed without preset."),
        _word("preset", "A preset", "A preset from the catalogue, as paper/05_jsb_chorales."),
        Setting(
            "methods",
            "Names from the catalogue, as eb,ib; default: eb and ib.",
            _read_methods,
            _nullable(
                _list_of({"type": "string", "minLength": 1, "maxLength": 100}, MOST_METHODS), _TEXT
            ),
            "--methods",
        ),
        Setting(
            "learning_rates",
            "A list, as 0.1,1,10, or a grid, as from:to:count; default: the task's own.",
            _read_rates,
            _nullable(_GRID, _list_of(_schema_of(RATE), RATE_COUNT.high), _TEXT),
            "--lrs",
        ),
        Setting(
            "seeds",
            "5 means 1 to 5; or a list, as 1,2,7; default: the task's own.",
            _read_seeds,
            _nullable(_schema_of(SEED_COUNT), _list_of(_schema_of(SEED), SEED_COUNT.high), _TEXT),
            "--seeds",
        ),
        _number("epochs", "Default: the task's.", _whole("Epochs", 10_000)),
        _number("batch_size", "Default: the task's.", _whole("Batch size", 1_000_000)),
        Setting(
            "clip",
            "Largest gradient norm; a list tries each, as none,1; default: none.",
            _read_clip,
            _nullable(
                _schema_of(NORM),
                _list_of({"anyOf": [_schema_of(NORM), {"type": "null"}]}, MOST_CLIPS),
                _TEXT,
            ),
            "--clip",
        ),
        _number("mu", "Ridge strength; default: 0.", NumberKind("Ridge mu", 0.0, 1e6)),
        _choice(
            "batch_rule",
            "Batch rule",
            BATCH_RULES,
            "How a batch's implicit steps merge, own or share; default: the profile's.",
        ),
        _choice("profile", "Profile", PROFILES, "text or authors; default: text."),
        _word("activation", "An activation", "Default: the task's."),
        _word("device", "A device", "auto, cpu or cuda; default: auto."),
        Setting(
            "note", "Kept with the sweep.", _read_note, {"type": "string", "maxLength": 10_000}, ""
        ),
        _number("options.width", "Hidden units a layer.", _whole("Width", 4096)),
        _number("options.depth", "Hidden layers.", _whole("Depth", 64)),
        _choice(
            "options.isgd_form",
            "ISGD form",
            ISGD_FORMS,
            "Exact ISGD's pull towards the old weights, text or authors.",
        ),
        _number("options.inner_steps", "Of exact ISGD.", _whole("ISGD inner steps", 10_000)),
        _number("options.momentum", "Of method momentum.", NumberKind("Momentum", 0.0, 0.9999)),
        Setting(
            "options.decay",
            "Decaying rates lr / (1 + t/tau)^power, as tau or tau:power.",
            _read_decay,
            _nullable(_DECAY),
            "--decay",
        ),
        Setting(
            "options.restart",
            "Restart from zero outside the level set (App. C); needs mu > 0.",
            _read_restart,
            _nullable({"type": "boolean"}),
            "--restart",
        ),
    )
}
