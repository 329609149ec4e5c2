"""The authors' recorded runs, and as facts: small tables of numbers that come with the program.

`python -m ib_core.reproduction facts` makes the facts from the authors' result files, which stay
where they are: means, standard deviations, lowest and highest seeds, counts, UCI's cells, and the
numbers with intervals that verdicts rest on. So everybody's paper is judged, with or without those
files.

The authors stored no loss before training. A run of our authors profile starts from the same
weights, so its initial loss stands in: of the same seed, else the mean of our seeds.
"""

import csv
import gzip
import math
import zlib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib.resources import files
from io import StringIO
from pathlib import Path
from statistics import fmean
from typing import Any, cast

from ib_core.datasets import data_dir
from ib_core.errors import CorruptData, MissingData
from ib_core.metrics import Number
from ib_core.reproduction.evidence import (
    Evidence,
    LossFacts,
    RateFacts,
    Run,
    on_the_grid,
    overheads_of,
    uci_of,
)
from ib_core.sweep import PRESETS

METHOD_NAMES = {"EB": "eb", "IB": "ib", "exact": "isgd"}
MUSIC_NAMES = {
    "JSB Chorales": "music/jsb_chorales",
    "MuseData": "music/musedata",
    "Piano-midi.de": "music/piano_midi",
    "Nottingham": "music/nottingham",
}
#: The paper's names in its table of run times, by those of the recorded runs.
TIMED_NAMES = {
    "mnist": "MNIST classification",
    "mnist_autoencoder": "MNIST autoencoder",
    **{name: name for name in MUSIC_NAMES},
}
#: What an EB and an IB run have in common whose times may be compared.
TIMED_TOGETHER = ("dataset", "batch_size", "clip", "lr", "seed", "epochs")
FILE = "authors_runs.csv.gz"
#: What a cell that is empty, missing, no number or infinite raises; and a file that is broken.
NOT_A_NUMBER = (ValueError, TypeError, AttributeError, OverflowError)
NOT_A_FILE = (EOFError, OSError, zlib.error, csv.Error)
COLUMNS_HINT = "Replace it by a whole copy, or move it away: the reproduction works without it."


@dataclass(frozen=True, slots=True)
class RecordedRun:
    """One run of the authors; losses by epoch, accuracy in percent."""

    experiment: str
    dataset: str
    method: str
    lr: float
    seed: int
    clip: float
    train: tuple[float, ...]
    test: tuple[float, ...]
    test_accuracy: float
    seconds: float | None


def recorded_file() -> Path | None:
    """Return the file of recorded runs in the data folder, None where there is none."""
    path = data_dir() / "paper" / FILE
    return path if path.exists() else None


def recorded_runs() -> tuple[RecordedRun, ...]:
    """Return every recorded run of an experiment or of UCI, duplicates left out.

    Raises:
        MissingData: If the data folder has no such file.
    """
    path = recorded_file()
    if path is None:
        raise MissingData(
            f"{data_dir() / 'paper' / FILE} is not there; it holds the authors' recorded runs.",
            hint="Point ETASCOPE_DATA_DIR at a folder that has them.",
        )
    return _contents(path, path.stat().st_mtime_ns).runs


def recorded_overheads() -> dict[str, float]:
    """Return how much longer IB took than EB in the runs that hold nothing but a time.

    They were made with the faster solver behind the printed run times; the results were not. The
    few of UCI are no sum over its tables and are left out.
    """
    path = recorded_file()
    return _contents(path, path.stat().st_mtime_ns).overheads if path else {}


@dataclass(frozen=True, slots=True)
class _Contents:
    runs: tuple[RecordedRun, ...]
    overheads: dict[str, float]


@lru_cache(maxsize=1)
def _contents(path: Path, _changed: int) -> _Contents:
    runs: list[RecordedRun] = []
    times: defaultdict[tuple[str, ...], defaultdict[str, list[float]]] = defaultdict(
        lambda: defaultdict(list)
    )
    with _told_as_corrupt(path) as place, gzip.open(path, "rt", newline="") as file:
        for number, row in enumerate(csv.DictReader(file), start=2):
            place.line = number
            if row["method"] not in METHOD_NAMES:
                continue
            if row["epochs_recorded"] == "0":
                cell = tuple(row[name] for name in TIMED_TOGETHER)
                times[cell][row["method"]].append(_seconds(row["runtime_s"]))
            elif f"paper/{row['experiment']}" in PRESETS:  # neither a trial run nor a duplicate
                runs.append(_read_run(row))
    return _Contents(tuple(runs), _overheads(times))


