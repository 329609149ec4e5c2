"""What to train: validated once, frozen afterwards. If a `SweepSpec` exists, it is runnable."""

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from itertools import product
from typing import Any

from ib_core.errors import InvalidSpec, lookup
from ib_core.methods import METHODS, canonical_name, find_method, split_name
from ib_core.sweep import request
from ib_core.sweep.recording import Wish
from ib_core.sweep.request import check_rates, check_seeds
from ib_core.sweep.search import Search, searching
from ib_core.tasks import TASKS, PaperTask, Task, find_task
from ib_core.updates import SOLVABLE


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
        validation: Share of the training rows that is held out.
        own: Options of a task's own, and the hashes of a user's code, by name.
    """

    isgd_form: str | None = None
    inner_steps: int | None = None
    width: int | None = None
    depth: int | None = None
    restart: bool = False
    decay: Decay | None = None
    momentum: float | None = None
    validation: float | None = None
    own: tuple[tuple[str, Any], ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """Return the JSON form: a task's own options stand beside the others.

        Nothing held out is not said: trials from before one could say it keep their addresses.
        """
        found = {name: value for name, value in asdict(self).items() if name != "own"}
        if self.validation is None:
            del found["validation"]
        return {**found, **dict(self.own)}

    @property
    def of_task(self) -> dict[str, Any]:
        """The values a task's model is made with."""
        sizes = {"width": self.width, "depth": self.depth}
        given = {name: value for name, value in sizes.items() if value is not None}
        return {**given, **{name: value for name, value in self.own if name not in CODES}}


#: Hashes of the code that decides a trial: its task's, and its method's.
CODES = ("code", "method_code")


@dataclass(frozen=True, slots=True)
class TrialSpec:
    """One training run, in normal form: what its method ignores is None.

    `wish` says what to keep of its way. It decides nothing and so is no part of what it is.
    """

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
    wish: Wish | None = field(default=None, compare=False)

    @property
    def of_task(self) -> dict[str, Any]:
        """The values its model is made with: its options', and those that its method asks for."""
        filters = {"convolutions": "implicit"} if find_method(self.method).implicit_filters else {}
        return {**self.options.of_task, **filters}

    def as_dict(self) -> dict[str, Any]:
        """Return the JSON form, which is also what the fingerprint hashes."""
        found = {**asdict(self), "options": self.options.as_dict()}
        del found["wish"]
        return found

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> "TrialSpec":
        """Rebuild a trial from `as_dict`."""
        trial = cls(**{**data, "options": read_options(data.get("options"))})
        task = TASKS.get(trial.task)
        if isinstance(task, PaperTask):
            for name in sorted({*dict(trial.options.own)} - {*CODES, *task.options}):
                lookup("option", name, COMMON_OPTIONS, field="options")
        return trial


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
    record: tuple[str, ...] = ()
    search: Search | None = None  # then the rates are those of its first round

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
        record: Iterable[str] = (),
        search: Mapping[str, Any] | None = None,
    ) -> "SweepSpec":
        """Check every setting, fill in the task's defaults, and return a runnable sweep.

        Raises:
            IBError: With one sentence that names the setting and what would work.
        """
        found = find_task(task)
        request.check("profile", profile)
        defaults = found.defaults(profile)
        read = read_options(options)
        request.check("options.momentum", read.momentum)
        spec = cls(
            task=task,
            methods=tuple(_with_momentum(method, read.momentum) for method in methods),
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
            options=read,
            record=tuple(record),
        )
        if search is not None:
            spec = searching(spec, search, defaults.learning_rates)
        check_sweep(spec, found)
        return replace(spec, options=_of_task(spec.options, found))

    def as_dict(self) -> dict[str, Any]:
        """Return the JSON form; what records or searches nothing does not say so."""
        found = {**asdict(self), "options": self.options.as_dict(), "search": self.search}
        if self.search is not None:
            found["search"] = self.search.as_dict()
        return {key: one for key, one in found.items() if one or key not in ("record", "search")}

    @property
    def size(self) -> int:
        """Number of trials, of a search in its first round."""
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
                batch_rule=self.batch_rule if find_method(method).solves_rows else None,
                activation=self.activation or task.activation,
                lr=lr,
                seed=seed,
                clip=clip,
                mu=self.mu,
                epochs=self.epochs,
                batch_size=self.batch_size,
                options=_options_of(method, self.options),
                wish=Wish(self.record) if self.record else None,
            )
            for method, clip, lr, seed in grid
        ]


def read_options(options: "Options | Mapping[str, Any] | None") -> Options:
    """Return `Options` from its JSON form; what is no option of ours is one of the task's own."""
    if isinstance(options, Options):
        return options
    given = dict(options or {})
    own = {name: given.pop(name) for name in list(given) if name not in COMMON_OPTIONS}
    for name, value in own.items():
        if value is not None and not isinstance(value, str | int | float):
            lookup("option", name, COMMON_OPTIONS, field="options")
    if isinstance(given.get("decay"), Mapping):
        given["decay"] = Decay(**given["decay"])
    given["validation"] = given.get("validation") or None
    given["restart"] = bool(given.get("restart"))  # off is None in a list
    return Options(**given, own=tuple(sorted(own.items())))


#: Options that every sweep knows.
COMMON_OPTIONS = {name: None for name in Options.__dataclass_fields__ if name != "own"}


