"""Series: nothing is in one that differs in more than rate and seed; and what tells them apart."""

import hashlib
import json
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from typing import Any, NamedTuple

from ib_core.errors import IBError
from ib_core.methods import (
    METHODS,
    OF_A_METHOD,
    OF_EVERY_METHOD,
    find_method,
    place,
    sayable,
    split_name,
)
from ib_core.options import Option
from ib_core.sweep import ENGINE_VERSION, TrialSpec
from ib_core.sweep.request import typed_form
from ib_core.tasks import find_task

BASELINE = "eb"

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
    "options.schedule": str,
    "options.code": lambda value: f"version {value[:8]}",
    "options.method_code": lambda value: f"method version {value[:8]}",
}


@dataclass(frozen=True, slots=True)
class Key:
    """What decides a result besides rate and seed.

    Attributes:
        options: Canonical JSON without what is not set, so that keys are hashable and equal.
        repeat: 0, or 1, 2, ... for further results of the same settings, rate and seed, which
            only imports can bring.
    """

    study_id: int
    task: str
    profile: str
    method: str
    batch_rule: str | None
    activation: str | None
    clip: float | None
    mu: float
    epochs: int
    batch_size: int | None
    options: str
    imported: bool
    engine_version: str | None
    data_hash: str | None
    repeat: int = 0

    @property
    def settings(self) -> dict[str, Any]:
        """The options as a dict."""
        found: dict[str, Any] = json.loads(self.options)
        return found

    @property
    def base(self) -> str:
        """The method without the options that its name says."""
        return self.method.partition("(")[0]

    @property
    def group(self) -> "Key":
        """What two series must share to be compared: all but the method and what is its own."""
        shared = {name: v for name, v in self.settings.items() if name not in OF_A_METHOD}
        return replace(self, method="", batch_rule=None, options=canonical(shared))


class Finished(NamedTuple):
    """A trial that counts; a tuple, because there are ten thousand of them.

    Attributes:
        train_loss: At the end, whatever was asked for: it tells whether the trial broke.
        at_zero: Whether restarts (App. C) left it at theta = 0; None where they were not counted.
        final: The column that was asked for.
        curve: Its packed curve, if that was asked for.
        validation: The like of `final` on held-out rows; None where there are none.
        validation_curve: The second block of its packed curve.
    """

    id: int
    lr: float
    seed: int
    state: str
    initial_loss: float | None
    train_loss: float | None
    at_zero: bool | None
    final: float | None
    curve: bytes | None
    validation: float | None = None
    validation_curve: bytes | None = None


@dataclass(slots=True)
class Series:
    """One curve's trials.

    Attributes:
        key: What they have in common.
        rows: The completed and diverged ones, by rate and seed.
        unfinished: How many are queued or running.
        failed: How many failed or were cancelled.
    """

    key: Key
    rows: list[Finished] = field(default_factory=list)
    unfinished: int = 0
    failed: int = 0


def key_of_spec(spec: TrialSpec, data_hash: str | None = None) -> Key:
    """Return the key of a trial that is in no database."""
    return Key(
        study_id=0,
        task=spec.task,
        profile=spec.profile,
        method=spec.method,
        batch_rule=spec.batch_rule,
        activation=spec.activation,
        clip=spec.clip,
        mu=spec.mu,
        epochs=spec.epochs,
        batch_size=spec.batch_size,
        options=canonical(spec.as_dict()["options"]),
        imported=False,
        engine_version=ENGINE_VERSION,
        data_hash=data_hash,
    )


def canonical(options: dict[str, Any]) -> str:
    """Return options as text that is equal for equal options."""
    given = {name: v for name, v in options.items() if v is not None and v is not False}
    return json.dumps(given, sort_keys=True)


def series_order(key: Key) -> tuple[Any, ...]:
    """Order by study and group, EB first within a group: the order of legends and tables.

    What is left unsaid has its default's place among the others' values.
    """
    said, options = split_name(key.method)[1], _own_options(key)
    return (
        key.study_id,
        key.imported,
        version_order(key.engine_version or ""),
        key.task,
        key.profile,
        key.clip is not None,
        key.clip or 0.0,
        place(key.base),
        key.base,
        _in_order(said, _options(key.base)),
        key.batch_rule or "",
        key.activation or "",
        key.mu,
        key.epochs,
        key.batch_size or 0,
        _in_order(key.settings, options),
        key.data_hash or "",
        key.repeat,
    )


