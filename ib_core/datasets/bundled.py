"""Data that needs no fetching: small tables that come with scikit-learn, and toy problems.

The tables are split 80/20 by the same seed as the UCI tables. Means and deviations are summed
exactly (`math.fsum`), so that every machine gets the same bits and with them the same hash.
"""

from collections.abc import Callable
from functools import partial
from itertools import product
from math import fsum, sqrt

import numpy as np
from numpy.typing import NDArray

from ib_core.datasets.base import Content, DatasetInfo, Layout, Split, random_split

Table = NDArray[np.float64]


def standardised(table: Table) -> Table:
    """Return the columns with mean 0 and standard deviation 1 (n-1 in the denominator)."""
    columns = []
    for column in table.T.tolist():
        mean = fsum(column) / len(column)
        centred = [value - mean for value in column]
        deviation = sqrt(fsum(value * value for value in centred) / (len(column) - 1))
        columns.append([value / deviation for value in centred])
    return np.array(columns).T


def _sixteenths(table: Table) -> Table:
    return table / 16  # ink runs from 0 to 16


def read(loader: str, scale: Callable[[Table], Table]) -> Content:
    """Return float32 features [rows, d] of one of scikit-learn's tables."""
    import sklearn.datasets  # a second to import, which a catalogue of data sets need not pay

    table, labels = getattr(sklearn.datasets, loader)(return_X_y=True)
    x, y = scale(table).astype(np.float32), labels.astype(np.int64)
    train, test = (Split.of(x[order], y[order]) for order in random_split(len(x)))
    return Content(train=train, test=test, classes=int(y.max()) + 1)


def _info(name: str, title: str, scale: Callable[[Table], Table]) -> DatasetInfo:
    return DatasetInfo(
        name=name,
        title=title,
        kind="table",
        source="UCI repository, copy shipped with scikit-learn",
        licence="CC BY 4.0 (UCI); BSD-3-Clause (scikit-learn)",
        layouts=(Layout((), partial(read, f"load_{name}", scale)),),
        size_bytes=0,
    )


INFOS = (
    _info("digits", "Handwritten digits, 8x8 pixels row by row", _sixteenths),
    _info("iris", "Iris flowers", standardised),
    _info("wine", "Wine cultivars", standardised),
    _info("breast_cancer", "Breast cancer (Wisconsin, diagnostic)", standardised),
)


# Legs and hypotenuse of right triangles: points of the unit circle without any rounding of angles.
_TRAIN_TRIANGLES = ((3, 4, 5), (5, 12, 13), (8, 15, 17), (7, 24, 25), (20, 21, 29))
_TEST_TRIANGLES = ((12, 35, 37), (9, 40, 41))


def quadratic(rows: int = 10) -> Content:
    """Return rows x = 1, y = 0: the loss (theta x - y)^2 / 2 is theta^2 / 2 (Fig. 1)."""
    split = Split.of(np.ones((rows, 1), np.float32), np.zeros((rows, 1), np.float32))
    return Content(train=split, test=split, classes=None)


def least_squares(condition: float = 100.0) -> Content:
    """Return a noiseless regression on the plane with the solution theta = (1, 1).

    Args:
        condition: Ratio of the two eigenvalues of the mean of x x^T, which are 1 and 1/condition.
    """
    return Content(
        train=_ellipse(_TRAIN_TRIANGLES, condition),
        test=_ellipse(_TEST_TRIANGLES, condition),
        classes=None,
    )


def _ellipse(triangles: tuple[tuple[int, int, int], ...], condition: float) -> Split:
    # Mirrored in both axes and the diagonal, any point of the circle has covariance I/2.
    circle = [
        (right * legs[0] / hypotenuse, up * legs[1] / hypotenuse)
        for right, up, swapped in product((1, -1), (1, -1), (False, True))
        for a, b, hypotenuse in triangles
        for legs in ((b, a) if swapped else (a, b),)
    ]
    x = np.array(circle) * np.sqrt([2.0, 2.0 / condition])
    y = x.sum(axis=1, keepdims=True)
    return Split.of(_float32(x), _float32(y))


def moons() -> Content:
    """Return two interleaved half circles, 200 rows to train on and 100 to test on."""
    return Content(train=_moons(200, seed=1), test=_moons(100, seed=2), classes=2)


def _moons(rows: int, seed: int) -> Split:
    # A bit generator's raw output is the one stream NumPy promises never to change.
    raw = np.random.PCG64(seed).random_raw(3 * rows).reshape(3, rows)
    along, *jitter = (raw >> np.uint64(11)).astype(np.float64) / 2.0**52 - 1.0  # in [-1, 1)
    y = np.arange(rows) % 2
    across, height = 2 * along / (1 + along**2), (1 - along**2) / (1 + along**2)
    x = np.where(y == 0, [across, height], [1 - across, 0.5 - height])
    return Split.of(_float32((x + 0.2 * np.array(jitter)).T), y.astype(np.int64))


def _float32(values: NDArray[np.float64]) -> NDArray[np.float32]:
    return np.ascontiguousarray(values, dtype=np.float32)


def _toy(name: str, title: str, make: Callable[[], Content]) -> DatasetInfo:
    return DatasetInfo(
        name=name,
        title=title,
        kind="toy",
        source="made by Etascope",
        licence="MIT",
        layouts=(Layout((), make),),
        size_bytes=0,
    )


TOYS = (
    _toy("toy_quadratic", "theta^2 / 2 in one dimension", quadratic),
    _toy("toy_least_squares", "Least squares on a plane, condition 100", least_squares),
    _toy("toy_moons", "Two moons", moons),
)
