"""What the paper says and prints, and the numbers that are held against it, with intervals.

The numbers are functions of the runs alone, so that those of the recorded runs can be made once,
where all of them are at hand, and shipped as numbers:

| name | what it is |
| --- | --- |
| `edge`, `headroom`, `mean_difference`, ... | as the scorecard has them, EB the baseline |
| `difference@RATE` | capped loss minus EB's at one rate, as a share of EB's mean |
| `clipping` | capped loss with clipping minus without, over the higher rates that both have |
| `beside_clipped@RATE` | IB without clipping minus EB with, capped, as a share of EB's mean |
| `spread` | standard deviation over EB's, geometric mean over the upper half of the rates |
"""

import csv
import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from io import StringIO
from itertools import pairwise
from typing import Any, TypeVar

import numpy as np

from ib_core.metrics import (
    LayerShape,
    Number,
    RateCurve,
    SeedResult,
    overhead_bound,
    score_task,
    smooth,
)
from ib_core.tasks import CONV_FILTERS, PaperTask, paper_task

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
AUTOENCODER, CLIPPED_AUTOENCODER = "03_mnist_autoencoder", "04_mnist_autoencoder_clip_1.0"
CLIPPED_MNIST = {CLIPPED_CLASSIFIER: CLASSIFIER, CLIPPED_AUTOENCODER: AUTOENCODER}
#: Every clipped experiment, and the same without clipping.
CLIPPED = CLIPPED_MNIST | CLIPPED_MUSIC


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


def published_better(experiment: str) -> bool | None:
    """Return whether the paper says that IB outperforms EB in an experiment.

    None for the second exception from its 15 of 17, which it counts and does not name: by the
    means of the recorded runs it is this one.
    """
    if experiment in _claims_file()["not_named"]:
        return None
    return experiment not in _claims_file()["worse_with_ib"]


#: What the paper says of the second exception from its 15 of 17.
NOT_NAMED = (
    "No winner is named: IB outperforms EB in 15 of 17 experiments, and the paper names one of the "
    "two others. By the means of its recorded runs this is the second."
)


def published_words(experiment: str) -> str:
    """Return what the paper says of an experiment."""
    if experiment == "uci":
        return "EB and IB perform alike; IB has 0.13% more test accuracy on average."
    better = published_better(experiment)
    if better is None:
        return NOT_NAMED
    words = "IB outperforms EB" if better else "EB outperforms IB"
    if experiment in UNCLIPPED:
        words += "; IB begins to diverge at a rate 20% to 200% higher"
    return f"{words}."


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


#: The paper's name of the data, the task, and how many steps are timed a round.
TIMED_TASKS: dict[str, tuple[str, int]] = {
    "MNIST classification": ("mnist_classifier", 20),
    "MNIST autoencoder": ("mnist_autoencoder", 10),
    "JSB Chorales": ("music/jsb_chorales", 30),
    "MuseData": ("music/musedata", 4),
    "Nottingham": ("music/nottingham", 6),
    "Piano-midi.de": ("music/piano_midi", 3),
}


BOUNDS_RULE = (
    "Bounds count the flops of a layer by the paper's formula, (2n + cm)/3nm. Here the whole "
    "network's extra flops are held against all of its own, convolutions and the output layer "
    "included. The paper prints for the classifier the plain mean over its four layers, "
    "convolutions as 0, and for music that of one layer of 300 by 300; its .60% for the "
    "autoencoder could not be found again."
)


def bounds() -> dict[str, float]:
    """Return the flop bound of every network on IB's overhead, as a share."""
    tasks = {name: paper_task(task) for name, (task, _) in TIMED_TASKS.items()}
    return {name: overhead_bound(list(_layers(task))).flop_weighted for name, task in tasks.items()}


def _layers(task: PaperTask) -> Iterator[LayerShape]:
    """Yield a network's layers; of a recurrent one the hidden layer reads its own state too."""
    if task.family == "conv":
        yield from _convolutions(task)
    widths = task.widths(task.recipe("text"))
    pairs = list(pairwise(widths))
    for position, (inputs, outputs) in enumerate(pairs):
        last = position == len(pairs) - 1
        extra = outputs if task.family == "music" and not last else 0
        yield LayerShape(inputs + extra, outputs, task.output if last else task.activation)


def _convolutions(task: PaperTask) -> Iterator[LayerShape]:
    side, channels = 28, 1
    for filters, size in zip(CONV_FILTERS, task.filter_sizes, strict=True):
        side = side - size + 1
        yield LayerShape(channels * size * size, filters, None, positions=side * side)
        side, channels = side // 2, filters


# --- The numbers that verdicts rest on: made from losses seed by seed


Numbers = Mapping[tuple[str, str, str], Number]
#: Of the scorecard's numbers, those a verdict or the page asks for.
SCORED = (
    *("edge", "headroom", "good_range", "best_rate", "best_mean", "mean_difference"),
    *("chance_better", "paper_threshold", "paper_divergence_rate", "paper_headroom"),
)
T = TypeVar("T")
#: Losses of one seed, by rate.
BySeed = dict[int, dict[float, float]]


def measured(curves: Mapping[str, Mapping[str, RateCurve]]) -> Numbers:
    """Return every number there is, by experiment, method and name."""
    found: dict[tuple[str, str, str], Number] = {}
    for experiment, methods in curves.items():
        for method, row in score_task(methods, paper=True).rows.items():
            found |= {(experiment, method, name): row[name] for name in SCORED}
        if "eb" in methods and "ib" in methods:
            found |= _against_eb(experiment, methods["ib"], methods["eb"])
        found |= _with_clipping(experiment, methods, curves.get(CLIPPED.get(experiment, ""), {}))
    return found


