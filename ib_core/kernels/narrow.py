"""A stack's narrow linear layers with the relu after them, for numba to compile.

A product of 13 by 13 leaves most of what multiplies matrices idle, and what stands around it (bias,
relu, their gradients) goes through memory as often. Here rows of a block share what is read of the
weights, and features are padded with zeros to whole registers: every sum has one order, whatever
the rows and members beside it.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from numba.np.numpy_support import carray

from ib_core.kernels import ADDRESS, LENGTH, as_c_function
from ib_core.kernels.vectors import WIDTH, below, every, fma, inlined, load, store

_ZERO = np.float32(0)
#: As long as any array may be: where an array begins is all that is known of it.
_ENDLESS = 2**40
#: Rows of one block; rows summed up before they join the others, whose roundings stay small so.
_EIGHT, _GROUP = 8, 32
#: The smallest normal number: below it an output of a relu is zero, and a NaN is not below.
_LEAST = np.float32(np.finfo(np.float32).tiny)


@inlined
def _alike(x: Any) -> Any:
    return (x, x, x, x, x, x, x, x)


@inlined
def _add(sums: Any, x: Any, numbers: Any, at: Any, apart: Any) -> Any:
    """Return eight sums with x, times each one's number, added."""
    return (
        fma(x, every(numbers[at]), sums[0]),
        fma(x, every(numbers[at + apart]), sums[1]),
        fma(x, every(numbers[at + 2 * apart]), sums[2]),
        fma(x, every(numbers[at + 3 * apart]), sums[3]),
        fma(x, every(numbers[at + 4 * apart]), sums[4]),
        fma(x, every(numbers[at + 5 * apart]), sums[5]),
        fma(x, every(numbers[at + 6 * apart]), sums[6]),
        fma(x, every(numbers[at + 7 * apart]), sums[7]),
    )


@inlined
def _put(out: Any, at: Any, apart: Any, sums: Any) -> None:
    store(out, at, sums[0])
    store(out, at + apart, sums[1])
    store(out, at + 2 * apart, sums[2])
    store(out, at + 3 * apart, sums[3])
    store(out, at + 4 * apart, sums[4])
    store(out, at + 5 * apart, sums[5])
    store(out, at + 6 * apart, sums[6])
    store(out, at + 7 * apart, sums[7])


@inlined
def _product(
    x: Any, start: Any, apart: Any, weights: Any, bias: Any, out: Any, place: Any,
    rows: Any, inputs: Any, wide: Any,
) -> None:  # fmt: skip
    """Write `bias + x W` of [rows, inputs] and [inputs, wide]; the last block may overlap."""
    for first in range(0, rows, _EIGHT):
        row = min(first, rows - _EIGHT)
        for j in range(0, wide, WIDTH):
            sums = _alike(load(bias, j))
            for k in range(inputs):
                sums = _add(sums, load(weights, k * wide + j), x, start + row * apart + k, apart)
            _put(out, place + row * wide + j, wide, sums)


@inlined
def _wide(length: Any) -> Any:
    return (length + WIDTH - 1) // WIDTH * WIDTH


@inlined
def _squash(x: Any, start: Any, length: Any) -> None:
    """Put a relu on numbers from a place on, in whole registers; a NaN stays one."""
    zero = every(_ZERO)
    for at in range(start, start + length, WIDTH):
        y = load(x, at)
        store(x, at, below(y, zero, zero, y))


@inlined
def _turn(x: Any, rows: Any, wide: Any, out: Any, first: Any, outputs: Any) -> None:
    """Copy [rows, wide] to rows of features, from a row on."""
    for j in range(outputs):
        for r in range(rows):
            out[(first + j) * rows + r] = x[r * wide + j]


def _forward(
    x: Any, weight: Any, bias: Any, out: Any, members: int, rows: int, inputs: int, outputs: int,
    x_member: int, x_row: int, relu: int, last: int,
) -> None:  # fmt: skip
    wide = _wide(outputs)
    x, out = carray(x, (_ENDLESS,)), carray(out, (_ENDLESS,))
    weight, bias = carray(weight, (members, outputs, inputs)), carray(bias, (members, outputs))
    weights, biases = np.zeros(inputs * wide, np.float32), np.zeros(wide, np.float32)
    made = np.zeros(rows * wide if last else 0, np.float32)
    for m in range(members):
        for j in range(outputs):
            biases[j] = bias[m, j]
            for k in range(inputs):
                weights[k * wide + j] = weight[m, j, k]
        there, place = (made, 0) if last else (out, m * rows * wide)
        _product(x, m * x_member, x_row, weights, biases, there, place, rows, inputs, wide)
        if relu:
            _squash(there, place, rows * wide)
        if last:
            _turn(made, rows, wide, out, m * outputs, outputs)


