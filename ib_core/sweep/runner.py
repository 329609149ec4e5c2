"""Runs sweeps here: from Python, answered as a table, and shards side by side on all processors.

Shards train in forked processes of one thread each, one a processor.

The tensors of a sweep are too small for threads inside a torch call to help: two threads take as
long as one. Two processes take half as long. A fork shares what is already imported and loaded,
so a lane starts in milliseconds; where a process cannot be forked safely (macOS, one that uses a
GPU already) the caller trains its shards one after another. With several GPUs every lane has one.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Collection, Iterable, Mapping, Sequence
from html import escape
from importlib import import_module
from pathlib import Path
from typing import Any, Self

from ib_core.methods import OWN_METHODS, Method, find_method
from ib_core.sweep.bodies import specs_of
from ib_core.sweep.engine import run_trials
from ib_core.sweep.lanes import STALL_SECONDS, Lanes, Work, gpus_for, is_own
from ib_core.sweep.machine import can_fork
from ib_core.sweep.result import SILENT, CurvePoint, Observer, TrialResult, row_of
from ib_core.sweep.rounds import Book, run_rounds
from ib_core.sweep.shard import PlannedShard, plan_shards
from ib_core.sweep.spec import SweepSpec, TrialSpec
from ib_core.tasks import OWN_TASKS, Task


def lanes_here(device: str) -> int:
    """Return how many shards can train side by side on this machine."""
    if len(gpus_for(device)) > 1:
        return len(gpus_for(device))
    return len(os.sched_getaffinity(0)) if can_fork(device) else 1


class _Whole:
    """How far the whole list is, from what every shard says of itself."""

    def __init__(self, shards: Sequence[PlannedShard]) -> None:
        self.total = sum(shard.seconds for shard in shards) or 1.0
        self.done: dict[int, float] = {}

    def fraction(self, number: int, seconds: float) -> float:
        """Take note that `seconds` of shard `number` are done; return the share of everything."""
        self.done[number] = seconds
        return sum(self.done.values()) / self.total


class _ShardObserver(Observer):
    """Passes a shard's news on in the whole list's indices and fractions, and keeps results."""

    def __init__(
        self,
        outer: Observer,
        number: int,
        shard: PlannedShard,
        whole: _Whole,
        results: list[TrialResult | None],
    ) -> None:
        self.outer, self.number, self.shard = outer, number, shard
        self.whole, self.results = whole, results

    def points(self, points: Mapping[int, CurvePoint]) -> None:
        """Pass on points."""
        self.outer.points({self.shard.indices[i]: point for i, point in points.items()})

    def finished(self, index: int, result: TrialResult) -> None:
        """Keep and pass on a result."""
        self.results[self.shard.indices[index]] = result
        self.outer.finished(self.shard.indices[index], result)

    def progress(self, fraction: float) -> Collection[int]:
        """Pass on progress, weighed by the shards' forecasts."""
        share = self.whole.fraction(self.number, fraction * self.shard.seconds)
        unwanted = set(self.outer.progress(share))
        return [i for i, index in enumerate(self.shard.indices) if index in unwanted]


def run_all(
    trials: Sequence[TrialSpec],
    *,
    device: str = "cpu",
    observer: Observer = SILENT,
    lanes: int | None = None,
    seconds: float | None = None,
    stall: float = STALL_SECONDS,
) -> list[TrialResult | None]:
    """Train any list of trials, grouped into shards, and return their results in order.

    Args:
        trials: What to train.
        device: As for `run_trials`.
        observer: Told about points, ends and progress of the whole list; may drop trials.
        lanes: Processes to train in; by default one a processor where that pays.
        seconds: As for `plan_shards`.
        stall: Seconds without a word after which a user's code is taken to hang.
    """
    wanted = lanes_here(device) if lanes is None else lanes
    shards = plan_shards(trials, device=device, lanes=wanted, seconds=seconds)
    results: list[TrialResult | None] = [None] * len(trials)
    whole = _Whole(shards)
    watchers = [
        _ShardObserver(observer, number, shard, whole, results)
        for number, shard in enumerate(shards)
    ]
    ready_to_fork(trials)
    guarded = can_fork(device) and any(is_own(trial) for trial in trials)
    if min(wanted, len(shards)) > 1 or guarded:
        count = min(wanted, len(shards))
        works = [
            Work(watcher, [trials[i] for i in shard.indices])
            for shard, watcher in zip(shards, watchers, strict=True)
        ]
        with Lanes(count, device, guarded=guarded, stall=stall) as crew:
            crew.train(works)
        return results
    for shard, watcher in zip(shards, watchers, strict=True):
        run_trials([trials[i] for i in shard.indices], device=device, observer=watcher)
    return results


