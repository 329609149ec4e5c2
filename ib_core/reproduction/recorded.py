"""The recorded runs, read from the data folder."""

import csv
import gzip
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from ib_core.datasets import data_dir
from ib_core.errors import MissingData

METHOD_NAMES = {"EB": "eb", "IB": "ib", "exact": "isgd"}
MUSIC_NAMES = {
    "JSB Chorales": "music/jsb_chorales",
    "MuseData": "music/musedata",
    "Piano-midi.de": "music/piano_midi",
    "Nottingham": "music/nottingham",
}


@dataclass(frozen=True, slots=True)
class RecordedRun:
    """One run of the authors; losses by epoch."""

    experiment: str
    dataset: str
    method: str
    lr: float
    seed: int
    clip: float
    train: tuple[float, ...]
    test: tuple[float, ...]


def _paper_file(name: str) -> Path:
    path = data_dir() / "paper" / name
    if not path.exists():
        raise MissingData(
            f"{path} is not there; it holds the authors' recorded runs.",
            hint="Point ETASCOPE_DATA_DIR at a folder that has them.",
        )
    return path


@cache
def recorded_runs() -> tuple[RecordedRun, ...]:
    """Return every recorded run of an experiment or of UCI, duplicates left out."""
    return tuple(_read_runs())


def _read_runs() -> Iterator[RecordedRun]:
    with gzip.open(_paper_file("authors_runs.csv.gz"), "rt", newline="") as file:
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
            )


@cache
def printed_uci_losses() -> dict[tuple[str, str, float], float]:
    """Return the paper's appendix tables: (data set, method, rate) -> loss, two decimals."""
    with _paper_file("uci_training_loss.csv").open(newline="") as file:
        return {
            (row["dataset"], METHOD_NAMES[row["method"]], float(row["lr"])): float(row["loss"])
            for row in csv.DictReader(file)
        }