def version_order(version: str) -> tuple[int, str]:
    """Return what versions of the engine are ordered by: 9 comes before 10."""
    return (int(version), "") if version.isdecimal() else (0, version)


def _own_options(key: Key) -> dict[str, Option]:
    """Return the options of a series' task and method that may be left unsaid, by name."""
    found = dict(METHODS[key.base].options) if key.base in METHODS else {}
    with suppress(IBError):  # imported runs may be of tasks that are unknown here
        found |= {name: one for name, one in find_task(key.task).options.items() if one.later}
    return found


def _in_order(said: Mapping[str, Any], options: Mapping[str, Option]) -> list[tuple[str, Any]]:
    unsaid = {name: one.default for name, one in options.items() if one.default is not None}
    values = sorted({**unsaid, **said}.items())
    return [(name, _place_of(value, options.get(name))) for name, value in values]


def _place_of(value: Any, option: Option | None) -> tuple[float, str]:
    """Return what values are ordered by: 8 comes before 32, and a choice as it is listed."""
    if option is not None and value in option.choices:
        return float(option.choices.index(value)), ""
    return (float(value), "") if isinstance(value, int | float) else (0.0, str(value))


def labels(keys: Sequence[Key], study_names: Mapping[int, str] | None = None) -> list[str]:
    """Return one label a series: its method, then each setting in which the series differ.

    Args:
        keys: The series of one picture.
        study_names: Names to tell studies apart by, where there are several.
    """
    flat, differing = _told(keys, study_names or {})
    return [_label(fields, differing) for fields in flat]


def varied(
    keys: Sequence[Key], study_names: Mapping[int, str] | None = None
) -> list[dict[str, Any]]:
    """Return for each series the settings in which the series differ, besides the method.

    Every series has the same names, in the order of labels; None is a setting that is off, or
    that its method has no use for.

    Args:
        keys: The series of one answer.
        study_names: Names to tell studies apart by, where there are several.
    """
    flat, differing = _told(keys, study_names or {})
    return [
        {name.removeprefix("options."): _plain(name, fields.get(name)) for name in differing}
        for fields in flat
    ]


def along(keys: Sequence[Key]) -> list[tuple[str, list[Any], list[tuple[str, list[int]]]]]:
    """Return every setting of numbers in which series differ, the one with most values first.

    With it every series' value (None: it is off), and lines: series that differ in nothing else,
    as a label without the setting and the places of the series, in the setting's order.
    """
    flat, differing = _told(keys, {})
    found = []
    for name in differing:
        values = [fields.get(name) for fields in flat]
        if not all(value is None or _is_number(value) for value in values):
            continue
        lines: dict[str, list[int]] = {}
        for place_of, fields in enumerate(flat):
            label = _label(fields, [one for one in differing if one != name])
            lines.setdefault(label, []).append(place_of)
        ordered = [
            (label, sorted(members, key=lambda one: (values[one] is not None, values[one] or 0)))
            for label, members in lines.items()
        ]
        found.append((name.removeprefix("options."), values, ordered))
    return sorted(found, key=lambda one: -len(set(one[1])))


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _told(
    keys: Sequence[Key], study_names: Mapping[int, str]
) -> tuple[list[dict[str, Any]], list[str]]:
    """Return every series' fields, and the names of those in which they differ."""
    flat = [_flat(key, study_names) for key in keys]
    _fill_in_tasks(flat)
    _fill_in_methods(flat)
    said = {f"options.{name}" for key in keys for name in split_name(key.method)[1]}
    _fill_in(flat, said)
    return flat, [name for name in _names(flat) if _differs(name, flat, own=name in said)]


def _label(fields: Mapping[str, Any], differing: Sequence[str]) -> str:
    told = [name for name in differing if fields.get(name) not in UNTOLD.get(name, (None, ""))]
    return ", ".join([fields["method"], *(_say(name, fields.get(name)) for name in told)])


def series_id(key: Key) -> str:
    """Return a short name of a series that stays the same as its study grows."""
    return hashlib.sha256(repr(key).encode()).hexdigest()[:12]


