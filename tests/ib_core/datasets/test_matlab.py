import random
import struct
from pathlib import Path

import numpy as np
import pytest
import scipy.io

from ib_core.datasets import raw_files
from ib_core.datasets.raw_files import load_cells
from ib_core.errors import CorruptData

ARRAYS = [np.arange(12).reshape(3, 4) % 7, np.eye(5, 2), np.zeros((0, 3)), np.full((1, 1), 9.0)]


def cells(arrays) -> np.ndarray:
    row = np.empty((1, len(arrays)), dtype=object)
    row[0, :] = arrays
    return row


def save(path: Path, *, packed: bool = True, **variables) -> Path:
    scipy.io.savemat(path, variables, do_compression=packed)
    return path


@pytest.mark.parametrize("packed", [True, False], ids=["packed", "plain"])
@pytest.mark.parametrize("kind", ["u1", "i1", "u2", "i2", "u4", "i4", "u8", "i8", "f4", "f8", "?"])
def test_cells_are_read_as_scipy_reads_them(tmp_path: Path, packed, kind):
    arrays = [array.astype(kind) for array in ARRAYS]
    path = save(tmp_path / "a.mat", packed=packed, other=3.0, first=cells(arrays), x="text")
    theirs = scipy.io.loadmat(path)["first"][0]
    ours = load_cells(path, ("first",))["first"]
    for mine, reference, original in zip(ours, theirs, arrays, strict=True):
        assert mine.shape == original.shape
        assert (mine == reference).all()
        assert (mine == original).all()


def element(order: str, kind: int, data: bytes) -> bytes:
    return struct.pack(f"{order}II", kind, len(data)) + data + bytes(-len(data) % 8)


def matrix(order: str, mat_class: int, shape: tuple[int, int], name: bytes, values: bytes) -> bytes:
    flags = element(order, 6, struct.pack(f"{order}II", mat_class, 0))
    dimensions = element(order, 5, struct.pack(f"{order}ii", *shape))
    return element(order, 14, flags + dimensions + element(order, 1, name) + values)


@pytest.mark.parametrize(("order", "mark"), [("<", b"\0\1IM"), (">", b"\1\0MI")])
def test_either_byte_order_is_read(tmp_path: Path, order, mark):
    """MATLAB stores whole doubles in fewer bytes; SciPy, which writes the other files, does not."""
    values = np.arange(6, dtype=f"{order}u2")
    cell = matrix(order, 6, (2, 3), b"", element(order, 4, values.tobytes()))
    path = tmp_path / "a.mat"
    path.write_bytes(bytes(124) + mark + matrix(order, 1, (1, 1), b"first", cell))
    assert load_cells(path, ("first",))["first"][0].tolist() == [[0, 2, 4], [1, 3, 5]]


def test_shapes_are_not_believed(tmp_path: Path):
    cell = matrix("<", 6, (2**30, 2**30), b"", element("<", 9, bytes(48)))
    path = tmp_path / "a.mat"
    path.write_bytes(bytes(124) + b"\0\1IM" + matrix("<", 1, (1, 1), b"first", cell))
    with pytest.raises(CorruptData, match="cannot reshape"):
        load_cells(path, ("first",))


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (np.zeros((3, 4)), "not a row of cells"),
        (cells(["text"]), "something else than an array of numbers"),
        (cells([{"a": 1}]), "something else than an array of numbers"),
        (cells([cells([np.zeros(3)])]), "something else than an array of numbers"),
        (cells([np.array([1j])]), "complex"),
    ],
    ids=["matrix", "text", "struct", "nested", "complex"],
)
def test_anything_but_cells_of_numbers_is_refused(tmp_path: Path, value, reason):
    with pytest.raises(CorruptData, match=reason):
        load_cells(save(tmp_path / "a.mat", first=value), ("first",))


def test_a_missing_variable_is_named(tmp_path: Path):
    path = save(tmp_path / "a.mat", first=cells(ARRAYS))
    with pytest.raises(CorruptData, match="no variable called second"):
        load_cells(path, ("first", "second"))


@pytest.mark.parametrize("packed", [True, False], ids=["packed", "plain"])
def test_a_cut_file_is_refused_wherever_it_was_cut(tmp_path: Path, packed):
    path = save(tmp_path / "a.mat", packed=packed, first=cells(ARRAYS))
    whole = path.read_bytes()
    for length in range(0, len(whole) - 8, 5):  # the last element may lack its padding
        path.write_bytes(whole[:length])
        with pytest.raises(CorruptData, match=r"a\.mat"):
            load_cells(path, ("first",))


@pytest.mark.parametrize("packed", [True, False], ids=["packed", "plain"])
def test_damage_is_refused_or_harmless_never_a_crash(tmp_path: Path, packed):
    """Files damaged like these end the process in SciPy's reader."""
    path = save(tmp_path / "a.mat", packed=packed, first=cells(ARRAYS))
    whole = path.read_bytes()
    dice = random.Random(1)
    refused = 0
    for _ in range(100):
        damaged = bytearray(whole)
        for _ in range(dice.choice((1, 3, 10))):
            damaged[dice.randrange(128, len(whole))] = dice.choice((0, 1, 14, 255))
        path.write_bytes(damaged)
        try:
            load_cells(path, ("first",))
        except CorruptData:
            refused += 1
    assert refused > 50


@pytest.mark.parametrize("content", [b"", b"<html>404</html>", b"\x89HDF\r\n\x1a\n" + bytes(600)])
def test_what_is_no_matlab_5_file_is_refused(tmp_path: Path, content):
    path = tmp_path / "a.mat"
    path.write_bytes(content)
    with pytest.raises(CorruptData, match="not a MATLAB 5 file"):
        load_cells(path, ("first",))


def test_a_bomb_is_refused_at_the_limit(tmp_path: Path, monkeypatch):
    path = save(tmp_path / "a.mat", first=cells([np.zeros((2**18, 8))] * 2))
    assert path.stat().st_size < 2**16
    monkeypatch.setattr(raw_files, "MAX_BYTES", 2**20)
    with pytest.raises(CorruptData, match="unpacks to more than 1 MiB"):
        load_cells(path, ("first",))