def ready_to_fork(trials: Sequence[TrialSpec]) -> None:
    """Import what torch's optimizers want at their first step, so that no lane waits for it."""
    if any(find_method(trial.method).factory for trial in trials):
        import_module("torch._dynamo")


class Guard:
    """A lane that a worker keeps: it remembers which way a model trains.

    Args:
        stall: Seconds without a word after which it is stopped.
        shares: So many of them share this machine's memory.
        fresh: Whether it is the catalogue's and starts from nothing (see `Lanes`), unguarded.
        threads: Of it.
    """

    def __init__(
        self,
        *,
        stall: float = STALL_SECONDS,
        shares: int = 1,
        fresh: bool = False,
        threads: int = 1,
    ) -> None:
        self.stall, self.shares, self.fresh, self.threads = stall, shares, fresh, threads
        self._lanes: Lanes | None = None
        self._known: list[int] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self, device: str) -> Lanes:
        """Return the lane, another one if what is known here has changed since it was forked."""
        own = [] if self.fresh else [*OWN_TASKS.values(), *OWN_METHODS.values()]
        known = [*map(id, own)]
        if self._lanes is None or self._lanes.device != device or known != self._known:
            self.stop()
            self._known = known
            self._lanes = Lanes(
                1,
                device,
                guarded=not self.fresh,
                stall=self.stall,
                shares=self.shares,
                fresh=self.fresh,
                threads=self.threads,
            )
        return self._lanes

    def run(self, trials: Sequence[TrialSpec], *, device: str, observer: Observer) -> None:
        """Train a shard; what hangs ends as failed.

        Raises:
            LaneDied: In one sentence, if it broke.
            Exception: What the catalogue's code raised.
        """
        ready_to_fork(trials)
        try:
            self.start(device).train([Work(observer, trials)], raising=True)
        except BaseException:
            self.stop()  # it may still be training what nobody waits for
            raise

    def stop(self) -> None:
        """End the lane."""
        if self._lanes is not None:
            self._lanes.stop()
            self._lanes = None


# --- A sweep from Python or a notebook: asked for in a line, answered as a table


#: Columns that a table shows first, the last where rows were held out; the others are in `rows`.
SHOWN = ("task", "method", "options", "lr", "seed", "outcome", "train_loss", "test_loss")
HELD_OUT = "validation_loss"


class Results(list[Any]):
    """The results of a sweep in the order of its grid, None for trials nobody wanted.

    Attributes:
        searches: What searches have found, one a sweep; none of a grid.
    """

    def __init__(self, results: Iterable[TrialResult | None] = ()) -> None:
        super().__init__(results)
        self.searches: list[Book] = []

    @property
    def rows(self) -> list[dict[str, Any]]:
        """One dict a trial: what was asked, and what came of it."""
        return [row_of(result) for result in self if result is not None]

    @property
    def failures(self) -> list[str]:
        """What broke, each sentence once."""
        said = (result.error for result in self if result is not None and result.error)
        return list(dict.fromkeys(said))

    def _shown(self) -> list[tuple[str, ...]]:
        """Return the cells of the table, its head first."""
        held_out = any(result is not None and result.validation_loss is not None for result in self)
        names = (*SHOWN, HELD_OUT) if held_out else SHOWN
        return [names, *(tuple(_cell(row[name]) for name in names) for row in self.rows)]

    def __str__(self) -> str:
        cells = self._shown()
        widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
        return "\n".join(
            "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
            for line in cells
        )

    def _repr_html_(self) -> str:
        names, *rows = self._shown()
        head = "".join(f"<th>{name}</th>" for name in names)
        lines = ("".join(f"<td>{escape(cell)}</td>" for cell in row) for row in rows)
        return f"<table><tr>{head}</tr>{''.join(f'<tr>{line}</tr>' for line in lines)}</table>"

    def means(self) -> dict[str, dict[float, float]]:
        """Return the mean training loss by curve and rate; NaN where a trial has none."""
        found: dict[str, dict[float, list[float]]] = {}
        for result in self:
            if result is None or result.error:
                continue
            row = row_of(result)
            several = len({one["options"] for one in self.rows}) > 1
            name = f"{row['method']} {row['options']}".strip() if several else row["method"]
            found.setdefault(name, {}).setdefault(row["lr"], []).append(result.train_loss)
        return {
            name: {rate: sum(losses) / len(losses) for rate, losses in sorted(rates.items())}
            for name, rates in found.items()
        }

    def figure(self) -> Any:
        """Return loss against learning rate as a plotly figure, where plotly is installed."""
        # By name, because the core does without it.
        graphs = __import__("plotly.graph_objects", fromlist=["Figure"])
        figure = graphs.Figure()
        for name, rates in self.means().items():
            figure.add_scatter(x=list(rates), y=list(rates.values()), name=name)
        figure.update_xaxes(type="log", title="learning rate")
        figure.update_yaxes(type="log", title="training loss")
        return figure


