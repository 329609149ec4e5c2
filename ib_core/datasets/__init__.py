"""Data sets by name, whatever layout they lie in: ``load_dataset("mnist")``."""

from functools import lru_cache
from pathlib import Path
from threading import Lock

from ib_core.datasets import bundled, mnist, music, procedural_music, uci
from ib_core.datasets.base import Content, Dataset, DatasetInfo, Layout, Pieces, Split, data_dir
from ib_core.datasets.cards import Card, describe, keep_card, kept_card, state_of
from ib_core.datasets.uci import UCI_NAMES
from ib_core.errors import lookup

__all__ = [
    "DATASETS",
    "UCI_NAMES",
    "Card",
    "Content",
    "Dataset",
    "DatasetInfo",
    "Pieces",
    "Split",
    "data_card",
    "data_dir",
    "data_hash",
    "has_card",
    "load_dataset",
]

DATASETS: dict[str, DatasetInfo] = {
    info.name: info
    for info in (
        mnist.INFO,
        *music.INFOS,  # jsb_chorales, musedata, nottingham, piano_midi
        *bundled.INFOS,  # digits, iris, wine, breast_cancer
        procedural_music.INFO,
        *bundled.TOYS,  # toy_quadratic, toy_least_squares, toy_moons
        *uci.INFOS,  # uci/abalone ... uci/zoo
    )
}

_one_at_a_time = Lock()


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
    state = state_of(name, layout.paths(folder))
    card = kept_card(state)
    if card is None:
        card = describe(info.read(layout, folder))
        keep_card(state, card)
    return card


def has_card(name: str) -> bool:
    """Return whether `data_card` would find a card rather than read the data set.

    Raises:
        MissingData: As `load_dataset`.
    """
    layout = lookup("dataset", name, DATASETS).find()
    return kept_card(state_of(name, layout.paths(data_dir()))) is not None


def data_hash(name: str) -> str:
    """Return the hash of a data set's content, an ingredient of every trial's address."""
    return data_card(name).sha256


def _state(paths: tuple[Path, ...]) -> tuple[tuple[int, int], ...]:
    """Return what tells a replaced file from the one in memory."""
    return tuple((stat.st_size, stat.st_mtime_ns) for stat in map(Path.stat, paths))


@lru_cache(maxsize=32)
def _load(name: str, layout: Layout, folder: Path, _files: tuple[tuple[int, int], ...]) -> Dataset:
    return DATASETS[name].read(layout, folder)
