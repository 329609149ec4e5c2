"""From what is typed into the form to a request's body, and from an error to its field."""

from collections.abc import Mapping
from typing import Any

from dashboard.components.copy_as import body_of
from dashboard.ids import NewSweep as ids


class Unreadable(Exception):
    """A text that is no number or list of numbers.

    Attributes:
        field: The body's field it was meant for.
    """

    def __init__(self, field: str, message: str) -> None:
        super().__init__(message)
        self.field = field


#: Fields of the form that are fields of the body under the same name, empty meaning "default".
PLAIN = ("epochs", "batch_size", "batch_rule", "activation", "device")
OPTIONS = ("isgd_form", "inner_steps", "width", "depth", "momentum")

#: Every control of the form: its name here, and the component's id.
FIELDS: dict[str, str] = {
    "mode": ids.MODE,
    "preset": ids.PRESET,
    "task": ids.TASK,
    "methods": ids.METHODS,
    "rates_mode": ids.RATES_MODE,
    "rate_from": ids.RATE_FROM,
    "rate_to": ids.RATE_TO,
    "rate_count": ids.RATE_COUNT,
    "rate_list": ids.RATE_LIST,
    "seeds": ids.SEEDS,
    **{
        name: f"new-{name.replace('_', '-')}"
        for name in (*PLAIN, "clip", "mu", "profile", *OPTIONS, "restart", "tau", "power", "note")
    },
}

#: Where an error about a field of the body is shown; the longest matching path decides.
SHOWN_AT: dict[str, str] = {
    "task": ids.TASK,
    "preset": ids.PRESET,
    "methods": ids.METHODS,
    "learning_rates": ids.RATE_LIST,
    "learning_rates.from": ids.RATE_FROM,
    "learning_rates.to": ids.RATE_TO,
    "learning_rates.count": ids.RATE_COUNT,
    "seeds": ids.SEEDS,
    "clip": FIELDS["clip"],
    "clips": FIELDS["clip"],
    "mu": FIELDS["mu"],
    "note": FIELDS["note"],
    "profile": FIELDS["profile"],
    "options.decay": FIELDS["tau"],
    "options.decay.tau": FIELDS["tau"],
    "options.decay.power": FIELDS["power"],
    "decay": FIELDS["tau"],
    "options.restart": FIELDS["restart"],
    "restart": FIELDS["restart"],
    **{name: FIELDS[name] for name in PLAIN},
    **{name: FIELDS[name] for name in OPTIONS},
    **{f"options.{name}": FIELDS[name] for name in OPTIONS},
}

#: Components that can show an error beneath them.
WITH_ERRORS = tuple(dict.fromkeys(SHOWN_AT.values()))


def shown_at(field: str | None, *, by_list: bool = False) -> str | None:
    """Return the component an error belongs to; None if to none in particular."""
    if field is None:
        return None
    if field == "learning_rates" and not by_list:
        return ids.RATE_COUNT
    parts = field.split(".")
    for length in range(len(parts), 0, -1):
        found = SHOWN_AT.get(".".join(parts[:length]))
        if found is not None:
            return found
    return None


def body_from(form: Mapping[str, Any]) -> dict[str, Any]:
    """Return the body a filled form asks for; what is left empty is left out.

    Raises:
        Unreadable: If a text is not what its field needs.
    """
    if form["mode"] == "preset":
        return _preset_body(form)
    body: dict[str, Any] = {
        "task": form["task"],
        "methods": list(form["methods"] or ()),
        "learning_rates": _rates(form),
        "seeds": _seeds(form["seeds"]),
        "clip": _clips(form["clip"]),
        "mu": form["mu"] or None,
        "profile": form["profile"],
        "note": form["note"],
        "options": _options(form),
    }
    body |= {name: form[name] for name in PLAIN}
    return {name: value for name, value in body.items() if value not in (None, "", {}, [])}


def _preset_body(form: Mapping[str, Any]) -> dict[str, Any]:
    body = {"preset": form["preset"], "profile": form["profile"], "device": form["device"]}
    seeds = _seeds(form["seeds"])
    changes = {"seeds": seeds, "epochs": form["epochs"], "note": form["note"]}
    return {name: value for name, value in (body | changes).items() if value not in (None, "")}


def _rates(form: Mapping[str, Any]) -> Any:
    if form["rates_mode"] == "own":
        return None
    if form["rates_mode"] == "list":
        return _floats("learning_rates", form["rate_list"] or "")
    grid = {"from": form["rate_from"], "to": form["rate_to"], "count": form["rate_count"]}
    for name, value in grid.items():
        if value in (None, ""):
            raise Unreadable(f"learning_rates.{name}", "A number is needed.")
    return {"from": _float(grid["from"]), "to": _float(grid["to"]), "count": grid["count"]}


def _float(value: Any) -> float:
    return float(value)


def _floats(field: str, text: str) -> list[float]:
    words = text.replace(";", ",").replace(" ", ",").split(",")
    try:
        found = [float(word) for word in words if word]
    except ValueError:
        raise Unreadable(
            field, f"Write numbers with commas, as 0.1, 1, 10; got {text!r}."
        ) from None
    if not found:
        raise Unreadable(field, "Write at least one number, as 0.1, 1, 10.")
    return found


def _seeds(text: Any) -> Any:
    words = [word for word in str(text or "").replace(" ", ",").split(",") if word]
    if not words:
        return None
    if not all(word.isdecimal() for word in words):
        raise Unreadable("seeds", f"Write how many, as 5, or a list, as 1,2,7; got {text!r}.")
    numbers = [int(word) for word in words]
    return numbers[0] if len(numbers) == 1 and "," not in str(text) else numbers


def _clips(text: Any) -> Any:
    words = [word for word in str(text or "").lower().replace(" ", ",").split(",") if word]
    if not words:
        return None
    try:
        return [None if word == "none" else float(word) for word in words]
    except ValueError:
        raise Unreadable("clip", f"Write norms, as 1 or none, 1; got {text!r}.") from None


def _options(form: Mapping[str, Any]) -> dict[str, Any]:
    options = {name: form[name] for name in OPTIONS if form[name] not in (None, "")}
    if form["restart"]:
        options["restart"] = True
    if form["tau"] not in (None, ""):
        options["decay"] = {"tau": float(form["tau"])}
        if form["power"] not in (None, ""):
            options["decay"]["power"] = float(form["power"])
    if "momentum" in options:
        options["momentum"] = float(options["momentum"])
    return options


def form_from_spec(spec: Mapping[str, Any]) -> dict[str, Any]:
    """Return how the form has to be filled in to ask for a stored sweep again."""
    body = body_of(dict(spec))
    options = body.pop("options", {})
    decay = options.pop("decay", None) or {}
    clips = body.get("clip")
    return {
        **{name: body.get(name) for name in (*PLAIN, "task", "methods", "profile", "mu")},
        "rates_mode": "list",
        "rate_list": ", ".join(f"{rate:.12g}" for rate in body.get("learning_rates", ())),
        "seeds": ",".join(str(seed) for seed in body.get("seeds", ())),
        "clip": _clip_text(clips),
        **{name: options.get(name) for name in (*OPTIONS, "restart")},
        "tau": decay.get("tau"),
        "power": decay.get("power"),
    }


def _clip_text(clips: Any) -> str:
    if clips is None:
        return ""
    given = clips if isinstance(clips, list) else [clips]
    return ", ".join("none" if clip is None else f"{clip:g}" for clip in given)
