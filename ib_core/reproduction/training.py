"""The plan of what to train, cheap and telling first, and its training into a bundle.

Training may stop at any moment and goes on from there.
"""

import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ib_core.datasets import DATASETS, UCI_NAMES, data_hash
from ib_core.reproduction.bundle import Bundle
from ib_core.reproduction.studies import BEYOND, Body, Portion, Study
from ib_core.sweep.fingerprint import fingerprint
from ib_core.sweep.presets import PRESETS
from ib_core.sweep.processes import lanes_here, run_all
from ib_core.sweep.result import Observer, TrialResult
from ib_core.sweep.shard import plan_shards
from ib_core.sweep.spec import TrialSpec
from ib_core.tasks import find_task

#: Finds results elsewhere, by content address: a database, another bundle.
Finder = Callable[[Sequence[str]], Mapping[str, TrialResult]]

#: A run of hours is cut coarser than one that is watched: full stacks, and little lost by a stop.
STACK_SECONDS = 150.0
#: Neighbours are trained together up to so long: studies share stacks, and processors wait less
#: for each other's last.
ROUND_SECONDS = 900.0


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


__all__ = ["PLAN", "Experiment", "Study", "experiments"]

_CLASSIFIER, _CLIPPED_CLASSIFIER = "01_mnist_classification", "02_mnist_classification_clip_1.0"
_AUTOENCODER, _CLIPPED_AUTOENCODER = "03_mnist_autoencoder", "04_mnist_autoencoder_clip_1.0"

#: Exact ISGD's rates: both ends and the middle of the paper's grid. It costs 100 times EB.
EXACT_RATES = [0.2, 1.0, 2.0]
#: Rates of long experiments that already show the shape of the curve; the others come later.
TELLING_RATES = (5.0, 50.0, 500.0)

#: The text profile: stage of the first seed, stages between seeds, seeds, rates that come first.
_TEXT: dict[str, tuple[int, int, int, tuple[float, ...]]] = {
    "05_jsb_chorales": (0, 1, 5, ()),
    "06_jsb_chorales_clip_8.0": (1, 2, 5, ()),
    "07_jsb_chorales_clip_1.0": (1, 2, 5, ()),
    "08_jsb_chorales_clip_0.1": (1, 2, 5, ()),
    "13_piano_midi": (2, 3, 5, TELLING_RATES),
    "14_piano_midi_clip_8.0": (3, 4, 5, TELLING_RATES),
    "15_piano_midi_clip_1.0": (3, 4, 5, TELLING_RATES),
    "16_piano_midi_clip_0.1": (3, 4, 5, TELLING_RATES),
    "17_piano_midi_clip_0.01": (3, 4, 5, TELLING_RATES),
    _AUTOENCODER: (3, 4, 5, (1.0, 5.0, 10.0, 20.0)),
    _CLIPPED_AUTOENCODER: (3, 4, 5, (1.0, 10.0, 100.0)),
    "09_musedata": (3, 5, 3, TELLING_RATES),
    "10_musedata_clip_8.0": (3, 5, 3, TELLING_RATES),
    "11_nottingham": (3, 5, 5, TELLING_RATES),
    "12_nottingham_clip_8.0": (3, 5, 5, TELLING_RATES),
}
#: The authors profile where it is not complete: its stage and the three rates.
_AUTHORS: dict[str, tuple[int, list[float]]] = {
    _CLASSIFIER: (4, [0.2, 1.0, 2.0]),
    _CLIPPED_CLASSIFIER: (4, [0.5, 2.0, 4.0]),
    "13_piano_midi": (6, list(TELLING_RATES)),
    "14_piano_midi_clip_8.0": (7, list(TELLING_RATES)),
    "15_piano_midi_clip_1.0": (7, list(TELLING_RATES)),
    "16_piano_midi_clip_0.1": (7, list(TELLING_RATES)),
    "17_piano_midi_clip_0.01": (7, list(TELLING_RATES)),
    "09_musedata": (9, list(TELLING_RATES)),
    "10_musedata_clip_8.0": (9, list(TELLING_RATES)),
    "11_nottingham": (9, list(TELLING_RATES)),
    "12_nottingham_clip_8.0": (9, list(TELLING_RATES)),
    _AUTOENCODER: (12, [0.001, 0.009, 0.02]),
    _CLIPPED_AUTOENCODER: (13, [0.01, 0.2, 0.4]),
}
#: JSB Chorales is small enough for every rate and seed of the recorded runs.
_AUTHORS_COMPLETE = {
    "05_jsb_chorales": 1,
    "06_jsb_chorales_clip_8.0": 4,
    "07_jsb_chorales_clip_1.0": 4,
    "08_jsb_chorales_clip_0.1": 4,
}