def _overheads(times: Mapping[tuple[str, ...], Mapping[str, list[float]]]) -> dict[str, float]:
    totals: defaultdict[str, list[float]] = defaultdict(lambda: [0.0, 0.0])
    for (dataset, *_), found in times.items():
        if dataset in TIMED_NAMES:
            for eb, ib in zip(found["EB"], found["IB"], strict=False):
                totals[TIMED_NAMES[dataset]][0] += eb
                totals[TIMED_NAMES[dataset]][1] += ib
    return {name: ib / eb - 1 for name, (eb, ib) in totals.items()}


def _read_run(row: dict[str, str]) -> RecordedRun:
    return RecordedRun(
        experiment=row["experiment"],
        dataset=row["dataset"],
        method=METHOD_NAMES[row["method"]],
        lr=float(row["lr"]),
        seed=int(float(row["seed"])),
        clip=float(row["clip"]),
        train=tuple(map(float, row["train_loss_by_epoch"].split(";"))),
        test=tuple(map(float, row["test_loss_by_epoch"].split(";"))),
        test_accuracy=float(row["test_accuracy"] or 0),
        seconds=_seconds(row["runtime_s"]) if row["runtime_s"] else None,
    )


def _seconds(text: str) -> float:
    """Return a time that may be divided by."""
    found = float(text)
    if not 0 < found < math.inf:
        raise ValueError(f"a run cannot take {text} seconds")
    return found


@dataclass(slots=True)
class _Place:
    line: int = 1


@contextmanager
def _told_as_corrupt(path: Path) -> Iterator[_Place]:
    """Turn whatever reading a file may raise into one sentence that says where."""
    place = _Place()
    try:
        yield place
    except KeyError as error:
        raise CorruptData(f"{path} has no column {error}.", hint=COLUMNS_HINT) from error
    except (*NOT_A_NUMBER, *NOT_A_FILE) as error:
        raise CorruptData(
            f"{path}, line {place.line}, cannot be read: {error}.", hint=COLUMNS_HINT
        ) from error


# --- Facts

#: What the tables were made from, as a reader is told.
SOURCE = "the authors' result files (github.com/francoisfagan/NN_ISGD)"
RUNS, UCI, NUMBERS = "recorded_runs.csv", "recorded_uci.csv", "recorded_numbers.csv"
LOSS = ("mean", "sd", "lowest", "highest", "non_finite")
RUN_COLUMNS = (
    *("experiment", "method", "lr", "n", "broken", "capped"),
    *(f"{part}_{name}" for part in ("train", "test") for name in LOSS),
    "train_by_seed",
)
UCI_COLUMNS = ("dataset", "method", "lr", "train_loss", "test_loss", "test_accuracy")
NUMBER_COLUMNS = ("experiment", "method", "number", "value", "low", "high", "censored", "n", "note")
#: Names under which run times stand among the numbers.
TIMING, RESULTS = "overhead", "result_overhead"
DIGITS = 7


@cache
def recorded_evidence() -> Evidence:
    """Return what the recorded runs show, from the tables that come with the program."""
    facts: dict[str, dict[str, tuple[RateFacts, ...]]] = {}
    for row in _rows(RUNS):
        points = facts.setdefault(row["experiment"], {})
        points[row["method"]] = (*points.get(row["method"], ()), _point(row))
    numbers = {
        (row["experiment"], row["method"], row["number"]): _number(row) for row in _rows(NUMBERS)
    }
    return Evidence(
        facts=facts,
        numbers={key: value for key, value in numbers.items() if key[2] not in (TIMING, RESULTS)},
        uci=uci_of(_uci_run(row) for row in _rows(UCI)),
        overheads=_shares(numbers, TIMING),
        result_overheads=_shares(numbers, RESULTS),
    )


def _shares(numbers: Mapping[tuple[str, str, str], Number], name: str) -> dict[str, float]:
    return {
        dataset: number.value
        for (dataset, _, kind), number in numbers.items()
        if kind == name and number.value is not None
    }


def _rows(name: str) -> Iterator[dict[str, str]]:
    text = (files("ib_core.reproduction") / "printed" / name).read_text(encoding="utf-8")
    yield from csv.DictReader(StringIO(text))


def _point(row: Mapping[str, str]) -> RateFacts:
    train, test = (_loss_facts(row, part) for part in ("train", "test"))
    broken = row["broken"]
    return RateFacts(
        lr=float(row["lr"]),
        n=int(row["n"]),
        broken=int(broken) if broken else None,
        capped=_float(row["capped"]),
        train=train,
        test=test,
        by_seed={
            int(seed): float(loss)
            for one in row["train_by_seed"].split(";")
            for seed, _, loss in (one.partition(":"),)
        },
    )


def _loss_facts(row: Mapping[str, str], part: str) -> LossFacts:
    mean, sd, lowest, highest = (_float(row[f"{part}_{name}"]) for name in LOSS[:-1])
    return LossFacts(mean, sd, lowest, highest, int(row[f"{part}_non_finite"]))


