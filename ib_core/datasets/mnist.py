"""MNIST: 60,000 + 10,000 handwritten digits in the four idx files, gzip-compressed or not."""

import gzip
import io
import math
import struct
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ib_core.datasets.base import Content, DatasetInfo, Download, Layout, Split
from ib_core.datasets.reading import reading, refuse

TRAIN_ROWS, TEST_ROWS, SIDE, CLASSES = 60_000, 10_000, 28, 10

_UNSIGNED_BYTE = 0x08  # the idx format's code for the only element type MNIST uses

_SHA256 = {
    "train-images-idx3-ubyte": "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db",
    "train-labels-idx1-ubyte": "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5",
    "t10k-images-idx3-ubyte": "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7",
    "t10k-labels-idx1-ubyte": "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2",
}

_MIRRORS = (
    "https://ossci-datasets.s3.amazonaws.com/mnist",
    "https://storage.googleapis.com/cvdf-datasets/mnist",
)


def open_maybe_gzipped(path: Path) -> gzip.GzipFile | io.BufferedReader:
    """Open a file by its first bytes, not its name: some servers unpack ``.gz`` on the way."""
    with path.open("rb") as file:
        packed = file.read(2) == b"\x1f\x8b"
    return gzip.open(path) if packed else path.open("rb")


def read_idx(path: Path, shape: tuple[int, ...]) -> NDArray[np.uint8]:
    """Return the unsigned bytes of an idx file.

    Args:
        path: The file, gzip-compressed or not.
        shape: The shape it must announce and hold exactly.

    Raises:
        CorruptData: If it is not an idx file of that shape, or is shorter or longer than it says.
    """
    with reading(path), open_maybe_gzipped(path) as file:
        header = file.read(4 + 4 * len(shape))
        if header != struct.pack(f">HBB{len(shape)}I", 0, _UNSIGNED_BYTE, len(shape), *shape):
            refuse(path, f"its header is {header.hex()}, not that of an idx file {list(shape)}")
        size = math.prod(shape)
        content = file.read(size)
        if len(content) != size:
            refuse(path, f"it ends after {len(content)} of {size} bytes")
        if file.read(1):  # reading to the end also makes gzip verify its checksum
            refuse(path, f"it goes on after {size} bytes")
    return np.frombuffer(content, np.uint8).reshape(shape).copy()


def _split(images: Path, labels: Path, rows: int) -> Split:
    x = read_idx(images, (rows, SIDE, SIDE))
    y = read_idx(labels, (rows,))
    if y.max() >= CLASSES:
        refuse(labels, f"it holds the label {y.max()}")
    return Split.of(x, y.astype(np.int64))


def read(train_images: Path, train_labels: Path, test_images: Path, test_labels: Path) -> Content:
    """Return uint8 images [rows, 28, 28] in file order; scaling them is the task's business."""
    return Content(
        train=_split(train_images, train_labels, TRAIN_ROWS),
        test=_split(test_images, test_labels, TEST_ROWS),
        classes=CLASSES,
    )


INFO = DatasetInfo(
    name="mnist",
    title="MNIST handwritten digits",
    kind="images",
    source="LeCun, Cortes and Burges, The MNIST database of handwritten digits",
    licence="CC BY-SA 3.0 as usually given; copyright LeCun and Cortes",
    layouts=(
        Layout(tuple(f"mnist/{file}.gz" for file in _SHA256), read),
        Layout(tuple(f"mnist/{file}" for file in _SHA256), read),
    ),
    downloads=tuple(
        Download(f"mnist/{file}.gz", tuple(f"{host}/{file}.gz" for host in _MIRRORS), sha256)
        for file, sha256 in _SHA256.items()
    ),
    size_bytes=11_594_722,
)
