"""What to train: validated once, frozen afterwards. If a `SweepSpec` exists, it is runnable."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import product
from typing import Any

from ib_core.errors import InvalidSpec, lookup
from ib_core.methods import METHODS
from ib_core.sweep import request
from ib_core.sweep.presets import PRESETS
from ib_core.tasks import Task, find_task
from ib_core.updates import SOLVABLE

MOST_TRIALS = 20_000


@dataclass(frozen=True, slots=True)
class Decay:
    """Decaying rates `lr / (1 + t/tau)^power` (App. C needs .5 < power <= 1)."""

    tau: float
    power: float = 1.0


@dataclass(frozen=True, slots=True)
class Options:
    """Settings few sweeps need. None means: the task's own, or not used by this method.

    Attributes:
        isgd_form: Exact ISGD's pull towards the old weights, `text` (1/lr) or `authors` (1).
        inner_steps: Inner gradient steps of exact ISGD.
        width: Hidden units per layer.
        depth: Hidden layers.
        restart: Restart from zero outside the level set of App. C; needs mu > 0.
        decay: Decaying rates.
        momentum: Momentum of the `momentum` method.
    """

    isgd_form: str | None = None
    inner_steps: int | None = None
    width: int | None = None
    depth: int | None = None
    restart: bool = False
    decay: Decay | None = None
    momentum: float | None = None


@dataclass(frozen=True, slots=True)
class TrialSpec:
    """One training run, in normal form: what its method ignores is None."""

    task: str
    profile: str
    method: str
    batch_rule: str | None
    activation: str
    lr: float
    seed: int
    clip: float | None
    mu: float
    epochs: int
    batch_size: int
    options: Options = Options()

    def as_dict(self) -> dict[str, Any]:
        """Return the JSON form, which is also what the fingerprint hashes."""
        return asdict(self)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> "TrialSpec":
        """Rebuild a trial from `as_dict`."""
        return cls(**{**data, "options": read_options(data.get("options"))})


@dataclass(frozen=True, slots=True)
class SweepSpec:
    """A grid of trials on one task: methods x rates x seeds x clips."""

    task: str
    methods: tuple[str, ...]
    learning_rates: tuple[float, ...]
    seeds: tuple[int, ...]
    epochs: int
    batch_size: int
    clips: tuple[float | None, ...] = (None,)
    mu: float = 0.0
    batch_rule: str = "own"
    profile: str = "text"
    activation: str | None = None
    device: str = "auto"
    options: Options = Options()

    @classmethod
    def create(
        cls,
        task: str,
        *,
        methods: Iterable[str] = ("eb", "ib"),
        learning_rates: Iterable[float],
        seeds: Iterable[int] = (1, 2, 3),
        epochs: int | None = None,
        batch_size: int | None = None,
        clips: Iterable[float | None] = (None,),
        mu: float = 0.0,
        batch_rule: str | None = None,
        profile: str = "text",
        activation: str | None = None,
        device: str = "auto",
        options: Options | Mapping[str, Any] | None = None,
    ) -> "SweepSpec":
        """Check every setting, fill in the task's defaults, and return a runnable sweep.

        Raises:
            IBError: With one sentence that names the setting and what would work.
        """
        found = find_task(task)
        request.check("profile", profile)
        defaults = found.defaults(profile)
        spec = cls(
            task=task,
            methods=tuple(methods),
            learning_rates=check_rates(learning_rates),
            seeds=check_seeds(seeds),
            epochs=defaults.epochs if epochs is None else epochs,
            batch_size=defaults.batch_size if batch_size is None else batch_size,
            clips=tuple(clips),
            mu=float(mu),
            batch_rule=batch_rule or ("own" if profile == "text" else "share"),
            profile=profile,
            activation=activation,
            device=device,
            options=read_options(options),
        )
        _check(spec, found)
        return spec

    @property
    def size(self) -> int:
        """Number of trials."""
        return len(self.methods) * len(self.learning_rates) * len(self.seeds) * len(self.clips)

    def expand(self) -> list[TrialSpec]:
        """Return every trial of the grid, in normal form."""
        task = find_task(self.task)
        grid = product(self.methods, self.clips, self.learning_rates, self.seeds)
        return [
            TrialSpec(
                task=self.task,
                profile=self.profile,
                method=method,
                batch_rule=self.batch_rule if METHODS[method].solves_rows else None,
                activation=self.activation or task.activation,
                lr=lr,
                seed=seed,
                clip=clip,
                mu=self.mu,
                epochs=self.epochs,
                batch_size=self.batch_size,
                options=_options_of(method, self.options),
            )
            for method, clip, lr, seed in grid
        ]


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
    name = given.pop("preset", None)
    if name is None:
        return (_spec(given),)
    preset = lookup("preset", name, PRESETS, field="preset")
    return tuple(_spec({**sweep, **given}) for sweep in preset.sweeps(given.get("profile", "text")))


def _spec(body: Mapping[str, Any]) -> SweepSpec:
    if "task" not in body:
        raise InvalidSpec("Name a task or a preset.", field="task", hint="See /api/catalog.")
    settings = {key: value for key, value in body.items() if key not in ("task", "clip")}
    defaults = find_task(body["task"]).defaults(settings.get("profile", "text"))
    rates = settings.get("learning_rates", defaults.learning_rates)
    if isinstance(rates, Mapping):
        rates = log_grid(rates["from"], rates["to"], rates["count"])
    seeds = settings.get("seeds", defaults.seeds)
    settings["learning_rates"] = rates
    settings["seeds"] = count_seeds(seeds) if isinstance(seeds, int) else seeds
    clip = body.get("clip")
    settings["clips"] = tuple(clip) if isinstance(clip, list | tuple) else (clip,)
    return SweepSpec.create(body["task"], **settings)


def log_grid(low: float, high: float, count: int) -> tuple[float, ...]:
    """Return `count` log-spaced rates from `low` to `high`, both included.

    Inner rates are rounded to four significant digits, so that a rate reads well, can be typed
    again, and is the same trial when two grids meet in it.
    """
    request.check("learning_rates", {"from": low, "to": high, "count": count})
    if count == 1 and low != high:
        raise InvalidSpec(
            "A grid of one learning rate must start and end at it.", field="learning_rates"
        )
    if low >= high and count > 1:
        raise InvalidSpec(f"A grid must rise; got {low:g} to {high:g}.", field="learning_rates")
    start, ratio = math.log10(low), math.log10(high / low)
    inner = (10 ** (start + ratio * i / (count - 1)) for i in range(1, count - 1))
    ends = (low,) if count == 1 else (low, high)
    return check_rates((ends[0], *(float(f"{rate:.4g}") for rate in inner), *ends[1:]))


def count_seeds(count: int) -> tuple[int, ...]:
    """Return the seeds 1 to `count`."""
    request.check("seeds", count)
    return tuple(range(1, count + 1))


def check_rates(rates: Iterable[float]) -> tuple[float, ...]:
    """Return the rates in rising order, or say which one cannot be used."""
    found = tuple(rates)
    request.check("learning_rates", found)
    _refuse_repeats(found, "learning rate", "learning_rates")
    return tuple(sorted(float(rate) for rate in found))


def check_seeds(seeds: Iterable[int]) -> tuple[int, ...]:
    """Return the seeds as given, or say which one cannot be used."""
    found = tuple(seeds)
    request.check("seeds", found)
    _refuse_repeats(found, "seed", "seeds")
    return found


def _refuse_repeats(values: Sequence[float], what: str, field: str) -> None:
    seen: set[float] = set()
    for value in values:
        if value in seen:
            raise InvalidSpec(f"The {what} {value:g} is given twice.", field=field)
        seen.add(value)


def read_options(options: "Options | Mapping[str, Any] | None") -> Options:
    """Return `Options` from its JSON form; unknown names are refused."""
    if isinstance(options, Options):
        return options
    given = dict(options or {})
    for name in given:
        lookup("option", name, Options.__dataclass_fields__, field="options")
    if isinstance(given.get("decay"), Mapping):
        given["decay"] = Decay(**given["decay"])
    return Options(**given)


def _options_of(method: str, options: Options) -> Options:
    """Drop what the method ignores, fill in what it needs: equal trials get equal addresses."""
    exact, heavy = method == "isgd", method == "momentum"
    return replace(
        options,
        isgd_form=(options.isgd_form or "text") if exact else None,
        inner_steps=(options.inner_steps or 100) if exact else None,
        momentum=(0.9 if options.momentum is None else options.momentum) if heavy else None,
    )


def _check(spec: SweepSpec, task: Task) -> None:
    _check_methods(spec, task)
    for name in ("batch_rule", "epochs", "batch_size", "mu"):
        request.check(name, getattr(spec, name))
    if task.fixed_batch_size and spec.batch_size != task.fixed_batch_size:
        raise InvalidSpec(
            f"{task.name} trains {task.fixed_batch_size} piece at a time; "
            f"batch_size must be {task.fixed_batch_size}, got {spec.batch_size}.",
            field="batch_size",
        )
    if not spec.clips or len(set(spec.clips)) < len(spec.clips):
        raise InvalidSpec("Give each clip once: none, a norm, or both.", field="clip")
    request.check("clip", spec.clips)
    if spec.activation is not None:
        lookup("activation", spec.activation, SOLVABLE)
    _check_options(spec, task)
    if spec.size > MOST_TRIALS:
        raise InvalidSpec(
            f"A sweep holds at most {MOST_TRIALS:,} trials; this one has {spec.size:,}.",
            field="learning_rates",
            hint="Split it into several sweeps of one study.",
        )


def _check_methods(spec: SweepSpec, task: Task) -> None:
    if not spec.methods or len(set(spec.methods)) < len(spec.methods):
        raise InvalidSpec(
            f"Give each method once, at least one of: {', '.join(METHODS)}.", field="methods"
        )
    for method in spec.methods:
        lookup("method", method, METHODS, field="methods")
    if "ib_plus" in spec.methods and not task.linear_output:
        raise InvalidSpec(
            f"ib_plus solves a linear output layer, but {task.name} ends in {task.output}. "
            "Use ib here, or a task with a linear output such as digits_mlp.",
            field="methods",
        )


def _check_options(spec: SweepSpec, task: Task) -> None:
    options = spec.options
    for name, value in asdict(options).items():
        request.check(f"options.{name}", value)
    for name in ("width", "depth"):
        if getattr(options, name) is not None and name not in task.adjustable:
            raise InvalidSpec(
                f"{task.name} has a fixed {name}; leave options.{name} out.",
                field=f"options.{name}",
            )
    if options.restart and spec.mu <= 0:
        raise InvalidSpec("Restarts need mu > 0 (App. C).", field="options.restart")
