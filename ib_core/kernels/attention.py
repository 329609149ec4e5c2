"""Attention of many small heads, for numba to compile: one pass over memory forward and one back.

A head's queries share the processor's wide registers, sixteen at a time, and all that is made of
them stays in its nearest cache. Scores lie with the keys first, so that a softmax over keys is
element by element. Going back, `P` and `dS` are made again of the logarithms of the softmax's sums,
and turned sixteen by sixteen for what keys and values get.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from numba.np.numpy_support import carray

from ib_core.kernels import ADDRESS, INTEGERS, LENGTH, NUMBER, as_c_function
from ib_core.kernels.blocks import _log
from ib_core.kernels.vectors import (
    WIDTH,
    every,
    exp,
    fma,
    inlined,
    larger,
    load,
    read_turned,
    store,
    turn_square,
    write_turned,
)

#: Queries at most, whose turned rows lie so far apart; numbers of a head that are taken at once.
MOST, EIGHT = 128, 8
_NONE, _ZERO, _ONE = np.float32(-math.inf), np.float32(0), np.float32(1)
#: As long as any array may be: where an array begins is all that is known of it.
_ENDLESS = 2**40


@inlined
def _eight(x: Any, place: Any) -> Any:
    """Return sixteen numbers each of eight turned rows."""
    return (
        load(x, place),
        load(x, place + MOST),
        load(x, place + 2 * MOST),
        load(x, place + 3 * MOST),
        load(x, place + 4 * MOST),
        load(x, place + 5 * MOST),
        load(x, place + 6 * MOST),
        load(x, place + 7 * MOST),
    )


@inlined
def _put_eight(x: Any, place: Any, rows: Any) -> None:
    store(x, place, rows[0])
    store(x, place + MOST, rows[1])
    store(x, place + 2 * MOST, rows[2])
    store(x, place + 3 * MOST, rows[3])
    store(x, place + 4 * MOST, rows[4])
    store(x, place + 5 * MOST, rows[5])
    store(x, place + 6 * MOST, rows[6])
    store(x, place + 7 * MOST, rows[7])


@inlined
def _no_eight() -> Any:
    x = every(_ZERO)
    return (x, x, x, x, x, x, x, x)


@inlined
def _times(rows: Any, x: Any) -> Any:
    return (
        rows[0] * x,
        rows[1] * x,
        rows[2] * x,
        rows[3] * x,
        rows[4] * x,
        rows[5] * x,
        rows[6] * x,
        rows[7] * x,
    )


@inlined
def _inner(numbers: Any, at: Any, rows: Any) -> Any:
    """Return the sum of eight rows, each times its number."""
    total = fma(rows[1], every(numbers[at + 1]), rows[0] * every(numbers[at]))
    total = fma(rows[2], every(numbers[at + 2]), total)
    total = fma(rows[3], every(numbers[at + 3]), total)
    total = fma(rows[4], every(numbers[at + 4]), total)
    total = fma(rows[5], every(numbers[at + 5]), total)
    total = fma(rows[6], every(numbers[at + 6]), total)
    return fma(rows[7], every(numbers[at + 7]), total)


@inlined
def _outer(rows: Any, numbers: Any, at: Any, x: Any) -> Any:
    """Return eight rows with x times each one's number added."""
    return (
        fma(x, every(numbers[at]), rows[0]),
        fma(x, every(numbers[at + 1]), rows[1]),
        fma(x, every(numbers[at + 2]), rows[2]),
        fma(x, every(numbers[at + 3]), rows[3]),
        fma(x, every(numbers[at + 4]), rows[4]),
        fma(x, every(numbers[at + 5]), rows[5]),
        fma(x, every(numbers[at + 6]), rows[6]),
        fma(x, every(numbers[at + 7]), rows[7]),
    )


