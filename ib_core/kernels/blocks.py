"""Many small problems side by side, for numba to compile: softmax outputs, matrices of few numbers.

First the exact solve of a linear output layer under softmax cross-entropy.
`updates/output_layer.py` explains what is computed, under the same names, and holds it as torch
calls; `fused.py` holds it for a GPU. A stack's outputs are many rows of few classes, so it is rows
that share the processor's wide registers: they are taken `ROWS` at a time, the classes first.
Every loop over rows has that one length, known when it is compiled, and what the last block lacks
is solved as empty rows. So all rows go through the same instructions, and what a row gets depends
neither on the rows beside it nor on its place among them.

Everything is float32, constants included. The C library's `expf` and `logf` take one number at a
time, so both are written out here.
"""

import math
from collections.abc import Callable
from functools import cache
from typing import Any

import numba
import numpy as np
from numba.np.numpy_support import carray
from numpy.lib.stride_tricks import as_strided

from ib_core.kernels import ADDRESS, INTEGERS, LENGTH, NUMBER, as_c_function

_LIMITS = np.finfo(np.float32)
_ZERO, _ONE, _HALF, _FLAT = (np.float32(x) for x in (0, 1, 0.5, 0.3))
_NO_LEAST = np.float32(-math.inf)
_LEAST_RHO, _MOST_RHO = np.float32(_LIMITS.eps), np.float32(float(_LIMITS.max) / 1e4)

#: Where exp has left the normal numbers for 0, and where it is infinite already.
_LOWEST, _HIGHEST = np.float32(math.log(float(_LIMITS.tiny))), np.float32(89)
_LOG2_E = np.float32(1 / math.log(2))
#: log 2 in two parts; the first has so few digits that its multiples are exact.
_LOG_2, _REST = np.float32(0.693359375), np.float32(math.log(2) - 0.693359375)
#: A number to which this is added is a whole one, and its lowest bits are that integer's.
_WHOLE = np.float32(1.5 * 2**23)
#: Bits of a mantissa, and the bits of 1 and of the root of 1/2.
_MANTISSA, _BITS_OF_ONE, _BITS_OF_ROOT = np.int32(23), np.int32(0x3F800000), np.int32(0x3F3504F3)
#: (exp(r) - 1 - r) / r^2 for |r| <= log(2)/2, and (log(1 + f) - f + f^2/2) / f^3 for 1 + f from
#: the root of 1/2 to that of 2, the highest power first: those of S. L. Moshier's Cephes library.
_E0, _E1, _E2 = (np.float32(x) for x in (1.9875691500e-4, 1.3981999507e-3, 8.3334519073e-3))
_E3, _E4, _E5 = (np.float32(x) for x in (4.1665795894e-2, 1.6666665459e-1, 5.0000001201e-1))
_L0, _L1, _L2 = (np.float32(x) for x in (7.0376836292e-2, -1.1514610310e-1, 1.1676998740e-1))
_L3, _L4, _L5 = (np.float32(x) for x in (-1.2420140846e-1, 1.4249322787e-1, -1.6668057665e-1))
_L6, _L7, _L8 = (np.float32(x) for x in (2.0000714765e-1, -2.4999993993e-1, 3.3333331174e-1))

#: So many classes are summed up before they join the others: a thousand in one chain would leave
#: the last ones' roundings in the sum.
_GROUP = 16
#: Rows of one block.
ROWS = 32
#: What is kept of every class of a block's rows, and of the rows themselves.
_C, _Y, _LOG_P, _X, _DAMPING = range(5)
_RHO, _T, _LOG_RHO, _MISSING, _TOP, _SUM, _PART, _OTHER_SUM, _OTHER_PART, _SLOPE = range(10)

_compiled = numba.njit(error_model="numpy", fastmath={"contract"})
_inlined = numba.njit(error_model="numpy", fastmath={"contract"}, inline="always")


