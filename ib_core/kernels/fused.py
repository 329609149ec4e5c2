"""The rules and the softmax output solve as Triton kernels: one launch a layer on a GPU.

`updates/` explains what is computed, under the same names; `loops.py` holds the same in numba.
Unlike there, roots and logarithms are taken by the GPU's own units instead of from a float's bits.
This module needs triton, which comes with torch's builds for CUDA; `ib_core.kernels` imports it
where there is one and tensors lie on a GPU.
"""

import math
from functools import cache
from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from ib_core.kernels import CUBICS, SCALE, SHARE_OF_M, SHARE_OF_U
from ib_core.kernels.launched import CLOSED

_LIMITS = torch.finfo(torch.float32)
_LARGEST, _TINY_HALF = tl.constexpr(_LIMITS.max), tl.constexpr(_LIMITS.tiny**0.5)
_BOUND, _MOST = tl.constexpr(_LIMITS.max ** (1 / 3) / 8), tl.constexpr(_LIMITS.max / 64)
_LEAST = tl.constexpr(_LIMITS.tiny**0.8)
_FOLD, _AWAY = tl.constexpr(2 + 16 * _LIMITS.eps), tl.constexpr(0.5 - 64 * _LIMITS.eps)
_SCALE, _SHARE_M, _SHARE_U = (tl.constexpr(x) for x in (SCALE, SHARE_OF_M, SHARE_OF_U))
_QUARTER_OF_LARGEST = tl.constexpr(_LIMITS.max / 4)
_EIGHTH_OF_LARGEST = tl.constexpr(_LIMITS.max / 8)
_HALF_UP = tl.constexpr(0.5 + 4 * _LIMITS.eps)
_FAR, _SHRUNK, _GROWN = tl.constexpr(2.0**60), tl.constexpr(2.0**-24), tl.constexpr(2.0**24)
_SHALLOW = tl.constexpr(0.01)
_THIRD, _EPS = tl.constexpr(1 / 3), tl.constexpr(_LIMITS.eps)

#: Nodes of one program.
BLOCK = 1024
#: Rows and inputs, rows and most numbers of one program that sums along rows.
ROWS, INPUTS, NUMBERS = 16, 64, 1024
#: What a kernel is told to compute; a cubic comes with its table.
CUBIC = len(CLOSED)
_COLUMNS = tl.constexpr(9)


def solve(rule: str, s: Tensor, b: Tensor, k: Tensor, lengths: tuple[int, int, int, int]) -> Tensor:
    """Return the alphas of all nodes, as `launched.solve` says."""
    out = torch.empty_like(s)
    _, nodes, rows, rows_of_k = lengths
    table = _table(rule, s.device)
    code = CLOSED.index(rule) if rule in CLOSED else CUBIC
    pieces = 0 if table is None else len(table)
    _solve_nodes[(triton.cdiv(s.numel(), BLOCK),)](
        s,
        b,
        k,
        out,
        s if table is None else table,
        s.numel(),
        nodes,
        rows,
        rows_of_k,
        RULE=code,
        PIECES=pieces,
        BLOCK=BLOCK,
    )
    return out


@cache
def _table(rule: str, device: torch.device) -> Tensor | None:
    """Return a piecewise cubic's table on a device; None for rules in closed form."""
    if rule in CLOSED:
        return None
    return torch.tensor(CUBICS[rule], dtype=torch.float32, device=device)


@triton.jit
def _solve_nodes(
    s_at: Any,
    b_at: Any,
    k_at: Any,
    out_at: Any,
    table: Any,
    count: Any,
    nodes: Any,
    rows: Any,
    rows_of_k: Any,
    RULE: tl.constexpr,
    PIECES: tl.constexpr,
    BLOCK: tl.constexpr,
) -> None:
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = at < count
    row = at % rows
    block = at // rows // nodes
    k = tl.load(k_at + block * rows_of_k + tl.where(rows_of_k > 1, row, 0), mask=inside, other=1.0)
    s = tl.load(s_at + at, mask=inside, other=0.0)
    b = tl.load(b_at + at, mask=inside, other=0.0)
    k = tl.where(k < _LARGEST, k, tl.where(k == k, _LARGEST, k))
    if RULE == 0:
        alpha = _relu(s, b, k)
    elif RULE == 1:
        alpha = _leaky_relu(s, b, k)
    elif RULE == 2:
        alpha = _arctan(s, b, k)
    elif RULE == 3:
        alpha = _hardtanh(s, b, k)
    elif RULE == 4:
        alpha = _smoothstep(s, b, k)
    else:
        alpha = _cubic(s, b, k, table, PIECES)
    tl.store(out_at + at, tl.where(k == k, alpha, k), mask=inside)


