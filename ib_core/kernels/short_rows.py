"""What models do to each of a stack's many short rows, for numba to compile: one pass over memory.

Layer norm forward and back, softmax cross-entropy with its slopes, and the gelu with its own.
Members come one after another, so that what one gets does not depend on where it stands.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import Any

import numba
import numpy as np
from numba.np.numpy_support import carray

from ib_core.kernels import ADDRESS, INTEGERS, LENGTH, NUMBER, as_c_function
from ib_core.kernels.blocks import _exp, _log
from ib_core.kernels.vectors import WIDTH, every, load, sigmoid, store, tanh

_ZERO, _HALF, _ONE = (np.float32(x) for x in (0, 0.5, 1))
#: Sums may be taken in any order, as in wide registers.
_summing = numba.njit(error_model="numpy", fastmath={"contract", "reassoc", "nsz"})


@_summing
def _sum(x: Any) -> Any:
    total = _ZERO
    for i in range(len(x)):
        total += x[i]
    return total


@_summing
def _squares(x: Any, centre: Any) -> Any:
    total = _ZERO
    for i in range(len(x)):
        total += (x[i] - centre) * (x[i] - centre)
    return total


@_summing
def _two_sums(grad: Any, weight: Any, x: Any, centre: Any, factor: Any) -> Any:
    """Return the sum of the gradients by normed numbers, and of their products with these."""
    total = other = _ZERO
    for i in range(len(x)):
        by_normed = grad[i] * weight[i]
        total += by_normed
        other += by_normed * ((x[i] - centre) * factor)
    return total, other


def _norm(
    x: Any, weight: Any, bias: Any, out: Any, means: Any, factors: Any,
    members: int, rows: int, length: int, eps: Any,
) -> None:  # fmt: skip
    shape, of_rows, count = (members, rows, length), (members, rows), np.float32(length)
    x, out = carray(x, shape), carray(out, shape)
    weight, bias = carray(weight, (members, length)), carray(bias, (members, length))
    means, factors = carray(means, of_rows), carray(factors, of_rows)
    for member in range(members):
        weights, biases = weight[member], bias[member]
        for r in range(rows):
            row, normed = x[member, r], out[member, r]
            centre = _sum(row) / count
            factor = _ONE / np.float32(math.sqrt(_squares(row, centre) / count + eps))
            means[member, r], factors[member, r] = centre, factor
            for i in range(length):
                normed[i] = (row[i] - centre) * factor * weights[i] + biases[i]


def _norm_back(
    grad: Any, x: Any, weight: Any, means: Any, factors: Any, by_x: Any, by_weight: Any,
    by_bias: Any, members: int, rows: int, length: int,
) -> None:  # fmt: skip
    shape, of_rows, count = (members, rows, length), (members, rows), np.float32(length)
    grad, x, by_x = carray(grad, shape), carray(x, shape), carray(by_x, shape)
    weight, by_weight = carray(weight, (members, length)), carray(by_weight, (members, length))
    by_bias = carray(by_bias, (members, length))
    means, factors = carray(means, of_rows), carray(factors, of_rows)
    for member in range(members):
        weights, of_weights, of_biases = weight[member], by_weight[member], by_bias[member]
        for i in range(length):
            of_weights[i] = of_biases[i] = _ZERO
        for r in range(rows):
            row, slope, g = x[member, r], by_x[member, r], grad[member, r]
            centre, factor = means[member, r], factors[member, r]
            total, other = _two_sums(g, weights, row, centre, factor)
            total, other = total / count, other / count
            for i in range(length):
                normed = (row[i] - centre) * factor
                slope[i] = (g[i] * weights[i] - total - normed * other) * factor
                of_weights[i] += g[i] * normed
                of_biases[i] += g[i]


@numba.njit(error_model="numpy", fastmath={"contract", "reassoc", "nsz", "nnan"})
def _largest(x: Any) -> Any:
    """Return the largest number; any, where one is none: the sum of powers is none then."""
    top = x[0]
    for i in range(len(x)):
        top = top if top > x[i] else x[i]
    return top


@_summing
def _powers(x: Any, top: Any, out: Any) -> Any:
    """Write exp(x - top), and return their sum."""
    total = _ZERO
    for i in range(len(x)):
        power = _exp(x[i] - top)
        out[i] = power
        total += power
    return total


def _cross_entropy(
    x: Any, targets: Any, slopes: Any, losses: Any, rows: int, classes: int, divisor: Any
) -> None:
    x, slopes = carray(x, (rows, classes)), carray(slopes, (rows, classes))
    targets, losses = carray(targets, (rows,)), carray(losses, (rows,))
    for r in range(rows):
        row, slope, target = x[r], slopes[r], targets[r]
        top = _largest(row)
        total = _powers(row, top, slope)
        losses[r] = _log(total) + top - row[target]
        factor = _ONE / (total * divisor)
        for i in range(classes):
            slope[i] *= factor
        slope[target] -= _ONE / divisor


@_summing
def _tops(x: Any, tops: Any) -> None:
    """Write every row's largest of [classes, rows]."""
    for r in range(len(tops)):
        tops[r] = x[0, r]
    for j in range(1, len(x)):
        for r in range(len(tops)):
            tops[r] = x[j, r] if x[j, r] > tops[r] else tops[r]