@_compiled
def _exp(x: Any) -> Any:
    """Return exp(x) to one unit in the last place, without a branch; 0 for what is denormal."""
    bounded = _HIGHEST if x > _HIGHEST else x
    shifted = bounded * _LOG2_E + _WHOLE
    n = shifted - _WHOLE
    r = (bounded - n * _LOG_2) - n * _REST
    tail = ((((_E0 * r + _E1) * r + _E2) * r + _E3) * r + _E4) * r + _E5
    bits = np.int32((np.float32(shifted).view(np.int32) << _MANTISSA) + _BITS_OF_ONE)
    power = bits.view(np.float32)
    return _ZERO if x < _LOWEST else (tail * (r * r) + r + _ONE) * power


@_compiled
def _log(x: Any) -> Any:
    """Return log(x) of a normal number to two units in the last place; NaN for NaN and infinity."""
    bits = np.float32(x).view(np.int32)
    exponent = np.int32(np.int32(bits - _BITS_OF_ROOT) >> _MANTISSA)
    f = np.int32(bits - np.int32(exponent << _MANTISSA)).view(np.float32) - _ONE
    n, square = np.float32(exponent), f * f
    high = (((_L0 * f + _L1) * f + _L2) * f + _L3) * f + _L4
    tail = (((high * f + _L5) * f + _L6) * f + _L7) * f + _L8
    return (tail * f * square + n * _REST - _HALF * square + f) + n * _LOG_2 + (x - x)


@_inlined
def _read(tensor: Any, start: Any, work: Any, quantity: Any) -> None:
    """Copy the rows of a block, counted through all members, from [members, classes, rows]."""
    member, row, done = start // tensor.shape[2], start % tensor.shape[2], 0
    while done < ROWS and member < tensor.shape[0]:
        length = min(ROWS - done, tensor.shape[2] - row)
        for j in range(len(work)):
            there, here = tensor[member, j, row:], work[j, quantity, done:]
            for i in range(length):
                here[i] = there[i]
        member, row, done = member + 1, 0, done + length


@_inlined
def _write(tensor: Any, start: Any, work: Any, quantity: Any) -> None:
    """Copy the rows of a block back to where they belong."""
    member, row, done = start // tensor.shape[2], start % tensor.shape[2], 0
    while done < ROWS and member < tensor.shape[0]:
        length = min(ROWS - done, tensor.shape[2] - row)
        for j in range(len(work)):
            there, here = tensor[member, j, row:], work[j, quantity, done:]
            for i in range(length):
                there[i] = here[i]
        member, row, done = member + 1, 0, done + length


@_inlined
def _centre(width: Any, work: Any, of_row: Any) -> None:
    """Turn logits into c, their distances from the largest."""
    for i in range(width):
        of_row[_TOP, i], of_row[_SUM, i] = work[0, _C, i], _ZERO
    for j in range(1, len(work)):
        for i in range(width):
            of_row[_TOP, i] = max(of_row[_TOP, i], work[j, _C, i])
    for j in range(len(work)):
        for i in range(width):
            work[j, _C, i] -= of_row[_TOP, i]


@_inlined
def _recover(width: Any, work: Any, of_row: Any, divisor: Any) -> None:
    """Turn gradients into the targets y, `softmax(s) - divisor * b`."""
    for first in range(0, len(work), _GROUP):
        for i in range(width):
            of_row[_PART, i] = _ZERO
        for j in range(first, min(first + _GROUP, len(work))):
            for i in range(width):
                work[j, _X, i] = _exp(work[j, _C, i])
                of_row[_PART, i] += work[j, _X, i]
        for i in range(width):
            of_row[_SUM, i] += of_row[_PART, i]
    for j in range(len(work)):
        for i in range(width):
            work[j, _Y, i] = work[j, _X, i] / of_row[_SUM, i] - work[j, _Y, i] * divisor


