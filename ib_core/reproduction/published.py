"""What the paper says and prints, and the authors' recorded runs."""

import csv
import gzip
import json
import math
import zlib
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache, lru_cache
from importlib.resources import files
from io import StringIO
from pathlib import Path
from typing import Any

from ib_core.datasets import data_dir
from ib_core.errors import CorruptData, MissingData
from ib_core.sweep import PRESETS

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
