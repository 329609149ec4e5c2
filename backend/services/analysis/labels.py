"""Says of each series what tells it from the others, and no more."""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from backend.services.analysis.series import OF_A_METHOD, Key

#: Fields whose absence only means that the method has no use for them.
METHOD_DEPENDENT = ("batch_rule", *(f"options.{name}" for name in OF_A_METHOD))

#: Values that go without saying; everywhere else that is nothing at all.
UNTOLD: dict[str, tuple[Any, ...]] = {"clip": (), "mu": (0.0,), "repeat": (0,)}

SAYINGS: dict[str, Callable[[Any], str]] = {
    "study": str,
    "task": str,
    "activation": str,
    "batch_rule": str,
    "profile": lambda value: f"{value} profile",
    "clip": lambda value: "no clip" if value is None else f"clip {value:g}",
    "mu": lambda value: f"mu {value:g}",
    "epochs": lambda value: "1 epoch" if value == 1 else f"{value} epochs",
    "batch_size": lambda value: f"batch {value}",
    "imported": lambda value: "imported" if value else "run here",
    "engine_version": lambda value: f"engine {value}",
    "data_hash": lambda value: f"data {value[:6]}",
    "repeat": lambda value: f"repeat {value + 1}",
    "options.experiment": str,
}


def labels(keys: Sequence[Key], study_names: Mapping[int, str] | None = None) -> list[str]:
    """Return one label a series: its method, then each setting in which the series differ.

    Args:
        keys: The series of one picture.
        study_names: Names to tell studies apart by, where there are several.
    """
    flat = [_flat(key, study_names or {}) for key in keys]
    differing = [name for name in _names(flat) if _differs(name, flat)]
    return [_label(fields, differing) for fields in flat]


def _label(fields: Mapping[str, Any], differing: Sequence[str]) -> str:
    told = [name for name in differing if fields.get(name) not in UNTOLD.get(name, (None, ""))]
    return ", ".join([fields["method"], *(_say(name, fields.get(name)) for name in told)])


def series_id(key: Key) -> str:
    """Return a short name of a series that stays the same as its study grows."""
    return hashlib.sha256(repr(key).encode()).hexdigest()[:12]


def _flat(key: Key, study_names: Mapping[int, str]) -> dict[str, Any]:
    fields = asdict(key)
    fields.pop("options")
    study_id = fields.pop("study_id")
    study = {"study": study_names[study_id]} if study_id in study_names else {}
    return study | fields | {f"options.{name}": value for name, value in key.settings.items()}


def _names(flat: Sequence[dict[str, Any]]) -> list[str]:
    names = dict.fromkeys(name for fields in flat for name in fields)
    return [name for name in names if name != "method"]


def _differs(name: str, flat: Sequence[dict[str, Any]]) -> bool:
    values = {repr(fields.get(name)) for fields in flat}
    if name in METHOD_DEPENDENT:
        values.discard("None")
    return len(values) > 1


def _say(name: str, value: Any) -> str:
    say = SAYINGS.get(name)
    return say(value) if say else f"{name.removeprefix('options.')} {value}"