def _number(row: Mapping[str, str]) -> Number:
    return Number(
        value=_float(row["value"]),
        low=_float(row["low"]),
        high=_float(row["high"]),
        censored=cast(Any, row["censored"]),
        n=int(row["n"]),
        note=row["note"],
    )


def _uci_run(row: Mapping[str, str]) -> Run:
    return Run(
        experiment="uci",
        dataset=row["dataset"],
        method=row["method"],
        lr=float(row["lr"]),
        seed=1,
        train_loss=_float(row["train_loss"]),
        test_loss=_float(row["test_loss"]),
        test_accuracy=_float(row["test_accuracy"]),
    )


def _float(text: str) -> float | None:
    return float(text) if text else None


def as_runs(recorded: Iterable[RecordedRun], ours: Evidence) -> Iterator[Run]:
    """Yield recorded runs as evidence, with the initial losses of our authors profile."""
    starts = initial_losses(ours)
    for run in recorded:
        loss = run.train[-1]
        place = run.dataset if run.experiment == "uci" else run.experiment
        known = starts.get(place, {})
        yield Run(
            experiment=run.experiment,
            dataset=run.dataset if run.experiment == "uci" else "",
            method=run.method,
            lr=run.lr,
            seed=run.seed,
            train_loss=loss,
            test_loss=run.test[-1],
            test_accuracy=run.test_accuracy / 100,
            initial_loss=known.get(run.seed, fmean(known.values()) if known else None),
            outcome="completed" if math.isfinite(loss) else "diverged",
            seconds=run.seconds,
        )


def initial_losses(ours: Evidence) -> dict[str, dict[int, float]]:
    """Return our initial losses by experiment, or UCI table, and seed."""
    found: dict[str, dict[int, float]] = {}
    for name, methods in ours.curves.items():
        for curve in methods.values():
            for result in (result for point in curve.points for result in point.results):
                if result.initial_loss is not None:
                    found.setdefault(name, {})[result.seed] = result.initial_loss
    for table, by_method in ours.uci.items():
        for run in (run for rates in by_method.values() for run in rates.values()):
            if run.initial_loss is not None:
                found.setdefault(table, {})[run.seed] = run.initial_loss
    return found


def make_facts(ours: Evidence) -> dict[str, str]:
    """Return the tables' texts by file name, made from the recorded runs of the data folder.

    Args:
        ours: Our runs in the authors profile, for their initial losses.

    Raises:
        MissingData: If the data folder has no recorded runs.
    """
    runs = [run for run in as_runs(recorded_runs(), ours) if on_the_grid(run)]
    found = Evidence.of(runs, recorded_overheads())
    timings = [
        *((name, "ib", TIMING, Number(share)) for name, share in found.overheads.items()),
        *((name, "ib", RESULTS, Number(share)) for name, share in overheads_of(runs).items()),
    ]
    numbers = [(*key, number) for key, number in sorted(found.numbers.items())]
    return {
        RUNS: _table(RUN_COLUMNS, _run_rows(found)),
        UCI: _table(UCI_COLUMNS, _uci_rows(found)),
        NUMBERS: _table(NUMBER_COLUMNS, (_number_row(*row) for row in (*numbers, *timings))),
    }


def write_facts(folder: Path, ours: Evidence) -> list[Path]:
    """Write the tables into a folder and return their files."""
    written = []
    for name, text in make_facts(ours).items():
        (folder / name).write_text(text, encoding="utf-8")
        written.append(folder / name)
    return written


def _run_rows(found: Evidence) -> Iterator[Sequence[Any]]:
    for experiment, methods in sorted(found.facts.items()):
        for method, points in sorted(methods.items()):
            for point in points:
                losses = (
                    getattr(part, name) for part in (point.train, point.test) for name in LOSS
                )
                seeds = (f"{s}:{loss:.{DIGITS}g}" for s, loss in sorted(point.by_seed.items()))
                yield (
                    *(experiment, method, point.lr, point.n, point.broken, point.capped),
                    *losses,
                    ";".join(seeds),
                )


def _uci_rows(found: Evidence) -> Iterator[Sequence[Any]]:
    for dataset, methods in sorted(found.uci.items()):
        for method, rates in sorted(methods.items()):
            for lr, run in sorted(rates.items()):
                yield dataset, method, lr, run.train_loss, run.test_loss, run.test_accuracy


def _number_row(experiment: str, method: str, name: str, number: Number) -> Sequence[Any]:
    ends = (number.value, number.low, number.high)
    return experiment, method, name, *ends, number.censored, number.n, number.note


def _table(columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    out = StringIO()
    table = csv.writer(out, lineterminator="\n")
    table.writerow(columns)
    table.writerows([_short(value) for value in row] for row in rows)
    return out.getvalue()


def _short(value: Any) -> Any:
    if isinstance(value, float):
        return f"{value:.{DIGITS}g}" if math.isfinite(value) else ""
    return "" if value is None else value