@_summing
def _all_powers(x: Any, tops: Any, out: Any, totals: Any) -> None:
    """Write exp(x - top) of [classes, rows], and every row's sum of them."""
    for r in range(len(tops)):
        totals[r] = _ZERO
    for j in range(len(x)):
        row, powers = x[j], out[j]
        for r in range(len(tops)):
            power = _exp(row[r] - tops[r])
            powers[r] = power
            totals[r] += power


def _few_classes(
    x: Any, targets: Any, slopes: Any, losses: Any,
    members: int, classes: int, rows: int, divisor: Any,
) -> None:  # fmt: skip
    shape, of_rows = (members, classes, rows), (members, rows)
    x, slopes = carray(x, shape), carray(slopes, shape)
    targets, losses = carray(targets, of_rows), carray(losses, of_rows)
    tops, totals = np.zeros(rows, np.float32), np.zeros(rows, np.float32)
    for m in range(members):
        logits, slope, target, loss = x[m], slopes[m], targets[m], losses[m]
        _tops(logits, tops)
        _all_powers(logits, tops, slope, totals)
        for r in range(rows):
            loss[r] = _log(totals[r]) + tops[r]
            totals[r] = _ONE / (totals[r] * divisor)
        for j in range(classes):
            for r in range(rows):
                slope[j, r] *= totals[r]
        for r in range(rows):
            loss[r] -= logits[target[r], r]
            slope[target[r], r] -= _ONE / divisor


#: The normal distribution's tail by its density, a polynomial in 1/(1 + _TAIL |x|): number 7.1.26
#: of Abramowitz and Stegun, right to 1e-7.
_TAIL, _DENSITY = np.float32(0.3275911 / math.sqrt(2)), np.float32(1 / math.sqrt(2 * math.pi))
_T0, _T1, _T2 = (np.float32(x / 2) for x in (1.061405429, -1.453152027, 1.421413741))
_T3, _T4 = (np.float32(x / 2) for x in (-0.284496736, 0.254829592))


def _gelu(x: Any, out: Any, slopes: Any, members: int, length: int) -> None:
    shape = (members, length)
    x, out, slopes = carray(x, shape), carray(out, shape), carray(slopes, shape)
    for member in range(members):
        row, outputs, slope = x[member], out[member], slopes[member]
        for i in range(length):
            y = row[i]
            t = _ONE / (_ONE + _TAIL * abs(y))
            power = _exp(-_HALF * y * y)
            tail = power * t * ((((_T0 * t + _T1) * t + _T2) * t + _T3) * t + _T4)
            below = _ONE - tail if y > _ZERO else tail
            outputs[i] = y * below
            slope[i] = below + y * power * _DENSITY


# --- A step of an LSTM, whose rows lie `steps` apart from member to member and from row to row.


#: As long as any array may be: where an array begins is all that is known of it.
_ENDLESS = 2**40


def _lstm(
    gates: Any, more: Any, c: Any, next_c: Any, tanh_c: Any, next_h: Any, steps: Any,
    members: int, batch: int, hidden: int,
) -> None:  # fmt: skip
    gates, more, c = carray(gates, (_ENDLESS,)), carray(more, (_ENDLESS,)), carray(c, (_ENDLESS,))
    next_c, next_h = carray(next_c, (_ENDLESS,)), carray(next_h, (_ENDLESS,))
    tanh_c, steps = carray(tanh_c, (_ENDLESS,)), carray(steps, (4, 2))
    for member in range(members):
        for row in range(batch):
            of_gates, of_more = (
                steps[0, 0] * member + steps[0, 1] * row,
                steps[1, 0] * member + steps[1, 1] * row,
            )
            of_c, of_tanh = (
                steps[2, 0] * member + steps[2, 1] * row,
                steps[3, 0] * member + steps[3, 1] * row,
            )
            for j in range(0, hidden, WIDTH):
                i_at, f_at, g_at, o_at = j, hidden + j, 2 * hidden + j, 3 * hidden + j
                i = load(gates, of_gates + i_at)
                i = sigmoid(i + load(more, of_more + i_at))
                f = load(gates, of_gates + f_at)
                f = sigmoid(f + load(more, of_more + f_at))
                g = load(gates, of_gates + g_at)
                g = tanh(g + load(more, of_more + g_at))
                o = load(gates, of_gates + o_at)
                o = sigmoid(o + load(more, of_more + o_at))
                new = f * load(c, of_c + j) + i * g
                squashed = tanh(new)
                store(gates, of_gates + i_at, i)
                store(gates, of_gates + f_at, f)
                store(gates, of_gates + g_at, g)
                store(gates, of_gates + o_at, o)
                store(next_c, of_c + j, new)
                store(tanh_c, of_tanh + j, squashed)
                store(next_h, of_c + j, o * squashed)


