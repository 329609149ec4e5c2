from pathlib import Path

import numpy as np
import pytest
import scipy.io
import torch

from ib_core.datasets import load_dataset
from ib_core.datasets.fetched import read_music_mat, read_music_npz
from ib_core.errors import CorruptData


def cells(part) -> np.ndarray:
    row = np.empty((1, len(part)), dtype=object)
    row[0, :] = part
    return row


def write_npz(path: Path, music, **changes) -> Path:
    np.savez_compressed(path, **(music.as_npz() | changes))
    return path


def write_mat(path: Path, music, *, dtype=np.float64, packed=True, **changes) -> Path:
    parts = {
        f"{name}data": cells([roll.astype(dtype) for roll in part])
        for name, part in zip(("train", "valid", "test"), music.parts(), strict=True)
    }
    scipy.io.savemat(path, parts | changes, do_compression=packed)
    return path


def test_every_layout_of_the_same_pieces_has_the_same_hash(tmp_path: Path, music):
    expected = music.content.sha256()
    assert read_music_npz(write_npz(tmp_path / "a.npz", music)).sha256() == expected
    for dtype in (np.float64, np.uint8):
        for packed in (True, False):
            path = write_mat(tmp_path / "a.mat", music, dtype=dtype, packed=packed)
            assert read_music_mat(path).sha256() == expected


@pytest.mark.parametrize(
    ("name", "file", "write"),
    [
        ("jsb_chorales", "jsb_chorales.npz", write_npz),
        ("jsb_chorales", "JSB_Chorales.mat", write_mat),
        ("musedata", "MuseData.mat", write_mat),
        ("nottingham", "Nottingham.mat", write_mat),
        ("nottingham", "nottingham.npz", write_npz),
        ("piano_midi", "Piano_midi.mat", write_mat),
    ],
)
def test_files_are_found_under_their_published_names(folder: Path, music, name, file, write):
    (folder / "music").mkdir()
    write(folder / "music" / file, music)
    loaded = load_dataset(name)
    assert loaded.kind == "music"
    assert loaded.sha256 == music.content.sha256()


def test_pieces_keep_their_order_and_validation_is_left_out(tmp_path: Path, music):
    content = read_music_npz(write_npz(tmp_path / "a.npz", music))
    assert content.train.roll.dtype == torch.uint8
    for part, rolls in ((content.train, music.train), (content.test, music.test)):
        assert [piece.tolist() for piece in part] == [roll.tolist() for roll in rolls]


def test_parts_may_be_mixed_in_an_npz(tmp_path: Path, music):
    rolls = [music.test[0], music.train[0], music.valid[0], music.train[1], music.test[1]]
    path = write_npz(
        tmp_path / "a.npz",
        music,
        roll=np.concatenate(rolls),
        lengths=np.array([len(roll) for roll in rolls]),
        split=np.array([2, 0, 1, 0, 2]),
    )
    content = read_music_npz(path)
    assert torch.equal(content.train[1], torch.from_numpy(music.train[1]))
    assert torch.equal(content.test[1], torch.from_numpy(music.test[1]))


@pytest.mark.parametrize(
    "changes",
    [
        {"lengths": np.array([3, 4], np.int32)},
        {"split": np.zeros(10, np.int8)},
        {"split": np.full(10, 2, np.int8)},
        {"roll": np.zeros((10, 87), np.uint8)},
        {"lengths": np.array([2**62] * 4 + [1] * 6)},
        {"lengths": np.array([-5] + [1] * 9)},
    ],
    ids=["counts", "no test", "no train", "notes", "overflow", "negative"],
)
def test_an_npz_that_does_not_fit_together_is_refused(tmp_path: Path, music, changes):
    path = write_npz(tmp_path / "a.npz", music, **changes)
    with pytest.raises(CorruptData, match=r"a\.npz"):
        read_music_npz(path)


def test_loud_notes_are_refused(tmp_path: Path, music):
    roll = music.as_npz()["roll"].copy()
    roll[0, 0] = 127
    with pytest.raises(CorruptData, match="zeros and ones"):
        read_music_npz(write_npz(tmp_path / "a.npz", music, roll=roll))


@pytest.mark.parametrize(
    "piece",
    [
        np.zeros((5, 87)),
        np.full((5, 88), np.nan),
        np.full((5, 88), 0.5),
        np.zeros((1, 88)),
        np.zeros((0, 88)),
        np.array(["text"]),
        np.zeros((5, 88, 2)),
        np.zeros((5, 88), complex) + 1j,
    ],
    ids=["notes", "nan", "half", "frame", "empty", "text", "3d", "complex"],
)
def test_a_mat_with_something_else_than_pieces_is_refused(tmp_path: Path, music, piece):
    path = write_mat(tmp_path / "a.mat", music, testdata=cells([music.test[0], piece]))
    with pytest.raises(CorruptData, match=r"a\.mat"):
        read_music_mat(path)


def test_a_mat_without_pieces_is_refused(tmp_path: Path, music):
    path = write_mat(tmp_path / "a.mat", music, testdata=np.empty((1, 0), object))
    with pytest.raises(CorruptData, match="test part is empty"):
        read_music_mat(path)


@pytest.mark.parametrize(
    ("name", "train", "test"),
    [
        ("jsb_chorales", (229, 60.29), (77, 61.36)),
        ("musedata", (524, 467.94), (124, 518.86)),
        ("nottingham", (694, 254), (170, 262)),
        ("piano_midi", (87, 872.54), (25, 761.44)),
    ],
)
def test_real_music_has_the_papers_counts_and_lengths(need, name, train, test):
    loaded = need(name)
    for part, (count, mean) in ((loaded.train, train), (loaded.test, test)):
        assert len(part) == count
        tolerance = 0.5 if name == "nottingham" else 0.005
        assert part.lengths.double().mean().item() == pytest.approx(mean, abs=tolerance)
