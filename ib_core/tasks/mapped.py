"""Functions of torch's that a model asks for under `vmap`, made for the whole stack by kernels.

Mapped by torch, attention goes through memory some twenty times and layer norm five times.
"""

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.overrides import TorchFunctionMode

from ib_core.kernels import compilable, stack_loops
from ib_core.tasks.twins import Mapped


class MappedFunctions(TorchFunctionMode):
    """While active, answers such functions; their second derivatives are not known."""

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        """Answer as people mostly ask; leave the rest to torch."""
        asked, answer = dict(kwargs or {}), ANSWERS.get(func)
        given = None if answer is None else answer(*args, **asked)
        return func(*args, **asked) if given is None else given


def _fit(kernel: str, *parts: Any) -> bool:
    """Tell whether these belong to one member each and there is a kernel that reads them."""
    mapped = torch._C._functorch.is_batchedtensor
    here = all(isinstance(part, Tensor) and mapped(part) for part in parts)
    return here and compilable(*parts) and stack_loops(kernel) is not None


def _addresses(*parts: Tensor) -> list[int]:
    return [part.data_ptr() for part in parts]


def _in_front(dims: Sequence[int | None], args: Sequence[Any]) -> list[Any]:
    """Return what is mapped with the members in front, and the rest as it is."""
    each = zip(args, dims, strict=True)
    return [one if dim is None else one.movedim(dim, 0) for one, dim in each]


# --- Attention

#: Heads with more queries the kernel does not know; deep ones with few keep nobody busy, and the
#: deepest keep torch's matrix products busy enough (measured).
LONGEST, SHALLOW, DEEPEST, SHORT = 128, 16, 64, 32


def _is_small(time: int, depth: int) -> bool:
    return time <= LONGEST and (depth <= SHALLOW or (depth <= DEEPEST and time >= SHORT))


def _attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Tensor | None:
    """Answer `F.scaled_dot_product_attention` of many small heads."""
    plain = attn_mask is None and not dropout_p and not enable_gqa
    if not plain or not _fit("attention", query, key, value):
        return None
    alike = query.dim() == 4 and query.shape == key.shape == value.shape
    if not alike or not query.numel() or not _is_small(*query.shape[2:]):
        return None
    factor = 1 / math.sqrt(query.shape[-1]) if scale is None else float(scale)
    out: Tensor = _OfHeads.apply(query, key, value, bool(is_causal), factor)  # type: ignore[no-untyped-call]
    return out


class _OfHeads(Mapped):
    """`Attention` as one member sees it, [rows, heads, time, depth]."""

    @staticmethod
    def vmap(info: Any, dims: tuple[int | None, ...], *args: Any) -> tuple[Tensor, int]:
        """Return the outputs of all members."""
        del info
        return Attention.apply(*_in_front(dims, args)), 0  # type: ignore[no-untyped-call]


class Attention(torch.autograd.Function):
    """`softmax(scale q k^T) v` of [members, rows, heads, time, depth]."""

    @staticmethod
    def forward(ctx: Any, q: Tensor, k: Tensor, v: Tensor, causal: bool, scale: float) -> Tensor:
        """Return the outputs; in memory the heads come after time, as who asks wants them."""
        ctx.shape = q.shape
        q, k, v = map(_heads, (q, k, v))
        groups, heads, time, depth = q.shape
        ctx.rest = (groups, heads, time, depth, int(causal), scale)
        out, sums = _like_heads(q), q.new_empty(groups, heads, time)
        steps, (loop, _) = _steps(q, k, v, out), stack_loops("attention")
        loop(*_addresses(q, k, v, out, sums), ctypes.addressof(steps), *ctx.rest)
        ctx.save_for_backward(q, k, v, out, sums)
        return _member_heads(out, ctx.shape)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        """Return the gradients by q, k and v."""
        q, k, v, out, sums = ctx.saved_tensors
        grad, found = _heads(grad), tuple(_like_heads(q) for _ in range(3))
        _, loop = stack_loops("attention")
        steps = _steps(q, k, v, out, grad, *found)
        loop(*_addresses(q, k, v, out, grad, sums, *found), ctypes.addressof(steps), *ctx.rest)
        return (*(_member_heads(one, ctx.shape) for one in found), None, None)