def _lstm_back(
    gates: Any, c: Any, tanh_c: Any, dh: Any, more: Any, dc: Any, deltas: Any, steps: Any,
    members: int, batch: int, hidden: int,
) -> None:  # fmt: skip
    gates, dh, dc = carray(gates, (_ENDLESS,)), carray(dh, (_ENDLESS,)), carray(dc, (_ENDLESS,))
    c, more, deltas = carray(c, (_ENDLESS,)), carray(more, (_ENDLESS,)), carray(deltas, (_ENDLESS,))
    tanh_c, steps = carray(tanh_c, (_ENDLESS,)), carray(steps, (5, 2))
    one = every(_ONE)
    for member in range(members):
        for row in range(batch):
            of_gates, of_c = (
                steps[0, 0] * member + steps[0, 1] * row,
                steps[1, 0] * member + steps[1, 1] * row,
            )
            of_tanh, of_dh = (
                steps[2, 0] * member + steps[2, 1] * row,
                steps[3, 0] * member + steps[3, 1] * row,
            )
            of_more = steps[4, 0] * member + steps[4, 1] * row
            for j in range(0, hidden, WIDTH):
                i_at, f_at = of_gates + j, of_gates + hidden + j
                g_at, o_at = of_gates + 2 * hidden + j, of_gates + 3 * hidden + j
                i, f = load(gates, i_at), load(gates, f_at)
                g, o = load(gates, g_at), load(gates, o_at)
                squashed = load(tanh_c, of_tanh + j)
                by_h = load(dh, of_dh + j)
                by_h = by_h + load(more, of_more + j)
                by_c = load(dc, of_dh + j)
                by_c = by_c + by_h * o * (one - squashed * squashed)
                before = load(c, of_c + j)
                store(deltas, i_at, i * (one - i) * g * by_c)
                store(deltas, f_at, f * (one - f) * before * by_c)
                store(deltas, g_at, (one - g * g) * i * by_c)
                store(deltas, o_at, o * (one - o) * squashed * by_h)
                store(dc, of_dh + j, by_c * f)


@cache
def lstm() -> tuple[Callable[..., None], Callable[..., None]]:
    """Return a step of an LSTM, for all members, and its way back.

    The first takes the addresses of the gates [members, batch, 4 hidden] (i, f, g, o; squashed in
    place), of what is added to them first, of c, and of where the next c, its tanh and h go; the
    strides by members and batch of gates, what is added, c (and both next), and tanh; and the three
    lengths. The second takes the squashed gates, c, tanh, the gradients by h, two that are added,
    by c (which becomes that of the step before), where those by the gates before they were squashed
    go; the strides of gates (and theirs), c, tanh, the first by h (and by c), the second; and the
    lengths. Hidden is a multiple of `vectors.WIDTH`.
    """
    rest = (INTEGERS,) + (LENGTH,) * 3
    return (
        as_c_function(_lstm, (ADDRESS,) * 6 + rest),
        as_c_function(_lstm_back, (ADDRESS,) * 7 + rest),
    )


@cache
def norm() -> tuple[Callable[..., None], Callable[..., None]]:
    """Return layer norm and its way back, over contiguous [members, rows, length].

    The first takes the addresses of x, weights and biases [members, length], of where outputs and
    every row's mean and factor go, the three lengths, and what is added to variances; the second
    those of the outputs' gradient, x, weights, means, factors, of where the gradients by x, weights
    and biases go, and the lengths.
    """
    return (
        as_c_function(_norm, (ADDRESS,) * 6 + (LENGTH,) * 3 + (NUMBER,)),
        as_c_function(_norm_back, (ADDRESS,) * 8 + (LENGTH,) * 3),
    )


@cache
def cross_entropy() -> Callable[..., None]:
    """Return softmax cross-entropy over contiguous [rows, classes].

    It takes the addresses of logits, classes, of where slopes (over the divisor) and every row's
    loss go, the two lengths, and the divisor.
    """
    pointers = (ADDRESS, INTEGERS, ADDRESS, ADDRESS)
    return as_c_function(_cross_entropy, pointers + (LENGTH,) * 2 + (NUMBER,))


@cache
def gelu() -> Callable[..., None]:
    """Return the gelu over contiguous [members, length].

    It takes the addresses of x, of where outputs and slopes go, and the two lengths.
    """
    return as_c_function(_gelu, (ADDRESS,) * 3 + (LENGTH,) * 2)


@cache
def few_classes() -> Callable[..., None]:
    """Return softmax cross-entropy over contiguous [members, classes, rows].

    It takes the addresses of logits, classes, of where slopes (over the divisor) and every row's
    loss go, the three lengths, and the divisor.
    """
    pointers = (ADDRESS, INTEGERS, ADDRESS, ADDRESS)
    return as_c_function(_few_classes, pointers + (LENGTH,) * 3 + (NUMBER,))
