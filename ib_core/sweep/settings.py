"""Everything a sweep can say, each setting once: what it takes, its limits, its flag, its help.

`ib_core.sweep.request` reads whole sweeps by this list; the command line's flags, the API's schema
and the form's fields are drawn from it. Nothing here needs torch.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from ib_core.methods import OF_EVERY_METHOD
from ib_core.sweep.search import FINDS, MOST, WITHIN, read_rates
from ib_core.sweep.values import (
    AGENTS,
    BATCH_RULES,
    ISGD_FORMS,
    LARGEST_OWN,
    LONGEST_OWN,
    LONGEST_WORD,
    MOST_CLIPS,
    MOST_METHODS,
    MOST_OWN,
    MOST_VALUES,
    NORM,
    POWER,
    PROFILES,
    RATE,
    RATE_COUNT,
    RECORDABLE,
    SEED,
    SEED_COUNT,
    TAU,
    WORKERS,
    read_clip,
    read_decay,
    read_methods,
    read_note,
    read_own,
    read_record,
    read_restart,
    read_seed_list,
    read_values,
    read_vary,
    read_word,
    refusal,
)
from ib_core.written import NumberKind, check_number, read_number

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
        listed: Whether several values make a family.
    """

    name: str
    help: str
    read: Callable[[Any, bool], Any]
    schema: Schema = field(repr=False)
    flag: str = ""
    kind: NumberKind | None = None
    choices: tuple[str, ...] = ()
    listed: bool = False


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


def _share(name: str, help: str, kind: NumberKind) -> Setting:
    """Return a setting of a number that is off at 0."""
    number = _number(name, help, kind)
    return replace(number, read=lambda value, typed: number.read(value, typed) or None)


def _family(setting: Setting, *, off: bool = False) -> Setting:
    """Return a setting that takes a list of its values as well, typed as `16, 64`.

    Args:
        setting: What reads one of them.
        off: Whether "none" is a value.
    """
    one, nothing = setting.schema["anyOf"][0], {"type": "null"}
    schema = _list_of({"anyOf": [one, nothing]} if off else one, MOST_VALUES)
    return replace(
        setting,
        read=lambda value, typed: read_values(value, typed, setting.read, setting.kind, off=off),
        schema=_nullable(one, schema),
        listed=True,
    )


def _word(name: str, what: str, help: str) -> Setting:
    schema = {"type": "string", "minLength": 1, "maxLength": LONGEST_WORD}
    return Setting(
        name,
        help,
        lambda value, typed: read_word(value, what),
        _nullable(schema),
        _flag(name),
    )


def _choice(name: str, what: str, choices: tuple[str, ...], help: str) -> Setting:
    def read(value: Any, typed: bool) -> str | None:
        if value is None or (typed and value == ""):
            return None
        if value not in choices:
            raise refusal(what, f"one of {', '.join(choices)}", value)
        return str(value)

    schema = _nullable({"type": "string", "enum": list(choices)})
    return Setting(name, help, read, schema, _flag(name), choices=choices)


