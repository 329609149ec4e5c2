"""The 121 UCI classification tables of the paper (Fernandez-Delgado et al. 2014).

The features arrive already standardised and are fed as they are. Of the folds shipped with the
public files the paper's recorded runs used none: rows are split 80/20 at random with seed 1, and
fed in the order in which that split returns them.
"""

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ib_core.datasets.base import Content, DatasetInfo, Download, Layout, Split, random_split
from ib_core.datasets.reading import read_npz, reading, refuse, refuse_if_huge

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


def read_npz_layout(path: Path) -> Content:
    """Read ``x`` [n, d], ``y`` [n] and the rows as fed: ``train_order`` and ``test_order``."""
    arrays = read_npz(
        path,
        {"x": ("f", 2), "y": ("iu", 1), "train_order": ("iu", 1), "test_order": ("iu", 1)},
    )
    return _content(path, path, **arrays)


def read_dat_layout(features: Path, labels: Path) -> Content:
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


_REPOSITORY = "https://raw.githubusercontent.com/francoisfagan/NN_ISGD"
_REVISIONS = ("dff30fe46fb25a865e040fd940d975ab4d2c2100", "master")


def _info(table: str) -> DatasetInfo:
    files = (f"{table}/{table}_py.dat", f"{table}/labels_py.dat")
    return DatasetInfo(
        name=f"uci/{table}",
        title=f"UCI {table}",
        kind="table",
        source="UCI repository, as prepared by Fernandez-Delgado et al. 2014 and bioinf-jku/SNNs",
        licence="none stated by francoisfagan/NN_ISGD; GPL-3 in bioinf-jku/SNNs",
        layouts=(
            Layout((f"uci/{table}.npz",), read_npz_layout),
            Layout(tuple(f"uci/{file}" for file in files), read_dat_layout),
        ),
        downloads=tuple(
            Download(
                f"uci/{file}",
                tuple(f"{_REPOSITORY}/{at}/data/classification/{file}" for at in _REVISIONS),
            )
            for file in files
        ),
    )


INFOS = tuple(_info(table) for table in UCI_NAMES)