@_inlined
def _bound(width: Any, work: Any, of_row: Any, missing: Any, log_classes: Any) -> None:
    """Write down rho within its bounds, what the targets lack to one, and t's lower bound."""
    for i in range(width):
        rho = of_row[_RHO, i]
        rho = _LEAST_RHO if rho < _LEAST_RHO else rho
        rho = _MOST_RHO if rho > _MOST_RHO else rho
        of_row[_RHO, i], of_row[_LOG_RHO, i] = rho, _log(rho)
        of_row[_TOP, i] = work[0, _C, i] - rho + rho * work[0, _Y, i]
        of_row[_SUM, i], of_row[_OTHER_SUM, i], missing[i] = _ZERO, _ZERO, 1.0
    for j in range(len(work)):
        for i in range(width):
            floor = work[j, _C, i] - of_row[_RHO, i] + of_row[_RHO, i] * work[j, _Y, i]
            work[j, _X, i] = floor
            of_row[_TOP, i] = max(of_row[_TOP, i], floor)
            of_row[_OTHER_SUM, i] += work[j, _C, i]
            missing[i] -= work[j, _Y, i]
    for j in range(len(work)):
        for i in range(width):
            of_row[_SUM, i] += _exp(work[j, _X, i] - of_row[_TOP, i])
    for i in range(width):
        of_row[_MISSING, i] = np.float32(missing[i])
    for i in range(width):
        mean_q = (of_row[_OTHER_SUM, i] - of_row[_RHO, i] * of_row[_MISSING, i]) / np.float32(
            len(work)
        )
        t, lower = mean_q + log_classes, _log(of_row[_SUM, i]) + of_row[_TOP, i]
        of_row[_T, i] = lower if t < lower else t  # a NaN is in t if it is anywhere


@_inlined
def _begin(width: Any, work: Any, of_row: Any) -> None:
    """Write down the upper bound of every log p."""
    for j in range(len(work)):
        for i in range(width):
            log_w = work[j, _C, i] + of_row[_RHO, i] * work[j, _Y, i]
            log_w += of_row[_LOG_RHO, i] - of_row[_T, i]
            log_of_log = _log(_ONE if log_w < _ONE else log_w)
            work[j, _LOG_P, i] = min(log_of_log, log_w) - of_row[_LOG_RHO, i]


@_inlined
def _sum_up(width: Any, work: Any, of_row: Any) -> None:
    """Take every class's own step, t held, and sum over classes what the step of t is made of."""
    for i in range(width):
        of_row[_SUM, i] = of_row[_OTHER_SUM, i] = of_row[_SLOPE, i] = _ZERO
    for first in range(0, len(work), _GROUP):
        for i in range(width):
            of_row[_PART, i] = of_row[_OTHER_PART, i] = _ZERO
        for j in range(first, min(first + _GROUP, len(work))):
            for i in range(width):
                log_p, rho = work[j, _LOG_P, i], of_row[_RHO, i]
                p = _exp(log_p)
                w = p * rho
                damping = _ONE / (w + _ONE)
                pull = work[j, _C, i] - of_row[_T, i] - log_p
                x = (pull + rho * work[j, _Y, i] - w) * damping
                work[j, _X, i], work[j, _DAMPING, i] = x, damping
                of_row[_PART, i] += p + p * x
                of_row[_OTHER_PART, i] += pull - x
                of_row[_SLOPE, i] += p * damping
        for i in range(width):
            of_row[_SUM, i] += of_row[_PART, i]
            of_row[_OTHER_SUM, i] += of_row[_OTHER_PART, i]


@_inlined
def _advance(width: Any, work: Any, of_row: Any, least: Any) -> None:
    """Take one step of t, at least `least`, and one of every class's log p along with it.

    No log p begins above 1, and none should rise. Where rho is so large that t is nothing but
    rounding, one may try to; then 1 is as good a place, since alpha is `(c - t - log p)/rho`.
    """
    _sum_up(width, work, of_row)
    for i in range(width):
        # By how much the p would sum to more than one, in the form that does not cancel.
        few = of_row[_SUM, i] - _ONE
        many = of_row[_OTHER_SUM, i] / of_row[_RHO, i] - of_row[_MISSING, i]
        t_step = (few if of_row[_RHO, i] < _ONE else many) / of_row[_SLOPE, i]
        t_step = least if t_step < least else t_step
        of_row[_SUM, i] = t_step
        of_row[_T, i] += t_step
    for j in range(len(work)):
        for i in range(width):
            damping = work[j, _DAMPING, i]
            x = work[j, _X, i] - of_row[_SUM, i] * damping
            halley = _ONE + _HALF * x - _HALF * x * damping
            log_p = work[j, _LOG_P, i] + x / (_FLAT if halley < _FLAT else halley)
            work[j, _LOG_P, i] = _ONE if log_p > _ONE else log_p


