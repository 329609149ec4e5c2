"""From what is typed into the form to a request's body, and from an error to its field."""

import re
from collections.abc import Mapping
from typing import Any

from backend.schemas import SweepCreate
from dashboard.components import body_of
from dashboard.written_numbers import (
    NumberKind,
    Unreadable,
    ordinal,
    read_norms,
    read_number,
    read_rates,
    read_seeds,
    written,
)


class Refused(Exception):
    """A field of the form that cannot be sent.

    Attributes:
        name: The form's name of the field.
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
    "rate_list": "Rates",
    "seeds": "Seeds",
    "epochs": "Epochs",
    "profile": "Profile",
    "batch_size": "Batch size",
    "clip": "Clipping norms",
    "mu": "Ridge mu",
    "batch_rule": "Batch rule",
    "activation": "Activation",
    "device": "Device",
    "width": "Width",
    "depth": "Depth",
    "isgd_form": "ISGD form",
    "inner_steps": "ISGD inner steps",
    "momentum": "Momentum",
    "tau": "Decay: tau",
    "power": "Decay: power",
    "restart": "Restart from zero",
    "note": "Note",
}
#: The components.
FIELDS: dict[str, str] = {name: f"new-{name.replace('_', '-')}" for name in LABELS}
#: Fields of the form that are fields of the body, or of its options, under the same name.
PLAIN = ("epochs", "batch_size", "mu", "batch_rule", "activation", "device", "profile", "note")
OPTIONS = ("isgd_form", "inner_steps", "width", "depth", "momentum")
#: Where the body keeps what the form calls otherwise.
PATHS: dict[str, str] = {
    "rate_from": "learning_rates.from",
    "rate_to": "learning_rates.to",
    "rate_count": "learning_rates.count",
    "rate_list": "learning_rates",
    "tau": "options.decay.tau",
    "power": "options.decay.power",
    "restart": "options.restart",
    **{name: f"options.{name}" for name in OPTIONS},
}


def _schema() -> tuple[dict[str, Any], dict[str, Any], dict[str, Any], dict[str, Any]]:
    whole = SweepCreate.model_json_schema()
    parts = (whole["$defs"][name]["properties"] for name in ("RateGrid", "SweepOptions"))
    grid, options = parts
    return whole["properties"], grid, options, whole["$defs"]["DecayCreate"]["properties"]


def _kind(what: str, schema: Mapping[str, Any], *, needed: bool = False) -> NumberKind:
    """Return the numbers a schema takes: the limits are written down once, in the API."""
    own = next((one for one in schema.get("anyOf", ()) if "maximum" in one), schema)
    beyond = "exclusiveMinimum" in own
    return NumberKind(
        what,
        own["exclusiveMinimum"] if beyond else own["minimum"],
        own["maximum"],
        beyond=beyond,
        whole=own["type"] == "integer",
        needed=needed,
    )


def _kinds() -> dict[str, NumberKind]:
    body, grid, options, decay = _schema()
    own = {name: body[name] for name in ("epochs", "batch_size", "mu")}
    own |= {name: options[name] for name in ("inner_steps", "width", "depth", "momentum")}
    own |= {"tau": decay["tau"], "power": decay["power"]}
    return {
        "rate_from": _kind("A learning rate", grid["from"], needed=True),
        "rate_to": _kind("A learning rate", grid["to"], needed=True),
        "rate_count": _kind(LABELS["rate_count"], grid["count"], needed=True),
        **{name: _kind(LABELS[name], schema) for name, schema in own.items()},
    }


#: What each field of one number takes.
KINDS = _kinds()


def _list_kinds() -> dict[str, NumberKind]:
    body = _schema()[0]
    rates, seeds, clip = (body[name]["anyOf"] for name in ("learning_rates", "seeds", "clip"))
    return {
        "rate": _kind("rate", rates[1]["items"]),
        "count": _kind("The number of seeds", seeds[0]),
        "seed": _kind("seed", seeds[1]["items"]),
        "norm": _kind("norm", clip[0]),
    }


LISTED = _list_kinds()
#: Fields whose `text` counts, as it was typed.
TYPED = (*KINDS, "rate_list", "seeds", "clip")

#: Components that can show an error beneath them.
WITH_ERRORS = tuple(name for name in LABELS if name not in ("mode", "rates_mode", "restart"))
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
RATES = ("rate_from", "rate_to", "rate_count", "rate_list")
DECIDED_BY_PRESET = ("task", "methods", *RATES)


def shown_at(field: str | None, *, rates: str = "grid", preset: bool = False) -> str | None:
    """Return the form's field an error belongs to; None if to none that can be seen.

    Args:
        field: Of the body, as the API names it.
        rates: How the form gives rates.
        preset: Whether it runs a preset.
    """
    parts = (field or "").split(".")
    paths = (".".join(parts[:length]) for length in range(len(parts), 0, -1))
    found = next((SHOWN_AT[path] for path in paths if path in SHOWN_AT), None)
    if found in RATES and rates != "grid":
        found = "rate_list" if rates == "list" else None
    elif found == "rate_list":
        found = "rate_count"
    return None if preset and found in DECIDED_BY_PRESET else found


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


def body_from(form: Mapping[str, Any]) -> dict[str, Any]:
    """Return the body a filled form asks for; what is left empty is left out.

    Raises:
        Refused: If a text is not what its field needs.
    """
    preset = form["mode"] == "preset"
    body: dict[str, Any] = (
        {"preset": form["preset"]}
        if preset
        else {
            "task": form["task"],
            "methods": list(form["methods"] or ()),
            "learning_rates": _rates(form),
        }
    )
    body |= {
        "seeds": _listed(form, "seeds", read_seeds, LISTED["count"], LISTED["seed"]),
        "clip": _listed(form, "clip", read_norms, LISTED["norm"]),
        "options": _options(form),
    }
    body |= {name: _value(form, name) for name in PLAIN}
    return {name: value for name, value in body.items() if value not in (None, "", {}, [])}


def _value(form: Mapping[str, Any], name: str) -> Any:
    """Return a field's value; of one that takes a number, that number."""
    if name not in KINDS:
        return form[name]
    try:
        return read_number(form[name] or "", KINDS[name])
    except Unreadable as error:
        raise Refused(name, str(error)) from None


