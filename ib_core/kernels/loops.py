"""Loops in float32 that numba compiles for this processor: the rules, and recurrent layers in time.

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
#: What m^2 is at least: the cube of its root must be a normal number, since a processor takes three
#: times as long over others.
_LEAST = np.float32(_LIMITS.tiny**0.6)
_FOLD, _AWAY = np.float32(2 + 16 * _LIMITS.eps), np.float32(0.5 - 64 * _LIMITS.eps)
_SCALE, _SHARE_M, _SHARE_U = (np.float32(x) for x in (SCALE, SHARE_OF_M, SHARE_OF_U))
_ZERO, _HALF, _ONE, _TWO, _THREE = (np.float32(x) for x in (0, 0.5, 1, 2, 3))
_QUARTER, _FOUR, _EIGHT, _TWELVE = (np.float32(x) for x in (0.25, 4, 8, 12))
_THIRD, _REACH = np.float32(1 / 3), np.float32(-27)
_QUARTER_OF_LARGEST, _HALF_UP = np.float32(_LIMITS.max / 4), np.float32(0.5 + 4 * _LIMITS.eps)
_FAR, _SHRUNK, _GROWN = np.float32(2.0**60), np.float32(2.0**-24), np.float32(2.0**24)
_LOG_ONE, _TWO_LOG_ONE = np.uint32(ONE_AS_INTEGER), np.float32(2 * ONE_AS_INTEGER)
_BIT = np.uint32(1)

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
    # Unsigned: with the bits of 1 the sum needs all 32, and more would take two registers.
    log_z = np.uint32(log_half) + np.uint32(np.float32(t).view(np.int32))
    log_z = np.uint32(log_z - np.uint32(np.float32(below).view(np.int32)))
    root = np.int32(np.uint32(log_z + _LOG_ONE) >> _BIT)
    v = branch * (m + _SCALE * root.view(np.float32))
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


# --- A recurrent layer along time: a product of a matrix and a vector a time step, in a chain. One
# row of the batch goes through all its steps while its matrix stays in the processor's cache, and
# what a row gets does not depend on the rows beside it.


_HALF_PI, _QUARTER_PI = np.float32(math.pi / 2), np.float32(math.pi / 4)
#: Where the arctan's argument is folded: tan(pi/8) and tan(3 pi/8).
_LOW, _HIGH = np.float32(math.sqrt(2) - 1), np.float32(math.sqrt(2) + 1)
#: (atan(t) - t) / t^3 as a polynomial in t^2, fitted on |t| <= tan(pi/8) to 2e-8 of atan(t).
_P0, _P1 = np.float32(-0.333329552165), np.float32(0.199779248394)
_P2, _P3 = np.float32(-0.138798377658), np.float32(0.0806027204927)


@_inlined
def _atan(x: Any) -> Any:
    """Return arctan(x) to two units in the last place, without a branch."""
    size = abs(x)
    high, folded = size > _HIGH, size > _LOW
    over = -_ONE if high else (size - _ONE if folded else size)
    under = size if high else (size + _ONE if folded else _ONE)
    base = _HALF_PI if high else (_QUARTER_PI if folded else _ZERO)
    t = over / under
    u = t * t
    return math.copysign(base + (t + t * u * (_P0 + u * (_P1 + u * (_P2 + u * _P3)))), x)


@numba.njit(error_model="numpy", fastmath={"contract"})
def _add_product(y: Any, x: Any, matrix: Any) -> None:
    """Add `x @ matrix` to y, four rows of the matrix at a time."""
    whole = len(x) - len(x) % 4
    for i in range(0, whole, 4):
        x0, x1, x2, x3 = x[i], x[i + 1], x[i + 2], x[i + 3]
        m0, m1, m2, m3 = matrix[i], matrix[i + 1], matrix[i + 2], matrix[i + 3]
        for j in range(len(y)):
            y[j] += x0 * m0[j] + x1 * m1[j] + x2 * m2[j] + x3 * m3[j]
    for i in range(whole, len(x)):
        for j in range(len(y)):
            y[j] += x[i] * matrix[i, j]


def _states(s: Any, h: Any, matrix: Any, time: int, members: int, batch: int, hidden: int) -> None:
    everything = (time, members, batch, hidden)
    s, h, matrix = (
        carray(s, everything),
        carray(h, everything),
        carray(matrix, (members, hidden, hidden)),
    )
    for member in range(members):
        for row in range(batch):
            for t in range(time):
                if t > 0:
                    _add_product(s[t, member, row], h[t - 1, member, row], matrix[member])
                for i in range(hidden):
                    h[t, member, row, i] = _atan(s[t, member, row, i])


def _deltas(
    b: Any, slope: Any, delta: Any, matrix: Any, time: int, members: int, batch: int, hidden: int
) -> None:
    everything = (time, members, batch, hidden)
    b, slope, delta = carray(b, everything), carray(slope, everything), carray(delta, everything)
    matrix = carray(matrix, (members, hidden, hidden))
    for member in range(members):
        for row in range(batch):
            for t in range(time - 1, -1, -1):
                if t < time - 1:
                    _add_product(b[t, member, row], delta[t + 1, member, row], matrix[member])
                for i in range(hidden):
                    delta[t, member, row, i] = b[t, member, row, i] * slope[t, member, row, i]


@cache
def states() -> Callable[..., None]:
    """Return `h_t = arctan(s_t + h_{t-1} @ matrix)`: adds to s, writes h.

    Takes the addresses of s, h [time, members, batch, hidden] and matrix [members, hidden,
    hidden], then the four lengths.
    """
    return as_c_function(_states, (ADDRESS,) * 3 + (LENGTH,) * 4)


@cache
def deltas() -> Callable[..., None]:
    """Return `delta_t = (b_t + delta_{t+1} @ matrix) * slope_t`: adds to b, writes delta.

    Takes the addresses of b, slope, delta and matrix, shaped as for `states`, then the lengths.
    """
    return as_c_function(_deltas, (ADDRESS,) * 4 + (LENGTH,) * 4)
