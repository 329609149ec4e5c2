"""From what is typed into the form to a request's body, and from an error to its field."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from ib_core.errors import IBError
from ib_core.sweep.request import (
    MOST,
    POWER,
    RATE,
    RATE_COUNT,
    SETTINGS,
    TAU,
    WITHIN,
    body_of,
    read_body,
    typed_form,
)
from ib_core.written import NumberKind, Unreadable, ordinal, read_numbers, written


class Refused(Exception):
    """A field of the form that cannot be sent.

    Attributes:
        name: The form's name of the field; `vary.NAME` is that of an option of the task's own.
    """

    def __init__(self, name: str, message: str) -> None:
        super().__init__(message)
        self.name = name


#: Every control of the form by its name here, and its label.
LABELS: dict[str, str] = {
    "mode": "How to start",
    "preset": "Preset",
    "task": "Task",
    "methods": "Methods",
    "rates_mode": "How rates are given",
    "rate_from": "From",
    "rate_to": "To",
    "rate_count": "Number of rates",
    "rate_within": "Within a factor of",
    "rate_most": "Trials at most",
    "rate_list": "Rates",
    "seeds": "Seeds",
    "epochs": "Epochs",
    "profile": "Profile",
    "batch_size": "Batch size",
    "clip": "Clipping norms",
    "mu": "Ridge mu",
    "batch_rule": "Batch rule",
    "schedule": "Schedule",
    "warmup": "Warm-up steps",
    "activation": "Activation",
    "device": "Device",
    "width": "Width",
    "depth": "Depth",
    "isgd_form": "ISGD form",
    "inner_steps": "ISGD inner steps",
    "momentum": "Momentum",
    "validation": "Validation share",
    "record": "Record on the way",
    "tau": "Decay: tau",
    "power": "Decay: power",
    "restart": "Restart from zero",
    "note": "Note",
    "other_methods": "Other methods",
    "vary": "The task's own options",
}
#: The components.
FIELDS: dict[str, str] = {name: f"new-{name.replace('_', '-')}" for name in LABELS}
#: Fields of the form that are fields of the body, or of its options, under the same name.
PLAIN = (
    *("epochs", "batch_size", "mu", "batch_rule", "schedule", "warmup", "activation"),
    *("device", "profile", "record", "note"),
)
OPTIONS = ("isgd_form", "inner_steps", "width", "depth", "momentum", "validation")
#: Where the body keeps what the form calls otherwise.
PATHS: dict[str, str] = {
    "rate_from": "learning_rates.from",
    "rate_to": "learning_rates.to",
    "rate_count": "learning_rates.count",
    "rate_within": "learning_rates.within",
    "rate_most": "learning_rates.most",
    "rate_list": "learning_rates",
    "tau": "options.decay.tau",
    "power": "options.decay.power",
    "restart": "options.restart",
    **{name: f"options.{name}" for name in OPTIONS},
}


#: What each field of one number takes; the limits stand in the list of settings.
KINDS: dict[str, NumberKind] = {
    "rate_from": replace(RATE, needed=True),
    "rate_to": replace(RATE, needed=True),
    "rate_count": replace(RATE_COUNT, what=LABELS["rate_count"], needed=True),
    "rate_within": WITHIN,
    "rate_most": MOST,
    **{
        name: kind
        for name in LABELS
        if (setting := SETTINGS.get(PATHS.get(name, name)))
        and (kind := setting.kind)
        and not setting.listed
    },
    "tau": replace(TAU, needed=False),
    "power": POWER,
}
#: Settings that make a family where they are given several values: typed, or chosen.
FAMILIES = {
    name: setting
    for name in LABELS
    if (setting := SETTINGS.get(PATHS.get(name, name))) and setting.listed
}
CHOSEN = tuple(name for name, setting in FAMILIES.items() if setting.kind is None)
#: Fields of several numbers, which the server reads; and all whose `text` counts, as typed.
LISTS = ("rate_list", "seeds", "clip", *(name for name in FAMILIES if name not in CHOSEN))
UNDERSTOOD = LISTS[1:]
TYPED = (*KINDS, *LISTS)

#: Components that can show an error beneath them; so can the fields of a task's own options.
WITH_ERRORS = tuple(
    name for name in LABELS if name not in ("mode", "rates_mode", "restart", "vary")
)
#: Fields of the body, and where the form shows what is wrong with them.
SHOWN_AT: dict[str, str] = {
    **{PATHS.get(name, name): name for name in WITH_ERRORS},
    "clips": "clip",
    "decay": "tau",
    "options.decay": "tau",
    "options.restart": "mu",
    **{name: name for name in OPTIONS},
}


#: Fields that say which rates, and those that a preset decides.
RATES = ("rate_from", "rate_to", "rate_count", "rate_within", "rate_most", "rate_list")
#: What each way to give rates in fields of their own has besides from and to.
PARTS = {"grid": ("count",), "edge": ("within", "most")}
DECIDED_BY_PRESET = ("task", "methods", "other_methods", *RATES)
#: More values than this are not all repeated.
MOST_SPOKEN = 8
#: Before the name of a task's own option.
OWN = "vary."


def label_of(name: str) -> str:
    """Return what stands above a field."""
    return name.removeprefix(OWN) if name.startswith(OWN) else LABELS[name]


def shown_at(
    field: str | None, *, rates: str = "grid", preset: bool = False, falls: bool = False
) -> str | None:
    """Return the form's field an error belongs to; None if to none that can be seen.

    Args:
        field: Of the body, as the API names it.
        rates: How the form gives rates.
        preset: Whether it runs a preset.
        falls: Whether the grid does not rise: then it is its end that is wrong.
    """
    if (field or "").startswith(OWN):
        return None if preset else field
    parts = (field or "").split(".")
    paths = (".".join(parts[:length]) for length in range(len(parts), 0, -1))
    found = next((SHOWN_AT[path] for path in paths if path in SHOWN_AT), None)
    if found in RATES and rates not in PARTS:
        found = "rate_list" if rates == "list" else None
    elif found == "rate_list":
        found = "rate_to" if falls else f"rate_{PARTS[rates][-1]}"
    return None if preset and found in DECIDED_BY_PRESET else found


def grid_falls(body: Mapping[str, Any]) -> bool:
    """Return whether a body's rates are a grid that ends at or below its start."""
    rates = body.get("learning_rates")
    if not isinstance(rates, Mapping) or not {"from", "to"} <= rates.keys():
        return False
    return bool(rates.get("count", 2) > 1 and rates["from"] >= rates["to"])