def _flag(name: str) -> str:
    return "--" + name.removeprefix("options.").replace("_", "-")


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
_SEARCH: Schema = {
    "type": "object",
    "description": "Rates are found round by round: each seed's edge, or the best rate.",
    "properties": {
        "find": {"type": "string", "enum": list(FINDS)},
        "from": _nullable(_schema_of(RATE)),
        "to": _nullable(_schema_of(RATE)),
        "within": _nullable(_schema_of(WITHIN)),
        "most": _nullable(_schema_of(MOST)),
    },
    "required": ["find"],
    "additionalProperties": False,
    "examples": [{"find": "edge", "within": 1.1, "from": 0.01, "to": 1000, "most": 300}],
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
            read_methods,
            _nullable(
                _list_of({"type": "string", "minLength": 1, "maxLength": 100}, MOST_METHODS), _TEXT
            ),
            "--methods",
        ),
        Setting(
            "learning_rates",
            "A list, as 0.1,1,10, a grid, as from:to:count, or a search, as edge:from:to or "
            "best:from:to:within:most; default: the task's own.",
            read_rates,
            _nullable(_GRID, _SEARCH, _list_of(_schema_of(RATE), RATE_COUNT.high), _TEXT),
            "--lrs",
        ),
        Setting(
            "seeds",
            "5 means 1 to 5; or a list, as 1,2,7; default: the task's own.",
            read_seed_list,
            _nullable(_schema_of(SEED_COUNT), _list_of(_schema_of(SEED), SEED_COUNT.high), _TEXT),
            "--seeds",
        ),
        _family(_number("epochs", "Default: the task's.", _whole("Epochs", 10_000))),
        _family(_number("batch_size", "Default: the task's.", _whole("Batch size", 1_000_000))),
        Setting(
            "clip",
            "Largest gradient norm; a list tries each, as none,1; default: none.",
            read_clip,
            _nullable(
                _schema_of(NORM),
                _list_of({"anyOf": [_schema_of(NORM), {"type": "null"}]}, MOST_CLIPS),
                _TEXT,
            ),
            "--clip",
        ),
        _family(_number("mu", "Ridge strength; default: 0.", NumberKind("Ridge mu", 0.0, 1e6))),
        _family(
            _choice(
                "batch_rule",
                "Batch rule",
                BATCH_RULES,
                "How a batch's implicit steps merge, own or share; default: the profile's.",
            )
        ),
        _family(
            _choice(
                "schedule",
                "A schedule",
                tuple(map(str, OF_EVERY_METHOD["schedule"].choices)),
                "How rates change: constant, linear, cosine or decay; default: constant.",
            )
        ),
        _family(
            _number(
                "warmup",
                "Steps in which rates rise to their full size; default: 0.",
                NumberKind("A warm-up", 0, 1_000_000, whole=True),
            )
        ),
        _choice("profile", "Profile", PROFILES, "text or authors; default: text."),
        _family(_word("activation", "An activation", "Default: the task's.")),
        _word("device", "A device", "auto, cpu or cuda; default: auto."),
        _choice(
            "where",
            "Where",
            (WORKERS, AGENTS),
            "Who trains: the service's workers, or programs that claim cells; default: workers.",
        ),
        Setting(
            "settings",
            "With where agents: what else its program shall know, as names and values.",
            read_own,
            _nullable(
                {
                    "type": "object",
                    "maxProperties": MOST_OWN,
                    "propertyNames": {"minLength": 1, "maxLength": LONGEST_WORD},
                    "additionalProperties": _nullable(
                        {"type": "string", "maxLength": LONGEST_OWN},
                        {"type": "number", "minimum": -LARGEST_OWN, "maximum": LARGEST_OWN},
                        {"type": "boolean"},
                    ),
                }
            ),
            "",
        ),
        Setting(
            "vary",
            "Values of any setting or option, as width=16,64; all combinations are tried.",
            read_vary,
            _nullable({"type": "object", "additionalProperties": _list_of({}, MOST_VALUES)}),
            "--vary",
        ),
        Setting(
            "record",
            "What to keep of every trial's way, norms, sharpness, activations; default: nothing.",
            read_record,
            _nullable(
                _list_of({"type": "string", "enum": list(RECORDABLE)}, len(RECORDABLE)), _TEXT
            ),
            "--record",
        ),
        Setting(
            "note", "Kept with the sweep.", read_note, {"type": "string", "maxLength": 10_000}, ""
        ),
        _family(_number("options.width", "Hidden units a layer.", _whole("Width", 4096))),
        _family(_number("options.depth", "Hidden layers.", _whole("Depth", 64))),
        _family(
            _choice(
                "options.isgd_form",
                "ISGD form",
                ISGD_FORMS,
                "Exact ISGD's pull towards the old weights, text or authors.",
            )
        ),
        _family(
            _number("options.inner_steps", "Of exact ISGD.", _whole("ISGD inner steps", 10_000))
        ),
        _family(
            _number(
                "options.momentum",
                "Of the methods that have one; default: 0.9.",
                NumberKind("Momentum", 0.0, 0.9999),
            )
        ),
        _family(
            _share(
                "options.validation",
                "Share of the training rows held out, to choose rates and epochs on; "
                "default: none.",
                NumberKind("The validation share", 0.0, 0.5),
            ),
            off=True,
        ),
        _family(
            Setting(
                "options.decay",
                "Decaying rates lr / (1 + t/tau)^power, as tau or tau:power.",
                read_decay,
                _nullable(_DECAY),
                "--decay",
            ),
            off=True,
        ),
        _family(
            Setting(
                "options.restart",
                "Restart from zero outside the level set (App. C); needs mu > 0.",
                read_restart,
                _nullable({"type": "boolean"}),
                "--restart",
            ),
            off=True,
        ),
    )
}
