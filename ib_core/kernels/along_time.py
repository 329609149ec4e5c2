"""A recurrent layer's two loops along time in float32, for numba to compile.

Training on music is these two loops: one product of a matrix and a vector a time step, in a chain.
As torch calls each step costs as much again as its arithmetic. Here one row of the batch goes
through all its time steps while its matrix stays in the processor's cache, and what a row gets
does not depend on the rows beside it.
"""

import math
from collections.abc import Callable
from functools import cache
from typing import Any

import numba
import numpy as np
from numba.np.numpy_support import carray

from ib_core.kernels import ADDRESS, LENGTH, as_c_function

_ZERO, _ONE = np.float32(0), np.float32(1)
_HALF_PI, _QUARTER_PI = np.float32(math.pi / 2), np.float32(math.pi / 4)
#: Where the arctan's argument is folded: tan(pi/8) and tan(3 pi/8).
_LOW, _HIGH = np.float32(math.sqrt(2) - 1), np.float32(math.sqrt(2) + 1)
#: (atan(t) - t) / t^3 as a polynomial in t^2, fitted on |t| <= tan(pi/8) to 2e-8 of atan(t).
_P0, _P1 = np.float32(-0.333329552165), np.float32(0.199779248394)
_P2, _P3 = np.float32(-0.138798377658), np.float32(0.0806027204927)

_inlined = numba.njit(error_model="numpy", fastmath={"contract"}, inline="always")


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
