"""Runs sorted by the paper's experiments, whoever made them: the input of every verdict."""

import csv
import json
import math
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from io import StringIO
from typing import Any

from ib_core.metrics import RateCurve, SeedResult
from ib_core.sweep import PRESETS, TrialResult, specs_of

#: Settings that, besides rate and seed, decide which experiment a trial belongs to.
SETTINGS = (
    *("task", "profile", "method", "batch_rule", "activation", "clip", "mu", "epochs"),
    *("batch_size", "options"),
)
#: The one seed of the paper's UCI tables.
UCI_SEED = 1
#: The experiments behind the paper's run time table, and its names for them.
TIMED = {
    "01_mnist_classification": "MNIST classification",
    "03_mnist_autoencoder": "MNIST autoencoder",
    "05_jsb_chorales": "JSB Chorales",
    "09_musedata": "MuseData",
    "11_nottingham": "Nottingham",
    "13_piano_midi": "Piano-midi.de",
    "uci": "UCI classification sum",
}


@dataclass(frozen=True, slots=True)
class Run:
    """One run of an experiment; accuracies are fractions.

    Attributes:
        experiment: As `05_jsb_chorales`, or `uci`.
        dataset: For UCI its table; else empty.
        method: `eb`, `ib` or `isgd`.
        lr: Learning rate.
        seed: Seed.
        train_loss: At the end; None or not finite where it diverged for good.
        test_accuracy: At the end; None without classes.
        initial_loss: Before the first step; None where it was not recorded.
        outcome: `completed` or `diverged`.
        seconds: What it took; None where it was trained together with others.
    """

    experiment: str
    dataset: str
    method: str
    lr: float
    seed: int
    train_loss: float | None
    test_accuracy: float | None = None
    initial_loss: float | None = None
    outcome: str = "completed"
    seconds: float | None = None


@dataclass(frozen=True, slots=True)
class Evidence:
    """What somebody's runs show.

    Attributes:
        curves: By experiment and method; UCI apart.
        uci: By table, method and rate, seed 1.
        overheads: How much longer IB takes than EB, as a share, by the paper's name of the data;
            from runs made to measure it.
        result_overheads: The same from the runs that made the results.
    """

    curves: Mapping[str, Mapping[str, RateCurve]] = field(default_factory=dict)
    uci: Mapping[str, Mapping[str, Mapping[float, Run]]] = field(default_factory=dict)
    overheads: Mapping[str, float] = field(default_factory=dict)
    result_overheads: Mapping[str, float] = field(default_factory=dict)

    @classmethod
    def of(cls, runs: Iterable[Run], overheads: Mapping[str, float] | None = None) -> "Evidence":
        """Sort runs; of two with one rate and seed the first counts."""
        runs = list(runs)
        cells: dict[tuple[str, str, str, float, int], Run] = {}
        for run in runs:
            cells.setdefault((run.experiment, run.dataset, run.method, run.lr, run.seed), run)
        grouped: defaultdict[str, defaultdict[str, list[Run]]] = defaultdict(
            lambda: defaultdict(list)
        )
        uci: defaultdict[str, defaultdict[str, dict[float, Run]]] = defaultdict(
            lambda: defaultdict(dict)
        )
        for run in cells.values():
            if run.dataset:
                if run.seed == UCI_SEED:
                    uci[run.dataset][run.method][run.lr] = run
            else:
                grouped[run.experiment][run.method].append(run)
        curves = {
            name: {method: curve_of(found) for method, found in methods.items()}
            for name, methods in grouped.items()
        }
        return cls(curves, uci, overheads or {}, overheads_of(runs))

    def pair(self, experiment: str) -> tuple[RateCurve, RateCurve] | None:
        """Return EB's and IB's curve at the rates both have, or None."""
        methods = self.curves.get(experiment, {})
        if "eb" not in methods or "ib" not in methods:
            return None
        common = set(methods["eb"].lrs) & set(methods["ib"].lrs)
        if not common:
            return None
        eb, ib = (
            RateCurve(tuple(p for p in methods[m].points if p.lr in common)) for m in ("eb", "ib")
        )
        return eb, ib


def curve_of(runs: Iterable[Run]) -> RateCurve:
    """Return the training losses of one method's runs."""
    return RateCurve.from_results(
        (run.lr, SeedResult(run.seed, run.train_loss, run.initial_loss, run.outcome))
        for run in runs
    )


def means(curve: RateCurve) -> dict[float, float]:
    """Return the mean losses by rate; one that is not a number is infinite."""
    return {point.lr: math.inf if point.mean is None else point.mean for point in curve.points}


@cache
def _places() -> dict[tuple[Any, ...], dict[float, str]]:
    """Return, by a trial's settings and rate, the experiment it belongs to."""
    found: dict[tuple[Any, ...], dict[float, str]] = {}
    for name, preset in PRESETS.items():
        if not name.startswith("paper/"):
            continue
        for body in (*preset.text, *preset.authors):
            for trial in (trial for spec in specs_of(body) for trial in spec.expand()):
                key = tuple(getattr(trial, setting) for setting in SETTINGS)
                found.setdefault(key, {})[trial.lr] = name.removeprefix("paper/")
    return found


def experiment_of(settings: tuple[Any, ...], lr: float) -> str | None:
    """Return the experiment of a trial with these `SETTINGS`; None beside the paper's grids."""
    return _places().get(settings, {}).get(lr)