@_inlined
def _finish(width: Any, work: Any, of_row: Any, divisor: Any) -> None:
    """Write down the alphas, `p - y` in the one of its two forms that does not cancel."""
    for j in range(len(work)):
        for i in range(width):
            log_p, rho = work[j, _LOG_P, i], of_row[_RHO, i]
            p = _exp(log_p)
            steep = (work[j, _C, i] - of_row[_T, i] - log_p) / rho
            work[j, _X, i] = (steep if rho * p > _ONE else p - work[j, _Y, i]) / divisor


def cross_entropy_layer(
    s: Any,
    b: Any,
    rho: Any,
    out: Any,
    strides: Any,
    members: int,
    rows: int,
    classes: int,
    steps: int,
    divisor: Any,
    log_classes: Any,
    width: int,
) -> None:
    """Solve all rows of a stack, [members, rows, classes]; rho is [members, rows].

    A block may reach over several members, so that a stack of small batches has few empty rows.

    Logits, gradients, contiguous rho, where the alphas go; the strides of s, b and out in bytes
    (members, rows, classes each); Newton steps; what the loss divides every row's own loss by; and
    `ROWS` as `width`, which the compiler must not know: it would unroll loops over them in place of
    making them wide.
    """
    shape, steps_of = (members, classes, rows), carray(strides, (9,))
    s = as_strided(carray(s, shape), shape, (steps_of[0], steps_of[2], steps_of[1]))
    b = as_strided(carray(b, shape), shape, (steps_of[3], steps_of[5], steps_of[4]))
    out = as_strided(carray(out, shape), shape, (steps_of[6], steps_of[8], steps_of[7]))
    every = members * rows
    travels = carray(rho, (every,))
    work, of_row = np.zeros((classes, 5, ROWS), np.float32), np.zeros((10, ROWS), np.float32)
    missing = np.zeros(ROWS, np.float64)
    for start in range(0, every, ROWS):
        _read(s, start, work, _C)
        _read(b, start, work, _Y)
        for i in range(min(ROWS, every - start)):
            of_row[_RHO, i] = travels[start + i]
        _centre(width, work, of_row)
        _recover(width, work, of_row, divisor)
        _bound(width, work, of_row, missing, log_classes)
        _begin(width, work, of_row)
        for step in range(steps):
            _advance(width, work, of_row, _ZERO if step < steps - 2 else _NO_LEAST)
        _finish(width, work, of_row, divisor)
        _write(out, start, work, _X)


@cache
def cross_entropy() -> Callable[..., None]:
    """Return what solves as `cross_entropy_layer` says, given all but its last argument."""
    arguments = (ADDRESS,) * 4 + (INTEGERS,) + (LENGTH,) * 4 + (NUMBER,) * 2 + (LENGTH,)
    solve = as_c_function(cross_entropy_layer, arguments)
    return lambda *given: solve(*given, ROWS)


# --- Muon's matrices, one a member. Torch multiplies them one after another and a product of six
# by six is over before it has begun; here members share the wide registers, `MEMBERS` at a time.


#: Members of one block: four wide registers, so that sums do not wait for each other.
MEMBERS = 64


@_inlined
def _add_inner(total: Any, x: Any, y: Any, width: Any) -> None:
    """Add every member's inner product of x and y, [numbers, members], four numbers at a time."""
    whole = len(x) - len(x) % 4
    for q in range(0, whole, 4):
        x0, x1, x2, x3 = x[q], x[q + 1], x[q + 2], x[q + 3]
        y0, y1, y2, y3 = y[q], y[q + 1], y[q + 2], y[q + 3]
        for i in range(width):
            total[i] += x0[i] * y0[i] + x1[i] * y1[i] + x2[i] * y2[i] + x3[i] * y3[i]
    for q in range(whole, len(x)):
        for i in range(width):
            total[i] += x[q, i] * y[q, i]


