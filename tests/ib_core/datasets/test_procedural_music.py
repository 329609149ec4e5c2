import pytest
import torch

from ib_core.datasets import bundled, load_dataset


@pytest.fixture(scope="module")
def content():
    return bundled.compose()


def test_there_are_sixty_and_twenty_pieces_of_forty_to_eighty_frames(content):
    assert (len(content.train), len(content.test)) == (60, 20)
    for part in (content.train, content.test):
        assert part.roll.shape == (part.lengths.sum(), 88)
        assert part.lengths.min() >= 40
        assert part.lengths.max() <= 80
        assert part.lengths.unique().numel() > 5


def test_four_different_notes_sound_in_every_frame(content):
    assert (content.train.roll.sum(1) == 4).all()


def test_voices_move_by_small_steps(content):
    moves = torch.cat(
        [piece.nonzero()[:, 1].view(-1, 4).diff(dim=0).abs() for piece in content.train]
    ).double()
    assert 0.2 < moves.mean() < 2


def test_every_piece_begins_and_ends_on_its_tonic(content):
    for piece in content.train:
        bass = piece.nonzero()[:, 1].view(-1, 4)[:, 0]
        assert bass[0] % 12 == bass[-1] % 12


def test_chords_are_mostly_complete(content):
    classes = content.train.roll.nonzero()[:, 1].view(-1, 4) % 12
    complete = sum(len(set(frame)) >= 3 for frame in classes.tolist())
    assert complete > 0.9 * len(classes)


def test_pieces_differ(content):
    assert len({piece.numpy().tobytes() for piece in content.train}) == 60


def test_composing_twice_gives_the_same_notes(content):
    assert bundled.compose().sha256() == content.sha256()
    assert load_dataset("procedural_music").sha256 == content.sha256()
