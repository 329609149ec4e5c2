"""Curves as bytes: six float64 columns, compressed, NaN and all."""

import zlib
from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from backend.schemas import CurvePointRead

if TYPE_CHECKING:
    from ib_core.sweep import CurvePoint

COLUMNS = ("step", "epoch", "train_loss", "test_loss", "train_accuracy", "test_accuracy")
STEP, EPOCH, TRAIN_LOSS, TEST_LOSS = range(4)
#: Fewer points than this could not hold the ends, the extremes and the first non-finite one.
FEWEST_POINTS = 8

Columns = NDArray[np.float64]


def to_columns(points: "Iterable[CurvePoint]") -> Columns:
    """Return the points as an array [6, points]; a missing accuracy becomes NaN."""
    rows = [
        [np.nan if getattr(point, name) is None else getattr(point, name) for name in COLUMNS]
        for point in points
    ]
    return np.array(rows, dtype=np.float64).reshape(-1, len(COLUMNS)).T


def pack(columns: Columns) -> bytes:
    """Return the columns as one compressed block."""
    return zlib.compress(np.ascontiguousarray(columns, dtype="<f8").tobytes(), level=1)


def unpack(data: bytes) -> Columns:
    """Return the columns [6, points] of a block."""
    return np.frombuffer(zlib.decompress(data), dtype="<f8").reshape(len(COLUMNS), -1)


def thin(columns: Columns, most: int) -> Columns:
    """Return at most `most` points that still show what the curve does.

    Kept are the first, the last, the extremes of both losses, the first point that is not
    finite, and of each stretch between the points where the training loss is lowest and highest.
    """
    most = max(most, FEWEST_POINTS)
    count = columns.shape[1]
    if count <= most:
        return columns
    kept = {0, count - 1} | _extremes(columns[TRAIN_LOSS]) | _extremes(columns[TEST_LOSS])
    broken = np.flatnonzero(~np.isfinite(columns[TRAIN_LOSS : TEST_LOSS + 1]).all(axis=0))
    kept |= set(broken[:1].tolist())
    stretches = (most - len(kept)) // 2
    for stretch in np.array_split(np.arange(count), stretches) if stretches else ():
        kept |= {int(stretch[0]) + i for i in _extremes(columns[TRAIN_LOSS][stretch])}
    return columns[:, sorted(kept)]


def _extremes(values: Columns) -> set[int]:
    finite = np.flatnonzero(np.isfinite(values))
    if not finite.size:
        return set()
    return {
        int(finite[np.argmin(values[finite])]),
        int(finite[np.argmax(values[finite])]),
    }


def to_read(columns: Columns) -> list[CurvePointRead]:
    """Return the points as they go over the wire."""
    return [
        CurvePointRead(
            step=int(step),
            epoch=epoch,
            train_loss=train_loss,
            test_loss=test_loss,
            train_accuracy=train_accuracy,
            test_accuracy=test_accuracy,
        )
        for step, epoch, train_loss, test_loss, train_accuracy, test_accuracy in columns.T.tolist()
    ]
