"""Trains the plan stage by stage into a bundle, and times IB's steps against EB's beside it.

Training stops and goes on at any moment.
"""

import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import quantiles
from threading import Timer
from typing import TYPE_CHECKING, Any

from filelock import FileLock

from ib_core.datasets import DATASETS, UCI_NAMES, data_hash, load_dataset
from ib_core.errors import InvalidSpec
from ib_core.methods import Member, build_optimizer
from ib_core.reproduction.bundle import PACKED, Bundle
from ib_core.reproduction.lines import RECORDED_SEED
from ib_core.reproduction.published import TIMED_TASKS
from ib_core.reproduction.studies import Study
from ib_core.sweep import (
    Observer,
    TrialResult,
    TrialSpec,
    fingerprint,
    lanes_here,
    plan_shards,
    run_all,
)
from ib_core.tasks import build_workload, find_task, paper_task

if TYPE_CHECKING:
    from torch import Tensor

#: Finds results elsewhere, by content address: a database, another bundle.
Finder = Callable[[Sequence[str]], Mapping[str, TrialResult]]

#: A run of hours is cut coarser than one that is watched: full stacks, and little lost by a stop.
STACK_SECONDS = 150.0
#: Neighbours are trained together up to so long: studies share stacks, and processors wait less
#: for each other's last.
ROUND_SECONDS = 900.0
#: A lock that takes longer than this is held by another run, and waiting for it is worth a word.
PATIENCE_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class Unit:
    """What is trained in one go: the trials of one study at one stage, or of several.

    Attributes:
        study: The study's name, or the first one's.
        stage: Its place in the order, or the first one's.
        trials: What is still to train.
        seconds: Forecast on this machine, all processors at work.
        more: How many units were joined to it.
    """

    study: str
    stage: int
    trials: tuple[TrialSpec, ...]
    seconds: float
    more: int = 0

    def followed_by(self, other: "Unit") -> "Unit":
        """Return this unit with another behind it."""
        return replace(
            self,
            trials=self.trials + other.trials,
            seconds=self.seconds + other.seconds,
            more=self.more + 1,
        )

    @property
    def name(self) -> str:
        """Its study and stage, as people read it."""
        more = f" and {self.more} more" if self.more else ""
        return f"{self.study} stage {self.stage}{more}"


@dataclass(frozen=True, slots=True)
class Forecast:
    """What is left of a plan.

    Attributes:
        units: What to train, in order.
        known: How many trials are already there.
        missing: Names of data sets that are not on this machine, with the trials they cost.
        found: Results known elsewhere, which the bundle does not hold yet.
    """

    units: tuple[Unit, ...]
    known: int
    missing: dict[str, int]
    found: tuple[TrialResult, ...] = ()

    @property
    def seconds(self) -> float:
        """Forecast of all units together."""
        return sum(unit.seconds for unit in self.units)


class OutOfTime(Exception):
    """The time given for the run is over."""


class Progress:
    """Hears how a run goes; override what you need."""

    def begin(self, unit: Unit) -> None:
        """Called before a unit is trained."""

    def moved(self, unit: Unit, fraction: float) -> None:
        """Called a few times a second."""

    def end(self, unit: Unit, seconds: float) -> None:
        """Called when a unit is done."""


class _Keeper(Observer):
    """Writes every result down at once and ends the run when its time is over."""

    def __init__(self, bundle: Bundle, unit: Unit, progress: Progress, deadline: float) -> None:
        self.bundle, self.unit, self.progress_, self.deadline = bundle, unit, progress, deadline

    def finished(self, index: int, result: TrialResult) -> None:
        """Keep a result."""
        del index
        self.bundle.append(result)

    def progress(self, fraction: float) -> Collection[int]:
        """Pass it on; stop when time is over."""
        self.progress_.moved(self.unit, fraction)
        if time.monotonic() > self.deadline:
            raise OutOfTime
        return ()


