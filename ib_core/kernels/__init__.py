"""Compiled twins of the update rules and of the loops along time: one pass over memory each.

| module | holds |
| --- | --- |
| `solves` | the rules' solves, with numba |
| `along_time` | a recurrent layer's two loops, with numba |
| `arctan_start` | the constants that the arctan's two twins share |
| `c_function` | a Python loop as a C function, kept on disk |

Written with torch calls, the arctan solve reads and writes memory some 25 times, the relu rule 6
times and a piecewise cubic 40 times a piece. Compiled they take one pass and give the same alphas
to rounding. The compiled code is kept on disk. Without numba, on a GPU, in float64, with a ridge,
and with `ETASCOPE_COMPILED=off` the torch formulas are used.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from typing import TypeVar

import torch
from torch import Tensor

Scalar = float | Tensor

#: Takes the addresses of s [a, o, r], b [a, o, r], k [a, r or 1] and out [a, o, r], then the
#: lengths a, o, r and the last one of k.
Kernel = Callable[[int, int, int, int, int, int, int, int], None]

#: Piecewise cubics by the name of their rule, as `PiecewiseCubic.table` describes them; the rules
#: (`ib_core.updates`) put them here, since kernels know none of them.
CUBICS: dict[str, tuple[tuple[float, ...], ...]] = {}

Built = TypeVar("Built")

_torch_only = ContextVar("_torch_only", default=False)


def solved(rule: str, s: Tensor, b: Tensor, z_sq: Tensor, lr: Scalar, mu: Scalar) -> Tensor | None:
    """Return the alphas of a rule by its compiled kernel, or None where there is none for them.

    |z|^2 belongs to rows. They are the last dimension, as a stack lies in memory
    ([members, out, rows]), or the one before it ([..., rows, out]). It may also be a node's own.
    """
    kernel = None if isinstance(mu, Tensor) or mu != 0 else _kernel_for(rule, s, b, z_sq)
    if kernel is None:
        return None
    k = lr * z_sq
    if k.shape == s.shape:
        lengths = (1, 1, s.numel(), s.numel())
    elif s.dim() == 3 and k.shape == (s.shape[0], 1, s.shape[2]):
        lengths = (*s.shape, s.shape[2])
    elif k.shape == (*s.shape[:-1], 1):
        lengths = (k.numel(), 1, s.shape[-1], 1)
    else:
        return None
    s, b, k = s.contiguous(), b.contiguous(), k.contiguous()
    out = torch.empty_like(s)
    kernel(s.data_ptr(), b.data_ptr(), k.data_ptr(), out.data_ptr(), *lengths)
    return out


def solved_layer(
    rule: str, s: Tensor, b: Tensor, z: Tensor, rate: float, *, bias: bool
) -> Tensor | None:
    """Return the alphas of one layer straight from its input z, or None where no kernel does it.

    A large layer's step is a few products of matrices, each of which empties the caches; whatever
    is called between them is slow, so that two calls are well worth having in place of ten.

    Args:
        rule: The activation.
        s: Pre-activation, [..., rows, out].
        b: Gradient of the loss at the output, likewise.
        z: Input, [..., rows, in].
        rate: What |z|^2 is multiplied with: learning rate times `rows_scale`.
        bias: Whether the bias's 1 counts in |z|^2.
    """
    kernel = _kernel_for(rule, s, b, z)
    if kernel is None or not s.is_contiguous() or not z.is_contiguous():
        return None
    from ib_core.kernels.solves import travels

    b, (nodes, inputs) = b.contiguous(), (s.shape[-1], z.shape[-1])
    rows = s.numel() // nodes
    k, out = s.new_empty(rows), torch.empty_like(s)
    travels()(z.data_ptr(), k.data_ptr(), rows, inputs, rate, 1.0 if bias else 0.0)
    kernel(s.data_ptr(), b.data_ptr(), k.data_ptr(), out.data_ptr(), rows, 1, nodes, 1)
    return out


def _kernel_for(rule: str, s: Tensor, b: Tensor, z: Tensor) -> Kernel | None:
    """Return the kernel of a rule if it can read these tensors."""
    if s.shape != b.shape or s.requires_grad or b.requires_grad:
        return None
    return find_kernel(rule) if compilable(s, b, z) else None


def compilable(*tensors: Tensor) -> bool:
    """Tell whether kernels can read these tensors, and may."""
    return not _torch_only.get() and all(
        t.dtype == torch.float32 and t.device.type == "cpu" for t in tensors
    )


@contextmanager
def torch_formulas() -> Iterator[None]:
    """Solve without kernels meanwhile: what they are compared with, in tests and benchmarks."""
    token = _torch_only.set(True)
    try:
        yield
    finally:
        _torch_only.reset(token)


@cache
def find_kernel(rule: str) -> Kernel | None:
    """Return a rule's kernel, None if it has none here."""

    def build() -> Kernel | None:
        from ib_core.kernels import solves

        return solves.build(rule)

    return built(build)


def built(build: Callable[[], Built]) -> Built | None:
    """Return what `build` compiles; None without numba, a place to keep it, or if switched off."""
    if os.environ.get("ETASCOPE_COMPILED", "on") == "off":
        return None
    try:
        return build()
    except (ImportError, RuntimeError):
        return None