@inlined
def _turn(there: Any, at: Any, step: Any, time: Any, depth: Any, turned: Any) -> None:
    """Copy a head's rows, the numbers first."""
    for d in range(0, depth, EIGHT):
        for i in range(0, time - WIDTH + 1, WIDTH):
            read_turned(there, at + i * step + d, step, turned, d * MOST + i, MOST)
        for i in range(time // WIDTH * WIDTH, time):
            for c in range(EIGHT):
                turned[(d + c) * MOST + i] = there[at + i * step + d + c]


@inlined
def _turn_back(turned: Any, there: Any, at: Any, step: Any, time: Any, depth: Any) -> None:
    for d in range(0, depth, EIGHT):
        for i in range(0, time - WIDTH + 1, WIDTH):
            write_turned(there, at + i * step + d, step, turned, d * MOST + i, MOST)
        for i in range(time // WIDTH * WIDTH, time):
            for c in range(EIGHT):
                there[at + i * step + d + c] = turned[(d + c) * MOST + i]


@inlined
def _score(
    numbers: Any, at: Any, step: Any, turned: Any, i: Any, depth: Any, out: Any, stop: Any
) -> None:
    """Write the inner products of sixteen turned rows with each of the others."""
    rows = _eight(turned, i)
    for j in range(stop):
        store(out, j * WIDTH, _inner(numbers, at + j * step, rows))
    for d in range(EIGHT, depth, EIGHT):
        rows = _eight(turned, d * MOST + i)
        for j in range(stop):
            more = _inner(numbers, at + j * step + d, rows)
            store(out, j * WIDTH, load(out, j * WIDTH) + more)


@inlined
def _hide(scores: Any, hidden: Any, i: Any, stop: Any, causal: Any) -> None:
    """Keep sixteen queries from the keys after them."""
    for j in range(i if causal else stop, stop):
        store(scores, j * WIDTH, load(scores, j * WIDTH) + load(hidden, (j - i) * WIDTH))


@inlined
def _powers(scores: Any, stop: Any, i: Any, tops: Any, totals: Any) -> None:
    """Turn scores into powers; write down the largest scores, and the powers' sums."""
    top, total = load(scores, 0), every(_ZERO)
    for j in range(1, stop):
        top = larger(top, load(scores, j * WIDTH))
    for j in range(stop):
        power = exp(load(scores, j * WIDTH) - top)
        total = total + power
        store(scores, j * WIDTH, power)
    store(tops, i, top)
    store(totals, i, total)


@inlined
def _add_up(
    numbers: Any, at: Any, step: Any, weights: Any, stop: Any, factor: Any, out: Any, i: Any,
    depth: Any,
) -> None:  # fmt: skip
    """Write what sixteen queries get of all keys' numbers, by their weights and one factor."""
    for d in range(0, depth, EIGHT):
        rows = _no_eight()
        for j in range(stop):
            rows = _outer(rows, numbers, at + j * step + d, load(weights, j * WIDTH))
        _put_eight(out, d * MOST + i, _times(rows, factor))


@inlined
def _mean(grad: Any, out: Any, i: Any, depth: Any) -> Any:
    """Return sixteen queries' inner products of outputs and their gradients."""
    mean = every(_ZERO)
    for d in range(depth):
        mean = fma(load(grad, d * MOST + i), load(out, d * MOST + i), mean)
    return mean


@inlined
def _slopes(p: Any, ds: Any, stop: Any, top: Any, mean: Any, scale: Any) -> None:
    """Turn scores into shares, and the gradients by shares into those by products of q and k."""
    for j in range(stop):
        share = exp(load(p, j * WIDTH) - top)
        store(p, j * WIDTH, share)
        store(ds, j * WIDTH, share * (load(ds, j * WIDTH) - mean) * every(scale))


@inlined
def _hand_out(
    numbers: Any, at: Any, step: Any, weights: Any, stop: Any, count: Any, out: Any, depth: Any
) -> None:
    """Add to all keys what they get of some queries' numbers; the weights are turned around."""
    for j in range(0, stop, WIDTH):
        turn_square(weights, j * WIDTH)
        for d in range(0, depth, EIGHT):
            rows = _eight(out, d * MOST + j)
            for c in range(count):
                rows = _outer(rows, numbers, at + c * step + d, load(weights, (j + c) * WIDTH))
            _put_eight(out, d * MOST + j, rows)


@inlined
def _after(hidden: Any) -> None:
    """Write what is added to scores of sixteen queries and their own keys."""
    for j in range(WIDTH):
        for i in range(j):
            hidden[j * WIDTH + i] = _NONE


def _forward(
    q: Any, k: Any, v: Any, out: Any, sums: Any, places: Any,
    groups: int, heads: int, time: int, depth: int, causal: int, scale: Any,
) -> None:  # fmt: skip
    q, k, v = carray(q, (_ENDLESS,)), carray(k, (_ENDLESS,)), carray(v, (_ENDLESS,))
    out, sums = carray(out, (_ENDLESS,)), carray(sums, (groups, heads, time))
    places = carray(places, (4, 3))
    turned, summed = np.zeros(depth * MOST, np.float32), np.zeros(depth * MOST, np.float32)
    s, hidden = np.zeros(MOST * WIDTH, np.float32), np.zeros(WIDTH * WIDTH, np.float32)
    tops, totals = np.zeros(MOST, np.float32), np.zeros(MOST, np.float32)
    _after(hidden)
    k_step, v_step = places[1, 2], places[2, 2]
    for group in range(groups):
        for head in range(heads):
            at_q, at_k = (
                places[0, 0] * group + places[0, 1] * head,
                places[1, 0] * group + places[1, 1] * head,
            )
            at_v, at_o = (
                places[2, 0] * group + places[2, 1] * head,
                places[3, 0] * group + places[3, 1] * head,
            )
            _turn(q, at_q, places[0, 2], time, depth, turned)
            for x in range(len(turned)):
                turned[x] *= scale
            for i in range(0, time, WIDTH):
                stop = min(time, i + WIDTH) if causal else time
                _score(k, at_k, k_step, turned, i, depth, s, stop)
                _hide(s, hidden, i, stop, causal)
                _powers(s, stop, i, tops, totals)
                share = every(_ONE) / load(totals, i)
                _add_up(v, at_v, v_step, s, stop, share, summed, i, depth)
            for i in range(time):
                sums[group, head, i] = _log(totals[i]) + tops[i]
            _turn_back(summed, out, at_o, places[3, 2], time, depth)


def _backward(
    q: Any, k: Any, v: Any, out: Any, grad: Any, sums: Any, dq: Any, dk: Any, dv: Any, places: Any,
    groups: int, heads: int, time: int, depth: int, causal: int, scale: Any,
) -> None:  # fmt: skip
    q, k, v = carray(q, (_ENDLESS,)), carray(k, (_ENDLESS,)), carray(v, (_ENDLESS,))
    dq, dk, dv = carray(dq, (_ENDLESS,)), carray(dk, (_ENDLESS,)), carray(dv, (_ENDLESS,))
    out, grad = carray(out, (_ENDLESS,)), carray(grad, (_ENDLESS,))
    sums, places = carray(sums, (groups, heads, time)), carray(places, (8, 3))
    turned_q, turned_g = np.zeros(depth * MOST, np.float32), np.zeros(depth * MOST, np.float32)
    turned_o, by_q = np.zeros(depth * MOST, np.float32), np.zeros(depth * MOST, np.float32)
    by_k, by_v = np.zeros(depth * MOST, np.float32), np.zeros(depth * MOST, np.float32)
    p, ds = np.zeros(MOST * WIDTH, np.float32), np.zeros(MOST * WIDTH, np.float32)
    hidden, tops = np.zeros(WIDTH * WIDTH, np.float32), np.zeros(MOST, np.float32)
    _after(hidden)
    q_step, k_step, v_step, g_step = places[0, 2], places[1, 2], places[2, 2], places[4, 2]
    for group in range(groups):
        for head in range(heads):
            at_q, at_k = (
                places[0, 0] * group + places[0, 1] * head,
                places[1, 0] * group + places[1, 1] * head,
            )
            at_v, at_g = (
                places[2, 0] * group + places[2, 1] * head,
                places[4, 0] * group + places[4, 1] * head,
            )
            at_o = places[3, 0] * group + places[3, 1] * head
            _turn(q, at_q, q_step, time, depth, turned_q)
            _turn(out, at_o, places[3, 2], time, depth, turned_o)
            _turn(grad, at_g, g_step, time, depth, turned_g)
            for x in range(len(turned_q)):
                turned_q[x] *= scale
                by_k[x] = by_v[x] = _ZERO
            for i in range(time):
                tops[i] = sums[group, head, i]
            for i in range(0, time, WIDTH):
                stop = min(time, i + WIDTH) if causal else time
                _score(k, at_k, k_step, turned_q, i, depth, p, stop)
                _score(v, at_v, v_step, turned_g, i, depth, ds, stop)
                _hide(p, hidden, i, stop, causal)
                _slopes(p, ds, stop, load(tops, i), _mean(turned_g, turned_o, i, depth), scale)
                _add_up(k, at_k, k_step, ds, stop, every(_ONE), by_q, i, depth)
                count, from_g, from_q = min(WIDTH, time - i), at_g + i * g_step, at_q + i * q_step
                _hand_out(grad, from_g, g_step, p, stop, count, by_v, depth)
                _hand_out(q, from_q, q_step, ds, stop, count, by_k, depth)
            _turn_back(
                by_q, dq, places[5, 0] * group + places[5, 1] * head, places[5, 2], time, depth
            )
            _turn_back(
                by_k, dk, places[6, 0] * group + places[6, 1] * head, places[6, 2], time, depth
            )
            _turn_back(
                by_v, dv, places[7, 0] * group + places[7, 1] * head, places[7, 2], time, depth
            )


@cache
def loops() -> tuple[Callable[..., None], Callable[..., None]]:
    """Return `softmax(scale q k^T) v` of every head, and its way back.

    The first takes the addresses of q, k, v, of where outputs and the logarithms of the softmax's
    sums [groups, heads, time] go, and of strides (groups, heads and time of q, k, v and outputs, in
    numbers); then groups, heads, time up to `MOST`, depth, a multiple of `EIGHT` whose numbers lie
    side by side, whether it is causal, and the scale. The second takes q, k, v, outputs, their
    gradient, the logarithms, where the gradients by q, k and v go, strides of all but the
    logarithms, and the rest.
    """
    rest = (INTEGERS,) + (LENGTH,) * 5 + (NUMBER,)
    return (
        as_c_function(_forward, (ADDRESS,) * 5 + rest),
        as_c_function(_backward, (ADDRESS,) * 9 + rest),
    )