@contextmanager
def locked(folder: Path, *, waiting: Callable[[], object]) -> Iterator[None]:
    """Keep other runs from writing to a folder while the body runs; wait for one that does.

    Open the bundle inside: before, another run may still be adding to it.

    Args:
        folder: Where results are kept; made if it is not there.
        waiting: Called once if another run holds it.

    Raises:
        InvalidSpec: If nothing can be written there.
    """
    lock = folder / ".lock"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock.touch()
    except OSError as error:
        raise InvalidSpec(
            f"Results cannot be kept in {folder}: {error.strerror}.",
            hint="Name another folder with --bundle.",
        ) from None
    notice = Timer(PATIENCE_SECONDS, waiting)
    notice.daemon = True
    notice.start()
    try:
        with FileLock(lock):
            notice.cancel()
            yield
    finally:
        notice.cancel()


def forecast(
    studies: Sequence[Study],
    bundle: Bundle,
    *,
    elsewhere: Finder | None = None,
    seeds: int | None = None,
) -> Forecast:
    """Return what is left to train, cheap and telling stages first.

    Nothing is written: what is known elsewhere is in the forecast, for a run to keep. A trial of
    several studies is trained for the first that wants it.

    Args:
        studies: The studies.
        bundle: Where results are kept.
        elsewhere: Where else to look before training.
        seeds: At most so many seeds a sweep.
    """
    missing: dict[str, int] = {}
    wanted: dict[TrialSpec, tuple[int, str]] = {}
    for study in studies:
        for stage, trial in study.trials():
            dataset = find_task(trial.task).dataset
            if seeds is not None and trial.seed > seeds:
                continue
            if not DATASETS[dataset].present():
                missing[dataset] = missing.get(dataset, 0) + 1
            elif trial not in wanted or wanted[trial][0] > stage:
                wanted[trial] = (stage, study.name)
    unknown, found = _unknown(wanted, bundle, elsewhere)
    groups: dict[tuple[int, str], list[TrialSpec]] = {}
    for trial in unknown:
        groups.setdefault(wanted[trial], []).append(trial)
    lanes = lanes_here("cpu")
    units = []
    order = {study.name: position for position, study in enumerate(studies)}
    for (stage, name), trials in sorted(groups.items(), key=lambda i: (i[0][0], order[i[0][1]])):
        shards = plan_shards(trials, lanes=lanes, seconds=STACK_SECONDS)
        cost = sum(shard.seconds for shard in shards) / lanes
        units.append(Unit(name, stage, tuple(trials), cost))
    return Forecast(tuple(units), len(wanted) - len(unknown), missing, found)


def _unknown(
    wanted: Iterable[TrialSpec], bundle: Bundle, elsewhere: Finder | None
) -> tuple[list[TrialSpec], tuple[TrialResult, ...]]:
    """Return the trials nobody has trained, with this data and by this engine.

    Behind them come the results that only `elsewhere` has.
    """
    addresses = {
        trial: fingerprint(trial, data_hash(find_task(trial.task).dataset)) for trial in wanted
    }
    unknown = [
        trial
        for trial, address in addresses.items()
        if trial not in bundle.results or bundle.results[trial].fingerprint != address
    ]
    found = elsewhere([addresses[trial] for trial in unknown]) if elsewhere else {}
    return [trial for trial in unknown if addresses[trial] not in found], tuple(found.values())


def rounds(units: Iterable[Unit], seconds: float) -> list[Unit]:
    """Return the units with neighbours joined, up to so many seconds each."""
    joined: list[Unit] = []
    for unit in units:
        if joined and joined[-1].seconds + unit.seconds <= seconds:
            joined[-1] = joined[-1].followed_by(unit)
        else:
            joined.append(unit)
    return joined


def train(
    units: Iterable[Unit],
    bundle: Bundle,
    *,
    progress: Progress,
    deadline: float = float("inf"),
) -> list[Unit]:
    """Train units in order and return those that there was no time for.

    With a deadline they go one by one, and a unit whose forecast does not fit is passed over, so
    that the time left goes to those that do.

    Args:
        units: What to train.
        bundle: Where results are kept, each as soon as there is one.
        progress: Told how it goes.
        deadline: When to stop, by `time.monotonic`.
    """
    left = []
    for unit in units if deadline < float("inf") else rounds(units, ROUND_SECONDS):
        began = time.monotonic()
        if began + unit.seconds > deadline:
            left.append(unit)
            continue
        progress.begin(unit)
        try:
            keeper = _Keeper(bundle, unit, progress, deadline)
            run_all(unit.trials, observer=keeper, seconds=STACK_SECONDS)
        except OutOfTime:
            left.append(unit)
            continue
        progress.end(unit, time.monotonic() - began)
    return left