def _against_eb(experiment: str, ib: RateCurve, eb: RateCurve) -> Numbers:
    each = by_rate(ib, eb).items()
    found = {(experiment, "ib", f"difference@{lr:g}"): number for lr, number in each}
    return {**found, (experiment, "ib", "spread"): spread(ib, eb)}


def _with_clipping(
    experiment: str, clipped: Mapping[str, RateCurve], plain: Mapping[str, RateCurve]
) -> Numbers:
    found: dict[tuple[str, str, str], Number] = {}
    for method in sorted(clipped.keys() & plain.keys()):
        number = clipping(clipped[method], plain[method])
        if number is not None:
            found[experiment, method, "clipping"] = number
    if experiment in CLIPPED_MUSIC and "eb" in clipped and "ib" in plain:
        for lr, number in by_rate(plain["ib"], clipped["eb"]).items():
            found[experiment, "ib", f"beside_clipped@{lr:g}"] = number
    return found


def by_rate(one: RateCurve, two: RateCurve) -> dict[float, Number]:
    """Return one method's capped loss minus another's at each common rate, over the other's mean.

    By the seeds both have; a rate without an initial loss is left out.
    """
    ours, theirs = _capped(one), _capped(two)
    found = {}
    for lr in sorted(set(one.lrs) & set(two.lrs)):
        pairs = [
            (ours[seed][lr], theirs[seed][lr])
            for seed in sorted(ours.keys() & theirs.keys())
            if lr in ours[seed] and lr in theirs[seed]
        ]
        if pairs:
            found[lr] = without_each(pairs, _relative)
    return found


def higher_rates(clipped: RateCurve, plain: RateCurve) -> list[float]:
    """Return the rates run with and without clipping that are high for both.

    They lie in the upper half of the rates without clipping and above the lowest with it.
    """
    upper = sorted(plain.lrs)[len(plain.lrs) // 2 :]
    return [lr for lr in upper if lr in clipped.lrs and lr > min(clipped.lrs)]


def clipping(clipped: RateCurve, plain: RateCurve) -> Number | None:
    """Return the mean capped loss with clipping minus without, over the higher rates."""
    upper = higher_rates(clipped, plain)
    if not upper:
        return None
    ours, theirs = _capped(clipped), _capped(plain)
    gaps = [
        math.fsum(ours[seed][lr] - theirs[seed][lr] for lr in upper) / len(upper)
        for seed in sorted(ours.keys() & theirs.keys())
        if all(lr in ours[seed] and lr in theirs[seed] for lr in upper)
    ]
    return without_each(gaps, lambda found: math.fsum(found) / len(found)) if gaps else None


def spread(one: RateCurve, two: RateCurve) -> Number:
    """Return the ratio of standard deviations, geometric mean over the upper half of the rates.

    Over the seeds that are finite everywhere for both, and rates at which both losses vary.
    """
    common = sorted(set(one.lrs) & set(two.lrs))
    upper = common[len(common) // 2 :]
    ours, theirs = _finite(one), _finite(two)
    pairs = [
        ([ours[seed][lr] for lr in upper], [theirs[seed][lr] for lr in upper])
        for seed in sorted(ours.keys() & theirs.keys())
        if all(lr in ours[seed] and lr in theirs[seed] for lr in upper)
    ]
    if len(pairs) < 3:
        return Number(None, n=len(pairs), note="A standard deviation needs three finite seeds.")
    found = without_each(pairs, _log_ratio_of_spreads)
    value, low, high = (
        None if end is None else math.exp(min(end, 700.0))
        for end in (found.value, found.low, found.high)
    )
    return Number(value, low, high, n=found.n, note=found.note)


def _log_ratio_of_spreads(pairs: Sequence[tuple[list[float], list[float]]]) -> float:
    one, two = (np.std([pair[i] for pair in pairs], axis=0) for i in (0, 1))
    vary = (one > 0) & (two > 0)
    return float(np.mean(np.log(one[vary] / two[vary]))) if vary.any() else math.nan


def _relative(pairs: Sequence[tuple[float, float]]) -> float:
    ours, theirs = (math.fsum(pair[i] for pair in pairs) for i in (0, 1))
    return (ours - theirs) / theirs if theirs else math.nan


def without_each(seeds: Sequence[T], number: Callable[[Sequence[T]], float]) -> Number:
    """Return a number with the interval from leaving out one seed at a time."""
    rows = [seeds, *([*seeds[:i], *seeds[i + 1 :]] for i in range(len(seeds)))]
    values = [number(row) if row else math.nan for row in rows]
    return smooth(np.array(values), len(seeds))


def _capped(curve: RateCurve) -> BySeed:
    return losses_by_seed(curve, lambda result: result.capped_loss)


def _finite(curve: RateCurve) -> BySeed:
    return losses_by_seed(curve, lambda result: result.finite_loss)


def losses_by_seed(curve: RateCurve, loss: Callable[[SeedResult], float | None]) -> BySeed:
    """Return some loss of every trial that has it, by seed and rate."""
    found: BySeed = {}
    cells: Iterable[tuple[float, SeedResult]] = (
        (point.lr, result) for point in curve.points for result in point.results
    )
    for lr, result in cells:
        value = loss(result)
        if value is not None:
            found.setdefault(result.seed, {})[lr] = value
    return found