def in_the_forms_words(message: str) -> str:
    """Return an error of the API with the form's labels for the API's names.

    `clip.0 should be ...` becomes "Clipping norms: the first one should be ...".
    """
    message = re.sub(r"\bleave (\S+) out\b", r"leave \1 empty", message)
    message = re.sub(r"\b0\.0{6,}\d+\b", lambda found: f"{float(found[0]):g}", message)
    for name, label in LABELS.items():
        path = PATHS.get(name, name)
        if "_" in path or "." in path or re.match(rf"{path}\b[ .]", message):
            message = _renamed(message, path, label)
    return message


def _renamed(message: str, path: str, label: str) -> str:
    def words(found: re.Match[str]) -> str:
        return label if found[1] is None else f"{label}: the {ordinal(int(found[1]))} one"

    return re.sub(rf"(?<![\w.]){re.escape(path)}(?:\.(\d+))?(?![\w]|\.\w)", words, message)


def body_from(form: Mapping[str, Any], options: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Return the body a filled form asks for; what is left empty is left out.

    Args:
        form: What its fields hold, by name.
        options: The task's own, each with its JSON schema.

    Raises:
        Refused: If a text is not what its field needs.
    """
    preset = form["mode"] == "preset"
    chosen = {"preset": form["preset"]} if preset else _chosen(form, options or {})
    decay = {name: form[name] for name in ("tau", "power") if form[name]}
    form = {**form, **{name: form[name] or None for name in CHOSEN}}
    options = {name: form[name] for name in (*OPTIONS, "restart")} | {"decay": decay}
    said = {name: form[name] for name in ("seeds", "clip", *PLAIN)}
    try:
        return read_body({**chosen, **said, "options": options}, typed=True)
    except IBError as error:
        where = shown_at(error.field, rates=form["rates_mode"], preset=preset)
        raise Refused(where or "task", error.message) from None


def _chosen(form: Mapping[str, Any], options: Mapping[str, Any]) -> dict[str, Any]:
    mode = form["rates_mode"]
    if mode in PARTS:
        rates: Any = {part: form[f"rate_{part}"] for part in ("from", "to", *PARTS[mode])}
        rates |= {"find": "edge"} if mode == "edge" else {}
    else:
        rates = None if mode == "own" else form["rate_list"] or ""
    other = SETTINGS["methods"].read(form["other_methods"] or "", True) or []
    return {
        "task": form["task"],
        "methods": [*(form["methods"] or ()), *other],
        "learning_rates": rates,
        "vary": read_own(form["vary"], options),
    }


def own_texts(text: str | None) -> dict[str, str]:
    """Return what the fields of a task's own options hold, by name; empty ones are left out.

    Args:
        text: JSON, as the browser gathers it: by name what was typed, or chosen, that as JSON.
    """
    try:
        given = json.loads(text or "{}")
    except ValueError:
        return {}
    texts = given.items() if isinstance(given, dict) else ()
    return {name: one for name, one in texts if isinstance(one, str) and one.strip(" ,;")}


def chosen_in(text: str) -> list[Any]:
    """Return the values of a choice; a text that is none is left for the server to refuse."""
    try:
        found: list[Any] = json.loads(f"[{text}]")
    except ValueError:
        return [text]
    return found


def read_own(text: str | None, options: Mapping[str, Any]) -> dict[str, list[Any]]:
    """Return the values that the fields of a task's own options hold, by name.

    Numbers are read as in every list of the form.

    Args:
        text: See `own_texts`.
        options: The JSON schema of each.

    Raises:
        Refused: At the field whose text is not what its option takes.
    """
    found: dict[str, list[Any]] = {}
    for name, typed in own_texts(text).items():
        schema = options.get(name, {})
        try:
            if kind := _kind_of(name, schema):
                found[name] = read_numbers(typed, kind)
            else:
                found[name] = chosen_in(typed) if "enum" in schema else [typed]
        except Unreadable as error:
            raise Refused(f"{OWN}{name}", str(error)) from None
    return found


def _kind_of(name: str, schema: Mapping[str, Any]) -> NumberKind | None:
    whole = schema.get("type") == "integer"
    if not whole and schema.get("type") != "number":
        return None
    return NumberKind(f"The value of {name}", schema["minimum"], schema["maximum"], whole=whole)


def written_own(vary: Mapping[str, Sequence[Any]] | None) -> str:
    """Return what `read_own` reads as these values."""
    texts = {name: ", ".join(map(_typed, values)) for name, values in (vary or {}).items()}
    return json.dumps(texts)


def _typed(value: Any) -> str:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return written(value) if number else json.dumps(value)


def own_answers(
    text: str | None,
    *,
    read: Mapping[str, Sequence[Any]] | None = None,
    wrong: tuple[str, str] | None = None,
) -> dict[str, dict[str, str]]:
    """Return what is said beneath the fields of a task's own options, and of which texts.

    Args:
        text: See `own_texts`.
        read: What they were understood as.
        wrong: The name of one, and what is wrong with it.
    """
    found = {name: {"answers": typed} for name, typed in own_texts(text).items()}
    for name, values in (read or {}).items():
        if name in found:
            found[name]["understood"] = _spoken([_typed(value) for value in values])
    if wrong is not None:
        found.setdefault(wrong[0], {})["error"] = wrong[1]
    return found


def understood(body: Mapping[str, Any]) -> dict[str, str]:
    """Return what the fields with lists were understood as."""
    said = {**body, **{f"options.{name}": one for name, one in body.get("options", {}).items()}}
    paths = {name: PATHS.get(name, name) for name in UNDERSTOOD}
    found = {
        name: _spoken(typed_form(path, said.get(path)).split(",")) for name, path in paths.items()
    }
    return found | {"seeds": _seeds(body.get("seeds"))}


def _seeds(seeds: int | Sequence[int] | None) -> str:
    if isinstance(seeds, int):
        return f"seeds 1 to {seeds}" if seeds > 1 else "seed 1"
    return _spoken([str(seed) for seed in seeds], "seed") if seeds else ""


def _spoken(texts: Sequence[str], noun: str = "value") -> str:
    """Return one value as it stands, and how many there are of several: `1,5` may be a slip."""
    if len(texts) == 1:
        return f"{noun} {texts[0]}" if noun == "seed" else texts[0]
    named = texts if len(texts) <= MOST_SPOKEN else (*texts[:3], "…", texts[-1])
    return f"{len(texts)} {noun}s: {', '.join(named[:-1])} and {named[-1]}"


def form_from_spec(spec: Mapping[str, Any]) -> dict[str, Any]:
    """Return how the form has to be filled in to ask for a stored sweep again."""
    body = body_of(spec)
    options = body.pop("options", {})
    decay = options.pop("decay", {})
    form = {
        **{name: body.get(name) for name in (*PLAIN, "task", "methods")},
        "rates_mode": "list",
        "rate_list": typed_form("learning_rates", body.get("learning_rates")).replace(",", ", "),
        "seeds": typed_form("seeds", body.get("seeds")).replace(",", ", ").rstrip(" "),
        "clip": typed_form("clip", body.get("clip")).replace(",", ", "),
        **{name: options.get(name) for name in (*OPTIONS, "restart")},
        "tau": decay.get("tau"),
        "power": decay.get("power"),
        "vary": written_own(body.get("vary")),
    }
    rates = body.get("learning_rates")
    if isinstance(rates, Mapping) and rates.get("find") == "edge":
        form |= {"rates_mode": "edge", "rate_list": None}
        form |= {f"rate_{part}": rates.get(part) for part in ("from", "to", *PARTS["edge"])}
    form |= {name: [form[name]] for name in CHOSEN if form.get(name) is not None}
    numbers = (*KINDS, *(name for name in FAMILIES if name not in CHOSEN))
    return form | {name: written(form[name]) for name in numbers if form.get(name) is not None}