@triton.jit
def _relu(s: Any, b: Any, k: Any) -> Any:
    x = tl.maximum(s, 0.0) * tl.minimum(1.0 / k, _LARGEST)
    # Also for NaN, which then comes through b or through s.
    x = tl.where(s == s, tl.where(x < b, x, b), s)
    return tl.where(s - 0.5 * k * x <= 0, 0.0, x)


@triton.jit
def _leaky_relu(s: Any, b: Any, k: Any) -> Any:
    shallow = b * _SHALLOW
    x = tl.minimum(tl.maximum(s * tl.minimum(1.0 / k, _LARGEST), shallow), b)
    x = tl.where(s - k * x * ((1 + _SHALLOW) / 2) > 0, x, shallow)
    return x + (s + b) * 0.0  # comparisons drop a NaN; this brings it back


@triton.jit
def _arctan(s: Any, b: Any, k: Any) -> Any:
    c = tl.minimum(tl.maximum(s, -_BOUND), _BOUND)
    u = 3.0 - c * c
    reach = tl.minimum(tl.maximum(b * k * -27.0, -_MOST), _MOST)
    w = reach + 2.0 * c * (12.0 - u)
    m_squared = tl.maximum(-u, _LEAST)
    m = tl.sqrt(m_squared)
    m_cubed = m_squared * m
    fold = tl.where(c < 0, -_FOLD * m_cubed, _FOLD * m_cubed)
    branch = tl.where(w + fold < 0, -1.0, 1.0)
    half = tl.maximum(m_cubed + branch * w * _AWAY, _TINY_HALF)
    t = tl.exp2(tl.log2(half) * _THIRD)
    below = t + _SHARE_U * tl.maximum(u, 0.0) / t + _SHARE_M * m
    v = branch * (m + _SCALE * tl.sqrt(half / below))
    # The cubic is homogeneous: its largest problems, whose squares would overflow, are shrunk.
    shrunk = tl.abs(w) + m_cubed > _FAR
    unit = tl.where(shrunk, _SHRUNK, 1.0)
    v, u, w = v * unit, u * (unit * unit), w * (unit * unit * unit)
    for _ in tl.static_range(2):
        square = v * v
        slope = u + square
        value = v * (square + 3.0 * u) - w
        v = v - value * slope / (3.0 * slope * slope - v * value)
    q = s + _THIRD * (v * tl.where(shrunk, _GROWN, 1.0) - 2.0 * c)
    return b / (1.0 + q * q)


@triton.jit
def _hardtanh(s: Any, b: Any, k: Any) -> Any:
    sign, size = tl.where(b < 0, -1.0, 1.0), tl.abs(b)
    c = s * sign
    x = tl.minimum(tl.maximum((c + 1.0) * tl.minimum(1.0 / k, _LARGEST), 0.0), size)
    gained = tl.where(size > 0, 1.0 - 0.5 * x / size, 1.0) * x * k
    return tl.where(gained - c + 1.0 > 0, x * sign, 0.0) + (s + b) * 0.0


@triton.jit
def _smoothstep(s: Any, b: Any, k: Any) -> Any:
    reach = tl.minimum(tl.abs(b) * k, _EIGHTH_OF_LARGEST)
    damping = 1.0 / (1.0 + 3.0 * reach)
    a = (tl.where(b < 0, -s, s) + 1.0) * damping
    root = tl.maximum(1.0 + (2.0 * damping - 2.0) * a, 0.0)
    u = tl.minimum(tl.maximum(2.0 * a / (1.0 + tl.sqrt(root)), 0.0), 2.0)
    gate = 1.0 + u * (1.0 - 2.25 * reach * u)
    return tl.where(gate > 0, 1.5 * u * (2.0 - u) * b, 0.0) + (s + b) * 0.0


