"""Sixteen numbers as one value, for numba: what lies in a wide register, or in a few narrower ones.

Loops over rows of a matrix of eight columns are over before a compiler has made them wide. What is
written with `Lanes` is wide from the start: `fma(x, every(2.0), y)` is one instruction.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import numba
import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic, models, overload, register_model

from ib_core.kernels.blocks import (
    _BITS_OF_ONE,
    _E0,
    _E1,
    _E2,
    _E3,
    _E4,
    _E5,
    _LOG2_E,
    _LOG_2,
    _LOWEST,
    _MANTISSA,
    _ONE,
    _REST,
    _WHOLE,
    _ZERO,
)

_LEAST, _TWO, _NEAR = np.float32(-88), np.float32(2), np.float32(0.625**2)
#: (tanh(x) - x) / x^3 as a polynomial in x^2 for |x| < .625, from Moshier's Cephes library.
_T0, _T1, _T2 = (np.float32(x) for x in (-5.70498872745e-3, 2.06390887954e-2, -5.37397155531e-2))
_T3, _T4 = (np.float32(x) for x in (1.33314422036e-1, -3.33332819422e-1))
#: Numbers in one value.
WIDTH = 16
_VECTOR, _HALF_VECTOR = ir.VectorType(ir.FloatType(), WIDTH), ir.VectorType(ir.FloatType(), 8)
_INTEGERS, _INDEX = ir.VectorType(ir.IntType(32), WIDTH), ir.IntType(64)


class Lanes(types.Type):
    """The type of such a value."""

    def __init__(self) -> None:
        super().__init__(name=f"Lanes({WIDTH})")


_LANES = Lanes()


@register_model(Lanes)
class _Model(models.PrimitiveModel):
    def __init__(self, manager: Any, kind: Any) -> None:
        super().__init__(manager, kind, _VECTOR)  # type: ignore[no-untyped-call]


Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]
#: Numba's decorators, whose own types know nothing of what is compiled.
inlined: Decorator = numba.njit(error_model="numpy", fastmath={"contract"}, forceinline=True)
_primitive: Decorator = intrinsic
_overload: Callable[..., Decorator] = overload


def _place(context: Any, builder: Any, kind: Any, array: Any, index: Any, of: Any = _VECTOR) -> Any:
    """Return where a flat array's numbers from an index on lie."""
    data = context.make_array(kind)(context, builder, array).data
    return builder.bitcast(builder.gep(data, [index], inbounds=True), of.as_pointer())


def _all(builder: Any, number: Any) -> Any:
    nothing, first = ir.Constant(_VECTOR, ir.Undefined), ir.Constant(ir.IntType(32), 0)
    one = builder.insert_element(nothing, number, first)
    return builder.shuffle_vector(one, nothing, ir.Constant(_INTEGERS, [0] * WIDTH))


def _picked(builder: Any, x: Any, y: Any, places: Sequence[int]) -> Any:
    """Return numbers of x and y, which are counted on from those of x."""
    kind = ir.VectorType(ir.IntType(32), len(places))
    return builder.shuffle_vector(x, y, ir.Constant(kind, list(places)))