@_inlined
def _by_transposed(x: Any, out: Any, width: Any) -> None:
    """Write `X X^T`, which is symmetric."""
    for p in range(len(x)):
        for q in range(p, len(x)):
            for i in range(width):
                out[p, q, i] = _ZERO
            _add_inner(out[p, q], x[p], x[q], width)
            for i in range(width):
                out[q, p, i] = out[p, q, i]


@_inlined
def _read_unit(there: Any, x: Any, norm: Any, least: Any, width: Any) -> None:
    """Read a block's matrices, [members, few, many], and divide them by their norms."""
    flat = x.reshape(x.shape[0] * x.shape[1], x.shape[2])
    for i in range(width):
        norm[i] = _ZERO
    for p, q in np.ndindex(x.shape[0], x.shape[1]):
        for i in range(len(there)):
            x[p, q, i] = there[i, p, q]
    _add_inner(norm, flat, flat, width)
    for i in range(width):
        norm[i] = np.float32(math.sqrt(norm[i])) + least
    for p in range(len(flat)):
        for i in range(width):
            flat[p, i] /= norm[i]


@_inlined
def _one_round(x: Any, turned: Any, gram: Any, mix: Any, factors: Any, width: Any) -> None:
    """Turn X into `A X + (B X X^T + C (X X^T)^2) X`."""
    _by_transposed(x, gram, width)
    _by_transposed(gram, mix, width)
    for p, q in np.ndindex(mix.shape[0], mix.shape[1]):
        for i in range(width):
            mix[p, q, i] = factors[1] * gram[p, q, i] + factors[2] * mix[p, q, i]
    for p, q in np.ndindex(x.shape[0], x.shape[1]):
        for i in range(width):
            turned[q, p, i] = x[p, q, i]
            x[p, q, i] *= factors[0]
    for p, q in np.ndindex(x.shape[0], x.shape[1]):
        _add_inner(x[p, q], mix[p], turned[q], width)


def orthogonal_matrices(
    given: Any, out: Any, members: int, few: int, many: int, row: int, column: int, steps: int,
    least: Any, a: Any, b: Any, c: Any, width: int,
) -> None:  # fmt: skip
    """Write `NS(X)` of every member, as `methods.adam.orthogonal` says.

    Both are contiguous; of rows and columns, `row` and `column` bytes apart, the fewer come first.
    Then rounds, what is added to norms, A, B, C, and `MEMBERS`, which the compiler must not know.
    """
    shape, bytes_apart = (members, few, many), (4 * few * many, row, column)
    given = as_strided(carray(given, shape), shape, bytes_apart)
    out = as_strided(carray(out, shape), shape, bytes_apart)
    x, turned = (
        np.zeros((few, many, MEMBERS), np.float32),
        np.zeros((many, few, MEMBERS), np.float32),
    )
    gram, mix = np.zeros((few, few, MEMBERS), np.float32), np.zeros((few, few, MEMBERS), np.float32)
    norm = np.zeros(MEMBERS, np.float32)
    for first in range(0, members, MEMBERS):
        here = given[first : first + MEMBERS]
        _read_unit(here, x, norm, least, width)
        for _ in range(steps):
            _one_round(x, turned, gram, mix, (a, b, c), width)
        for p, q in np.ndindex(few, many):
            for i in range(len(here)):
                out[first + i, p, q] = x[p, q, i]


@cache
def orthogonal() -> Callable[..., None]:
    """Return what computes as `orthogonal_matrices` says, given all but its last argument."""
    arguments = (ADDRESS,) * 2 + (LENGTH,) * 6 + (NUMBER,) * 4 + (LENGTH,)
    compute = as_c_function(orthogonal_matrices, arguments)
    return lambda *given: compute(*given, MEMBERS)
