"""Data sets by name, whatever layout they lie in: ``load_dataset("mnist")``.

| module | holds |
| --- | --- |
| `base` | `Dataset`, `Split`, `Pieces`: what a data set is, and where they lie |
| `bundled` | sets that come along: tables, toys, a text, music made by rule |
| `fetched` | sets that have to be fetched: MNIST, music, UCI's tables; their layouts |
| `raw_files` | files nobody vouches for: over HTTP, broken, MATLAB's |
| `fetch` | getting one, and checking what one has |

`DATASETS` lists them. Whoever trains has a set whole (`load_dataset`); whoever plans has its card
(`data_card`), a few numbers. A card is made when a set is first asked about, and kept in the user's
cache folder under the state of its files, so that a web process neither loads data nor waits for
it.
"""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass
from functools import lru_cache
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any

import platformdirs

from ib_core.datasets import bundled, fetched
from ib_core.datasets.base import Content, Dataset, DatasetInfo, Layout, Pieces, Split, data_dir
from ib_core.datasets.fetched import UCI_NAMES
from ib_core.errors import lookup

if TYPE_CHECKING:
    from ib_core.datasets.fetch import (
        Checked,
        DatasetRow,
        check_dataset,
        fetch_dataset,
        list_datasets,
    )
    from ib_core.datasets.raw_files import Progress

__all__ = [
    "DATASETS",
    "UCI_NAMES",
    "Card",
    "Checked",
    "Content",
    "Dataset",
    "DatasetInfo",
    "DatasetRow",
    "Pieces",
    "Progress",
    "Split",
    "check_dataset",
    "data_card",
    "data_dir",
    "data_hash",
    "fetch_dataset",
    "has_card",
    "list_datasets",
    "load_dataset",
]

#: These need this module whole before they can be imported.
_HOMES = {
    "fetch": "Checked DatasetRow check_dataset fetch_dataset list_datasets",
    "raw_files": "Progress",
}

DATASETS: dict[str, DatasetInfo] = {
    info.name: info
    for info in (
        fetched.MNIST,
        *fetched.MUSIC,  # jsb_chorales, musedata, nottingham, piano_midi
        *bundled.TABLES,  # digits, iris, wine, breast_cancer
        bundled.MUSIC_BY_RULE,
        bundled.ZEN,  # python_zen
        *bundled.TOYS,  # toy_quadratic, toy_least_squares, toy_moons
        *fetched.UCI,  # uci/abalone ... uci/zoo
    )
}

_one_at_a_time = Lock()


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


def load_dataset(name: str) -> Dataset:
    """Return a data set, read once per process; safe to call from several threads.

    Raises:
        UnknownName: If there is no data set of that name.
        MissingData: If its files are not on this machine; says which, where, and how to get them.
        CorruptData: If a file is not what it should be; names the file.
    """
    info = lookup("dataset", name, DATASETS)
    folder = data_dir()
    layout = info.find()
    with _one_at_a_time:
        return _load(name, layout, folder, _state(layout.paths(folder)))


def data_card(name: str) -> Card:
    """Return a data set's hash and sizes, without keeping it in memory.

    Raises:
        IBError: As `load_dataset`.
    """
    info = lookup("dataset", name, DATASETS)
    folder, layout = data_dir(), info.find()
    key = _card_key(name, layout.paths(folder))
    card = _kept_card(key)
    if card is None:
        card = _describe(info.read(layout, folder))
        _keep_card(key, card)
    return card


def has_card(name: str) -> bool:
    """Return whether `data_card` would find a card rather than read the data set.

    Raises:
        MissingData: As `load_dataset`.
    """
    layout = lookup("dataset", name, DATASETS).find()
    return _kept_card(_card_key(name, layout.paths(data_dir()))) is not None


def data_hash(name: str) -> str:
    """Return the hash of a data set's content, an ingredient of every trial's address."""
    return data_card(name).sha256


def _state(paths: tuple[Path, ...]) -> tuple[tuple[int, int], ...]:
    """Return what tells a replaced file from the one in memory."""
    return tuple((stat.st_size, stat.st_mtime_ns) for stat in map(Path.stat, paths))


@lru_cache(maxsize=32)
def _load(name: str, layout: Layout, folder: Path, _files: tuple[tuple[int, int], ...]) -> Dataset:
    return DATASETS[name].read(layout, folder)


def _describe(dataset: Dataset) -> Card:
    """Return a data set in a few numbers."""
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


def _card_key(name: str, paths: tuple[Path, ...]) -> str:
    """Return what tells whether a kept card is still true: its files or its package."""
    if not paths:
        return f"{name} {version('scikit-learn')} {version('etascope')}"
    files = [f"{path} {path.stat().st_size} {path.stat().st_mtime_ns}" for path in paths]
    return " ".join([name, *files])


def _kept_card(key: str) -> Card | None:
    """Return the card kept under this key, if there is one."""
    found = _read().get(key)
    return Card(**found) if found else None


def _keep_card(key: str, card: Card) -> None:
    """Keep a card; a folder that cannot be written only means reading the data again."""
    path = _cache_file()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        partial = path.with_suffix(f".{os.getpid()}")
        partial.write_text(json.dumps({**_read(), key: asdict(card)}))
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


def __getattr__(name: str) -> Any:
    for module, names in _HOMES.items():
        if name in names.split():
            return getattr(import_module(f"{__name__}.{module}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
