"""What a data set is: rows to train on, rows to test on, and one hash of everything that counts.

Readers make arrays; torch is imported when the first of them becomes a tensor, so that whoever
only asks which data sets there are does not carry it.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np
import platformdirs
from numpy.typing import NDArray

from ib_core.errors import MissingData

if TYPE_CHECKING:
    from torch import Tensor

Kind = Literal["table", "images", "music", "toy", "text"]

DATA_DIR_VARIABLE = "ETASCOPE_DATA_DIR"
HOME_VARIABLE = "ETASCOPE_HOME"


def data_dir() -> Path:
    """Return the folder that holds data sets; it need not exist yet.

    `ETASCOPE_DATA_DIR` if set, else ``data`` in `ETASCOPE_HOME` if that is set, else
    ``etascope/data`` in the user's data directory.
    """
    home = os.environ.get(HOME_VARIABLE, "")
    return _absolute(os.environ.get(DATA_DIR_VARIABLE, "") or (home and f"{home}/data"))


@lru_cache
def _absolute(setting: str) -> Path:
    # Cached so that a relative setting keeps meaning what it meant before any later chdir.
    if setting:
        return Path(setting).expanduser().absolute()
    return Path(platformdirs.user_data_dir("etascope", appauthor=False)) / "data"


def _tensor(array: NDArray[Any]) -> Tensor:
    import torch  # see the top of this file

    return torch.from_numpy(array)


def random_split(rows: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return 80 % of a table's rows to train on and the rest, each in the order they are fed."""
    from sklearn.model_selection import train_test_split  # a second to import; rarely needed

    train, test = train_test_split(np.arange(rows), test_size=0.2, random_state=1)
    return train, test


@dataclass(frozen=True, slots=True, eq=False)
class Split:
    """Rows in the order they are fed; row i of `x` belongs to row i of `y`.

    Attributes:
        x: Inputs, [rows, ...].
        y: int64 classes [rows], or float32 targets [rows, out] of a regression.
    """

    x: Tensor
    y: Tensor

    @classmethod
    def of(cls, x: NDArray[Any], y: NDArray[Any]) -> Self:
        """Return the rows of two arrays, whose memory they share."""
        return cls(_tensor(x), _tensor(y))

    def __len__(self) -> int:
        return len(self.x)

    def arrays(self) -> tuple[tuple[str, Tensor], ...]:
        """Return the tensors that make up the rows, each with its name."""
        return ("x", self.x), ("y", self.y)


@dataclass(frozen=True, slots=True, eq=False)
class Pieces:
    """Pieces of music of different lengths, stored one after another.

    ``pieces[i]`` is a view [frames, 88] into `roll`; nothing is copied.

    Attributes:
        roll: uint8 [all frames, 88], 1 where a note sounds; column 0 is MIDI note 21.
        lengths: int64 [pieces], frames of each piece.
    """

    roll: Tensor
    lengths: Tensor
    _starts: tuple[int, ...] = field(init=False, repr=False)

    @classmethod
    def of(cls, roll: NDArray[np.uint8], lengths: NDArray[np.int64]) -> Self:
        """Return the pieces of two arrays, whose memory they share."""
        return cls(_tensor(roll), _tensor(lengths))

    def __post_init__(self) -> None:
        starts = (0, *self.lengths.cumsum(0).tolist())
        object.__setattr__(self, "_starts", starts)

    def __len__(self) -> int:
        return len(self._starts) - 1

    def __getitem__(self, index: int) -> Tensor:
        piece = range(len(self))[index]  # negative indices, and IndexError past the end
        return self.roll[self._starts[piece] : self._starts[piece + 1]]

    def __iter__(self) -> Iterator[Tensor]:
        return (self[index] for index in range(len(self)))

    def arrays(self) -> tuple[tuple[str, Tensor], ...]:
        """Return the tensors that make up the pieces, each with its name."""
        return ("roll", self.roll), ("lengths", self.lengths)


