"""Functions that kernels make for a whole stack, against torch's own of one member in float64."""

import math
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor
from torch.func import vmap
from torch.nn.attention import SDPBackend, sdpa_kernel

from ib_core.kernels import torch_formulas
from ib_core.tasks.mapped import MappedFunctions

EPS = torch.finfo(torch.float32).eps


def _attended(heads: int, **more: Any) -> Any:
    """Attention as transformers ask for it: queries, keys and values cut out of one block."""

    def attend(x: Tensor) -> Tensor:
        rows, time, width = x.shape
        parts = x.view(rows, time, 3, heads, width // (3 * heads)).permute(2, 0, 3, 1, 4)
        out = F.scaled_dot_product_attention(*parts.unbind(0), **more)
        return out.transpose(1, 2).reshape(rows, time, width // 3)

    return attend


def _turned_attention(x: Tensor) -> Tensor:
    """Of parts whose numbers do not lie side by side."""
    query, key, value = x.unflatten(1, (3, 2, -1)).transpose(-1, -2).unbind(1)
    return F.scaled_dot_product_attention(query, key, value, is_causal=True)


def _normed(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    return F.layer_norm(x, x.shape[-1:], weight, bias)


#: What a model may ask for, the shapes of one member's tensors, and whether a kernel makes it.
FUNCTIONS = [
    (_attended(3, is_causal=True), [(2, 7, 45)], True),
    (_attended(3), [(2, 7, 45)], True),
    (_attended(1, is_causal=True, scale=0.7), [(1, 33, 48)], True),
    (_attended(2), [(2, 50, 96)], True),
    (_attended(2, is_causal=True), [(1, 128, 48)], True),
    (_attended(1, is_causal=True), [(1, 1, 24)], True),
    (_turned_attention, [(2, 24, 5)], True),
    (_attended(1), [(1, 129, 24)], False),
    (_attended(1), [(1, 16, 192)], False),
    (_attended(3, attn_mask=torch.ones(7, 7).tril().bool()), [(2, 7, 45)], False),
    (_normed, [(3, 5), (5,), (5,)], True),
    (_normed, [(2, 3, 32), (32,), (32,)], True),
    (_normed, [(67,), (67,), (67,)], True),
    (lambda x: F.layer_norm(x, (3, 5)), [(2, 3, 5)], False),
    (F.gelu, [(3, 37)], True),
    (lambda x: F.gelu(x, approximate="tanh"), [(3, 37)], False),
]


def _stacked(function: Any, x: list[Tensor], grad: Tensor) -> tuple[Tensor, ...]:
    """Return a stack's outputs and gradients."""

    def mapped(*own: Tensor) -> Tensor:
        with MappedFunctions():
            return function(*own)  # type: ignore[no-any-return]

    with sdpa_kernel(SDPBackend.MATH):  # the one that torch can map
        out = vmap(mapped)(*x)
    return out, *torch.autograd.grad(out, x, grad)


@pytest.mark.parametrize("size", [0.01, 1.0, 30.0])
@pytest.mark.parametrize(("function", "shapes", "compiled"), FUNCTIONS)
def test_functions_made_for_the_whole_stack_are_each_members_own(
    function: Any, shapes: list[tuple[int, ...]], compiled: bool, size: float
) -> None:
    torch.manual_seed(6)
    x = [(size * torch.randn(4, *shape)).requires_grad_() for shape in shapes]
    exact = [part.detach().double().requires_grad_() for part in x]
    apart = torch.stack([function(*own) for own in zip(*exact, strict=True)])
    grad = torch.randn(apart.shape)
    wanted = (apart, *torch.autograd.grad(apart, exact, grad.double()))
    with torch_formulas():
        in_torch = _stacked(function, x, grad)
    for found, theirs, right in zip(_stacked(function, x, grad), in_torch, wanted, strict=True):
        off, usual = ((one - right).abs().max().item() for one in (found, theirs))
        assert off <= 3 * usual + 4 * EPS * right.abs().max().item()
    with torch.profiler.profile() as seen:
        _stacked(function, x, grad)
    names = {event.key for event in seen.key_averages()}
    assert bool(names & {"Attention", "Norm", "Gelu"}) is compiled
    with torch_formulas(), torch.profiler.profile() as seen:
        _stacked(function, x, grad)
    assert not {event.key for event in seen.key_averages()} & {"Attention", "Norm", "Gelu"}


@pytest.mark.parametrize("value", [math.nan, math.inf])
@pytest.mark.parametrize(("function", "shapes"), [case[:2] for case in FUNCTIONS if case[2]])
def test_a_member_that_breaks_changes_no_bit_of_its_neighbours(
    function: Any, shapes: list[tuple[int, ...]], value: float
) -> None:
    torch.manual_seed(7)
    x = [torch.randn(3, *shape, requires_grad=True) for shape in shapes]
    with sdpa_kernel(SDPBackend.MATH):
        grad = torch.randn_like(vmap(function)(*x))
    clean = _stacked(function, x, grad)
    x[0].data[1].view(-1)[::3] = value
    broken = _stacked(function, x, grad)
    assert not broken[0][1].isfinite().all()
    for found, before in zip(broken, clean, strict=True):
        assert torch.equal(found[[0, 2]], before[[0, 2]])
    # What one gets does not depend on where it stands, either.
    alone = _stacked(function, [part[2:].detach().requires_grad_() for part in x], grad[2:])
    for found, before in zip(alone, clean, strict=True):
        assert torch.equal(found[0], before[2])
