"""MATLAB 5 files (``.mat``), as far as cells of numbers go.

Written out here because SciPy's reader can bring the whole process down on a damaged file, and
unpacks whatever a file claims to hold. Names of types and classes are those of the published
"MAT-File Format", chapter 1.
"""

import math
import struct
import zlib
from collections.abc import Collection, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ib_core.datasets.reading import MAX_BYTES, reading, refuse, refuse_if_huge

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
