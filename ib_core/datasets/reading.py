"""Reading files nobody vouches for: bounded in memory, and every fault names its file."""

import math
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from ib_core.errors import CorruptData, MissingData

MAX_BYTES = 512 * 2**20
"""No data set here comes near this; a file that claims more is refused before it is unpacked."""

_NPY_HEADERS = {
    (1, 0): np.lib.format.read_array_header_1_0,
    (2, 0): np.lib.format.read_array_header_2_0,
}


def refuse(path: Path, reason: str) -> NoReturn:
    """Raise `CorruptData` for the file at ``path``."""
    raise CorruptData(
        f"{path} is damaged or not what its name says: {reason}.",
        field="dataset",
        hint="Remove the file and run `etascope data fetch` again, or copy an intact one there.",
    )


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """Turn whatever a parser trips over into a `CorruptData` that names ``path``."""
    try:
        yield
    except (CorruptData, MemoryError):
        raise
    except (FileNotFoundError, IsADirectoryError, PermissionError) as error:
        reason = error.strerror or type(error).__name__
        raise MissingData(f"{path} cannot be opened: {reason}.", field="dataset") from error
    except Exception as error:
        # Damaged bytes make zip, gzip, pickle and MATLAB readers raise nearly any type there is.
        refuse(path, f"{type(error).__name__}: {error}" if str(error) else type(error).__name__)


def refuse_if_huge(path: Path, limit: int = MAX_BYTES) -> None:
    """Raise `CorruptData` if the file itself is larger than any data set."""
    if path.stat().st_size > limit:
        refuse(path, f"it is larger than {limit >> 20} MiB")


def read_npz(path: Path, wanted: Mapping[str, tuple[str, int]]) -> dict[str, NDArray[Any]]:
    """Return arrays of a NumPy archive, never unpickling and never unpacking a bomb.

    Args:
        path: The archive.
        wanted: Array name -> allowed dtype kinds (as ``"iu"``) and number of dimensions. Other
            arrays are left unread.

    Raises:
        CorruptData: If an array is missing, of another type or shape, too large or damaged.
    """
    with reading(path), zipfile.ZipFile(path) as archive:
        sizes = {info.filename: info.file_size for info in archive.infolist()}
        missing = [name for name in wanted if f"{name}.npy" not in sizes]
        if missing:
            refuse(path, f"it has no array called {', '.join(missing)}")
        if sum(sizes[f"{name}.npy"] for name in wanted) > MAX_BYTES:
            refuse(path, f"it unpacks to more than {MAX_BYTES >> 20} MiB")
        return {name: _member(archive, path, name, *form) for name, form in wanted.items()}


def _member(
    archive: zipfile.ZipFile, path: Path, name: str, kinds: str, dimensions: int
) -> NDArray[Any]:
    info = archive.getinfo(f"{name}.npy")
    with archive.open(info) as member:
        version = np.lib.format.read_magic(member)
        shape, column_major, dtype = _NPY_HEADERS[version](member)
        if dtype.hasobject or dtype.kind not in kinds or len(shape) != dimensions:
            refuse(path, f"the array {name} is {dtype} with {len(shape)} dimensions")
        # A header may promise a shape its data cannot fill; NumPy would allocate it on trust.
        if math.prod(shape) * dtype.itemsize != info.file_size - member.tell():
            refuse(path, f"the array {name} does not hold the {shape} values it announces")
        stored = np.frombuffer(member.read(), dtype)
    return stored.astype(dtype.newbyteorder("=")).reshape(shape, order="F" if column_major else "C")