def _of_task(options: Options, task: Task) -> Options:
    """Return the options with every one of the task's own said, and the code it comes from."""
    if isinstance(task, PaperTask):
        return replace(options, own=task.unusual(options.own))
    values = task.read(options.of_task)
    codes = {} if task.code is None else {"code": task.code}
    sizes = {name: values.pop(name) for name in ("width", "depth") if name in values}
    for name, option in task.options.items():
        if option.later and values.get(name) == option.default:
            del values[name]
    return replace(options, **sizes, own=tuple(sorted({**values, **codes}.items())))


def _with_momentum(method: str, momentum: float | None) -> str:
    """Return a method's name; an optimizer of anybody's that has a momentum says the sweep's."""
    found = find_method(method)
    if momentum is None or found.factory is None or "momentum" not in found.options:
        return found.name
    base, said = split_name(found.name)
    if said.setdefault("momentum", momentum) != momentum:
        raise InvalidSpec(
            f"{method} says a momentum of its own; leave it out there, or leave momentum out.",
            field="options.momentum",
        )
    return find_method(canonical_name(base, said)).name


def _options_of(method: str, options: Options) -> Options:
    """Drop what the method ignores, fill in what it needs: equal trials get equal addresses."""
    base, found = method.partition("(")[0], find_method(method)
    exact, code = found.exact, found.code
    heavy = "momentum" in found.options and found.factory is None
    usual = 0.9 if base == "momentum" else None  # the others came later: unsaid is 0.9 there
    momentum = usual if options.momentum in (None, 0.9) else options.momentum
    own = options.own if code is None else tuple(sorted((*options.own, ("method_code", code))))
    return replace(
        options,
        own=own,
        isgd_form=(options.isgd_form or "text") if exact else None,
        inner_steps=(options.inner_steps or 100) if exact else None,
        momentum=momentum if heavy else None,
    )


# --- What is refused, each in one sentence: whatever remains is runnable


MOST_TRIALS = 20_000


def check_sweep(spec: "SweepSpec", task: Task) -> None:
    """Refuse a sweep that could not be trained.

    Raises:
        IBError: With one sentence that names the setting and what would work.
    """
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
    request.check("record", spec.record)
    if spec.activation is not None:
        if not task.activation:
            raise InvalidSpec(
                f"The layers of {task.name} have activations of their own; leave activation out.",
                field="activation",
            )
        lookup("activation", spec.activation, SOLVABLE)
    _check_options(spec, task)
    if spec.size > MOST_TRIALS:
        raise InvalidSpec(
            f"A sweep holds at most {MOST_TRIALS:,} trials; this one has {spec.size:,}.",
            field="learning_rates",
            hint="Split it into several sweeps of one study.",
        )


def _check_methods(spec: "SweepSpec", task: Task) -> None:
    if not spec.methods or len(set(spec.methods)) < len(spec.methods):
        raise InvalidSpec(
            f"Give each method once, at least one of: {', '.join(METHODS)}.", field="methods"
        )
    found = [find_method(method) for method in spec.methods]
    if any(method.implicit_filters for method in found):
        _check_filters(spec, task)
    if any(method.implicit_output for method in found) and not task.linear_output:
        ends = f"ends in {task.output}" if task.output else "has a loss it does not know"
        raise InvalidSpec(
            f"ib_plus solves a linear output layer, but {task.name} {ends}. "
            "Use ib here, or a task with a linear output such as digits_mlp.",
            field="methods",
        )


def _check_filters(spec: "SweepSpec", task: Task) -> None:
    if task.has_filters and dict(spec.options.own).get("convolutions") != "implicit":
        return
    words = "ib_conv is ib with convolutions=implicit; leave one of the two out."
    if not task.has_filters:
        words = "ib_conv solves the filters of the paper's classifier, and this is another network"
        words = f"{words} ({task.name}); ib solves the ImplicitConv2d of a model of one's own."
    raise InvalidSpec(words, field="methods")


def _check_options(spec: "SweepSpec", task: Task) -> None:
    options = spec.options
    for name in COMMON_OPTIONS:
        of_task = name in task.options and not isinstance(task, PaperTask)
        if not of_task:
            value = getattr(options, name)
            request.check(f"options.{name}", asdict(value) if name == "decay" and value else value)
    codes = ("code", "method_code")
    for name, _ in options.own:
        if name not in task.options and name not in codes:
            lookup("option", name, {**COMMON_OPTIONS, **task.options}, field="options")
    for name in ("width", "depth"):
        if getattr(options, name) is not None and name not in task.options:
            raise InvalidSpec(
                f"{task.name} has a fixed {name}; leave options.{name} out.",
                field=f"options.{name}",
            )
    _check_together(spec)


def _check_together(spec: "SweepSpec") -> None:
    """Refuse options that another setting rules out."""
    having = [method for method in spec.methods if "momentum" in find_method(method).options]
    if spec.options.momentum is not None and not having:
        raise InvalidSpec(
            f"None of the methods has a momentum ({', '.join(spec.methods)}); leave it out.",
            field="options.momentum",
            hint="The methods momentum, ngn_m, momo, ib_momentum and torch.optim.SGD have one.",
        )
    if spec.options.validation is not None and spec.profile == "authors":
        raise InvalidSpec(
            "The authors trained on all rows; leave validation out, or the profile authors.",
            field="options.validation",
        )
    if spec.options.restart and spec.mu <= 0:
        raise InvalidSpec("Restarts need mu > 0 (App. C).", field="options.restart")
    for method in spec.methods if spec.options.restart else ():
        if find_method(method).remembers:
            raise InvalidSpec(
                f"Restarts (App. C) begin again at zero, but {method} goes on from what it "
                "remembers of earlier steps; use methods such as eb and ib, or leave restart out.",
                field="options.restart",
            )
