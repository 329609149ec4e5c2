"""Series: nothing is in one that differs in more than rate and seed; and what tells them apart."""

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from itertools import islice
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
#: Settings by which series can be arranged; imported runs may each say names of their own.
MOST_VARIED = 50

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
    flat, differing = told(keys, study_names or {})
    return [label_of(fields, differing) for fields in flat]


def varied(
    keys: Sequence[Key], study_names: Mapping[int, str] | None = None
) -> list[dict[str, Any]]:
    """Return for each series the settings in which the series differ, besides the method.

    Every series has the same names, in the order of labels, the first fifty of them; None is a
    setting that is off, or that its method has no use for.

    Args:
        keys: The series of one answer.
        study_names: Names to tell studies apart by, where there are several.
    """
    flat, differing = told(keys, study_names or {})
    names = list(islice(differing, MOST_VARIED))
    return [
        {name.removeprefix("options."): _plain(name, fields.get(name)) for name in names}
        for fields in flat
    ]


def told(
    keys: Sequence[Key], study_names: Mapping[int, str]
) -> tuple[list[dict[str, Any]], dict[str, int]]:
    """Return every series' fields, and the places of those in which they differ."""
    flat = [_flat(key, study_names) for key in keys]
    _fill_in_tasks(flat)
    _fill_in_methods(flat)
    said = {f"options.{name}" for key in keys for name in split_name(key.method)[1]}
    _fill_in(flat, said)
    return flat, {name: place for place, name in enumerate(_differing(flat, said))}


def label_of(fields: Mapping[str, Any], differing: Mapping[str, int], but: str = "") -> str:
    """Return a series' method, then each setting in which it differs from others, but one."""
    names = [
        name
        for name, value in fields.items()
        if name in differing and name != but and value not in UNTOLD.get(name, (None, ""))
    ]
    names.sort(key=differing.__getitem__)
    return ", ".join([fields["method"], *(_say(name, fields[name]) for name in names)])


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
    for fields in flat if said else ():
        for name, option in _options(fields["method"]).items():
            if f"options.{name}" in said:
                fields.setdefault(f"options.{name}", option.default)


def _fill_in_tasks(flat: Sequence[dict[str, Any]]) -> None:
    """Give every series the defaults of its task's options that another series says."""
    every = {name for fields in flat for name in fields}
    later: dict[str, dict[str, Any]] = {}
    for name in {fields["task"] for fields in flat}:
        with suppress(IBError):  # imported runs may be of tasks that are unknown here
            options = find_task(name).options
            later[name] = {f"options.{one}": o.default for one, o in options.items() if o.later}
    for fields in flat:
        for name, default in later.get(fields["task"], {}).items():
            if name in every:
                fields.setdefault(name, default)


def _fill_in_methods(flat: Sequence[dict[str, Any]]) -> None:
    """Give every series the defaults of its method's own options that another series says.

    An option at its default is not stored, and is not off: momentum 0.9 of `ngn_m`, say.
    """
    every = {name for fields in flat for name in fields}
    for fields in flat:
        known = METHODS.get(fields["method"])
        for name, option in known.options.items() if known else ():
            if f"options.{name}" in every and option.default is not None:
                fields.setdefault(f"options.{name}", option.default)


def _options(method: str) -> Mapping[str, Option]:
    """Return what can be said about a method; imported runs may be of methods unknown here."""
    with suppress(IBError):
        return {**OF_EVERY_METHOD, **sayable(find_method(method))}
    return OF_EVERY_METHOD


def _differing(flat: Sequence[dict[str, Any]], said: Collection[str]) -> list[str]:
    """Return the settings in which series differ, in the order met; each may say its own names."""
    methods = Counter(fields["method"] for fields in flat)
    met: dict[str, Counter[tuple[str, str]]] = {}
    for fields in flat:
        for name, value in fields.items():
            met.setdefault(name, Counter())[fields["method"], repr(value)] += 1
    met.pop("method", None)
    found = [name for name, values in met.items() if _differs(name, values, methods, said)]
    pairs = {(fields["task"], fields["data_hash"]) for fields in flat}
    same = len(pairs) == len({task for task, _ in pairs})  # other tasks have other data
    return [name for name in found if not (same and name == "data_hash")]


def _differs(
    name: str,
    values: Mapping[tuple[str, str], int],
    methods: Mapping[str, int],
    said: Collection[str],
) -> bool:
    """Return whether series differ in a setting; in one of a method's own, those of one method."""
    of: dict[str, set[str]] = {}
    left = dict(methods)
    for (method, value), count in values.items():
        of.setdefault(method, set()).add(value)
        left[method] -= count
    for method, count in left.items():
        if count:  # whoever does not say it has it off
            of.setdefault(method, set()).add("None")
    if name in said and name.removeprefix("options.") not in OF_EVERY_METHOD:
        return any(len(own) > 1 for own in of.values())
    every = set().union(*of.values())
    return len(every - {"None"} if name in METHOD_DEPENDENT else every) > 1


def _say(name: str, value: Any) -> str:
    say, word = SAYINGS.get(name), name.removeprefix("options.")
    if isinstance(value, bool):
        return word if value else f"no {word}"
    return say(value) if say else f"{word} {_plain(name, value)}"


def _plain(name: str, value: Any) -> Any:
    """Return a setting's value as one word or number."""
    if isinstance(value, dict):
        return typed_form(name, value) if name == "options.decay" else json.dumps(value)
    return value