@dataclass(frozen=True, slots=True)
class Experiment:
    """One of the paper's experiments, and the studies that repeat it.

    Attributes:
        id: Its name in the published runs and the presets.
        title: Its name on screens.
        text: The study in the text profile.
        authors: The study in the authors profile.
    """

    id: str
    title: str
    text: str
    authors: str


def experiments() -> tuple[Experiment, ...]:
    """Return the 17 experiments in the paper's order, and UCI last."""
    names = [name.removeprefix("paper/") for name in PRESETS if name.startswith("paper/")]
    return tuple(
        Experiment(name, PRESETS[f"paper/{name}"].title, f"text/{name}", f"authors/{name}")
        for name in names
    )


def _study(profile: str, experiment: str, *portions: Portion) -> Study:
    preset = PRESETS[f"paper/{experiment}"]
    what = "as the text describes it" if profile == "text" else "as the published runs were made"
    return Study(
        name=f"{profile}/{experiment}",
        title=f"{preset.title} ({profile} profile)",
        question=f"{preset.summary.split(':')[0].rstrip('.')}, {what}.",
        portions=portions,
        preset=preset.name,
    )


def _body(profile: str, experiment: str, **changes: Any) -> Body:
    return {**PRESETS[f"paper/{experiment}"].sweeps(profile)[0], **changes}


def _text_studies() -> Iterator[Study]:
    yield _study(
        "text",
        _CLASSIFIER,
        Portion(
            _body("text", _CLASSIFIER, seeds=5),
            stage=2,
            per_seed=3,
            first_rates=(0.2, 0.8, 1.4, 2.0),
        ),
        Portion(
            _body("text", _CLASSIFIER, methods=["isgd"], learning_rates=EXACT_RATES, seeds=1),
            stage=4,
        ),
    )
    yield _study(
        "text",
        _CLIPPED_CLASSIFIER,
        Portion(
            _body("text", _CLIPPED_CLASSIFIER), stage=3, per_seed=4, first_rates=(0.5, 2.0, 4.0)
        ),
    )
    for name, (stage, per_seed, seeds, first) in _TEXT.items():
        body = _body("text", name, seeds=seeds)
        yield _study("text", name, Portion(body, stage, per_seed, first_rates=first))
    yield _study("text", "uci", *_uci("text", stage=0))


def _authors_studies() -> Iterator[Study]:
    for name, stage in _AUTHORS_COMPLETE.items():
        yield _study("authors", name, Portion(_body("authors", name), stage, per_seed=2))
    for name, (stage, rates) in _AUTHORS.items():
        body = _body("authors", name, learning_rates=rates, seeds=2)
        yield _study("authors", name, Portion(body, stage, per_seed=2))
    yield _study("authors", "uci", *_uci("authors", stage=1))


def _uci(profile: str, stage: int) -> Iterator[Portion]:
    bodies = {body["task"]: body for body in PRESETS["paper/uci"].sweeps(profile)}
    for name in UCI_NAMES:
        yield Portion(bodies[f"uci/{name}"], stage)


def _in_the_papers_order(studies: Iterator[Study]) -> list[Study]:
    return sorted(studies, key=lambda study: study.name)


PLAN: dict[str, Study] = {
    study.name: study
    for study in (
        *_in_the_papers_order(_text_studies()),
        *_in_the_papers_order(_authors_studies()),
        *BEYOND,
    )
}
