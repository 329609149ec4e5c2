import os
import pickle
import pickletools
import random
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest

from ib_core.datasets.restricted_pickle import load_plain_pickle
from ib_core.errors import CorruptData

PROTOCOLS = range(pickle.HIGHEST_PROTOCOL + 1)


class Hostile:
    def __init__(self, marker: Path) -> None:
        self.marker = marker

    def __reduce__(self):
        return os.mkdir, (str(self.marker),)


def write(tmp_path: Path, content: bytes) -> Path:
    path = tmp_path / "some.pickle"
    path.write_bytes(content)
    return path


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_plain_containers_come_back(tmp_path: Path, protocol):
    value = {"train": [[(60, 64), ()], [[21]]], "text": "é", "none": None, "big": 2**70}
    assert load_plain_pickle(write(tmp_path, pickle.dumps(value, protocol))) == value


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("kind", ["i1", "u1", "<i4", ">i4", "i8", "u8", ">u2"])
def test_numpy_integers_become_plain_ones(tmp_path: Path, protocol, kind):
    value = [np.dtype(kind).type(60), np.array([108], kind)[0]]
    loaded = load_plain_pickle(write(tmp_path, pickle.dumps(value, protocol)))
    assert loaded == [60, 108]
    assert {type(number) for number in loaded} == {int}


def test_negative_numpy_integers_keep_their_sign(tmp_path: Path):
    assert load_plain_pickle(write(tmp_path, pickle.dumps([np.int16(-3)]))) == [-3]


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_hostile_pickle_is_refused_and_runs_nothing(tmp_path: Path, protocol):
    marker = tmp_path / "executed"
    content = pickle.dumps({"train": [Hostile(marker)]}, protocol)
    with pytest.raises(CorruptData, match="mkdir"):
        load_plain_pickle(write(tmp_path, content))
    assert not marker.exists()
    pickle.loads(content)  # the attack is real
    assert marker.exists()


@pytest.mark.parametrize(
    "content",
    [
        b"cbuiltins\neval\n(S'1'\ntR.",
        b"cnumpy\nload\n(S'x'\ntR.",
        b"cnumpy.core.multiarray\n_reconstruct\n.",
        b"cib_core.datasets.restricted_pickle\nos\n.",
        pickle.dumps(np.float64(1.0)),
        pickle.dumps(np.arange(3)),
        pickle.dumps(object()),
        b"c_codecs\nencode\n(S'a'\nS'rot13'\ntRI1\nb.",  # sets state on a result
        b"cnumpy\ndtype\n(S'O8'\ntR.",
        b"cnumpy._core.multiarray\nscalar\n(S'i8'\nS'x'\ntR.",
    ],
)
def test_nothing_but_integers_is_ever_built(tmp_path: Path, content):
    with pytest.raises(CorruptData, match=r"some\.pickle"):
        load_plain_pickle(write(tmp_path, content))


def test_a_cut_pickle_is_refused_wherever_it_was_cut(tmp_path: Path):
    whole = pickletools.optimize(pickle.dumps({"train": [[(60, 64)], [np.int64(3)]]}, 2))
    for length in range(len(whole)):
        with pytest.raises(CorruptData, match=r"some\.pickle"):
            load_plain_pickle(write(tmp_path, whole[:length]))


def test_a_pickle_cannot_ask_for_memory_it_does_not_fill(tmp_path: Path):
    """Python's own unpickler would set aside sixty gigabytes for the number of one entry."""
    path = write(tmp_path, b"\x80\x02]r\xff\xff\xff\xff.")
    assert load_plain_pickle(path) == []
    with pytest.raises(CorruptData, match=r"some\.pickle"):
        load_plain_pickle(write(tmp_path, b"\x80\x05\x96" + b"\xff" * 7 + b"\x00."))


@pytest.mark.parametrize(
    "content",
    [b"\x80\x02]]a", b"a.", b"t.", b"]].", b"(.", b"K\x01]a.", b"}K\x01K\x02s.", b"h\x05."],
)
def test_broken_programs_are_refused(tmp_path: Path, content):
    with pytest.raises(CorruptData, match=r"some\.pickle"):
        load_plain_pickle(write(tmp_path, content))


def test_a_damaged_pickle_is_refused_or_harmless_never_a_crash(tmp_path: Path):
    whole = pickle.dumps({"train": [[(60, np.int64(64)), (61,)]], "test": [[(60,)]]}, 2)
    dice = random.Random(1)
    for _ in range(200):
        damaged = bytearray(whole)
        for _ in range(dice.choice((1, 3))):
            damaged[dice.randrange(len(whole))] = dice.randrange(256)
        with suppress(CorruptData):
            load_plain_pickle(write(tmp_path, bytes(damaged)))