@triton.jit
def _cubic(s: Any, b: Any, k: Any, table: Any, PIECES: tl.constexpr) -> Any:
    beta = tl.minimum(tl.maximum(b * k, -_QUARTER_OF_LARGEST), _QUARTER_OF_LARGEST)
    beta = tl.where(b * k == b * k, beta, b * k)
    unit = 0.25 / (tl.abs(beta) * 0.25 + tl.abs(s) * 0.25 + 0.25)
    c, beta = s * unit, beta * unit
    nothing = (c + beta) * 0.0
    phi_best, step_best, slope_best = nothing + _QUARTER_OF_LARGEST, nothing, nothing
    falls = nothing > 1.0
    for j in tl.static_range(PIECES):
        x0 = tl.load(table + j * _COLUMNS)
        y = tl.load(table + j * _COLUMNS + 1)
        m = tl.load(table + j * _COLUMNS + 2)
        e = tl.load(table + j * _COLUMNS + 3)
        f = tl.load(table + j * _COLUMNS + 4)
        low = tl.load(table + j * _COLUMNS + 5)
        high = tl.load(table + j * _COLUMNS + 6)
        x = tl.load(table + j * _COLUMNS + 7)
        slope_at_end = tl.load(table + j * _COLUMNS + 8)
        if j == 0 or j == PIECES - 1:
            descent = c - unit * x - beta * m
            if j == 0:
                falls = descent > 0
                valid = descent <= 0
            else:
                valid = falls
            step = beta * m
            slope = m + nothing
            phi = (unit * y + m * descent) * beta + _HALF_UP * step * step
        else:
            falls_at_end = c - unit * x - beta * slope_at_end > 0
            between = falls & (falls_at_end == 0)
            falls = falls_at_end
            g = c - unit * x0 - beta * m
            p = tl.maximum(unit + 2.0 * e * beta, 0.0)
            exact = g / (p + tl.sqrt(p * p + 12.0 * f * beta * g))
            half_u = tl.where(exact == exact, tl.minimum(tl.maximum(exact, low), high), 0.0)
            valid = between | (exact == half_u)
            step = c - unit * (x0 + 2.0 * half_u)
            slope = m + half_u * (4.0 * e + 12.0 * f * half_u)
            sigma = y + half_u * (2.0 * m + half_u * (4.0 * e + 8.0 * f * half_u))
            phi = beta * unit * sigma + _HALF_UP * step * step
        better = valid & (phi < phi_best)
        phi_best = tl.where(better, phi, phi_best)
        step_best = tl.where(better, step, step_best)
        slope_best = tl.where(better, slope, slope_best)
    far = tl.minimum(1.0 / k, _LARGEST)
    return tl.where(tl.abs(beta) >= unit, step_best / unit * far, slope_best * b)


def travels(z: Tensor, rate: Tensor, scale: float, bias: bool) -> Tensor:
    """Return `rate * scale * (|z|^2 + bias)`, [members, rows], as `launched.travels` says."""
    (members, rows, inputs), out = z.shape, z.new_empty(z.shape[:2])
    _travel_rows[(triton.cdiv(members * rows, ROWS),)](
        z,
        rate.contiguous(),
        out,
        members * rows,
        rows,
        inputs,
        *z.stride(),
        scale,
        1.0 if bias else 0.0,
        ROWS=ROWS,
        INPUTS=INPUTS,
    )
    return out


@triton.jit
def _travel_rows(
    z_at: Any,
    rate_at: Any,
    out_at: Any,
    count: Any,
    rows: Any,
    inputs: Any,
    per_member: Any,
    per_row: Any,
    per_input: Any,
    scale: Any,
    bias: Any,
    ROWS: tl.constexpr,
    INPUTS: tl.constexpr,
) -> None:
    at = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    inside = at < count
    member = at // rows
    begin = z_at + member * per_member + (at % rows) * per_row
    total = tl.zeros([ROWS], tl.float32)
    for first in range(0, inputs, INPUTS):
        column = first + tl.arange(0, INPUTS).to(tl.int64)
        read = inside[:, None] & (column < inputs)[None, :]
        z = tl.load(begin[:, None] + (column * per_input)[None, :], mask=read, other=0.0)
        total += tl.sum(z * z, 1)
    rate = tl.load(rate_at + member, mask=inside, other=0.0)
    tl.store(out_at + at, rate * (scale * (total + bias)), mask=inside)


