"""A run of any tracker, and the row that an import makes of it."""

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from ib_core.errors import InvalidSpec

#: What a source says of a run: it has ended, its loss was lost, it broke, it goes on.
State = Literal["finished", "diverged", "failed", "running"]
#: A name that begins with this is the value itself.
LITERALLY = "="
#: Where exports keep what was set, and what came of it; tried in this order.
SET = ("", "params.", "config.", "hparams.", "params_", "tags.", "user_attrs_")
CAME = ("", "metrics.", "summary.", "summary_metrics.", "summaryMetrics.", "user_attrs_")
MOST_POINTS = 1000
MOST_NAMES = 20
Points = Sequence[tuple[float, float]]


@dataclass(frozen=True, slots=True)
class Names:
    """What a source calls things; `=word` means the word itself.

    Attributes:
        lr: The learning rate.
        method: What is compared.
        seed: None: runs of one setting are numbered as they come.
        loss: None: the source's own result.
        test_loss: Of unseen data.
        task: None: the source's own name for what was tuned.
        epochs: How long it trained.
        batch_size: Rows a step.
        keep: Settings that tell series apart.
    """

    lr: str = "lr"
    method: str = "=default"
    seed: str | None = None
    loss: str | None = None
    test_loss: str | None = None
    task: str | None = None
    epochs: str | None = None
    batch_size: str | None = None
    keep: tuple[str, ...] = ()

    def named(self) -> dict[str, str]:
        """Return what some run must have, by the place it was named for; rate and loss apart."""
        places = ("method", "seed", "test_loss", "task", "epochs", "batch_size")
        given = {place: getattr(self, place) for place in places}
        given |= {f"keep.{name}": name for name in self.keep}
        return {place: name for place, name in given.items() if name and name[0] != LITERALLY}

    def told(self) -> set[str]:
        """Return the columns that are given a meaning, wherever a source may keep them."""
        settings = (self.lr, self.method, self.seed, self.task, self.epochs, self.batch_size)
        named = [name for name in (*settings, self.loss, self.test_loss, *self.keep) if name]
        return {place + name for place in SET + CAME for name in named}


@dataclass(frozen=True, slots=True)
class TrackedRun:
    """One run as a tracker has it.

    Attributes:
        id: The tracker's own, "" if it has none; a table may give one to several runs.
        state: As the source says.
        values: Settings by name, flat; of a source that does not tell them apart, all there is.
        metrics: What was logged last, by name. A scheduler's `lr` is one, and not the run's rate.
        task: What the source calls what was tuned.
        loss: The source's own result, where it has one.
        history: Of the loss, as steps and values.
        error: What the source says went wrong.
        seconds: How long it took.
        about: What else to remember of where it comes from.
    """

    id: str
    state: State
    values: Mapping[str, Any]
    metrics: Mapping[str, Any] = field(default_factory=dict)
    task: str = ""
    loss: float | None = None
    history: Points = ()
    error: str | None = None
    seconds: float | None = None
    about: Mapping[str, Any] = field(default_factory=dict)

    def value(self, name: str | None) -> Any:
        """Return the setting of a name, wherever its source keeps such things."""
        if name is None:
            return None
        if name.startswith(LITERALLY):
            return name[len(LITERALLY) :]
        found = (*self._kept(name, SET), self.metrics.get(name), *self._kept(name, CAME))
        return next((one for one in found if one is not None and one != ""), None)

    def measured(self, name: str | None) -> float | None:
        """Return the number under a name: of what came of the run, else of what was set."""
        if name is None or name.startswith(LITERALLY):
            return number(self.value(name))
        found = (self.metrics.get(name), *self._kept(name, CAME), *self._kept(name, SET))
        return next((one for one in map(number, found) if one is not None), None)

    def _kept(self, name: str, places: Sequence[str]) -> Iterator[Any]:
        return (self.values.get(place + name) for place in places)


@dataclass(frozen=True, slots=True)
class Dropped:
    """A run that was left out, and why."""

    run: str
    why: str


@dataclass(frozen=True, slots=True)
class Found:
    """What a store holds."""

    rows: list[dict[str, Any]]
    dropped: list[Dropped]