def baselines(keys: Sequence[Key]) -> dict[Key, Key]:
    """Return by series the EB series it is measured against, where there is one.

    That is EB with the same settings, options of the rate's schedule included; where nobody ran
    that one, and for EB with a schedule itself, plain EB.
    """
    plain = {key.group: key for key in keys if key.method == BASELINE}
    alike = {(key.group, _schedule(key)): key for key in keys if key.base == BASELINE}
    found = {}
    for key in keys:
        first = None if key.base == BASELINE else alike.get((key.group, _schedule(key)))
        eb = first or plain.get(key.group)
        if eb is not None:
            found[key] = eb
    return found


def _schedule(key: Key) -> str:
    said = split_name(key.method)[1]
    return canonical({name: value for name, value in said.items() if name in OF_EVERY_METHOD})


def _flat(key: Key, study_names: Mapping[int, str]) -> dict[str, Any]:
    fields = asdict(key)
    fields.pop("options")
    study_id = fields.pop("study_id")
    study = {"study": study_names[study_id]} if study_id in study_names else {}
    fields["method"], said = split_name(key.method)
    return study | fields | {f"options.{name}": v for name, v in (key.settings | said).items()}


def _fill_in(flat: Sequence[dict[str, Any]], said: Collection[str]) -> None:
    """Give every series the defaults of what its method's name leaves unsaid and another's says."""
    for fields in flat:
        options = _options(fields["method"]) if said else {}
        for name in said:
            option = options.get(name.removeprefix("options."))
            if option is not None:
                fields.setdefault(name, option.default)


def _fill_in_tasks(flat: Sequence[dict[str, Any]]) -> None:
    """Give every series the defaults of its task's options that another series says."""
    every = {name for fields in flat for name in fields if name.startswith("options.")}
    for fields in flat:
        for name in every - fields.keys():
            with suppress(IBError):  # imported runs may be of tasks that are unknown here
                option = find_task(fields["task"]).options.get(name.removeprefix("options."))
                if option is not None and option.later:
                    fields[name] = option.default


def _fill_in_methods(flat: Sequence[dict[str, Any]]) -> None:
    """Give every series the defaults of its method's own options that another series says.

    An option at its default is not stored, and is not off: momentum 0.9 of `ngn_m`, say.
    """
    every = {name for fields in flat for name in fields if name.startswith("options.")}
    for fields in flat:
        known = METHODS.get(fields["method"])
        own = known.options if known else {}
        for name in every - fields.keys():
            option = own.get(name.removeprefix("options."))
            if option is not None and option.default is not None:
                fields[name] = option.default


def _options(method: str) -> Mapping[str, Option]:
    """Return what can be said about a method; imported runs may be of methods unknown here."""
    with suppress(IBError):
        return {**OF_EVERY_METHOD, **sayable(find_method(method))}
    return OF_EVERY_METHOD


def _names(flat: Sequence[dict[str, Any]]) -> list[str]:
    names = dict.fromkeys(name for fields in flat for name in fields)
    return [name for name in names if name != "method"]


def _differs(name: str, flat: Sequence[dict[str, Any]], *, own: bool) -> bool:
    """Return whether series differ in a setting; in one of a method's own, those of one method."""
    values = {repr(fields.get(name)) for fields in flat}
    if name == "data_hash":  # other tasks have other data
        pairs = {(fields["task"], fields.get(name)) for fields in flat}
        return len(pairs) > len({fields["task"] for fields in flat})
    if name in METHOD_DEPENDENT:
        values.discard("None")
    if own and name.removeprefix("options.") not in OF_EVERY_METHOD:
        pairs = {(fields["method"], repr(fields.get(name))) for fields in flat}
        return len(pairs) > len({fields["method"] for fields in flat})
    return len(values) > 1


def _say(name: str, value: Any) -> str:
    say = SAYINGS.get(name)
    return say(value) if say else f"{name.removeprefix('options.')} {_plain(name, value)}"


def _plain(name: str, value: Any) -> Any:
    """Return a setting's value as one word or number."""
    if isinstance(value, dict):
        return typed_form(name, value) if name == "options.decay" else json.dumps(value)
    return value
