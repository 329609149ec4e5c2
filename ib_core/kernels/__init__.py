"""Compiled twins of the update rules and of the loops along time: one pass over memory each.

| module | holds |
| --- | --- |
| `loops` | the rules' solves, and a recurrent layer's two loops along time, with numba |
| `blocks` | many small problems side by side: softmax outputs, Muon's matrices, with numba |
| `short_rows`, `attention` | what anybody's models do to short rows and small heads, with numba |
| `narrow` | their linear layers of few features, with numba |
| `vectors` | sixteen numbers as one value of numba's |
| `fused` | all solves again, with triton: for tensors on a GPU |
| `launched` | those as torch operators, which tensors without numbers (`meta`) take as well |

Others call what stands here: `solved` and `solved_layer` for alphas, `solved_output` for those of a
softmax output, `made_orthogonal` for small matrices, `on_device` for what solves a stack on a GPU,
`time_loops` for a recurrent layer, `stack_loops` for anybody's models, `compilable` to ask whether
tensors fit, `of_stack` to ask for all members what one asks for, `torch_formulas` to do without.

Written with torch calls, the arctan solve reads and writes memory some 25 times, the relu rule 6
times, a piecewise cubic 40 times a piece and a softmax output 40 times a Newton step. Compiled they
take one pass and give the same alphas to rounding. The compiled code is kept on disk. Without numba
(on a GPU: triton), in float64, with a ridge, and with `ETASCOPE_COMPILED=off` the torch formulas
are used.
"""

import ctypes
import math
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from typing import Any, TypeVar

import torch
from torch import Tensor
from torch._functorch.autograd_function import VmapInfo
from torch._functorch.pyfunctorch import retrieve_current_functorch_interpreter

__all__ = [
    "CUBICS",
    "NEWTON_STEPS",
    "OFF_BY",
    "ONE_AS_INTEGER",
    "SCALE",
    "SHARE_OF_M",
    "SHARE_OF_U",
    "compilable",
    "find_kernel",
    "made_orthogonal",
    "newton_steps",
    "of_stack",
    "on_device",
    "solved",
    "solved_layer",
    "solved_output",
    "stack_loops",
    "time_loops",
    "torch_formulas",
]

Scalar = float | Tensor

#: Takes the addresses of s [a, o, r], b [a, o, r], k [a, r or 1] and out [a, o, r], then the
#: lengths a, o, r and the last one of k.
Kernel = Callable[[int, int, int, int, int, int, int, int], None]

#: Piecewise cubics by the name of their rule, as `PiecewiseCubic.table` describes them; the rules
#: (`ib_core.updates`) put them here, since kernels know none of them.
CUBICS: dict[str, tuple[tuple[float, ...], ...]] = {}

#: Where the arctan's two twins start, as `updates/arctan.py` derives it: at
#: ``SCALE*sqrt(T/2 / (t + SHARE_OF_M*m + SHARE_OF_U*max(u, 0)/t))``, t^3 = T/2.
SCALE, SHARE_OF_M, SHARE_OF_U = 1.29574, 2.33739, 2.55336
#: A float's bits, read as an integer, are nearly linear in its logarithm; this centres the error.
OFF_BY = 0.0389
#: The bits of 1. Twice this and a number's bits, divided by three, are the bits of its cube root
#: to 3 %.
ONE_AS_INTEGER = 2**23 * (127 - OFF_BY)

#: Newton steps of a softmax output's solve for few classes, and how many more each factor of ten in
#: their number takes.
NEWTON_STEPS, STEPS_PER_DECADE = {torch.float32: 4, torch.float64: 5}, 3

#: What compiled loops take: a name for numba, a type for ctypes.
ADDRESS, LENGTH = ("CPointer(float32)", ctypes.c_void_p), ("int64", ctypes.c_int64)
NUMBER, INTEGERS = ("float32", ctypes.c_float), ("CPointer(int64)", ctypes.c_void_p)

Built = TypeVar("Built")

_torch_only = ContextVar("_torch_only", default=False)


