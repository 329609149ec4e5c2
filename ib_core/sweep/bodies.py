"""From a body to sweeps: one, those of a preset, and one for every combination of listed values.

Shapes, sizes and penalties make a sweep each, since their trials cannot share a stack or an
answer's row. What a method's name can say (schedule, warm-up, options of its own) makes further
methods of one sweep: rates and schedules do not split a stack.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import product
from math import prod
from typing import Any

from ib_core.errors import InvalidSpec, UnknownName, lookup
from ib_core.methods import OF_EVERY_METHOD, find_method, mup_of, sayable, split_name
from ib_core.options import Option
from ib_core.sweep import request
from ib_core.sweep.presets import PRESETS
from ib_core.sweep.search import MOST
from ib_core.sweep.settings import SETTINGS
from ib_core.sweep.spec import COMMON_OPTIONS, MOST_TRIALS, SweepSpec
from ib_core.sweep.values import InPart, refuse_repeats
from ib_core.tasks import Task, find_task
from ib_core.written import Unreadable

Body = dict[str, Any]
#: What a sweep compares where it does not say.
USUAL_METHODS = ("eb", "ib")
#: The muP scaling that is not for a method, by the one that is.
OTHER_MUP = {"mup": "mup_adam", "mup_adam": "mup"}
#: Settings of a sweep that a method's name says.
OF_METHODS = ("schedule", "warmup")


def specs_of(body: Mapping[str, Any], *, typed: bool = False) -> tuple[SweepSpec, ...]:
    """Return the sweeps a body asks for: one, or those of its `preset`.

    What the body says besides the preset's name replaces the preset's own settings, so
    `{"preset": "paper/05_jsb_chorales", "seeds": 1}` is a cheap look at it.

    Args:
        body: As the API takes it; `request.read_body` reads it.
        typed: Whether a person typed the values, so that texts stand for numbers.

    Raises:
        IBError: With one sentence that names the field.
    """
    given = request.read_body(body, typed=typed)
    given.pop("note", None)
    if given.pop("where", None) == request.AGENTS or given.pop("settings", None):
        raise InvalidSpec(
            "Cells of agents wait for programs elsewhere; nothing here can train them.",
            field="where",
            hint="Submit the sweep to a server, and claim its cells with `etascope agent`.",
        )
    name = given.pop("preset", None)
    if name is None:
        return _varied(given, typed)
    preset = lookup("preset", name, PRESETS, field="preset")
    if name.startswith("paper/") and "validation" in given.get("options", {}):
        raise InvalidSpec(
            "The paper's studies train on all rows; leave validation out, or the preset.",
            field="options.validation",
        )
    sweeps = map(request.read_body, preset.sweeps(given.get("profile", "text")))
    found = [spec for sweep in sweeps for spec in _varied(beside(sweep, given), typed)]
    # A search that replaces the preset's rates has one limit for all of its sweeps.
    return _sharing(found, given.get("learning_rates"))


def bodies_of(body: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return a body of one task as bodies of one value a setting: the sweeps it is stored as."""
    return [_sayable(one) for one in expand(request.read_body(body), most=MOST_TRIALS)]


def _sayable(body: dict[str, Any]) -> dict[str, Any]:
    """Return a body as people write it: a task's own options stand under `vary`."""
    options = body.get("options", {})
    own = {name: [value] for name, value in options.items() if name not in COMMON_OPTIONS}
    if not own:
        return body
    common = {name: value for name, value in options.items() if name in COMMON_OPTIONS}
    return {**body, "options": common, "vary": own}


def _varied(body: Mapping[str, Any], typed: bool) -> tuple[SweepSpec, ...]:
    """Return one sweep for every combination of the values that settings are given as lists."""
    bodies = expand(body, most=MOST_TRIALS, typed=typed)
    first = _spec(bodies[0])
    if (count := first.size * len(bodies)) > MOST_TRIALS:
        raise too_many(body, count, MOST_TRIALS)
    return _sharing([first, *map(_spec, bodies[1:])], body.get("learning_rates"))