def run_sweep(
    task: SweepSpec | Task | str,
    methods: Iterable[Method | str] | None = None,
    *,
    observer: Observer = SILENT,
    lanes: int | None = None,
    **settings: Any,
) -> Results:
    """Train a sweep on all cores of this machine and return its results.

    `run_sweep(task, [Method(torch.optim.AdamW), "eb"], learning_rates=[0.01, 0.1], seeds=3)`.

    Args:
        task: A `Task`, the name of one, or a whole `SweepSpec`.
        methods: `Method`s or names; the task's usual ones where none are given.
        observer: Told about points, ends and progress.
        lanes: Processes to train in; by default one a processor where that pays.
        settings: Whatever else a sweep can say (`ib_core.sweep.settings`): learning_rates, seeds,
            epochs, batch_size, clip, vary, options. With a search in place of rates, as
            `learning_rates="edge:0.01:1000"`, `searches` of the answer tells what was found.

    Raises:
        IBError: With one sentence, if it cannot be run as asked.
    """
    if isinstance(task, SweepSpec):
        return _run((task,), observer, lanes)
    body: dict[str, Any] = {**settings, "task": _named(task)}
    if methods is not None:
        body["methods"] = [_named(method) for method in methods]
    elif isinstance(task, Task) and not task.linear_output:
        body["methods"] = ["eb"]
    return _run(specs_of(body), observer, lanes)


def _run(specs: Sequence[SweepSpec], observer: Observer, lanes: int | None) -> Results:
    results = Results()

    def train(trials: list[TrialSpec]) -> list[TrialResult | None]:
        found = run_all(trials, device=specs[0].device, observer=observer, lanes=lanes)
        results.extend(found)
        return found

    if specs[0].search is not None:
        results.searches = [Book(spec) for spec in specs]
        run_rounds(results.searches, train)
    else:
        train([trial for spec in specs for trial in spec.expand()])
    return results


def _named(given: Task | Method | str) -> str:
    """Return a name; what has none yet is entered under one, with the hash of where it was made."""
    if isinstance(given, str):
        return given
    registry: Mapping[str, Any] = OWN_TASKS if isinstance(given, Task) else OWN_METHODS
    if given.name and registry.get(given.name, given) is given:
        return given.name
    from ib_core.own import code_of, enter_method, enter_task

    made_by = given.model if isinstance(given, Task) else given.factory
    source = _source(made_by)
    code, versions = code_of([source]) if source else ("notebook", {})
    kind = "task" if isinstance(given, Task) else "method"
    name = f"here:{getattr(made_by, '__name__', kind).strip('<>')}"
    while name in registry and registry[name] is not given:
        name += "_"
    if isinstance(given, Task):
        return enter_task(given, name, code, versions).name
    return enter_method(given, name, code, versions).name


def _source(made_by: Any) -> Path | None:
    """Return the file of a function or class, None where there is none, as in a notebook."""
    try:
        file = Path(inspect.getfile(made_by))
    except (TypeError, OSError):
        return None
    return file if file.is_file() else None


def _cell(value: Any) -> str:
    if value is None:
        return ""
    return f"{value:.4g}" if isinstance(value, float) else str(value)
