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
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.overrides import TorchFunctionMode

from ib_core.kernels import compilable, of_stack, stack_loops
from ib_core.tasks.twins import LANES, Mapped, RowsLinear


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
    out: Tensor = of_stack(_OfHeads, query, key, value, bool(is_causal), factor)
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
    out: Tensor = of_stack(_OfNorm, input, weight, bias, eps)
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
    out: Tensor = of_stack(_OfGelu, input)
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


# --- Narrow linear layers in a row

#: More features than these are left to torch, as are more rows, whose sums would lose digits.
FEW_FEATURES, MOST_ROWS = 64, 4096


class LayersInARow(nn.Sequential):
    """`nn.Sequential` whose narrow linear layers, with relus between, are one function of a stack.

    Never made, only put on. Asked for one by one, a product, a bias and a relu of few features take
    as long to ask for as to make.
    """

    #: Whether somebody wants second derivatives (`ib_core.layers.twice_differentiable`).
    twice = False

    def forward(self, input: Any) -> Any:
        """Return what the layers make of the input."""
        parts, place = list(self._modules.values()), 0
        while place < len(parts):
            layers, relus, after = ([], [], place) if self.twice else _run(parts, place)
            given = [part for layer in layers for part in (layer.weight, layer.bias)]
            if layers and _suits(given, input):
                input, place = of_stack(_OfLayers, tuple(relus), input, *given), after
            else:
                input, place = parts[place](input), place + 1
        return input


def make_rows_of_layers(model: nn.Module) -> None:
    """Put that on a model's ordinary rows of layers."""
    for module in model.modules():
        if type(module) is nn.Sequential:
            module.__class__ = LayersInARow


def _run(parts: Sequence[nn.Module | None], place: int) -> tuple[list[Any], list[bool], int]:
    """Return the narrow layers from a place on, which have relus after them, and where they end."""
    layers: list[Any] = []
    relus: list[bool] = []
    while place < len(parts) and not _is_heard(part := parts[place]):
        if type(part) is RowsLinear and part.rows_last and (not layers or relus[-1]):
            layers.append(part)
            relus.append(False)
        elif type(part) is nn.ReLU and layers:
            relus[-1] = True
        elif type(part) not in (nn.Identity, nn.Dropout) or getattr(part, "p", False) or not layers:
            break
        place += 1
    return layers, relus, place


def _is_heard(part: Any) -> bool:
    """Tell whether somebody listens to what a layer is given or makes."""
    kinds = ("forward", "forward_pre", "backward", "backward_pre")
    return any(getattr(part, f"_{kind}_hooks") for kind in kinds)


def _suits(given: Sequence[Tensor | None], x: Any) -> bool:
    """Tell whether the kernel can make layers of these weights and biases of this input."""
    if not isinstance(x, Tensor) or x.dim() != 2 or not LANES <= len(x) <= MOST_ROWS:
        return False
    shapes = [weight.shape for weight in given[::2] if weight is not None]
    made = [x.shape[1], *(outputs for outputs, _ in shapes)]
    matched = made[:-1] == [inputs for _, inputs in shapes] and max(made) <= FEW_FEATURES
    return matched and compilable(x) and _fit("narrow", *(one for one in given if one is not None))


class _OfLayers(Mapped):
    """`NarrowLayers` as one member sees it, [rows, features]."""

    @staticmethod
    def vmap(info: Any, dims: tuple[int | None, ...], *args: Any) -> tuple[Tensor, int]:
        """Return the outputs of all members."""
        del info
        out: Tensor = NarrowLayers.apply(args[0], *_in_front(dims[1:], args[1:]))  # type: ignore[no-untyped-call]
        return out, 0


class NarrowLayers(torch.autograd.Function):
    """Linear layers, one after another, each with a relu or without."""

    @staticmethod
    def forward(ctx: Any, relus: tuple[bool, ...], x: Tensor, *given: Tensor | None) -> Tensor:
        """Return the last one's outputs, [members, rows, features]; in memory rows are last.

        Args:
            ctx: Kept for the backward pass.
            relus: Whether one comes after each layer.
            x: [members, rows, features], or [rows, features] of all of them.
            given: Each layer's weights, [members, outputs, inputs], and biases, or None.
        """
        x = x if x.stride(-1) == 1 else x.contiguous()
        weights = [one.contiguous() for one in given[::2] if one is not None]
        members, rows = len(weights[0]), x.shape[-2]
        forward, _ = stack_loops("narrow")
        made, ctx.biased, ctx.lengths = [x], [one is not None for one in given[1::2]], []
        for weight, bias, relu in zip(weights, given[1::2], relus, strict=True):
            outputs, inputs = weight.shape[1:]
            is_last, x = len(made) == len(weights), made[-1]
            sides = (outputs, rows) if is_last else (rows, _padded(outputs))
            out = x.new_empty(members, *sides)
            held = weight.new_zeros(members, outputs) if bias is None else bias.contiguous()
            apart = (x.stride(0) if x.dim() > 2 else 0, x.stride(-2))
            lengths = (members, rows, inputs, outputs, *apart, int(relu), int(is_last))
            forward(*_addresses(x, weight, held, out), *lengths)
            ctx.lengths.append(lengths)
            made.append(out)
        ctx.save_for_backward(*weights, *made)
        return made[-1].mT

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        """Return the gradients by x, weights and biases."""
        count, (_, backward) = len(ctx.biased), stack_loops("narrow")
        weights, made = ctx.saved_tensors[:count], ctx.saved_tensors[count:]
        grad = grad.mT.contiguous()
        found: list[Tensor | None] = []
        for place in range(count - 1, -1, -1):
            weight, x, out = weights[place], made[place], made[place + 1]
            members, rows, inputs, outputs = ctx.lengths[place][:4]
            wanted = place > 0 or ctx.needs_input_grad[1]
            by_x = grad.new_empty(members, rows, _padded(inputs)) if wanted else grad
            by_weight, by_bias = torch.empty_like(weight), weight.new_empty(members, outputs)
            parts = (x, weight, out, grad, by_x, by_weight, by_bias)
            backward(*_addresses(*parts), *ctx.lengths[place], int(wanted))
            found[:0] = (by_weight, by_bias if ctx.biased[place] else None)
            grad = by_x
        if not ctx.needs_input_grad[1]:
            return None, None, *found
        grad = grad[..., : made[0].shape[-1]]
        return None, grad if made[0].dim() > 2 else grad.sum(0), *found


def _padded(length: int) -> int:
    """Return how many numbers whole registers of the kernel's hold."""
    return -(-length // LANES) * LANES