def _heads(x: Tensor) -> Tensor:
    """Return [groups, heads, time, depth], depth a multiple of eight and side by side."""
    x = x.flatten(0, 1)
    if short := -x.shape[-1] % 8:
        return F.pad(x, (0, short))
    return x if x.stride(-1) == 1 else x.contiguous()


def _like_heads(x: Tensor) -> Tensor:
    groups, heads, time, depth = x.shape
    return x.new_empty(groups, time, heads, depth).transpose(1, 2)


def _member_heads(x: Tensor, shape: Sequence[int]) -> Tensor:
    whole: Tensor = x[..., : shape[-1]].unflatten(0, shape[:2])
    return whole


def _steps(*parts: Tensor) -> Any:
    steps = [step for part in parts for step in part.stride()[:3]]
    return (ctypes.c_int64 * len(steps))(*steps)


# --- Layer norm


def _norm(
    input: Tensor,
    normalized_shape: Sequence[int],
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
) -> Tensor | None:
    """Answer `F.layer_norm` over the last side."""
    if len(normalized_shape) != 1 or not _fit("norm", input, weight, bias):
        return None
    assert weight is not None
    assert bias is not None
    if not input.shape[-1:] == weight.shape == bias.shape == tuple(normalized_shape):
        return None
    out: Tensor = _OfNorm.apply(input, weight, bias, eps)  # type: ignore[no-untyped-call]
    return out


class _OfNorm(Mapped):
    """`Norm` as one member sees it."""

    @staticmethod
    def vmap(info: Any, dims: tuple[int | None, ...], *args: Any) -> tuple[Tensor, int]:
        """Return the outputs of all members."""
        del info
        return Norm.apply(*_in_front(dims, args)), 0  # type: ignore[no-untyped-call]


class Norm(torch.autograd.Function):
    """Layer norm of [members, ..., length] by weights and biases, [members, length]."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor, eps: float) -> Tensor:
        """Return the outputs."""
        x, weight, bias = x.contiguous(), weight.contiguous(), bias.contiguous()
        members, length = weight.shape
        ctx.sides = (members, x[0].numel() // length, length)
        out, means, factors = torch.empty_like(x), *x.new_empty(2, *ctx.sides[:2])
        loop, _ = stack_loops("norm")
        loop(*_addresses(x, weight, bias, out, means, factors), *ctx.sides, eps)
        ctx.save_for_backward(x, weight, means, factors)
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        """Return the gradients by x, weights and biases."""
        x, weight, means, factors = ctx.saved_tensors
        grad, by_x = grad.contiguous(), torch.empty_like(x)
        by_weight, by_bias = torch.empty_like(weight), torch.empty_like(weight)
        _, loop = stack_loops("norm")
        found = (by_x, by_weight, by_bias)
        loop(*_addresses(grad, x, weight, means, factors, *found), *ctx.sides)
        return by_x, by_weight, by_bias, None


# --- Gelu


def _gelu(input: Tensor, *, approximate: str = "none") -> Tensor | None:
    """Answer `F.gelu`, but not its approximation by tanh."""
    if approximate != "none" or not _fit("gelu", input):
        return None
    out: Tensor = _OfGelu.apply(input)  # type: ignore[no-untyped-call]
    return out


class _OfGelu(Mapped):
    """`Gelu` as one member sees it."""

    @staticmethod
    def vmap(info: Any, dims: tuple[int | None, ...], *args: Any) -> tuple[Tensor, int]:
        """Return the outputs of all members."""
        del info
        return Gelu.apply(*_in_front(dims, args)), 0  # type: ignore[no-untyped-call]


class Gelu(torch.autograd.Function):
    """The gelu, with its slope, which needs the same power."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        """Return the outputs."""
        x = x.contiguous()
        out, slope = torch.empty_like(x), torch.empty_like(x)
        loop, members = stack_loops("gelu"), len(x)
        loop(*_addresses(x, out, slope), members, x.numel() // max(1, members))
        ctx.save_for_backward(slope)
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> Tensor:
        """Return the gradient by x."""
        (slope,) = ctx.saved_tensors
        by_x: Tensor = grad * slope
        return by_x


#: Answers a function; None leaves it to torch.
ANSWERS: dict[Callable[..., Any], Callable[..., Tensor | None]] = {
    F.scaled_dot_product_attention: _attention,
    F.layer_norm: _norm,
    F.gelu: _gelu,
}
