"""Runs sorted by the paper's experiments, whoever made them: the input of every verdict."""

import math
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from statistics import fmean, pstdev
from typing import Any

from ib_core.metrics import Number, RateCurve, RatePoint, SeedResult
from ib_core.reproduction.published import Numbers, measured
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
        test_loss: The same on the test part.
        test_accuracy: At the end; None without classes.
        initial_loss: Training loss before the first step; None where it was not recorded.
        outcome: `completed` or `diverged`.
        seconds: What it took; None where it was trained together with others.
    """

    experiment: str
    dataset: str
    method: str
    lr: float
    seed: int
    train_loss: float | None
    test_loss: float | None = None
    test_accuracy: float | None = None
    initial_loss: float | None = None
    outcome: str = "completed"
    seconds: float | None = None


@dataclass(frozen=True, slots=True)
class LossFacts:
    """The losses of several seeds in numbers; of the finite ones, but for `mean`.

    Attributes:
        mean: Of all seeds; None if one is not finite.
        sd: Population standard deviation, as the paper's error bars.
        lowest: Of the seeds.
        highest: Of the seeds.
        non_finite: How many are not finite.
    """

    mean: float | None
    sd: float | None
    lowest: float | None
    highest: float | None
    non_finite: int

    @classmethod
    def of(cls, losses: Iterable[float | None]) -> "LossFacts":
        """Put losses into numbers."""
        known = list(losses)
        finite = [loss for loss in known if loss is not None and math.isfinite(loss)]
        lost = len(known) - len(finite)
        if not finite:
            return cls(None, None, None, None, lost)
        mean = None if lost else fmean(finite)
        return cls(mean, pstdev(finite), min(finite), max(finite), lost)


@dataclass(frozen=True, slots=True)
class RateFacts:
    """All seeds of one method at one rate.

    Attributes:
        lr: The rate.
        n: Seeds.
        broken: How many broke; None where no initial loss is known.
        capped: Mean capped training loss; None likewise.
        train: Training losses.
        test: Test losses.
        by_seed: Training losses seed by seed; infinite where one is not finite.
    """

    lr: float
    n: int
    broken: int | None
    capped: float | None
    train: LossFacts
    test: LossFacts
    by_seed: Mapping[int, float] = field(default_factory=dict)

    def mean_of(self, seeds: Collection[int]) -> float | None:
        """Return the mean training loss of some seeds; None unless all of them are known."""
        if not seeds or not all(seed in self.by_seed for seed in seeds):
            return None
        return fmean(self.by_seed[seed] for seed in seeds)


Facts = Mapping[str, Mapping[str, tuple[RateFacts, ...]]]
Curves = Mapping[str, Mapping[str, RateCurve]]
UciRuns = Mapping[str, Mapping[str, Mapping[float, Run]]]


@dataclass(frozen=True, slots=True)
class Evidence:
    """What somebody's runs show.

    Attributes:
        facts: Losses in numbers, by experiment, method and rate; UCI apart.
        numbers: What verdicts rest on, with intervals, by experiment, method and name.
        curves: Training losses seed by seed; empty where only the facts are known.
        test_curves: Test losses likewise.
        uci: By table, method and rate, seed 1.
        overheads: How much longer IB takes than EB, as a share, by the paper's name of the data;
            from runs made to measure it.
        result_overheads: The same from the runs that made the results.
    """

    facts: Facts = field(default_factory=dict)
    numbers: Numbers = field(default_factory=dict)
    curves: Curves = field(default_factory=dict)
    test_curves: Curves = field(default_factory=dict)
    uci: UciRuns = field(default_factory=dict)
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
        for run in cells.values():
            if not run.dataset:
                grouped[run.experiment][run.method].append(run)
        curves = _curves(grouped, on_test=False)
        return cls(
            facts={
                name: {method: facts_of(found) for method, found in methods.items()}
                for name, methods in grouped.items()
            },
            numbers=measured(curves),
            curves=curves,
            test_curves=_curves(grouped, on_test=True),
            uci=uci_of(cells.values()),
            overheads=overheads or {},
            result_overheads=overheads_of(runs),
        )

    def number(self, experiment: str, method: str, name: str) -> Number | None:
        """Return a number, None where there is none."""
        return self.numbers.get((experiment, method, name))

    def has_pair(self, experiment: str) -> bool:
        """Return whether EB and IB were run at a common rate."""
        return bool(self.common_rates(experiment))

    def common_rates(self, experiment: str) -> list[float]:
        """Return the rates at which EB and IB were run."""
        methods = self.facts.get(experiment, {})
        if "eb" not in methods or "ib" not in methods:
            return []
        return sorted({point.lr for point in methods["eb"]} & {p.lr for p in methods["ib"]})


def uci_of(runs: Iterable[Run]) -> UciRuns:
    """Return the runs of UCI's tables, by table, method and rate: the one seed the paper has."""
    found: defaultdict[str, defaultdict[str, dict[float, Run]]] = defaultdict(
        lambda: defaultdict(dict)
    )
    for run in runs:
        if run.dataset and run.seed == UCI_SEED:
            found[run.dataset][run.method][run.lr] = run
    return found


def _curves(grouped: Mapping[str, Mapping[str, list[Run]]], *, on_test: bool) -> Curves:
    return {
        name: {method: curve_of(found, on_test=on_test) for method, found in methods.items()}
        for name, methods in grouped.items()
    }


def curve_of(runs: Iterable[Run], *, on_test: bool = False) -> RateCurve:
    """Return the training losses of one method's runs, or the test losses."""
    return RateCurve.from_results(
        (
            run.lr,
            SeedResult(
                run.seed,
                run.test_loss if on_test else run.train_loss,
                None if on_test else run.initial_loss,
                run.outcome,
            ),
        )
        for run in runs
    )


def facts_of(runs: Iterable[Run]) -> tuple[RateFacts, ...]:
    """Return one method's runs in numbers, by ascending rate."""
    by_rate: defaultdict[float, list[Run]] = defaultdict(list)
    for run in runs:
        by_rate[run.lr].append(run)
    return tuple(_rate_facts(lr, by_rate[lr]) for lr in sorted(by_rate))


def _rate_facts(lr: float, runs: list[Run]) -> RateFacts:
    (point,) = curve_of(runs).points
    return RateFacts(
        lr=lr,
        n=len(runs),
        broken=_broken(point),
        capped=_capped_mean(point),
        train=LossFacts.of(run.train_loss for run in runs),
        test=LossFacts.of(run.test_loss for run in runs),
        by_seed={run.seed: _or_infinite(run.train_loss) for run in runs},
    )


def _or_infinite(loss: float | None) -> float:
    return math.inf if loss is None or not math.isfinite(loss) else loss


def _broken(point: RatePoint) -> int | None:
    if any(result.initial_loss is None for result in point.results):
        return None
    return sum(result.broken for result in point.results)


def _capped_mean(point: RatePoint) -> float | None:
    losses = [result.capped_loss for result in point.results]
    known = [loss for loss in losses if loss is not None]
    return fmean(known) if len(known) == len(losses) else None


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
                test_loss=result.test_loss,
                test_accuracy=result.test_accuracy,
                initial_loss=result.initial_loss,
                outcome=result.outcome.value,
            )
