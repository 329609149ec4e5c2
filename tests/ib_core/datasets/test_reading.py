import io
import struct
import zipfile
from pathlib import Path

import numpy as np
import pytest

from ib_core.datasets import raw_files
from ib_core.datasets.raw_files import read_npz
from ib_core.errors import CorruptData, MissingData

WANTED = {"x": ("f", 2), "y": ("iu", 1)}
X, Y = np.arange(12, dtype=np.float32).reshape(4, 3), np.arange(4)


def npy_header(shape: tuple[int, ...], descr: str = "<f4") -> bytes:
    buffer = io.BytesIO()
    header = {"descr": descr, "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(buffer, header)
    return buffer.getvalue()


def zipped(path: Path, **members: bytes) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(f"{name}.npy", content)
    return path


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
@pytest.mark.parametrize("x", [X, np.asfortranarray(X), X.astype(">f4")])
def test_arrays_come_back_as_saved_and_native(tmp_path: Path, save, x):
    save(tmp_path / "a.npz", x=x, y=Y, unread=np.zeros(9))
    arrays = read_npz(tmp_path / "a.npz", WANTED)
    assert set(arrays) == {"x", "y"}
    assert (arrays["x"] == X).all()
    assert arrays["x"].dtype == np.float32
    assert arrays["x"].flags.writeable


def test_a_cut_archive_is_refused_wherever_it_was_cut(tmp_path: Path):
    np.savez_compressed(tmp_path / "whole.npz", x=X, y=Y)
    whole = (tmp_path / "whole.npz").read_bytes()
    for length in range(0, len(whole) - 1, 17):
        cut = tmp_path / "cut.npz"
        cut.write_bytes(whole[:length])
        with pytest.raises(CorruptData, match=r"cut\.npz"):
            read_npz(cut, WANTED)


def test_no_flipped_bit_goes_unnoticed_in_the_data(tmp_path: Path):
    path = tmp_path / "a.npz"
    np.savez(path, x=X, y=Y)
    content = bytearray(path.read_bytes())
    content[content.index(X.tobytes()) + 5] ^= 0x40
    path.write_bytes(content)
    with pytest.raises(CorruptData, match="CRC"):
        read_npz(path, WANTED)


@pytest.mark.parametrize(
    ("arrays", "reason"),
    [
        ({"x": X}, "no array called y"),
        ({"x": X, "y": Y.astype(float)}, "the array y is float64"),
        ({"x": X[0], "y": Y}, "1 dimensions"),
        ({"x": np.array([[None, X]], dtype=object), "y": Y}, "the array x is object"),
    ],
    ids=["missing", "type", "dimensions", "objects"],
)
def test_other_arrays_than_announced_are_refused(tmp_path: Path, arrays, reason):
    np.savez(tmp_path / "a.npz", **arrays)
    with pytest.raises(CorruptData, match=reason):
        read_npz(tmp_path / "a.npz", WANTED)


def test_a_header_promising_terabytes_allocates_nothing(tmp_path: Path):
    path = zipped(tmp_path / "a.npz", x=npy_header((2**20, 2**20)) + b"\0" * 64, y=b"")
    with pytest.raises(CorruptData, match="does not hold"):
        read_npz(path, WANTED)


def test_a_zip_bomb_is_refused_before_it_is_unpacked(tmp_path: Path, monkeypatch):
    monkeypatch.setattr(raw_files, "MAX_BYTES", 2**16)
    rows = 2**14
    bomb = npy_header((rows, 3)) + bytes(rows * 12)
    path = zipped(tmp_path / "a.npz", x=bomb, y=b"")
    assert path.stat().st_size < 2**12
    monkeypatch.setattr(zipfile.ZipFile, "open", lambda *_: pytest.fail("it was unpacked"))
    with pytest.raises(CorruptData, match="unpacks to more than"):
        read_npz(path, WANTED)


def test_a_member_longer_than_its_directory_entry_is_not_followed(tmp_path: Path):
    rows = 2**14
    path = zipped(tmp_path / "a.npz", x=npy_header((rows, 3)) + bytes(rows * 12), y=b"")
    content = path.read_bytes()
    honest = struct.pack("<I", 128 + rows * 12)
    path.write_bytes(content.replace(honest, struct.pack("<I", 128 + 12)))
    with pytest.raises(CorruptData, match=r"a\.npz"):
        read_npz(path, WANTED)


def test_a_file_that_may_not_be_opened_is_not_called_damaged(tmp_path: Path):
    with pytest.raises(MissingData, match="cannot be opened"):
        read_npz(tmp_path / "gone.npz", WANTED)