def solve_cross_entropy(
    s: Tensor, b: Tensor, rho: Tensor, divisor: float, steps: int, shrink: Tensor | None = None
) -> Tensor:
    """Return the alphas under softmax cross-entropy, [members, rows, classes], in one launch.

    `updates.output_layer` says what `_softmax_excess` does; here the targets are recovered from
    the gradient on the way.

    Args:
        s: Logits, [members, rows, classes].
        b: Gradients, likewise.
        rho: [members, rows], contiguous.
        divisor: What the loss divides every row's own loss by.
        steps: Newton steps.
        shrink: 1 + lr*mu, [members]: the logits are divided by it once the targets are known.
    """
    out = torch.empty_like(s)
    members, rows, classes = s.shape
    width = triton.next_power_of_2(classes)
    each = max(1, min(ROWS, NUMBERS // width))
    _solve_rows[(triton.cdiv(members * rows, each),)](
        s,
        b,
        rho,
        s if shrink is None else shrink.contiguous(),
        out,
        members * rows,
        rows,
        classes,
        *s.stride(),
        *b.stride(),
        *out.stride(),
        divisor,
        math.log(classes),
        RIDGE=shrink is not None,
        STEPS=steps,
        ROWS=each,
        CLASSES=width,
    )
    return out


@triton.jit
def _solve_rows(
    s_at: Any,
    b_at: Any,
    rho_at: Any,
    shrink_at: Any,
    out_at: Any,
    count: Any,
    rows: Any,
    classes: Any,
    s_member: Any,
    s_row: Any,
    s_class: Any,
    b_member: Any,
    b_row: Any,
    b_class: Any,
    out_member: Any,
    out_row: Any,
    out_class: Any,
    divisor: Any,
    log_classes: Any,
    RIDGE: tl.constexpr,
    STEPS: tl.constexpr,
    ROWS: tl.constexpr,
    CLASSES: tl.constexpr,
) -> None:
    at = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    member, row = (at // rows)[:, None], (at % rows)[:, None]
    column = tl.arange(0, CLASSES).to(tl.int64)[None, :]
    there = (at < count)[:, None]
    inside = there & (column < classes)
    c = tl.load(s_at + member * s_member + row * s_row + column * s_class, mask=inside, other=0.0)
    b = tl.load(b_at + member * b_member + row * b_row + column * b_class, mask=inside, other=0.0)
    given = tl.load(rho_at + at[:, None], mask=there, other=1.0)
    rho = tl.minimum(tl.maximum(given, _EPS), _LARGEST / 1e4)
    log_rho = tl.log(rho)
    c = c - tl.max(tl.where(inside, c, -_LARGEST), 1)[:, None]
    likely = tl.where(inside, tl.exp(c), 0.0)
    y = tl.where(inside, likely / tl.sum(likely, 1)[:, None] - b * divisor, 0.0)
    if RIDGE:
        c = c / tl.load(shrink_at + member, mask=there, other=1.0)
    rho_y = rho * y
    missing = (1.0 - tl.sum(y.to(tl.float64), 1)[:, None]).to(tl.float32)
    mean_q = tl.sum(tl.where(inside, c, 0.0), 1)[:, None] / classes - rho * missing / classes
    floor = tl.where(inside, c - rho + rho_y, -_LARGEST)
    top = tl.max(floor, 1)[:, None]
    lower = tl.log(tl.sum(tl.where(inside, tl.exp(floor - top), 0.0), 1)[:, None]) + top
    t = tl.maximum(lower, mean_q + log_classes)
    log_w = c + rho_y + (log_rho - t)
    log_p = tl.minimum(log_w, tl.log(tl.maximum(log_w, 1.0))) - log_rho
    for step in tl.static_range(STEPS):
        p = tl.where(inside, tl.exp(log_p), 0.0)
        w = p * rho
        damping = 1.0 / (w + 1.0)
        pull = c - t - log_p
        x = (pull + rho_y - w) * damping
        few = tl.sum(p + p * x, 1)[:, None] - 1.0
        many = tl.sum(tl.where(inside, pull - x, 0.0), 1)[:, None] / rho - missing
        t_step = tl.where(rho < 1.0, few, many) / tl.sum(p * damping, 1)[:, None]
        if step < STEPS - 2:
            t_step = tl.maximum(t_step, 0.0)
        x = x - t_step * damping
        halley = tl.maximum(1.0 + 0.5 * x - 0.5 * x * damping, 0.3)
        log_p = log_p + x / halley
        log_p = tl.where(log_p > 1.0, 1.0, log_p)  # not the minimum, which drops a NaN
        t = t + t_step
    p = tl.exp(log_p)
    excess = tl.where(rho * p > 1.0, (c - t - log_p) / rho, p - y)
    excess = tl.where(given == given, excess, given)  # the bounds above drop a NaN
    place = out_at + member * out_member + row * out_row + column * out_class
    tl.store(place, excess / divisor, mask=inside)
