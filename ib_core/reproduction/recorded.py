"""The authors' recorded runs: every one of them, where their file is in the data folder."""

import csv
import gzip
import math
import zlib
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from ib_core.datasets import data_dir
from ib_core.errors import CorruptData, MissingData
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
