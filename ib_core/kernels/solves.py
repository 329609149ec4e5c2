"""The rules in float32 as loops that numba compiles for this processor.

`updates/arctan.py`, `relu.py` and `piecewise_cubic.py` explain what is computed, under the same
names, and hold the same rules as torch calls. Here one pass over memory does it. Everything is
float32, constants included: one float64 among them would halve the speed.

Piecewise cubics take their rows in short blocks, and every candidate is judged for a whole block
before the next: the block stays in the cache, and its rows share the processor's wide registers.
"""

import math
from collections.abc import Callable
from functools import cache
from typing import Any

import numba
import numpy as np
import torch
from numba.np.numpy_support import carray

from ib_core.kernels import (
    ADDRESS,
    CUBICS,
    LENGTH,
    NUMBER,
    ONE_AS_INTEGER,
    SCALE,
    SHARE_OF_M,
    SHARE_OF_U,
    as_c_function,
)

_LIMITS = torch.finfo(torch.float32)
_LARGEST, _TINY_HALF = np.float32(_LIMITS.max), np.float32(_LIMITS.tiny**0.5)
_BOUND, _MOST = np.float32(_LIMITS.max ** (1 / 3) / 8), np.float32(_LIMITS.max / 64)
_LEAST = np.float32(_LIMITS.tiny**0.8)
_FOLD, _AWAY = np.float32(2 + 16 * _LIMITS.eps), np.float32(0.5 - 64 * _LIMITS.eps)
_SCALE, _SHARE_M, _SHARE_U = (np.float32(x) for x in (SCALE, SHARE_OF_M, SHARE_OF_U))
_ZERO, _HALF, _ONE, _TWO, _THREE = (np.float32(x) for x in (0, 0.5, 1, 2, 3))
_QUARTER, _FOUR, _EIGHT, _TWELVE = (np.float32(x) for x in (0.25, 4, 8, 12))
_THIRD, _REACH = np.float32(1 / 3), np.float32(-27)
_QUARTER_OF_LARGEST, _HALF_UP = np.float32(_LIMITS.max / 4), np.float32(0.5 + 4 * _LIMITS.eps)
_FAR, _SHRUNK, _GROWN = np.float32(2.0**60), np.float32(2.0**-24), np.float32(2.0**24)
_LOG_ONE, _TWO_LOG_ONE = np.int32(ONE_AS_INTEGER), np.float32(2 * ONE_AS_INTEGER)

#: Lines of fewer rows are short; so many of them, or a multiple, end with a full wide register.
_SHORT, _WIDE = 256, 8
#: Rows of one block.
_BLOCK = 128
#: Numbers that describe a candidate, see `PiecewiseCubic.table`.
_COLUMNS = 9

#: Multiplications and additions may be fused; NaN, infinities and signed zeros keep their meaning.
_inlined = numba.njit(error_model="numpy", fastmath={"contract"}, inline="always")


@_inlined
def _relu(s: Any, b: Any, k: Any) -> Any:
    """Return one node's alpha: `min(b, relu(s)/k)` where `s > k*x/2`, 0 elsewhere."""
    k = min(k, _LARGEST)
    x = max(s, _ZERO) * min(_ONE / k, _LARGEST)
    if not x < b:  # also for NaN, which then comes through b or through s
        x = b if s == s else s
    return _ZERO if s - _HALF * k * x <= _ZERO else x


@_inlined
def _arctan(s: Any, b: Any, k: Any) -> Any:
    """Return one node's alpha by two Halley steps, which leave nothing but rounding.

    The start's square root is taken on logarithms (the bits of a number, read as an integer, are
    its logarithm to 6 %): one true square root and one division a step are all that it costs.
    """
    c = min(max(s, -_BOUND), _BOUND)
    u = _THREE - c * c
    w = min(max(b * min(k, _LARGEST) * _REACH, -_MOST), _MOST) + _TWO * c * (_TWELVE - u)
    m_squared = max(-u, _LEAST)
    m = math.sqrt(m_squared)
    m_cubed = m_squared * m
    branch = math.copysign(_ONE, w + math.copysign(_FOLD * m_cubed, c))
    half = max(m_cubed + branch * w * _AWAY, _TINY_HALF)
    log_half = np.float32(half).view(np.int32)
    t = np.int32((np.float32(log_half) + _TWO_LOG_ONE) * _THIRD).view(np.float32)
    below = t * t + _SHARE_U * max(u, _ZERO) + _SHARE_M * m * t
    log_z = log_half + np.float32(t).view(np.int32) - np.float32(below).view(np.int32)
    v = branch * (m + _SCALE * np.int32((log_z + _LOG_ONE) >> 1).view(np.float32))
    # The cubic is homogeneous: its largest problems, whose squares would overflow, are shrunk.
    shrunk = abs(w) + m_cubed > _FAR
    unit = _SHRUNK if shrunk else _ONE
    v, u, w = v * unit, u * (unit * unit), w * (unit * unit * unit)
    for _ in range(2):
        square = v * v
        slope = u + square
        value = v * (square + _THREE * u) - w
        v = v - value * slope / (_THREE * slope * slope - v * value)
    q = s + _THIRD * (v * (_GROWN if shrunk else _ONE) - _TWO * c)
    return b / (_ONE + q * q)


