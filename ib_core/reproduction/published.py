"""What the paper says and prints: its experiments, claims, UCI tables and run times."""

import csv
import json
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from io import StringIO
from typing import Any

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