def _listed(form: Mapping[str, Any], name: str, read: Any, *kinds: NumberKind) -> Any:
    try:
        return read(form[name] or "", *kinds)
    except Unreadable as error:
        raise Refused(name, str(error)) from None


def _rates(form: Mapping[str, Any]) -> Any:
    if form["rates_mode"] == "own":
        return None
    if form["rates_mode"] == "list":
        return _listed(form, "rate_list", read_rates, LISTED["rate"], KINDS["rate_count"])
    return {part: _value(form, f"rate_{part}") for part in ("from", "to", "count")}


def _options(form: Mapping[str, Any]) -> dict[str, Any]:
    options = {name: _value(form, name) for name in OPTIONS}
    options = {name: value for name, value in options.items() if value not in (None, "")}
    if form["restart"]:
        options["restart"] = True
    tau, power = _value(form, "tau"), _value(form, "power")
    if tau is None and power is not None:
        raise Refused("tau", "A decay with a power needs its tau.")
    if tau is not None:
        options["decay"] = {"tau": tau} if power is None else {"tau": tau, "power": power}
    return options


def understood(body: Mapping[str, Any]) -> dict[str, str]:
    """Return what the fields with lists were understood as."""
    seeds, clips = body.get("seeds"), body.get("clip") or ()
    count = isinstance(seeds, int) and seeds > 1
    return {
        "seeds": f"seeds 1 to {seeds}" if count else "seed 1" if seeds == 1 else "",
        "clip": ", ".join("none" if clip is None else written(clip) for clip in clips),
    }


def form_from_spec(spec: Mapping[str, Any]) -> dict[str, Any]:
    """Return how the form has to be filled in to ask for a stored sweep again."""
    body = body_of(dict(spec))
    options = body.pop("options", {})
    decay = options.pop("decay", None) or {}
    clips = body.get("clip")
    given = clips if isinstance(clips, list) else [] if clips is None else [clips]
    form = {
        **{name: body.get(name) for name in (*PLAIN, "task", "methods")},
        "rates_mode": "list",
        "rate_list": ", ".join(written(rate) for rate in body.get("learning_rates", ())),
        "seeds": ", ".join(map(str, body.get("seeds", ()))) + _alone(body.get("seeds", ())),
        "clip": ", ".join("none" if clip is None else written(clip) for clip in given),
        **{name: options.get(name) for name in (*OPTIONS, "restart")},
        "tau": decay.get("tau"),
        "power": decay.get("power"),
    }
    return form | {name: written(form[name]) for name in KINDS if form.get(name) is not None}


def _alone(seeds: Any) -> str:
    """Return the comma that tells a list of one seed from a number of seeds."""
    return "," if len(seeds) == 1 else ""
