"""The arctan and relu rules in float32 as loops that numba compiles for this processor.

`arctan.py` and `relu.py` explain what is computed and hold the same rules as torch calls. Here one
pass over memory does it. Everything is float32, constants included: one float64 among them would
halve the speed.
"""

import math
from collections.abc import Callable
from functools import cache
from typing import Any

import numba
import numpy as np
import torch
from numba.np.numpy_support import carray

from ib_core.updates.approximations import APPROXIMATIONS
from ib_core.updates.arctan_start import ONE_AS_INTEGER, SCALE, SHARE_OF_M, SHARE_OF_U
from ib_core.updates.c_function import ADDRESS, LENGTH, NUMBER, as_c_function
from ib_core.updates.cubic_kernel import cubic_layer, table_of

_LIMITS = torch.finfo(torch.float32)
_LARGEST, _TINY_HALF = np.float32(_LIMITS.max), np.float32(_LIMITS.tiny**0.5)
_BOUND, _MOST = np.float32(_LIMITS.max ** (1 / 3) / 8), np.float32(_LIMITS.max / 64)
_LEAST = np.float32(_LIMITS.tiny**0.8)
_FOLD, _AWAY = np.float32(2 + 16 * _LIMITS.eps), np.float32(0.5 - 64 * _LIMITS.eps)
_SCALE, _SHARE_M, _SHARE_U = (np.float32(x) for x in (SCALE, SHARE_OF_M, SHARE_OF_U))
_ZERO, _HALF, _ONE, _TWO, _THREE = (np.float32(x) for x in (0, 0.5, 1, 2, 3))
_TWELVE, _THIRD, _REACH = np.float32(12), np.float32(1 / 3), np.float32(-27)
_FAR, _SHRUNK, _GROWN = np.float32(2.0**60), np.float32(2.0**-24), np.float32(2.0**24)
_LOG_ONE, _TWO_LOG_ONE = np.int32(ONE_AS_INTEGER), np.float32(2 * ONE_AS_INTEGER)

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
def _layer(relu: Any, s: Any, b: Any, k: Any, out: Any) -> None:
    """Solve all nodes, [blocks, nodes, rows]; k is [blocks, rows or 1].

    One k for all rows has a loop of its own: it then stays in a register. The rule is a constant
    wherever this is inlined, and its branch falls away.
    """
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


#: By rule, what `compiled.Kernel` describes.
LAYERS: dict[str, Callable[..., None]] = {"relu": _relu_layer, "arctan": _arctan_layer}


def build(rule: str) -> Callable[..., None] | None:
    """Return a rule's kernel, or None if it has none."""
    if rule in LAYERS:
        return as_c_function(LAYERS[rule], _SOLVES)
    table = table_of(APPROXIMATIONS[rule]) if rule in APPROXIMATIONS else None
    if table is None:
        return None
    solve, address = as_c_function(cubic_layer, (*_SOLVES, ADDRESS, LENGTH)), table.ctypes.data

    def kernel(*arguments: int) -> None:
        solve(*arguments, address, len(table))

    return kernel


_SOLVES = (ADDRESS,) * 4 + (LENGTH,) * 4


@cache
def travels() -> Callable[..., None]:
    """Return `_travels` as a C function."""
    return as_c_function(_travels, (ADDRESS, ADDRESS, LENGTH, LENGTH, NUMBER, NUMBER))