def solved(rule: str, s: Tensor, b: Tensor, z_sq: Tensor, lr: Scalar, mu: Scalar) -> Tensor | None:
    """Return the alphas of a rule by its compiled kernel, or None where there is none for them.

    |z|^2 belongs to rows. They are the last dimension, as a stack lies in memory
    ([members, out, rows]), or the one before it ([..., rows, out]). It may also be a node's own.
    """
    if isinstance(mu, Tensor) or mu != 0:
        return None
    there: Any = on_device(s) if s.shape == b.shape else None
    kernel = _kernel_for(rule, s, b, z_sq) if there is None else None
    if kernel is None and (there is None or not there.has_rule(rule)):
        return None
    k = lr * z_sq
    lengths = _lengths(s, k)
    if lengths is None:
        return None
    s, b, k = s.contiguous(), b.contiguous(), k.contiguous()
    if kernel is None:
        alphas: Tensor = there.solve(rule, s, b, k, lengths)
        return alphas
    out = torch.empty_like(s)
    kernel(s.data_ptr(), b.data_ptr(), k.data_ptr(), out.data_ptr(), *lengths)
    return out


def newton_steps(classes: int, dtype: torch.dtype) -> int:
    """Return how many Newton steps a softmax of so many classes takes."""
    return NEWTON_STEPS[dtype] + math.ceil(STEPS_PER_DECADE * math.log10(classes))


def _lengths(s: Tensor, k: Tensor) -> tuple[int, int, int, int] | None:
    """Return blocks, nodes, rows and the rows of k; None for a layout that no kernel reads."""
    if k.shape == s.shape:
        return (1, 1, s.numel(), s.numel())
    if s.dim() == 3 and k.shape == (s.shape[0], 1, s.shape[2]):
        return (s.shape[0], s.shape[1], s.shape[2], s.shape[2])
    if k.shape == (*s.shape[:-1], 1):
        return (k.numel(), 1, s.shape[-1], 1)
    return None


def on_device(like: Tensor) -> Any:
    """Return `ib_core.kernels.launched` if its kernels solve such tensors, else None.

    They do on CUDA where there is triton, and on meta, which stands for that.
    """
    kind = like.device.type
    if kind == "cpu" or like.dtype != torch.float32 or _torch_only.get():
        return None
    return _launched(kind)


@cache
def _launched(kind: str) -> Any:
    def build() -> Any:
        from ib_core.kernels import launched

        if kind == "cuda":
            from ib_core.kernels import fused  # noqa: F401  is it here?
        return launched

    return _built(build) if kind in ("cuda", "meta") else None


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
    from ib_core.kernels.loops import travels

    b, (nodes, inputs) = b.contiguous(), (s.shape[-1], z.shape[-1])
    rows = s.numel() // nodes
    k, out = s.new_empty(rows), torch.empty_like(s)
    travels()(z.data_ptr(), k.data_ptr(), rows, inputs, rate, 1.0 if bias else 0.0)
    kernel(s.data_ptr(), b.data_ptr(), k.data_ptr(), out.data_ptr(), rows, 1, nodes, 1)
    return out