def rows_of(tracker: str, store: str, runs: Iterable[TrackedRun], names: Names) -> Found:
    """Return the rows of runs; what cannot become a trial is named, never passed over.

    Raises:
        InvalidSpec: There is not a single run to import, or none has something that was named.
    """
    rows: list[dict[str, Any]] = []
    dropped: list[Dropped] = []
    seen: set[int] = set()
    alike: Counter[int] = Counter()
    times: Counter[tuple[Any, ...]] = Counter()
    what = _What(names.named())
    for run in runs:
        what.add(run, _loss(run, names))
        logged = (sorted(run.metrics.items()), run.history)
        content = hash(repr((run.id, run.state, sorted(run.values.items()), logged)))
        twice = bool(run.id) and content in seen
        seen.add(content)
        why = f"{run.id} is there twice" if twice else _objection(run, names)
        if why is not None:
            dropped.append(Dropped(run.id or f"row {run.about.get('line')}", why))
            continue
        row = _row(tracker, store, run, names)
        # Its address is of its name and its row: whatever the order, none has another's.
        same_row = hash(repr((run.id, {**row, "source": None})))
        alike[same_row] += 1
        if alike[same_row] > 1:
            row["source"]["run"] += f" ({alike[same_row]})"
        if "seed" not in row:
            same = (row["task"], row["method"], row["lr"], str(row.get("options")))
            times[same] += 1
            row["repeat"] = times[same]
        rows.append(row)
    if names.loss is not None and what.without_loss and not what.with_loss:
        raise InvalidSpec(
            f"No run of {store} has a loss called {names.loss!r}.",
            field="loss",
            hint=f"Its runs have numbers called: {_listed(what.numbers)}.",
        )
    if not rows:
        first = f" The first: {dropped[0].why}." if dropped else ""
        raise InvalidSpec(
            f"No run of {store} can be imported; {len(dropped)} were left out.{first}",
            hint=f"Its runs have: {_listed(what.names)}.",
        )
    for place, name in what.lacking.items():  # else all would silently be "default", or numbered
        raise InvalidSpec(
            f"No run of {store} has anything called {name!r}.",
            field=place,
            hint=f"Its runs have: {_listed(what.names)}.",
        )
    return Found(rows, dropped)


@dataclass(slots=True)
class _What:
    """What the runs of a store have, for who named something that they have not."""

    lacking: dict[str, str]
    names: set[str] = field(default_factory=set)
    numbers: set[str] = field(default_factory=set)
    with_loss: int = 0
    without_loss: int = 0

    def add(self, run: TrackedRun, loss: float | None) -> None:
        self.with_loss += loss is not None
        self.without_loss += loss is None and run.state == "finished"
        for place, name in list(self.lacking.items()):
            if run.value(name) is not None or run.measured(name) is not None:
                del self.lacking[place]
        for name, value in (*run.values.items(), *run.metrics.items()):
            self.names.add(name)
            if number(value) is not None:
                self.numbers.add(name)


def _listed(names: Iterable[str]) -> str:
    return ", ".join(sorted(names)[:MOST_NAMES]) or "nothing"


def _objection(run: TrackedRun, names: Names) -> str | None:
    """Return why a run cannot be a trial; None if it can."""
    if run.state == "running":
        return "it is still running"
    rate = number(run.value(names.lr))
    if rate is None or not math.isfinite(rate) or rate <= 0:
        return f"it has no learning rate called {names.lr}"
    if run.state == "finished" and _loss(run, names) is None:
        return f"it has no loss called {names.loss}" if names.loss else "it has no loss"
    return None


def _loss(run: TrackedRun, names: Names) -> float | None:
    if names.loss is None:
        return run.measured("loss") if run.loss is None else run.loss
    if run.history and number(run.metrics.get(names.loss)) is None:
        return run.history[-1][1]
    return run.measured(names.loss)


def _row(tracker: str, store: str, run: TrackedRun, names: Names) -> dict[str, Any]:
    loss = _loss(run, names)
    row: dict[str, Any] = {
        "task": str(run.value(names.task) or run.task or tracker)[:100],
        "method": str(run.value(names.method) or "default")[:32],
        "lr": number(run.value(names.lr)),
        "train_loss": _written(loss),
        "test_loss": _written(run.measured(names.test_loss)),
        "seconds": run.seconds,
        "source": {
            "tracker": tracker,
            "store": store[:500],
            "run": run.id[:200] or "unnamed",
            **{name: str(value)[:500] for name, value in run.about.items() if value},
        },
    }
    for name in ("seed", "epochs", "batch_size"):
        given = number(run.value(getattr(names, name)))
        if given is not None and math.isfinite(given):
            row[name] = int(given)
    if run.state == "diverged":
        row["outcome"] = "diverged"
    elif run.state == "failed":
        row |= {"outcome": "failed", "error": run.error or f"{tracker} says that it failed."}
    kept = {name: run.value(name) for name in names.keep}
    if settings := {name: value for name, value in kept.items() if value is not None}:
        row["options"] = settings
    return row | _curve(run.history)


def _curve(history: Points) -> dict[str, Any]:
    if not history:
        return {}
    stride = -(-len(history) // MOST_POINTS)
    kept = [*history[::stride]]
    if kept[-1] != history[-1]:
        kept.append(history[-1])
    # Of step 0 alone: a resumed run's first loss is a good one, and five times that no divergence.
    first_step, first = kept[0]
    found: dict[str, Any] = {
        "train_loss_by_epoch": ";".join(str(_written(value)) for _, value in kept),
        "train_loss_steps": ";".join(f"{int(step)}" for step, _ in kept),
    }
    return found | ({"initial_loss": first} if first_step == 0 and math.isfinite(first) else {})


def _written(value: float | None) -> float | str | None:
    """Return a number as JSON may carry it: those that are not finite as words."""
    return value if value is None or math.isfinite(value) else str(value)


def number(value: Any) -> float | None:
    """Return a number however a source writes it; None if it is none."""
    if value is None or isinstance(value, bool):
        return None
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        return None


def flat(values: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Yield nested settings under dotted names; W&B's `{"value": x}` is x."""
    for name, value in values.items():
        if isinstance(value, Mapping) and "value" in value and value.keys() <= {"value", "desc"}:
            value = value["value"]
        if isinstance(value, Mapping):
            yield from flat(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value
