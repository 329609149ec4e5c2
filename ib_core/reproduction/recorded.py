"""The authors' recorded runs, read from a file of the data folder or from any other place."""

import csv
import gzip
import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from ib_core.datasets import data_dir
from ib_core.errors import MissingData
from ib_core.reproduction.evidence import Evidence, Run, on_the_grid, overheads_of

METHOD_NAMES = {"EB": "eb", "IB": "ib", "exact": "isgd"}
MUSIC_NAMES = {
    "JSB Chorales": "music/jsb_chorales",
    "MuseData": "music/musedata",
    "Piano-midi.de": "music/piano_midi",
    "Nottingham": "music/nottingham",
}
FILE = "authors_runs.csv.gz"


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
    return _runs_in(path)


@cache
def _runs_in(path: Path) -> tuple[RecordedRun, ...]:
    return tuple(_read_runs(path))


def as_runs(recorded: Iterable[RecordedRun]) -> Iterator[Run]:
    """Yield recorded runs as evidence."""
    for run in recorded:
        loss = run.train[-1]
        yield Run(
            experiment=run.experiment,
            dataset=run.dataset if run.experiment == "uci" else "",
            method=run.method,
            lr=run.lr,
            seed=run.seed,
            train_loss=loss,
            test_accuracy=run.test_accuracy / 100,
            outcome="completed" if math.isfinite(loss) else "diverged",
            seconds=run.seconds,
        )


def recorded_evidence() -> Evidence:
    """Return the recorded runs of the published plots; empty where their file is not here."""
    if recorded_file() is None:
        return Evidence()
    runs = [run for run in as_runs(recorded_runs()) if on_the_grid(run)]
    return Evidence.of(runs, overheads_of(runs))


def _read_runs(path: Path) -> Iterator[RecordedRun]:
    with gzip.open(path, "rt", newline="") as file:
        for row in csv.DictReader(file):
            if not row["experiment"] or "duplicate" in row["experiment"]:
                continue
            if row["method"] not in METHOD_NAMES or not row["train_loss_by_epoch"]:
                continue
            yield RecordedRun(
                experiment=row["experiment"],
                dataset=row["dataset"],
                method=METHOD_NAMES[row["method"]],
                lr=float(row["lr"]),
                seed=int(float(row["seed"])),
                clip=float(row["clip"]),
                train=tuple(map(float, row["train_loss_by_epoch"].split(";"))),
                test=tuple(map(float, row["test_loss_by_epoch"].split(";"))),
                test_accuracy=float(row["test_accuracy"] or 0),
                seconds=float(row["runtime_s"]) if row["runtime_s"] else None,
            )