@dataclass(frozen=True, slots=True, eq=False)
class Content:
    """What a file, whatever its layout, says; the part of a data set that decides results."""

    train: Split | Pieces
    test: Split | Pieces
    classes: int | None

    def sha256(self) -> str:
        """Return a hash of every array, with its type and shape, in the order they are fed.

        Two layouts of the same content hash alike, on any machine: arrays are hashed as
        little-endian bytes, never as files.
        """
        digest = hashlib.sha256(f"classes {self.classes}\n".encode())
        for part, rows in (("train", self.train), ("test", self.test)):
            for name, tensor in rows.arrays():
                array = np.ascontiguousarray(tensor.numpy())
                array = array.astype(array.dtype.newbyteorder("<"), copy=False)
                digest.update(f"{part} {name} {array.dtype.str} {array.shape}\n".encode())
                digest.update(array.data)
        return digest.hexdigest()


@dataclass(frozen=True, slots=True, eq=False)
class Dataset:
    """A data set in memory. It is shared by all who load it: never write into its tensors.

    Attributes:
        name: Its key in `DATASETS`.
        kind: "table", "images", "music" or "toy".
        train: Rows (or pieces) to train on, in the order they are fed.
        test: Rows (or pieces) to test on, in the order they are fed.
        classes: Number of classes; None where targets are not classes.
        sha256: Hash of the content, the same for every file layout of it.
        source: Where it comes from.
        licence: Under what terms.
    """

    name: str
    kind: Kind
    train: Split | Pieces
    test: Split | Pieces
    classes: int | None
    sha256: str
    source: str
    licence: str


@dataclass(frozen=True, slots=True)
class Layout:
    """One way a data set may lie in the data folder.

    Attributes:
        files: Paths below the data folder; all of them are needed. None at all means that the
            data comes with the program.
        read: Called with the absolute paths of `files`, in that order.
    """

    files: tuple[str, ...]
    read: Callable[..., Content]

    def paths(self, folder: Path) -> tuple[Path, ...]:
        """Return where the files would be below ``folder``."""
        return tuple(folder / file for file in self.files)

    def complete(self, folder: Path) -> bool:
        """Return whether every file is there."""
        return all(path.is_file() for path in self.paths(folder))


@dataclass(frozen=True, slots=True)
class Download:
    """A file that can be fetched.

    Attributes:
        file: Path below the data folder; also its path below a mirror.
        urls: Public addresses, tried in order.
        sha256: Hash of the uncompressed content, where a published one exists.
    """

    file: str
    urls: tuple[str, ...]
    sha256: str | None = None


@dataclass(frozen=True, slots=True)
class DatasetInfo:
    """A data set's entry in `DATASETS`.

    Attributes:
        name: Its key.
        title: Its name for people.
        kind: "table", "images", "music" or "toy".
        source: Where it comes from.
        licence: Under what terms.
        layouts: Accepted layouts; the first complete one is read.
        downloads: The files of one of the layouts; empty where nothing needs fetching.
        size_bytes: Size of the download; None if unknown, 0 if there is none.
    """

    name: str
    title: str
    kind: Kind
    source: str
    licence: str
    layouts: tuple[Layout, ...]
    downloads: tuple[Download, ...] = ()
    size_bytes: int | None = None

    @property
    def how_to_get(self) -> str:
        """One sentence: what a person must do to have this data set."""
        if not self.downloads:
            return "Comes with Etascope."
        return f"Run `etascope data fetch {self.name}`, or copy its files to {data_dir()}."

    def present(self) -> bool:
        """Return whether the files of some layout are all there (not whether they are intact)."""
        folder = data_dir()
        return any(layout.complete(folder) for layout in self.layouts)

    def find(self) -> Layout:
        """Return the layout to read.

        Raises:
            MissingData: If no layout is complete; says which files were looked for, and where.
        """
        folder = data_dir()
        for layout in self.layouts:
            if layout.complete(folder):
                return layout
        wanted = "; or ".join(", ".join(layout.files) for layout in self.layouts)
        raise MissingData(
            f"The data set {self.name!r} is not in {folder}. Looked for {wanted}. "
            f"Run `etascope data fetch {self.name}`.",
            field="dataset",
            hint="Or copy the files there.",
        )

    def read(self, layout: Layout, folder: Path) -> Dataset:
        """Read, validate and hash the files of ``layout`` below ``folder``.

        Raises:
            CorruptData: If a file is not what it should be; names the file.
        """
        content = layout.read(*layout.paths(folder))
        return Dataset(
            name=self.name,
            kind=self.kind,
            train=content.train,
            test=content.test,
            classes=content.classes,
            sha256=content.sha256(),
            source=self.source,
            licence=self.licence,
        )
