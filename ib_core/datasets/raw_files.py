"""Files nobody vouches for: bounded in size and memory, and every fault names its file.

Arrays (``.npz``), MATLAB 5 files (``.mat``) as far as cells of numbers go, and one file over HTTP:
resumed after a cut, complete or absent.

MATLAB's format is written out here because SciPy's reader can bring the whole process down on a
damaged file, and unpacks whatever a file claims to hold. Names of types and classes are those of
the published "MAT-File Format", chapter 1.
"""

import json
import math
import os
import struct
import time
import zipfile
import zlib
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn
from urllib.parse import urlsplit

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


_HEADER_BYTES = 128
_BYTE_ORDERS = {b"\x00\x01IM": "<", b"\x01\x00MI": ">"}

_MATRIX, _COMPRESSED = 14, 15
_NUMBERS = {
    1: "i1",
    2: "u1",
    3: "i2",
    4: "u2",
    5: "i4",
    6: "u4",
    7: "f4",
    9: "f8",
    12: "i8",
    13: "u8",
}

_CELL_CLASS = 1
_NUMERIC_CLASSES = range(6, 16)
_COMPLEX = 0x0800

_Elements = Iterator[tuple[int, memoryview]]


def load_cells(path: Path, names: Collection[str]) -> dict[str, list[NDArray[Any]]]:
    """Return the arrays in each of the named cell variables, as they are stored.

    Raises:
        CorruptData: If a variable is missing or no row of cells of numbers, or the file is
            damaged, of another version, or unpacks to more than any data set here.
    """
    with reading(path):
        refuse_if_huge(path)
        content = memoryview(path.read_bytes())
        order = _BYTE_ORDERS.get(bytes(content[_HEADER_BYTES - 4 : _HEADER_BYTES]))
        if order is None:
            refuse(path, "it is not a MATLAB 5 file (MATLAB 7.3 files must be saved with -v7)")
        found = {}
        for data in _unpacked(_elements(content[_HEADER_BYTES:], order), order):
            name, kind, shape, elements = _matrix(data, order)
            if name in names:
                found[name] = _cells(name, kind, shape, elements, order)
        missing = [name for name in names if name not in found]
        if missing:
            refuse(path, f"it has no variable called {', '.join(missing)}")
        return found


def _elements(buffer: memoryview, order: str) -> _Elements:
    """Yield type and data of each element that ``buffer`` is made of."""
    position = 0
    while position < len(buffer):
        kind, size = struct.unpack_from(f"{order}II", buffer, position)
        start = position + 8
        if kind >> 16:  # a small element: type and size share a word, the data is the next one
            kind, size, start = kind & 0xFFFF, kind >> 16, position + 4
        if start + size > len(buffer):
            raise ValueError(f"an element of {size} bytes is cut short")
        yield kind, buffer[start : start + size]
        position = start + size
        if kind != _COMPRESSED:
            position += -position % 8


def _unpacked(elements: _Elements, order: str) -> Iterator[memoryview]:
    """Yield the data of each variable, inflating those that are compressed within bounds."""
    left = MAX_BYTES
    for kind, data in elements:
        if kind == _COMPRESSED:
            inflated = _inflate(data, left)
            left -= len(inflated)
            kind, data = next(_elements(memoryview(inflated), order))
        if kind == _MATRIX:
            yield data


def _inflate(data: memoryview, limit: int) -> bytes:
    inflater = zlib.decompressobj()
    inflated = inflater.decompress(data, limit + 1)
    if len(inflated) > limit:
        raise ValueError(f"it unpacks to more than {MAX_BYTES >> 20} MiB")
    if not inflater.eof:  # only there has the checksum been compared
        raise ValueError("a compressed variable is cut short")
    return inflated


def _matrix(data: memoryview, order: str) -> tuple[str, int, tuple[int, ...], _Elements]:
    """Return a matrix's name, class and shape, and the elements that hold its values."""
    elements = _elements(data, order)
    (_, flags), (_, dimensions), (_, name) = islice(elements, 3)
    (flag_word,) = struct.unpack_from(f"{order}I", flags)
    if flag_word & _COMPLEX:
        raise ValueError("it holds complex numbers")
    shape = struct.unpack(f"{order}{len(dimensions) // 4}i", dimensions)
    return bytes(name).decode("ascii"), flag_word & 0xFF, shape, elements


def _cells(
    name: str, kind: int, shape: tuple[int, ...], elements: _Elements, order: str
) -> list[NDArray[Any]]:
    if kind != _CELL_CLASS:
        raise ValueError(f"{name} is not a row of cells")
    arrays = [_numbers(data, order) for _, data in elements]
    if len(arrays) != math.prod(shape):
        raise ValueError(f"{name} announces {shape} cells and has {len(arrays)}")
    return arrays


def _numbers(data: memoryview, order: str) -> NDArray[Any]:
    _, kind, shape, elements = _matrix(data, order)
    if kind not in _NUMERIC_CLASSES:
        raise ValueError("a cell holds something else than an array of numbers")
    ((storage, values),) = elements
    stored = np.frombuffer(values, f"{order}{_NUMBERS[storage]}")
    return stored.reshape(shape, order="F")


# --- Over HTTP


if TYPE_CHECKING:  # httpx is loaded only by those who download
    import httpx

FRUITLESS_TRIES = 4
FIRST_PAUSE = 0.5

