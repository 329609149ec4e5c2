"""What planning a sweep must know about a data set, without the data set in memory.

A card is made when a data set is first asked about, and kept in the user's cache folder under the
state of its files, so that a web process neither loads data nor waits for it.
"""

import json
import os
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import platformdirs

from ib_core.datasets.base import Dataset, Pieces


@dataclass(frozen=True, slots=True)
class Card:
    """A data set in a few numbers.

    Attributes:
        sha256: Hash of its content.
        rows: Training rows, or frames of all training pieces.
        test_rows: The same for testing.
        inputs: Numbers a row.
        outputs: Classes, or targets a row.
        pieces: Training pieces; 0 if it is no music.
        longest: Frames of the longest training piece.
    """

    sha256: str
    rows: int
    test_rows: int
    inputs: int
    outputs: int
    pieces: int = 0
    longest: int = 0


def describe(dataset: Dataset) -> Card:
    """Return a data set's card."""
    train, test = dataset.train, dataset.test
    if isinstance(train, Pieces):
        assert isinstance(test, Pieces)
        notes = train.roll.shape[1]
        rows, test_rows = len(train.roll), len(test.roll)
        longest = int(train.lengths.max())
        return Card(dataset.sha256, rows, test_rows, notes, notes, len(train), longest)
    inputs = train.x[0].numel()
    outputs = dataset.classes or train.y[0].numel()
    return Card(dataset.sha256, len(train), len(test), inputs, outputs)


def state_of(name: str, paths: tuple[Path, ...]) -> str:
    """Return what tells whether a kept card is still true: its files or its package."""
    if not paths:
        return f"{name} {version('scikit-learn')} {version('etascope')}"
    files = [f"{path} {path.stat().st_size} {path.stat().st_mtime_ns}" for path in paths]
    return " ".join([name, *files])


def kept_card(state: str) -> Card | None:
    """Return the card kept under this state, if there is one."""
    found = _read().get(state)
    return Card(**found) if found else None


def keep_card(state: str, card: Card) -> None:
    """Keep a card; a folder that cannot be written only means reading the data again."""
    path = _cache_file()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        partial = path.with_suffix(f".{os.getpid()}")
        partial.write_text(json.dumps({**_read(), state: asdict(card)}))
        partial.replace(path)
    except OSError:
        pass


def _read() -> dict[str, Any]:
    try:
        found = json.loads(_cache_file().read_text())
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def _cache_file() -> Path:
    return Path(platformdirs.user_cache_dir("etascope", appauthor=False)) / "data_cards.json"