def _sharing(specs: Sequence[SweepSpec], asked: Any) -> tuple[SweepSpec, ...]:
    """Return sweeps that search with the trials a request allows shared out among them.

    Each gets its first round, and of what is left as large a part as that round is.

    Raises:
        InvalidSpec: The limit does not even pay the first rounds.
    """
    searches = [spec.search for spec in specs if spec.search is not None]
    if len(specs) < 2 or len(searches) < len(specs) or not isinstance(asked, Mapping):
        return tuple(specs)
    most = asked.get("most", min(sum(one.most for one in searches), int(MOST.high)))
    first = sum(spec.size for spec in specs)
    if first > most:
        raise InvalidSpec(
            f"The first rounds of all {len(specs)} sweeps take {first:,} trials; most allows "
            f"{most:,} in all.",
            field="learning_rates.most",
            hint="Vary less, ask for fewer methods or seeds, or allow more trials.",
        )
    shares = [spec.size + (most - first) * spec.size // first for spec in specs]
    for place in range(most - sum(shares)):
        shares[place] += 1
    return tuple(
        replace(spec, search=replace(search, most=share))
        for spec, search, share in zip(specs, searches, shares, strict=True)
    )


def _spec(body: Mapping[str, Any]) -> SweepSpec:
    settings = {key: value for key, value in body.items() if key not in ("task", "clip")}
    defaults = find_task(body["task"]).defaults(settings.get("profile", "text"))
    rates = settings.get("learning_rates", defaults.learning_rates)
    if isinstance(rates, Mapping) and "find" in rates:
        settings["search"], rates = rates, defaults.learning_rates
    elif isinstance(rates, Mapping):
        rates = request.log_grid(rates["from"], rates["to"], rates["count"])
    seeds = settings.get("seeds", defaults.seeds)
    settings["learning_rates"] = rates
    settings["seeds"] = request.count_seeds(seeds) if isinstance(seeds, int) else seeds
    clip = body.get("clip")
    settings["clips"] = tuple(clip) if isinstance(clip, list | tuple) else (clip,)
    spec = SweepSpec.create(body["task"], **settings)
    _refuse_other_steps(spec)
    return spec


def _refuse_other_steps(spec: SweepSpec) -> None:
    """Refuse muP with methods of the other kind of steps: there its rates are not the tables'."""
    option = find_task(spec.task).options.get("scaling")
    scaling = dict(spec.options.own).get("scaling")
    for method in spec.methods:
        fitting = mup_of(method)
        # A user's own option may have the name, and other values.
        if option and fitting in option.choices and scaling == OTHER_MUP.get(str(fitting)):
            raise InvalidSpec(
                f"scaling={scaling} is not for {method}: by its kind of steps layers move unevenly "
                f"with the width; {fitting} is.",
                field="vary.scaling",
                hint="Sweep methods of the other kind by themselves, with the scaling for them.",
            )


def expand(body: Mapping[str, Any], *, most: int, typed: bool = False) -> list[Body]:
    """Return one body for every combination of the values of settings that have several.

    Args:
        body: In canonical form, of one task.
        most: Trials that a request may ask for.
        typed: Whether a person typed what `vary` says, so that texts stand for numbers.

    Raises:
        IBError: With one sentence that names the field.
    """
    settings = dict(body)
    if "task" not in settings:
        raise InvalidSpec("Name a task or a preset.", field="task", hint="See /api/catalog.")
    of_methods = {name: _listed(settings.pop(name)) for name in OF_METHODS if name in settings}
    axes = {path: value for path, value in _paths(settings) if isinstance(value, list)}
    _add_varied(settings, axes, of_methods, typed)
    if "options.momentum" in axes and _of_names_alone("options.momentum", settings):
        of_methods["momentum"] = axes.pop("options.momentum")
        settings["options"] = {k: v for k, v in settings["options"].items() if k != "momentum"}
    if of_methods:
        methods = settings.get("methods", USUAL_METHODS)
        settings["methods"] = _with_options(methods, of_methods, body, most)
    count = prod(len(values) for values in axes.values())
    if count > most:
        raise too_many(settings | axes, count, most)
    return [
        _with(settings, dict(zip(axes, values, strict=True))) for values in product(*axes.values())
    ]


def beside(preset: Mapping[str, Any], given: Mapping[str, Any]) -> Body:
    """Return a preset's body with what somebody said beside it, setting by setting."""
    found = {**preset, **given}
    varied = {**preset.get("vary", {}), **given.get("vary", {})}
    options = {**preset.get("options", {}), **given.get("options", {})}
    for name in preset.get("vary", {}):
        if name in given or name in given.get("options", {}):
            del varied[name]
    for name in given.get("vary", {}):
        found.pop(name, None)
        options.pop(name, None)
    found |= {"vary": varied, "options": options}
    return {name: value for name, value in found.items() if value != {}}


def too_many(body: Mapping[str, Any], count: int, most: int) -> InvalidSpec:
    """Return the refusal of a family that is too large, at its longest list."""
    lists = {name: value for name, value in _paths(body) if isinstance(value, list)}
    lists |= {f"vary.{name}": values for name, values in body.get("vary", {}).items()}
    lists = {name: values for name, values in lists.items() if name not in ("methods", "seeds")}
    longest = max(lists, key=lambda name: len(lists[name]), default="learning_rates")
    return InvalidSpec(
        f"A sweep holds at most {most:,} trials; all combinations of this one are {count:,}.",
        field=longest,
        hint="Split it into several sweeps of one study.",
    )


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _paths(body: Mapping[str, Any]) -> list[tuple[str, Any]]:
    """Return the settings that make a family where they are lists, by their dotted names."""
    options = body.get("options", {})
    every = [*body.items(), *((f"options.{name}", value) for name, value in options.items())]
    return [(path, value) for path, value in every if path in SETTINGS and SETTINGS[path].listed]


def _with(settings: Mapping[str, Any], chosen: Mapping[str, Any]) -> Body:
    """Return a body with one value for each of the settings that vary."""
    found, options = dict(settings), dict(settings.get("options", {}))
    for path, value in chosen.items():
        place = options if path.startswith("options.") else found
        place[path.removeprefix("options.")] = value
    return {**found, "options": options} if options else found


def _add_varied(
    settings: Body, axes: dict[str, list[Any]], of_methods: dict[str, list[Any]], typed: bool
) -> None:
    """Put what `vary` says where it belongs: with the task, the sweep or the methods."""
    vary: Mapping[str, Sequence[Any]] = settings.pop("vary", {})
    task = find_task(settings["task"]) if vary else None
    for name, values in vary.items():
        assert task is not None
        if name in settings or name in of_methods or name in settings.get("options", {}):
            raise InvalidSpec(
                f"{name} is said twice, beside vary and in it; leave one out.",
                field=f"vary.{name}",
            )
        path = name if name in SETTINGS else f"options.{name}"
        if name in task.options:
            axes[f"options.{name}"] = _of_option(task.options[name], name, values, typed)
        elif name in OF_METHODS or path not in SETTINGS or _of_names_alone(path, settings):
            option = _of_a_method(name, settings.get("methods", USUAL_METHODS), task)
            of_methods[name] = _of_option(option, name, values, typed)
        elif SETTINGS[path].listed or name == "clip":
            found = _of_setting(path, values, typed)
            if name == "clip":
                settings["clip"] = found
            else:
                axes[path] = found
        else:
            raise InvalidSpec(f"{name} cannot vary; say it by itself.", field=f"vary.{name}")


def _of_names_alone(path: str, settings: Body) -> bool:
    """Return whether it is momentum, and all methods that have one say it in their names."""
    methods = map(find_method, settings.get("methods", USUAL_METHODS))
    having = [one for one in methods if "momentum" in one.options]
    return path == "options.momentum" and bool(having) and all(one.factory for one in having)


def _of_option(option: Option, name: str, values: Sequence[Any], typed: bool) -> list[Any]:
    # A text may stand for a number, as with rates: a command line elsewhere knows no types.
    read = [option.read(name, one, typed=typed or isinstance(one, str)) for one in values]
    refuse_repeats(read, f"value of {name}", f"vary.{name}")
    return read


def _of_setting(path: str, values: Sequence[Any], typed: bool) -> list[Any]:
    name = path.removeprefix("options.")
    texts = typed or any(isinstance(one, str) for one in values)
    given = ",".join(map(str, values)) if texts else list(values)
    try:
        return _listed(SETTINGS[path].read(given, texts))
    except InPart as error:
        raise InvalidSpec(str(error), field=f"vary.{name}") from None
    except Unreadable as error:
        raise InvalidSpec(str(error), field=f"vary.{name}") from None


def _of_a_method(name: str, methods: Sequence[str], task: Task) -> Option:
    """Return a method's option; refuse what neither task, nor sweep, nor any method has."""
    for options in (OF_EVERY_METHOD, *map(_taken, methods)):
        if name in options:
            return options[name]
    sweeps = (path.removeprefix("options.") for path, one in SETTINGS.items() if one.listed)
    own = (option for method in methods for option in _taken(method))
    known = dict.fromkeys([*task.options, *sweeps, "clip", *own])
    raise UnknownName("setting to vary", name, list(known), field=f"vary.{name}")


def _taken(method: str) -> Mapping[str, Option]:
    """Return the options that a method's name may say."""
    return {**OF_EVERY_METHOD, **sayable(find_method(method))}


def _with_options(
    methods: Sequence[str], said: Mapping[str, Sequence[Any]], body: Mapping[str, Any], most: int
) -> list[str]:
    """Return the methods with every combination of options; each has those that it takes.

    Counted before the first is made: a few lists of fifty values have more combinations than fit
    into any memory.
    """
    lists = []
    for method in methods:
        taken = _taken(split_name(find_method(method).name)[0])
        lists.append([range(len(said[name]) if name in taken else 1) for name in said])
    if (count := sum(prod(map(len, own)) for own in lists)) > most:
        raise too_many(body, count, most)
    # In the order of the combinations, and within one of the methods.
    every = sorted((places, turn) for turn, own in enumerate(lists) for places in product(*own))
    found: dict[str, None] = {}
    for places, turn in every:
        values = {name: said[name][place] for name, place in zip(said, places, strict=True)}
        found[_named(methods[turn], values)] = None
    return list(found)


def _named(method: str, options: Mapping[str, Any]) -> str:
    base, own = split_name(find_method(method).name)
    for name in options:
        if name in own:
            raise InvalidSpec(
                f"{method} says a {name} of its own; leave it out there, or leave {name} out.",
                field=name if name in SETTINGS else f"vary.{name}",
            )
    taken = {name: value for name, value in options.items() if name in _taken(base)}
    every = (f"{name}={_text(value)}" for name, value in (own | taken).items())
    return find_method(f"{base}({','.join(every)})").name


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) or value is None else str(value)