@_inlined
def _node(relu: Any, s: Any, b: Any, k: Any) -> Any:
    return _relu(s, b, k) if relu else _arctan(s, b, k)


@_inlined
def _long_lines(relu: Any, s: Any, b: Any, k: Any, out: Any) -> None:
    """Solve line after line; one k for all rows stays in a register in a loop of its own."""
    for block in range(s.shape[0]):
        for node in range(s.shape[1]):
            if k.shape[1] == 1:
                for row in range(s.shape[2]):
                    out[block, node, row] = _node(
                        relu, s[block, node, row], b[block, node, row], k[block, 0]
                    )
            else:
                for row in range(s.shape[2]):
                    out[block, node, row] = _node(
                        relu, s[block, node, row], b[block, node, row], k[block, row]
                    )


@_inlined
def _short_lines(relu: Any, s: Any, b: Any, k: Any, out: Any) -> None:
    """Solve several lines as if they were one, every node's k written beside it.

    What does not fill a wide register at a line's end is solved node by node, at eight times the
    price: a quarter of the time for lines of 100, all of it for lines of 6.
    """
    lines, rows = s.shape[0] * s.shape[1], s.shape[2]
    together = _WIDE * max(_SHORT // (_WIDE * max(rows, 1)), 1)
    travels = np.empty(together * rows, np.float32)
    s, b, out = s.reshape(lines * rows), b.reshape(lines * rows), out.reshape(lines * rows)
    for first in range(0, lines, together):
        last = min(first + together, lines)
        for line in range(first, last):
            of_line = travels[(line - first) * rows :]
            of_block = k[line // (lines // len(k))]
            for row in range(rows):
                of_line[row] = of_block[row if len(of_block) > 1 else 0]
        of_s, of_b, of_out = s[first * rows :], b[first * rows :], out[first * rows :]
        for i in range((last - first) * rows):
            of_out[i] = _node(relu, of_s[i], of_b[i], travels[i])


@_inlined
def _layer(relu: Any, s: Any, b: Any, k: Any, out: Any) -> None:
    """Solve all nodes, [blocks, nodes, rows]; k is [blocks, rows or 1].

    The rule is a constant wherever this is inlined, and its branch falls away.
    """
    if s.shape[2] < _SHORT:
        _short_lines(relu, s, b, k, out)
    else:
        _long_lines(relu, s, b, k, out)


def _relu_layer(s: Any, b: Any, k: Any, out: Any, a: int, o: int, r: int, r_of_k: int) -> None:
    all_nodes = (a, o, r)
    s, b, out = carray(s, all_nodes), carray(b, all_nodes), carray(out, all_nodes)
    _layer(True, s, b, carray(k, (a, r_of_k)), out)


def _arctan_layer(s: Any, b: Any, k: Any, out: Any, a: int, o: int, r: int, r_of_k: int) -> None:
    all_nodes = (a, o, r)
    s, b, out = carray(s, all_nodes), carray(b, all_nodes), carray(out, all_nodes)
    _layer(False, s, b, carray(k, (a, r_of_k)), out)


@numba.njit(fastmath={"contract", "reassoc"})  # sums in any order: eight at a time
def _squared_norm(z: Any) -> Any:
    total = _ZERO
    for i in range(len(z)):  # an index, not `for x in z`: only this becomes wide instructions
        total += z[i] * z[i]
    return total


def _travels(z: Any, k: Any, rows: int, inputs: int, rate: Any, bias: Any) -> None:
    """Write `rate * (|z|^2 + bias)` for every row."""
    z, k = carray(z, (rows, inputs)), carray(k, (rows,))
    for row in range(rows):
        k[row] = rate * (_squared_norm(z[row]) + bias)


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
    """Solve all nodes of a layer, as `kernels.Kernel` says, given the function's table."""
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


#: By rule, what `kernels.Kernel` describes.
LAYERS: dict[str, Callable[..., None]] = {"relu": _relu_layer, "arctan": _arctan_layer}


def build(rule: str) -> Callable[..., None] | None:
    """Return a rule's kernel, or None if it has none."""
    if rule in LAYERS:
        return as_c_function(LAYERS[rule], _SOLVES)
    if rule not in CUBICS:
        return None
    table = np.array(CUBICS[rule], dtype=np.float32)
    solve, address = as_c_function(cubic_layer, (*_SOLVES, ADDRESS, LENGTH)), table.ctypes.data

    def kernel(*arguments: int) -> None:
        solve(*arguments, address, len(table))

    return kernel


_SOLVES = (ADDRESS,) * 4 + (LENGTH,) * 4


@cache
def travels() -> Callable[..., None]:
    """Return `_travels` as a C function."""
    return as_c_function(_travels, (ADDRESS, ADDRESS, LENGTH, LENGTH, NUMBER, NUMBER))