def solved_output(
    s: Tensor, b: Tensor, z_sq: Tensor, lr: Scalar, mu: Scalar, *, divisor: int, scale: Scalar
) -> Tensor | None:
    """Return a softmax output's exact alphas by its compiled kernel, or None where it cannot.

    The arguments are those of `updates.output_layer.cross_entropy_output`, of one model or of a
    stack. The alphas lie in memory as s does; tensors are read where they lie.
    """
    if isinstance(mu, Tensor) or mu != 0 or not _is_output(s, b) or not compilable(s, b, z_sq):
        return None
    rho, solve = lr * z_sq * (scale / divisor), output_loop()
    if solve is None or rho.shape != (*s.shape[:-1], 1) or not compilable(rho):
        return None
    out, rho, (rows, classes) = torch.empty_like(s), rho.contiguous(), s.shape[-2:]
    strides = [length for part in (s, b, out) for length in _byte_strides(part)]
    in_memory = (ctypes.c_int64 * len(strides))(*strides)
    solve(
        *(part.data_ptr() for part in (s, b, rho, out)),
        ctypes.addressof(in_memory),
        *(s.numel() // (rows * classes), rows, classes, newton_steps(classes, s.dtype)),
        *(float(divisor), math.log(classes)),
    )
    return out


#: Products of more numbers than these are left to torch, one matrix after another.
FEW_NUMBERS = 2048


def made_orthogonal(
    matrix: Tensor, steps: int, least: float, factors: tuple[float, float, float]
) -> Tensor | None:
    """Return what `methods.adam.orthogonal` does of small matrices, or None for others.

    Args:
        matrix: [members, rows, columns].
        steps: Rounds.
        least: Added to norms, which are divided by.
        factors: A, B and C.
    """
    rows, columns = matrix.shape[-2:]
    numbers = matrix.dim() == 3 and rows * columns * min(rows, columns)
    fits = 0 < numbers <= FEW_NUMBERS and matrix.is_contiguous() and not matrix.requires_grad
    compute = orthogonal_loop() if fits and compilable(matrix) else None
    if compute is None:
        return None
    out, size = torch.empty_like(matrix), matrix.element_size()
    sides = (rows, columns, size * columns, size)
    if rows > columns:
        sides = (columns, rows, size, size * columns)
    compute(matrix.data_ptr(), out.data_ptr(), len(matrix), *sides, steps, least, *factors)
    return out


def _is_output(s: Tensor, b: Tensor) -> bool:
    """Tell whether these are outputs and their gradients, of one model or of a stack."""
    wanted = s.requires_grad or b.requires_grad
    return s.shape == b.shape and s.dim() in (2, 3) and s.numel() > 0 and not wanted


def _byte_strides(part: Tensor) -> tuple[int, ...]:
    """Return how many bytes apart members, rows and classes lie; one model is a stack of one."""
    return tuple(part.element_size() * step for step in (0, *part.stride())[-3:])


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
        from ib_core.kernels import loops

        return loops.build(rule)

    return _built(build)


@cache
def time_loops() -> tuple[Callable[..., None], Callable[..., None]] | None:
    """Return a recurrent layer's loops forward and back in time; None if they are not here."""

    def build() -> tuple[Callable[..., None], Callable[..., None]]:
        from ib_core.kernels import loops

        return loops.states(), loops.deltas()

    return _built(build)


@cache
def output_loop() -> Callable[..., None] | None:
    """Return `blocks.cross_entropy`; None if it is not here."""

    def build() -> Callable[..., None]:
        from ib_core.kernels import blocks

        return blocks.cross_entropy()

    return _built(build)


@cache
def orthogonal_loop() -> Callable[..., None] | None:
    """Return `blocks.orthogonal`; None if it is not here."""

    def build() -> Callable[..., None]:
        from ib_core.kernels import blocks

        return blocks.orthogonal()

    return _built(build)


@cache
def stack_loops(name: str) -> Any:
    """Return `attention.loops`, `narrow.loops`, or those of `short_rows` by name; None without."""

    def build() -> Any:
        from ib_core.kernels import attention, narrow, short_rows

        homes = {"attention": attention, "narrow": narrow}
        return homes[name].loops() if name in homes else getattr(short_rows, name)()

    return _built(build)


def of_stack(function: Any, *args: Any) -> Any:
    """Return what a function of the whole stack makes of one member's tensors, under `vmap`.

    As `function.apply(*args)`, whose way through torch's general case (other transforms, nested
    arguments) takes a quarter of a millisecond. `function.vmap` returns one tensor or several.
    """
    functorch = torch._C._functorch
    mapping: Any = retrieve_current_functorch_interpreter()
    if mapping.key() != functorch.TransformType.Vmap or mapping.level() > 1:
        return function.apply(*args)
    level = mapping.level()
    whole: list[Any] = [*args]
    dims: list[int | None] = [None] * len(args)
    for place, one in enumerate(args):
        if isinstance(one, Tensor):
            whole[place], dims[place] = functorch._unwrap_batched(one, level)
    info = VmapInfo(mapping.batch_size(), mapping.randomness())
    with mapping.lower():
        made, dim = function.vmap(info, tuple(dims), *whole)
    if isinstance(made, Tensor):
        return functorch._add_batch_dim(made, dim, level)
    return tuple(functorch._add_batch_dim(*one, level) for one in zip(made, dim, strict=True))


def _built(build: Callable[[], Built]) -> Built | None:
    """Return what `build` compiles; None without numba, a place to keep it, or if switched off."""
    if os.environ.get("ETASCOPE_COMPILED", "on") == "off":
        return None
    try:
        return build()
    except (ImportError, RuntimeError):
        return None


@cache
def as_c_function(
    body: Callable[..., None], arguments: tuple[tuple[str, Any], ...]
) -> Callable[..., None]:
    """Return a loop as a C function, compiled by numba for this processor, then read from disk.

    Called through ctypes it takes addresses and costs a microsecond; called as a numba function
    it takes arrays and costs ten, as much as the work itself for a small layer.
    """
    import numba  # a second that whoever solves with torch alone need not wait

    signature = f"void({', '.join(name for name, _ in arguments)})"
    in_c = numba.cfunc(signature, cache=True, error_model="numpy", fastmath={"contract"})
    compiled: Any = in_c(body)
    function: Any = ctypes.CFUNCTYPE(None, *(kind for _, kind in arguments))(compiled.address)
    function.code = compiled  # which lives as long as somebody holds it
    called: Callable[..., None] = function
    return called
