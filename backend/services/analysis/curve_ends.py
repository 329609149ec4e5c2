"""First and best values of many packed curves at once."""

import zlib
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from backend.services.curves import COLUMNS

Floats = NDArray[np.float64]


def first_and_best(
    blocks: Sequence[bytes | None], column: str, *, highest: bool
) -> tuple[Floats, Floats]:
    """Return a column's value before the first step, and its best after it, [curves] each.

    The best leaves out the initial weights, which are no result, and whatever is not finite. NaN
    stands where there is no such value. All curves are reduced in one pass: unpacking them one by
    one into arrays would take as long as everything else together.

    Args:
        blocks: From `curves.pack`; None for a trial without a curve.
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