def train_alone(folder: Path, *studies: Study, form: str = PACKED) -> Bundle:
    """Train what a folder lacks of studies outside the plan, and pack it."""
    bundle = Bundle(folder)
    trials = [trial for study in studies for _, trial in study.trials()]
    wanted = tuple(trial for trial in dict.fromkeys(trials) if _lacks(bundle, trial))
    train([Unit(studies[0].name, 0, wanted, seconds=0.0)], bundle, progress=Progress())
    bundle.pack(studies, form=form)
    return bundle


def _lacks(bundle: Bundle, trial: TrialSpec) -> bool:
    """Return whether a bundle has no result of a trial, or not the recording that it ships."""
    known = bundle.results.get(trial)
    recorded = trial.wish is None or trial.seed != RECORDED_SEED
    return known is None or not (recorded or known.recording)


# --- How much longer an IB step takes than an EB step here, network by network
#
# EB and IB take turns on the same batches, one model at a time, steps only, and what is taken is
# the processor's time: a ratio that a busy machine moves little.

#: Of UCI whole epochs are timed: in the paper's sum a large table weighs more than a small one.
UCI, WHOLE_EPOCH = "UCI classification sum", None
ROUNDS = 9


def measure_overheads(said: Callable[[str], None] = lambda _: None) -> dict[str, Any]:
    """Return IB's overheads as shares, by the paper's name of the data, and on what machine."""
    import torch

    from ib_core.bench import surroundings

    found: dict[str, tuple[float, float, float]] = {}
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        for name, (task, steps) in TIMED_TASKS.items():
            if DATASETS[find_task(task).dataset].present():
                said(name)
                found[name] = _overhead([(task, steps)])
        tables = [f"uci/{name}" for name in UCI_NAMES if DATASETS[f"uci/{name}"].present()]
        if tables:
            said(UCI)
            found[UCI] = _overhead([(task, WHOLE_EPOCH) for task in tables])
        return {
            "overheads": {name: middle for name, (_, middle, _) in found.items()},
            "quartiles": {name: (low, high) for name, (low, _, high) in found.items()},
            "measured_on": surroundings(),
        }
    finally:
        torch.set_num_threads(threads)


def _overhead(works: Sequence[tuple[str, int | None]]) -> tuple[float, float, float]:
    """Return the quartiles of IB's overhead over rounds in which both methods take turns."""
    contestants = {
        method: _together([_steps(task, method, steps) for task, steps in works])
        for method in ("eb", "ib")
    }
    for work in contestants.values():
        work()
    ratios = []
    for number in range(ROUNDS):
        order = ("eb", "ib") if number % 2 else ("ib", "eb")
        taken = {method: _processor_seconds(contestants[method]) for method in order}
        ratios.append(taken["ib"] / taken["eb"])
    low, middle, high = quantiles(ratios, n=4, method="inclusive")
    return low - 1, middle - 1, high - 1


def _processor_seconds(work: Callable[[], None]) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start


def _together(works: list[Callable[[], None]]) -> Callable[[], None]:
    def run() -> None:
        for work in works:
            work()

    return run


def _steps(task_name: str, method: str, steps: int | None) -> Callable[[], None]:
    """Return what takes so many first steps of an epoch, or all of them, ready built."""
    import torch

    task = paper_task(task_name)
    dataset = load_dataset(task.dataset)
    workload = build_workload(task, dataset, task.recipe("text"), [1], torch.device("cpu"))
    model = workload.model()
    # A small rate: nothing diverges, and the work of a step does not depend on it.
    optimizer = build_optimizer(model, [Member(method=method, lr=1e-3)])
    workload.begin_epoch()

    def losses() -> "Tensor":
        found = workload.losses(model)
        found.sum().backward()
        return found.detach()

    def run() -> None:
        for step in range(min(steps or workload.steps_per_epoch, workload.steps_per_epoch)):
            workload.load_batch(step)
            optimizer.step(losses)

    return run
