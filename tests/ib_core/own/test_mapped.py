"""Functions that kernels make for a whole stack, against torch's own of one member in float64."""

import math
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.func import functional_call, vmap
from torch.nn.attention import SDPBackend, sdpa_kernel

from ib_core.kernels import torch_formulas
from ib_core.layers import twice_differentiable
from ib_core.tasks.mapped import MappedFunctions, make_rows_of_layers
from ib_core.tasks.twins import make_stackable

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


# --- Narrow linear layers in a row

#: How a model is made, the rows it reads, and how many functions of a stack it becomes.
ROWS_OF_LAYERS = [
    (
        lambda: [nn.Linear(13, 13), nn.ReLU(), nn.Linear(13, 13), nn.ReLU(), nn.Linear(13, 3)],
        100,
        1,
    ),
    (lambda: [nn.Linear(5, 40), nn.ReLU(), nn.Linear(40, 2, bias=False)], 17, 1),
    (lambda: [nn.Linear(3, 8, bias=False), nn.ReLU(), nn.Linear(8, 17), nn.ReLU()], 16, 1),
    (lambda: [nn.Linear(60, 9), nn.Identity(), nn.ReLU(), nn.Dropout(0.0), nn.Linear(9, 9)], 33, 1),
    (lambda: [nn.Linear(7, 9), nn.Tanh(), nn.Linear(9, 4), nn.ReLU(), nn.Linear(4, 5)], 24, 2),
    (lambda: [nn.Linear(7, 9), nn.Linear(9, 4)], 24, 2),
    (lambda: [nn.Linear(7, 9), nn.ReLU(), nn.Linear(9, 4)], 15, 0),
    (lambda: [nn.Linear(70, 9), nn.ReLU()], 24, 0),
    (lambda: [nn.Linear(48, 32), nn.ReLU(), nn.Linear(32, 32)], 24, 0),
    (lambda: [nn.Linear(7, 9), nn.BatchNorm1d(9), nn.ReLU(), nn.Linear(9, 4)], 24, 0),
]


def _made(make: Any, members: int = 4) -> tuple[nn.Module, dict[str, Tensor], list[nn.Module]]:
    """Return the model of a stack, its members' tensors, and exact models of their own."""
    torch.manual_seed(6)
    models = [nn.Sequential(*make()) for _ in range(members)]
    base = nn.Sequential(*make())
    make_stackable(base)
    make_rows_of_layers(base)
    tensors = {
        name: torch.stack([dict(model.named_parameters())[name].detach() for model in models])
        for name, _ in base.named_parameters()
    }
    return base, tensors, [model.double() for model in models]


def _of_layers(
    base: nn.Module, tensors: dict[str, Tensor], x: Tensor, grad: Tensor, shared: bool
) -> tuple[Tensor, ...]:
    """Return a stack's outputs, and the gradients by its input and by its tensors."""
    own = {name: tensor.detach().requires_grad_() for name, tensor in tensors.items()}
    x = x.detach().requires_grad_()
    buffers = {
        name: buffer.expand(len(grad), *buffer.shape) for name, buffer in base.named_buffers()
    }
    base.train(not buffers)

    def mapped(own: dict[str, Tensor], buffers: dict[str, Tensor], x: Tensor) -> Any:
        return functional_call(base, {**own, **buffers}, (x,))

    out = vmap(mapped, (0, 0, None if shared else 0))(own, buffers, x)
    return out, *torch.autograd.grad(out, [x, *own.values()], grad)


@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize(("make", "rows", "count"), ROWS_OF_LAYERS)
def test_narrow_layers_in_a_row_are_each_members_own(
    make: Any, rows: int, count: int, shared: bool
) -> None:
    base, tensors, models = _made(make)
    side = tensors["0.weight"].shape[-1]
    x = torch.randn(rows, side) if shared else torch.randn(4, side, rows).mT
    base.eval()
    exact_x = x.double().requires_grad_()
    apart = torch.stack(
        [model.eval()(exact_x if shared else exact_x[i]) for i, model in enumerate(models)]
    )
    grad = torch.randn(apart.shape)
    each = [parameter for model in models for parameter in model.parameters()]
    by_x, *by_each = torch.autograd.grad(apart, [exact_x, *each], grad.double())
    step = len(tensors)
    right = [apart, by_x, *(torch.stack(by_each[i::step]) for i in range(step))]
    with torch.profiler.profile() as seen:
        found = _of_layers(base, tensors, x, grad, shared)
    for one, exact in zip(found, right, strict=True):
        assert (one - exact).abs().max() <= 1e-5 * max(1.0, exact.abs().max().item())
    assert (
        sum(event.key == "NarrowLayers" and event.count for event in seen.key_averages()) == count
    )
    with torch_formulas(), torch.profiler.profile() as seen:
        _of_layers(base, tensors, x, grad, shared)
    assert "NarrowLayers" not in {event.key for event in seen.key_averages()}


@pytest.mark.parametrize("value", [math.nan, math.inf])
@pytest.mark.parametrize(("make", "rows"), [case[:2] for case in ROWS_OF_LAYERS if case[2]])
def test_a_broken_members_narrow_layers_change_no_bit_of_its_neighbours(
    make: Any, rows: int, value: float
) -> None:
    base, tensors, _ = _made(make, 3)
    x = torch.randn(3, rows, tensors["0.weight"].shape[-1])
    with torch.no_grad():
        shape = vmap(lambda own, x: functional_call(base, own, (x,)))(tensors, x).shape
    grad = torch.randn(shape)
    clean = _of_layers(base, tensors, x, grad, False)
    tensors["0.weight"][1].view(-1)[::3] = value
    broken = _of_layers(base, tensors, x, grad, False)
    assert not broken[0][1].isfinite().all()
    for found, before in zip(broken, clean, strict=True):
        assert torch.equal(found[[0, 2]], before[[0, 2]])
    # What one gets does not depend on where it stands, either.
    last = {name: tensor[2:] for name, tensor in tensors.items()}
    for found, before in zip(_of_layers(base, last, x[2:], grad[2:], False), clean, strict=True):
        assert torch.equal(found[0], before[2])


def test_who_listens_to_a_layer_or_asks_for_its_curvature_gets_torchs_own() -> None:
    base, tensors, _ = _made(ROWS_OF_LAYERS[0][0])
    heard: list[Any] = []
    x, grad = torch.randn(4, 20, 13), torch.randn(4, 20, 3)
    plain = _of_layers(base, tensors, x, grad, False)
    handle = base[1].register_forward_hook(lambda module, given, made: heard.append(made.shape))
    for found, before in zip(_of_layers(base, tensors, x, grad, False), plain, strict=True):
        torch.testing.assert_close(found, before, rtol=1e-4, atol=1e-5)
    assert heard == [(20, 13)]
    handle.remove()
    with twice_differentiable(base):
        own = {name: tensor.requires_grad_() for name, tensor in tensors.items()}
        out = vmap(lambda own, x: functional_call(base, own, (x,)))(own, x).square().sum()
        (slope,) = torch.autograd.grad(out, own["0.weight"], create_graph=True)
        assert torch.autograd.grad(slope.square().sum(), own["2.weight"])[0].abs().sum() > 0