@_primitive
def load(typing: Any, array: Any, index: Any) -> Any:
    """Read sixteen numbers of a flat array from an index on."""

    def generate(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        return builder.load(_place(context, builder, signature.args[0], *given), align=4)

    return _LANES(array, types.intp), generate


@_primitive
def store(typing: Any, array: Any, index: Any, x: Any) -> Any:
    """Write them."""

    def generate(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        place = _place(context, builder, signature.args[0], *given[:2])
        builder.store(given[2], place, align=4)
        return context.get_dummy_value()

    return types.void(array, types.intp, _LANES), generate


@_primitive
def every(typing: Any, number: Any) -> Any:
    """Return one number sixteen times."""
    return _LANES(types.float32), lambda context, builder, _, given: _all(builder, *given)


@_primitive
def fma(typing: Any, x: Any, y: Any, z: Any) -> Any:
    """Return `x y + z`, rounded once where the processor can."""

    def generate(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        kind, name = ir.FunctionType(_VECTOR, [_VECTOR] * 3), f"llvm.fmuladd.v{WIDTH}f32"
        found = cgutils.get_or_insert_function(builder.module, kind, name)  # type: ignore[no-untyped-call]
        return builder.call(found, given)

    return _LANES(_LANES, _LANES, _LANES), generate


@_primitive
def larger(typing: Any, x: Any, y: Any) -> Any:
    """Return x where it is above y, else y."""

    def generate(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        return builder.select(builder.fcmp_ordered(">", *given), *given)

    return _LANES(_LANES, _LANES), generate


@_primitive
def below(typing: Any, x: Any, limit: Any, y: Any, z: Any) -> Any:
    """Return y where x is below the limit, else z."""

    def generate(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        x, limit, y, z = given
        return builder.select(builder.fcmp_ordered("<", x, limit), y, z)

    return _LANES(_LANES, _LANES, _LANES, _LANES), generate


@_primitive
def _power(typing: Any, shifted: Any) -> Any:
    """Return two to the whole number to which `_WHOLE` has been added."""

    def generate(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        bits, one = (ir.Constant(_INTEGERS, [int(x)] * WIDTH) for x in (_MANTISSA, _BITS_OF_ONE))
        moved = builder.shl(builder.bitcast(given[0], _INTEGERS), bits)
        return builder.bitcast(builder.add(moved, one), _VECTOR)

    return _LANES(_LANES), generate


def _binary(operation: Callable[[Any, Any], Any], name: str) -> None:
    @_primitive
    def combine(typing: Any, x: Any, y: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, given: Any) -> Any:
            return getattr(builder, name)(*given)

        return _LANES(_LANES, _LANES), generate

    @_overload(operation, strict=False)
    def _(x: Any, y: Any) -> Any:
        both = isinstance(x, Lanes) and isinstance(y, Lanes)
        return (lambda x, y: combine(x, y)) if both else None


for _operation, _name in (
    (operator.add, "fadd"),
    (operator.sub, "fsub"),
    (operator.mul, "fmul"),
    (operator.truediv, "fdiv"),
):
    _binary(_operation, _name)


@inlined
def exp(x: Any) -> Any:
    """Return `blocks._exp` of numbers that are not far above 0."""
    shifted = fma(x, every(_LOG2_E), every(_WHOLE))
    n = shifted - every(_WHOLE)
    r = fma(n, every(-_REST), fma(n, every(-_LOG_2), x))
    high = fma(fma(fma(every(_E0), r, every(_E1)), r, every(_E2)), r, every(_E3))
    tail = fma(fma(high, r, every(_E4)), r, every(_E5))
    power = (fma(tail, r * r, r) + every(_ONE)) * _power(shifted)
    return below(x, every(_LOWEST), every(_ZERO), power)


@inlined
def sigmoid(x: Any) -> Any:
    """Return `1 / (1 + exp(-x))`."""
    bounded = larger(every(_LEAST), x)  # whose power is finite; a NaN stays one
    return every(_ONE) / (every(_ONE) + exp(every(_ZERO) - bounded))


@inlined
def tanh(x: Any) -> Any:
    """Return the hyperbolic tangent to two units in the last place."""
    square = x * x
    tail = fma(fma(fma(every(_T0), square, every(_T1)), square, every(_T2)), square, every(_T3))
    near = fma(fma(tail, square, every(_T4)) * square, x, x)
    far = fma(every(_TWO), sigmoid(x + x), every(-_ONE))
    return below(square, every(_NEAR), near, far)


# --- Transposed in registers


def _turned(builder: Any, rows: list[Any], sides: Sequence[int]) -> list[Any]:
    """Swap each of these bits of a row's number with that bit of a number's place in it."""
    for bit in sides:
        for r in range(len(rows)):
            if not r & bit:
                x, y = rows[r], rows[r | bit]
                low = [WIDTH + (p ^ bit) if p & bit else p for p in range(WIDTH)]
                high = [WIDTH + p if p & bit else p | bit for p in range(WIDTH)]
                rows[r], rows[r | bit] = _picked(builder, x, y, low), _picked(builder, x, y, high)
    return rows


def _after(builder: Any, index: Any, step: Any, count: int) -> Any:
    return builder.add(index, builder.mul(step, ir.Constant(_INDEX, count)))


@_primitive
def turn_square(typing: Any, array: Any, index: Any) -> Any:
    """Transpose sixteen rows of sixteen numbers where they lie."""

    def generate(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        step, array = ir.Constant(_INDEX, WIDTH), signature.args[0]
        starts = [_after(builder, given[1], step, r) for r in range(WIDTH)]
        places = [_place(context, builder, array, given[0], start) for start in starts]
        rows = [builder.load(place, align=4) for place in places]
        for place, row in zip(places, _turned(builder, rows, (1, 2, 4, 8)), strict=True):
            builder.store(row, place, align=4)
        return context.get_dummy_value()

    return types.void(array, types.intp), generate


def _pairs(context: Any, builder: Any, array: Any, given: Any, step: Any) -> list[list[Any]]:
    """Return where eight numbers of rows r and r + 8 lie."""
    return [
        [
            _place(context, builder, array, *given, _HALF_VECTOR)
            for given in ((given[0], _after(builder, given[1], step, n)) for n in (r, r + 8))
        ]
        for r in range(8)
    ]


@_primitive
def read_turned(
    typing: Any, array: Any, index: Any, step: Any, turned: Any, place: Any, apart: Any
) -> Any:
    """Copy eight numbers of sixteen rows, `step` apart, to eight rows of sixteen, `apart` apart."""

    def generate(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        pairs = _pairs(context, builder, signature.args[0], given[:2], given[2])
        halves = [[builder.load(place, align=4) for place in pair] for pair in pairs]
        rows = [_picked(builder, x, y, range(WIDTH)) for x, y in halves]
        for r, row in enumerate(_turned(builder, rows, (1, 2, 4))):
            start = _after(builder, given[4], given[5], r)
            place = _place(context, builder, signature.args[3], given[3], start)
            builder.store(row, place, align=4)
        return context.get_dummy_value()

    index = types.intp
    return types.void(array, index, index, turned, index, index), generate


@_primitive
def write_turned(
    typing: Any, array: Any, index: Any, step: Any, turned: Any, place: Any, apart: Any
) -> Any:
    """Copy them back."""

    def generate(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        starts = [_after(builder, given[4], given[5], r) for r in range(8)]
        places = [_place(context, builder, signature.args[3], given[3], at) for at in starts]
        rows = _turned(builder, [builder.load(at, align=4) for at in places], (1, 2, 4))
        pairs = _pairs(context, builder, signature.args[0], given[:2], given[2])
        for row, pair in zip(rows, pairs, strict=True):
            for place, first in zip(pair, (0, 8), strict=True):
                builder.store(_picked(builder, row, row, range(first, first + 8)), place, align=4)
        return context.get_dummy_value()

    index = types.intp
    return types.void(array, index, index, turned, index, index), generate
