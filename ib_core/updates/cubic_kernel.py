"""The rule for piecewise cubics in float32 as a loop that numba compiles for this processor.

`piecewise_cubic.py` explains what is computed and holds the same rule as torch calls; names here
are its names. Rows are taken in short blocks, and every candidate is judged for a whole block
before the next: the block stays in the cache, and its rows share the processor's wide registers.
"""

import math
from itertools import pairwise
from typing import Any

import numba
import numpy as np
import torch
from numba.np.numpy_support import carray

from ib_core.updates.piecewise_cubic import FLAT, PiecewiseCubic, flattest_point

_LIMITS = torch.finfo(torch.float32)
_LARGEST, _QUARTER_OF_LARGEST = np.float32(_LIMITS.max), np.float32(_LIMITS.max / 4)
_HALF_UP = np.float32(0.5 + 4 * _LIMITS.eps)
_ZERO, _QUARTER, _ONE, _TWO = (np.float32(x) for x in (0, 0.25, 1, 2))
_FOUR, _EIGHT, _TWELVE = (np.float32(x) for x in (4, 8, 12))

#: Rows of one block.
_BLOCK = 128
#: Numbers that describe a candidate, see `table_of`.
_COLUMNS = 9

_inlined = numba.njit(error_model="numpy", fastmath={"contract"}, inline="always")


def table_of(cubic: PiecewiseCubic) -> np.ndarray[Any, np.dtype[np.float32]] | None:
    """Return a function's pieces as rows of numbers; None for one that has kinks or flat pieces.

    A row is x0, y, m, e, f, low/2, high/2 of the piece's expansion, then x and slope of the knot
    on its right. The first row is the line on the left, of which only y, m and the knot count.
    """
    if any(knot.left_slope != knot.right_slope for knot in cubic.knots):
        return None
    first, last = cubic.knots[0], cubic.knots[-1]
    rows: list[tuple[float, ...]] = [
        (0, first.value, first.left_slope, 0, 0, 0, 0, first.x, first.left_slope)
    ]
    for left, right in pairwise(cubic.knots):
        x0, y, m, e, f, low, high = flattest_point(left, right)
        if abs(e) * (high - low) < FLAT and abs(f) * (high - low) ** 2 < FLAT:
            return None
        rows.append((x0, y, m, e, f, low / 2, high / 2, right.x, right.left_slope))
    rows.append((0, last.value, last.right_slope, 0, 0, 0, 0, last.x, last.right_slope))
    return np.array(rows, dtype=np.float32)


@_inlined
def _line(row: Any, falls: Any, on_left: Any, problem: Any, best: Any, length: Any) -> None:
    """Consider the minimum on one of the two outer lines."""
    value, slope, x = row[1], row[2], row[7]
    c, beta, unit = problem[0], problem[1], problem[2]
    for i in range(length):
        descent = c[i] - unit[i] * x - beta[i] * slope
        if on_left:
            falls[i] = _ONE if descent > _ZERO else _ZERO
        valid = falls[i] == (_ZERO if on_left else _ONE)
        step = beta[i] * slope
        phi = (unit[i] * value + slope * descent) * beta[i] + _HALF_UP * step * step
        better = valid and phi < best[0, i]
        best[0, i] = phi if better else best[0, i]
        best[1, i] = step if better else best[1, i]
        best[2, i] = slope if better else best[2, i]


@_inlined
def _piece(row: Any, falls: Any, problem: Any, best: Any, length: Any) -> None:
    """Consider the one local minimum that phi can have on a piece."""
    x0, y, m, e, f, low, high, x, slope_at_end = row
    c, beta, unit = problem[0], problem[1], problem[2]
    for i in range(length):
        end = c[i] - unit[i] * x - beta[i] * slope_at_end
        falls_at_end = _ONE if end > _ZERO else _ZERO
        between = falls[i] > falls_at_end
        falls[i] = falls_at_end
        g = c[i] - unit[i] * x0 - beta[i] * m
        p = max(unit[i] + _TWO * e * beta[i], _ZERO)
        exact = g / (p + math.sqrt(p * p + _TWELVE * f * beta[i] * g))
        half_u = min(max(exact, low), high) if exact == exact else _ZERO
        valid = between or exact == half_u
        step = c[i] - unit[i] * (x0 + _TWO * half_u)
        slope = m + half_u * (_FOUR * e + _TWELVE * f * half_u)
        sigma = y + half_u * (_TWO * m + half_u * (_FOUR * e + _EIGHT * f * half_u))
        phi = beta[i] * unit[i] * sigma + _HALF_UP * step * step
        better = valid and phi < best[0, i]
        best[0, i] = phi if better else best[0, i]
        best[1, i] = step if better else best[1, i]
        best[2, i] = slope if better else best[2, i]


@_inlined
def _rows(s: Any, b: Any, k: Any, out: Any, table: Any, work: Any) -> None:
    """Solve the rows of one block; k has one number a row, or one for all."""
    problem, best, falls, length = work[:3], work[3:6], work[6], len(s)
    for i in range(length):
        travel = min(k[i if len(k) > 1 else 0], _LARGEST)
        beta = min(max(b[i] * travel, -_QUARTER_OF_LARGEST), _QUARTER_OF_LARGEST)
        beta = beta if b[i] == b[i] and travel == travel else b[i] * travel
        unit = _QUARTER / (abs(beta) * _QUARTER + abs(s[i]) * _QUARTER + _QUARTER)
        problem[0, i], problem[1, i], problem[2, i] = s[i] * unit, beta * unit, unit
        nothing = (problem[0, i] + problem[1, i]) * _ZERO
        best[0, i], best[1, i], best[2, i] = _QUARTER_OF_LARGEST, nothing, nothing
    _line(table[0], falls, True, problem, best, length)
    for j in range(1, len(table) - 1):
        _piece(table[j], falls, problem, best, length)
    _line(table[-1], falls, False, problem, best, length)
    for i in range(length):
        far = min(_ONE / min(k[i if len(k) > 1 else 0], _LARGEST), _LARGEST)
        large = abs(problem[1, i]) >= problem[2, i]
        out[i] = best[1, i] / problem[2, i] * far if large else best[2, i] * b[i]


def cubic_layer(
    s: Any, b: Any, k: Any, out: Any, a: int, o: int, r: int, r_of_k: int, table: Any, rows: int
) -> None:
    """Solve all nodes of a layer, as `compiled.Kernel` says, given the function's table."""
    nodes, gradients, alphas = carray(s, (a, o, r)), carray(b, (a, o, r)), carray(out, (a, o, r))
    travels, pieces = carray(k, (a, r_of_k)), carray(table, (rows, _COLUMNS))
    work = np.empty((7, _BLOCK), np.float32)
    for block in range(a):
        for node in range(o):
            for start in range(0, r, _BLOCK):
                stop = min(start + _BLOCK, r)
                of_k = travels[block, start:stop] if r_of_k > 1 else travels[block, :1]
                _rows(
                    nodes[block, node, start:stop],
                    gradients[block, node, start:stop],
                    of_k,
                    alphas[block, node, start:stop],
                    pieces,
                    work,
                )
