"""Curves as bytes: six float64 columns, compressed, NaN and all."""

import zlib
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import select
from sqlalchemy.orm import Session

from backend.errors import InvalidInput, NotFound
from backend.models import CurveRow, TrialRow
from backend.schemas import CurvePointRead, CurveRead
from ib_core.sweep import CurvePoint

COLUMNS = ("step", "epoch", "train_loss", "test_loss", "train_accuracy", "test_accuracy")

STEP, EPOCH, TRAIN_LOSS, TEST_LOSS = range(4)

#: Fewer points than this could not hold the ends, the extremes and the first non-finite one.
FEWEST_POINTS = 8

Floats = NDArray[np.float64]


def to_columns(points: Iterable[CurvePoint]) -> Floats:
    """Return the points as an array [6, points]; a missing accuracy becomes NaN."""
    rows = [
        [np.nan if getattr(point, name) is None else getattr(point, name) for name in COLUMNS]
        for point in points
    ]
    return np.array(rows, dtype=np.float64).reshape(-1, len(COLUMNS)).T


def pack(columns: Floats) -> bytes:
    """Return the columns as one compressed block."""
    return zlib.compress(np.ascontiguousarray(columns, dtype="<f8").tobytes(), level=1)


def curve_row(trial_id: int, points: Sequence[CurvePoint]) -> dict[str, Any]:
    """Return a trial's curve as a row of its table."""
    return {"trial_id": trial_id, "points": len(points), "data": pack(to_columns(points))}


def unpack(data: bytes) -> Floats:
    """Return the columns [6, points] of a block."""
    return np.frombuffer(zlib.decompress(data), dtype="<f8").reshape(len(COLUMNS), -1)


def thin(columns: Floats, most: int) -> Floats:
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


def _extremes(values: Floats) -> set[int]:
    finite = np.flatnonzero(np.isfinite(values))
    if not finite.size:
        return set()
    return {
        int(finite[np.argmin(values[finite])]),
        int(finite[np.argmax(values[finite])]),
    }


def _points_to_read(columns: Floats) -> list[CurvePointRead]:
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


def curve(
    session: Session, *, trial_id: int, after: int | None = None, points: int | None = None
) -> CurveRead:
    """Return a trial's curve, from the first step behind `after`, thinned to `points` points."""
    if points is not None and points < FEWEST_POINTS:
        raise InvalidInput(
            f"A curve needs at least {FEWEST_POINTS} points; got {points}.", field="points"
        )
    query = select(TrialRow.state, CurveRow.data).outerjoin(CurveRow).where(TrialRow.id == trial_id)
    found = session.execute(query).one_or_none()
    if found is None:
        raise NotFound("trial", trial_id)
    state, data = found
    columns = unpack(data) if data else np.empty((len(COLUMNS), 0))
    if after is not None:
        columns = columns[:, columns[STEP] > after]
    total = columns.shape[1]
    last_step = int(columns[STEP, -1]) if total else after
    kept = columns if points is None else thin(columns, points)
    return CurveRead(
        trial_id=trial_id,
        state=state,
        points=_points_to_read(kept),
        last_step=last_step,
        total=total,
    )


def first_and_best(
    blocks: Sequence[bytes | None], column: str, *, highest: bool
) -> tuple[Floats, Floats]:
    """Return a column's value before the first step, and its best after it, [curves] each.

    The best leaves out the initial weights, which are no result, and whatever is not finite. NaN
    stands where there is no such value. All curves are reduced in one pass: unpacking them one by
    one into arrays would take as long as everything else together.

    Args:
        blocks: From `pack`; None for a trial without a curve.
        column: A name in `COLUMNS`.
        highest: Whether the best is the highest.
    """
    unpacked = [zlib.decompress(block) if block else b"" for block in blocks]
    # A sentinel at the end keeps every slice's end a valid index for reduceat.
    flat = np.frombuffer(b"".join(unpacked) + bytes(8), dtype="<f8")
    sizes = np.array([len(block) for block in unpacked], dtype=np.int64) // 8
    lengths, starts = sizes // len(COLUMNS), np.cumsum(sizes) - sizes
    last = flat.size - 1
    has_initial = (lengths > 0) & (flat[np.minimum(starts, last)] == 0)
    begins = starts + COLUMNS.index(column) * lengths
    first = np.where(has_initial, flat[np.minimum(begins, last)], np.nan)
    begins, counts = begins + has_initial, lengths - has_initial
    best = np.full(len(blocks), np.nan)
    known = np.flatnonzero(counts > 0)
    if known.size:
        edges = np.stack([begins[known], (begins + counts)[known]], axis=1).ravel()
        values = np.where(np.isfinite(flat), flat, np.nan)
        reduce = np.fmax if highest else np.fmin
        best[known] = reduce.reduceat(values, edges)[::2]
    return np.where(np.isfinite(first), first, np.nan), best
