import gzip
import struct
from pathlib import Path

import numpy as np
import pytest
import torch

from ib_core.datasets import load_dataset
from ib_core.datasets.fetched import read_idx
from ib_core.errors import CorruptData, MissingData

IMAGES = np.random.default_rng(0).integers(0, 256, (5, 28, 28), np.uint8)
NAMES = [
    ("train-images-idx3-ubyte", (60_000, 28, 28)),
    ("train-labels-idx1-ubyte", (60_000,)),
    ("t10k-images-idx3-ubyte", (10_000, 28, 28)),
    ("t10k-labels-idx1-ubyte", (10_000,)),
]


def idx(array: np.ndarray, code: int = 8) -> bytes:
    head = struct.pack(f">HBB{array.ndim}I", 0, code, array.ndim, *array.shape)
    return head + array.tobytes()


@pytest.mark.parametrize("pack", [bytes, gzip.compress], ids=["raw", "gzip"])
@pytest.mark.parametrize("name", ["images", "images.gz"])
def test_idx_files_are_recognised_by_content_not_by_name(tmp_path: Path, pack, name):
    path = tmp_path / name
    path.write_bytes(pack(idx(IMAGES)))
    assert (read_idx(path, IMAGES.shape) == IMAGES).all()


@pytest.mark.parametrize("pack", [bytes, gzip.compress], ids=["raw", "gzip"])
@pytest.mark.parametrize(
    "content",
    [
        b"",
        idx(IMAGES)[:3],
        idx(IMAGES)[:-1],
        idx(IMAGES) + b"\0",
        idx(IMAGES[:4]),
        idx(IMAGES, code=9),
        idx(IMAGES.reshape(5, 784)),
        b"<html>404 Not Found</html>",
    ],
    ids=["empty", "header", "short", "long", "rows", "dtype", "dimensions", "html"],
)
def test_a_damaged_idx_file_is_refused_by_name(tmp_path: Path, content, pack):
    path = tmp_path / "images.gz"
    path.write_bytes(pack(content))
    with pytest.raises(CorruptData, match=r"images\.gz"):
        read_idx(path, IMAGES.shape)


def test_a_cut_or_flipped_gzip_stream_is_refused(tmp_path: Path):
    packed = gzip.compress(idx(IMAGES))
    flipped = bytearray(packed)
    flipped[-6] ^= 1  # in the stored checksum
    for damaged in (packed[:-20], packed[: len(packed) // 2], bytes(flipped)):
        path = tmp_path / "images.gz"
        path.write_bytes(damaged)
        with pytest.raises(CorruptData, match=r"images\.gz"):
            read_idx(path, IMAGES.shape)


def test_an_announced_size_is_not_believed(tmp_path: Path):
    path = tmp_path / "images"
    path.write_bytes(struct.pack(">HBBIII", 0, 8, 3, 2**31, 2**31, 28) + b"\0" * 100)
    with pytest.raises(CorruptData, match="header"):
        read_idx(path, IMAGES.shape)


@pytest.fixture(scope="module")
def blank_files() -> dict[str, bytes]:
    """Files of the right size: black images, labels counting 0 to 9."""
    contents = {}
    for name, shape in NAMES:
        labels = (np.arange(shape[0]) % 10).astype(np.uint8)
        contents[name] = idx(labels if len(shape) == 1 else np.zeros(shape, np.uint8))
    return contents


def write(folder: Path, files: dict[str, bytes], suffix: str = "") -> None:
    (folder / "mnist").mkdir()
    for name, content in files.items():
        packed = gzip.compress(content, 1) if suffix else content
        (folder / "mnist" / f"{name}{suffix}").write_bytes(packed)


@pytest.mark.parametrize("suffix", ["", ".gz"])
def test_mnist_loads_packed_or_not_with_the_same_hash(folder: Path, blank_files, suffix):
    write(folder, blank_files, suffix)
    mnist = load_dataset("mnist")
    assert mnist.train.x.shape == (60_000, 28, 28)
    assert mnist.train.x.dtype == torch.uint8
    assert mnist.test.y[:12].tolist() == [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 0, 1]
    assert mnist.classes == 10
    assert mnist.sha256.startswith("9dbdd9f91ea4")


def test_an_eleventh_class_is_refused(folder: Path, blank_files):
    labels = np.full(10_000, 10, np.uint8)
    write(folder, blank_files | {"t10k-labels-idx1-ubyte": idx(labels)})
    with pytest.raises(CorruptData, match="t10k-labels"):
        load_dataset("mnist")


def test_three_files_of_four_are_not_mnist(folder: Path, blank_files):
    files = dict(blank_files)
    del files["t10k-labels-idx1-ubyte"]
    write(folder, files)
    with pytest.raises(MissingData, match="etascope data fetch mnist"):
        load_dataset("mnist")


def test_real_mnist_is_the_original(need):
    mnist = need("mnist")
    pixels = mnist.train.x.double() / 255
    assert (len(mnist.train), len(mnist.test)) == (60_000, 10_000)
    assert pixels.mean().item() == pytest.approx(0.13066, abs=5e-6)
    assert pixels.std().item() == pytest.approx(0.30811, abs=5e-6)
    counts = torch.bincount(mnist.train.y).tolist()
    assert counts == [5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949]