_WORTH_ANOTHER_TRY = frozenset({408, 425, 429, 500, 502, 503, 504})
_RANGE_NOT_SATISFIABLE = 416
_PARTIAL_CONTENT = 206


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a download has come; ``total`` is None where the server does not say."""

    file: str
    received: int
    total: int | None


OnProgress = Callable[[Progress], None]


def ignore(_progress: Progress) -> None:
    """Report to nobody."""


class Unreachable(Exception):
    """No address gave the file; the message names the last host asked, never its whole address."""


def download(urls: Sequence[str], target: Path, on_progress: OnProgress = ignore) -> None:
    """Put the file at ``target``, from the first address that has it.

    What arrives is kept beside it as ``.part`` until it is whole; a later call goes on from there
    if the server still has the same version, and starts again otherwise. The caller must see to
    it that no two calls share a target (a lock).

    Raises:
        Unreachable: If no address could be reached or had the file.
        CorruptData: If more comes than any data set here holds.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    failures = []
    for url in urls:
        try:
            return _download_from(url, _Part(target, url), on_progress)
        except Unreachable as failure:
            failures.append(failure)
    raise failures[-1]


class _Part:
    """The unfinished file, and a note of the version on the server that it is a part of."""

    def __init__(self, target: Path, url: str) -> None:
        self.target, self.url = target, url
        self.path = target.with_name(f"{target.name}.part")
        self._note = target.with_name(f"{target.name}.part.json")

    def size(self) -> int:
        return self.path.stat().st_size if self.path.exists() else 0

    def resume_headers(self) -> dict[str, str]:
        """Return what to ask for: the rest of the same version, else everything."""
        try:
            note = json.loads(self._note.read_text("utf-8"))
            version = note["version"] if note["url"] == self.url else None
        except (OSError, ValueError, KeyError, TypeError):
            version = None
        if not version or not self.size():
            return {}
        return {"Range": f"bytes={self.size()}-", "If-Range": str(version)}

    def describe(self, response: "httpx.Response") -> None:
        etag = response.headers.get("ETag", "")
        # HTTP lets only strong tags vouch for bytes; the date is the next best thing.
        version = etag if etag.startswith('"') else response.headers.get("Last-Modified")
        self._note.write_text(json.dumps({"url": self.url, "version": version}), "utf-8")

    def finish(self) -> None:
        os.replace(self.path, self.target)
        self._note.unlink(missing_ok=True)

    def discard(self) -> None:
        self.path.unlink(missing_ok=True)
        self._note.unlink(missing_ok=True)


def _download_from(url: str, part: _Part, on_progress: OnProgress) -> None:
    import httpx

    host = urlsplit(url).hostname or url
    fruitless, furthest = 0, part.size()
    timeout = httpx.Timeout(30.0, connect=10.0)
    with httpx.Client(follow_redirects=True, timeout=timeout) as client:
        while True:
            try:
                return _attempt(client, part, on_progress)
            except httpx.HTTPStatusError as error:
                status = error.response.status_code
                reason = f"{host} answered HTTP {status}"
                if status not in _WORTH_ANOTHER_TRY:
                    raise Unreachable(reason) from error
            except (httpx.TransportError, httpx.TooManyRedirects) as error:
                reason = f"Could not reach {host}: {str(error) or type(error).__name__}"
            # A line that keeps breaking but brings something each time is worth the patience.
            fruitless = 0 if part.size() > furthest else fruitless + 1
            furthest = max(furthest, part.size())
            if fruitless >= FRUITLESS_TRIES:
                raise Unreachable(reason)
            time.sleep(FIRST_PAUSE * 2 ** max(fruitless - 1, 0))


def _attempt(client: "httpx.Client", part: _Part, on_progress: OnProgress) -> None:
    held = part.size()
    # "identity", because a range of a compressed answer is no range of the file.
    headers = {"Accept-Encoding": "identity", **part.resume_headers()}
    with client.stream("GET", part.url, headers=headers) as response:
        start = _first_byte(response, part, held)
        response.raise_for_status()
        _receive(response, part, start, on_progress)
    part.finish()


def _first_byte(response: "httpx.Response", part: _Part, held: int) -> int:
    """Return where in the file the answer begins: where the part on disk ends, or 0."""
    import httpx

    if response.status_code not in (_PARTIAL_CONTENT, _RANGE_NOT_SATISFIABLE):
        return 0
    resumes = response.headers.get("Content-Range", "").startswith(f"bytes {held}-")
    if response.status_code == _PARTIAL_CONTENT and resumes:
        return held
    part.discard()  # so that the next try asks for the whole file
    raise httpx.RemoteProtocolError("the server sent another range than was asked for")


def _receive(response: "httpx.Response", part: _Part, start: int, on_progress: OnProgress) -> None:
    announced = response.headers.get("Content-Length", "")
    total = start + int(announced) if announced.isdecimal() else None
    received = start
    if start == 0:
        part.discard()  # before the note, lest a crash leave old bytes under a new version
        part.describe(response)
    with part.path.open("ab" if start else "wb") as file:
        # No chunk size: httpx would collect whole chunks, and a cut would lose what it had so far.
        for chunk in response.iter_raw():
            received += len(chunk)
            if max(received, total or 0) > MAX_BYTES:
                break
            file.write(chunk)
            on_progress(Progress(part.target.name, received, total))
        file.flush()
        os.fsync(file.fileno())
    if max(received, total or 0) > MAX_BYTES:
        part.discard()
        refuse(part.target, f"the server sends more than {MAX_BYTES >> 20} MiB")