@inlined
def _through_relu(
    grad: Any, out: Any, place: Any, rows: Any, outputs: Any, relu: Any, last: Any, g: Any
) -> None:
    """Write one member's gradients before the relu, [rows, wide]; the last layer's lie turned."""
    zero, least, wide = every(_ZERO), every(_LEAST), _wide(outputs)
    if not last:
        for at in range(0, rows * wide, WIDTH):
            above, y = load(grad, place * wide + at), load(out, place * wide + at)
            store(g, at, below(y, least, zero, above) if relu else above)
        return
    for j in range(outputs):
        for r in range(rows):
            at = place * outputs + j * rows + r
            g[r * wide + j] = _ZERO if relu and out[at] < _LEAST else grad[at]


@inlined
def _sum_rows(g: Any, rows: Any, wide: Any, sums: Any) -> None:
    for j in range(0, wide, WIDTH):
        total = every(_ZERO)
        for first in range(0, rows, _GROUP):
            part = every(_ZERO)
            for r in range(first, min(rows, first + _GROUP)):
                part = part + load(g, r * wide + j)
            total = total + part
        store(sums, j, total)


@inlined
def _both(sums: Any, more: Any) -> Any:
    return (
        sums[0] + more[0],
        sums[1] + more[1],
        sums[2] + more[2],
        sums[3] + more[3],
        sums[4] + more[4],
        sums[5] + more[5],
        sums[6] + more[6],
        sums[7] + more[7],
    )


@inlined
def _sum_products(
    x: Any, start: Any, apart: Any, end: Any, g: Any, rows: Any, inputs: Any, wide: Any, edge: Any,
    out: Any,
) -> None:  # fmt: skip
    """Write the sums over rows of `g x`, [wide, deep]; nothing is read from x's end on."""
    deep = _wide(inputs)
    for k in range(0, deep, WIDTH):
        whole = min(rows, max(0, (end - start - k - WIDTH) // apart + 1))
        for j in range(0, wide, _EIGHT):
            total = _alike(every(_ZERO))
            for first in range(0, rows, _GROUP):
                sums, last = _alike(every(_ZERO)), min(rows, first + _GROUP)
                for r in range(first, min(whole, last)):
                    sums = _add(sums, load(x, start + r * apart + k), g, r * wide + j, 1)
                for r in range(max(first, whole), last):
                    for c in range(k, inputs):
                        edge[c] = x[start + r * apart + c]
                    sums = _add(sums, load(edge, k), g, r * wide + j, 1)
                total = _both(total, sums)
            _put(out, j * deep + k, deep, total)


def _backward(
    x: Any, weight: Any, out: Any, grad: Any, by_x: Any, by_weight: Any, by_bias: Any,
    members: int, rows: int, inputs: int, outputs: int, x_member: int, x_row: int, relu: int,
    last: int, wanted: int,
) -> None:  # fmt: skip
    wide, deep, shape = _wide(outputs), _wide(inputs), (members, outputs, inputs)
    x, out, grad = carray(x, (_ENDLESS,)), carray(out, (_ENDLESS,)), carray(grad, (_ENDLESS,))
    by_x, by_bias = carray(by_x, (_ENDLESS,)), carray(by_bias, (members, outputs))
    weight, by_weight = carray(weight, shape), carray(by_weight, shape)
    g, edge = np.zeros(rows * wide, np.float32), np.zeros(deep, np.float32)
    nothing = np.zeros(deep, np.float32)
    weights, products = np.zeros(wide * deep, np.float32), np.zeros(wide * deep, np.float32)
    sums, end = np.zeros(wide, np.float32), (members - 1) * x_member + (rows - 1) * x_row + inputs
    for m in range(members):
        _through_relu(grad, out, m * rows, rows, outputs, relu, last, g)
        _sum_rows(g, rows, wide, sums)
        _sum_products(x, m * x_member, x_row, end, g, rows, inputs, wide, edge, products)
        for j in range(outputs):
            by_bias[m, j] = sums[j]
            for k in range(inputs):
                by_weight[m, j, k] = products[j * deep + k]
                weights[j * deep + k] = weight[m, j, k]
        if wanted:
            _product(g, 0, wide, weights, nothing, by_x, m * rows * deep, rows, outputs, deep)


@cache
def loops() -> tuple[Callable[..., None], Callable[..., None]]:
    """Return `x W^T + b` of every member, with or without a relu, and its way back.

    The first takes the addresses of x, whose features lie side by side, weights [members, outputs,
    inputs] and biases; of where outputs go, [members, rows, whole registers], or for the last layer
    [members, outputs, rows]; members, rows (eight at least), inputs, outputs, x's strides by
    members and rows, whether there is a relu, and whether the layer is the last. The second takes
    x, weights, outputs and their gradient, which lie as those went, of where the gradients by x
    [members, rows, whole registers], weights and biases go; the same; and whether x's is wanted.
    """
    return (
        as_c_function(_forward, (ADDRESS,) * 4 + (LENGTH,) * 8),
        as_c_function(_backward, (ADDRESS,) * 7 + (LENGTH,) * 9),
    )
