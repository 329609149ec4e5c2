"""Small classification tables that come with scikit-learn, so that nothing need be fetched.

All are split 80/20 by the same seed as the UCI tables. Means and deviations are summed exactly
(`math.fsum`), so that every machine gets the same bits and with them the same hash.
"""

from collections.abc import Callable
from functools import partial
from math import fsum, sqrt

import numpy as np
from numpy.typing import NDArray

from ib_core.datasets.base import Content, Split
from ib_core.datasets.info import DatasetInfo, Layout
from ib_core.datasets.uci import random_split

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