def on_the_grid(run: Run) -> bool:
    """Return whether a recorded run is at a rate of the published plots.

    A few more were recorded. Exact ISGD has its own rates, all of them worth a look.
    """
    rates = PRESETS[f"paper/{run.experiment}"].authors[0]["learning_rates"]
    return run.method == "isgd" or run.lr in rates


def overheads_of(runs: Iterable[Run]) -> dict[str, float]:
    """Return how much longer IB took than EB, as a share, by the paper's name of the data.

    Over the runs of both methods with one experiment, table, rate and seed; of experiments
    without clipping.
    """
    seconds: defaultdict[tuple[str, str, float, int], dict[str, float]] = defaultdict(dict)
    for run in runs:
        if run.experiment in TIMED and run.seconds and run.method in ("eb", "ib"):
            cell = (run.experiment, run.dataset, run.lr, run.seed)
            seconds[cell][run.method] = run.seconds
    totals: defaultdict[str, list[float]] = defaultdict(lambda: [0.0, 0.0])
    for (experiment, *_), times in seconds.items():
        if len(times) == 2:
            totals[experiment][0] += times["eb"]
            totals[experiment][1] += times["ib"]
    return {TIMED[name]: ib / eb - 1 for name, (eb, ib) in sorted(totals.items())}


def runs_of(results: Iterable[TrialResult], profile: str) -> Iterable[Run]:
    """Yield those of our results that belong to an experiment in a profile."""
    for result in results:
        spec = result.spec
        settings = tuple(getattr(spec, name) for name in SETTINGS)
        experiment = experiment_of(settings, spec.lr) if spec.profile == profile else None
        if experiment is not None:
            yield Run(
                experiment=experiment,
                dataset=spec.task.removeprefix("uci/") if experiment == "uci" else "",
                method=spec.method,
                lr=spec.lr,
                seed=spec.seed,
                train_loss=result.train_loss,
                test_accuracy=result.test_accuracy,
                initial_loss=result.initial_loss,
                outcome=result.outcome.value,
            )


#: The experiments without clipping: one for each data set.
UNCLIPPED = (
    "01_mnist_classification",
    "03_mnist_autoencoder",
    "05_jsb_chorales",
    "09_musedata",
    "11_nottingham",
    "13_piano_midi",
)
#: Every clipped music experiment, and the same without clipping.
CLIPPED_MUSIC = {
    "06_jsb_chorales_clip_8.0": "05_jsb_chorales",
    "07_jsb_chorales_clip_1.0": "05_jsb_chorales",
    "08_jsb_chorales_clip_0.1": "05_jsb_chorales",
    "10_musedata_clip_8.0": "09_musedata",
    "12_nottingham_clip_8.0": "11_nottingham",
    "14_piano_midi_clip_8.0": "13_piano_midi",
    "15_piano_midi_clip_1.0": "13_piano_midi",
    "16_piano_midi_clip_0.1": "13_piano_midi",
    "17_piano_midi_clip_0.01": "13_piano_midi",
}
CLASSIFIER, CLIPPED_CLASSIFIER = "01_mnist_classification", "02_mnist_classification_clip_1.0"
CLIPPED_AUTOENCODER = "04_mnist_autoencoder_clip_1.0"


@dataclass(frozen=True, slots=True)
class PublishedClaim:
    """A sentence of the paper.

    Attributes:
        id: Its name here.
        text: What it says.
        place: Where.
        numbers: The numbers in it.
    """

    id: str
    text: str
    place: str
    numbers: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class PrintedRunTime:
    """A row of the run time table, in percent; the bound is None where it has a dash."""

    dataset: str
    bound: float | None
    measured: float


@cache
def published_claims() -> dict[str, PublishedClaim]:
    """Return the paper's claims by id."""
    known = ("id", "text", "place")
    return {
        claim["id"]: PublishedClaim(
            **{name: claim[name] for name in known},
            numbers={name: value for name, value in claim.items() if name not in known},
        )
        for claim in _claims_file()["claims"]
    }


def published_better(experiment: str) -> bool:
    """Return whether the paper says that IB outperforms EB in an experiment."""
    return experiment not in _claims_file()["worse_with_ib"]


def profile_note(experiment: str) -> str:
    """Return how text and published runs differ in an experiment."""
    notes: dict[str, str] = _claims_file()["notes"]
    family = {"01": "01", "02": "01", "03": "03", "04": "03", "uc": "uci"}
    return notes[family.get(experiment[:2], "music")]


@cache
def printed_uci_losses() -> dict[tuple[str, str, float], float]:
    """Return the paper's appendix tables: (data set, method, rate) -> loss, two decimals."""
    return {
        (row["dataset"], row["method"], float(rate)): float(loss)
        for row in csv.DictReader(StringIO(_read("uci_training_loss.csv")))
        for rate, loss in row.items()
        if rate not in ("dataset", "method")
    }


@cache
def printed_run_times() -> tuple[PrintedRunTime, ...]:
    """Return the paper's run time table."""
    return tuple(
        PrintedRunTime(
            dataset=row["dataset"],
            bound=float(row["bound_percent"]) if row["bound_percent"] else None,
            measured=float(row["measured_percent"]),
        )
        for row in csv.DictReader(StringIO(_read("run_times.csv")))
    )


@cache
def _claims_file() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(_read("claims.json"))
    return found


def _read(name: str) -> str:
    return (files("ib_core.reproduction") / "printed" / name).read_text(encoding="utf-8")
