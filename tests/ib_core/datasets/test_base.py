import dataclasses
from pathlib import Path

import pytest
import torch

from ib_core.datasets import Content, Pieces, Split, data_dir


def split(rows: int = 3) -> Split:
    return Split(torch.arange(2.0 * rows).view(rows, 2), torch.arange(rows))


def test_data_dir_is_the_users_own_when_nothing_is_set(monkeypatch):
    monkeypatch.delenv("ETASCOPE_DATA_DIR", raising=False)
    monkeypatch.delenv("ETASCOPE_HOME", raising=False)
    assert data_dir().is_absolute()
    assert data_dir().parts[-2:] == ("etascope", "data")


def test_an_empty_setting_counts_as_none(monkeypatch):
    monkeypatch.setenv("ETASCOPE_DATA_DIR", "")
    monkeypatch.delenv("ETASCOPE_HOME", raising=False)
    assert data_dir().parts[-2:] == ("etascope", "data")


def test_without_a_data_dir_data_lives_in_home(tmp_path: Path, monkeypatch):
    monkeypatch.delenv("ETASCOPE_DATA_DIR", raising=False)
    monkeypatch.setenv("ETASCOPE_HOME", str(tmp_path))
    assert data_dir() == tmp_path / "data"


def test_a_relative_data_dir_does_not_move_with_the_process(tmp_path: Path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ETASCOPE_DATA_DIR", "relative-and-only-used-here")
    first = data_dir()
    monkeypatch.chdir("/")
    assert data_dir() == first == tmp_path / "relative-and-only-used-here"


def test_pieces_are_views_in_order_and_cover_the_roll():
    roll = torch.arange(5 * 88, dtype=torch.int64).view(5, 88)
    pieces = Pieces(roll, torch.tensor([2, 3]))
    assert [len(piece) for piece in pieces] == [2, 3]
    assert torch.equal(torch.cat(list(pieces)), roll)
    assert pieces[1].data_ptr() == roll[2:].data_ptr()
    assert torch.equal(pieces[-1], pieces[1])


@pytest.mark.parametrize("index", [2, -3])
def test_no_piece_beyond_the_last(index):
    pieces = Pieces(torch.zeros(5, 88), torch.tensor([2, 3]))
    with pytest.raises(IndexError):
        pieces[index]


def test_values_cannot_be_reassigned():
    with pytest.raises(dataclasses.FrozenInstanceError):
        split().x = torch.zeros(1)  # type: ignore[misc]


def test_the_hash_does_not_see_how_tensors_lie_in_memory():
    rows = split()
    spread_out = Split(torch.stack([rows.x, rows.x], 2)[:, :, 0], rows.y)
    assert not spread_out.x.is_contiguous()
    assert Content(rows, rows, 3).sha256() == Content(spread_out, rows, 3).sha256()


@pytest.mark.parametrize(
    "other",
    [
        Content(split(), split(4), 3),
        Content(Split(split().x.double(), split().y), split(), 3),
        Content(Split(split().x.view(3, 1, 2), split().y), split(), 3),
        Content(Split(split().x.flip(0), split().y.flip(0)), split(), 3),
        Content(split(), split(), 4),
    ],
    ids=["rows", "type", "shape", "order", "classes"],
)
def test_the_hash_sees_everything_that_decides_a_result(other):
    assert Content(split(), split(), 3).sha256() != other.sha256()


def test_swapping_train_and_test_changes_the_hash():
    a, b = split(3), split(4)
    assert Content(a, b, 4).sha256() != Content(b, a, 4).sha256()
