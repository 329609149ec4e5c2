import gc
import weakref

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from ib_core import ImplicitLinear
from ib_core.errors import InvalidSpec, MisuseError, UnknownName
from ib_core.layers.implicit_linear import ALIGNED, _handed_down
from ib_core.updates import ACTIVATIONS

FUNCTIONS = {
    "linear": lambda s: s,
    "relu": F.relu,
    "leaky_relu": F.leaky_relu,
    "arctan": torch.atan,
    "hardtanh": F.hardtanh,
    "tanh": torch.tanh,
    "sigmoid": torch.sigmoid,
    "gelu": F.gelu,
    "silu": F.silu,
    "softplus": F.softplus,
    "elu": F.elu,
}


def test_it_loads_from_and_saves_to_an_ordinary_linear_layer():
    plain, ours = nn.Linear(5, 3), ImplicitLinear(5, 3)
    ours.load_state_dict(plain.state_dict())
    back = nn.Linear(5, 3)
    back.load_state_dict(ours.state_dict())
    assert torch.equal(back.weight, plain.weight)
    assert torch.equal(back.bias, plain.bias)


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("bias", [True, False])
def test_on_its_own_it_is_an_ordinary_differentiable_layer(name, bias):
    torch.manual_seed(1)
    ours = ImplicitLinear(5, 3, name, bias=bias, dtype=torch.float64)
    plain = nn.Linear(5, 3, bias=bias, dtype=torch.float64)
    plain.load_state_dict(ours.state_dict())
    x = torch.randn(2, 7, 5, dtype=torch.float64, requires_grad=True)
    twin = x.detach().clone().requires_grad_()
    weights = torch.randn(2, 7, 3, dtype=torch.float64)
    (ours(x) * weights).sum().backward()
    (FUNCTIONS[name](plain(twin)) * weights).sum().backward()
    torch.testing.assert_close(x.grad, twin.grad)
    torch.testing.assert_close(ours.weight.grad, plain.weight.grad)
    if bias:
        torch.testing.assert_close(ours.bias.grad, plain.bias.grad)


@pytest.mark.parametrize("inputs", [5, 8])
def test_one_row_a_member_is_handed_down_as_several_are(inputs):
    torch.manual_seed(3)
    stack = ImplicitLinear(inputs, 3, "relu", members=4)
    x = torch.randn(4, 1, inputs, requires_grad=True)
    b = torch.randn(4, 1, 3)
    (one,) = torch.autograd.grad((stack(x) * b).sum(), x)
    twice = x.detach().expand(4, 2, inputs).clone().requires_grad_()
    (two,) = torch.autograd.grad((stack(twice) * b).sum(), twice)
    assert one.shape == x.shape
    torch.testing.assert_close(one.expand_as(two), two)


@pytest.mark.skipif(not torch.backends.mkl.is_available(), reason="sums in another order")
@pytest.mark.parametrize(
    ("out", "inputs"), [(300, 500), (30, 100), (300, 100), (784, 500), (7, 12)]
)
@pytest.mark.parametrize("members", [2, 18])
def test_and_to_the_same_bits_where_it_is_another_product(out, inputs, members):
    torch.manual_seed(4)
    delta = (torch.randn(members, out, 1) * (torch.rand(members, out, 1) > 0.5)).mT
    weight = torch.randn(members, out, inputs)
    assert inputs % ALIGNED == 0
    assert torch.equal(_handed_down(delta, weight), (weight.mT @ delta.mT).mT)


@pytest.mark.parametrize("shape", [(4, 6, 5), (4, 2, 3, 5)])
def test_a_stack_computes_what_its_members_would_alone(shape):
    torch.manual_seed(2)
    stack = ImplicitLinear(5, 3, "arctan", members=4, dtype=torch.float64)
    x = torch.randn(*shape, dtype=torch.float64, requires_grad=True)
    stack(x).square().sum().backward()
    for k in range(4):
        alone = ImplicitLinear(5, 3, "arctan", dtype=torch.float64)
        alone.load_state_dict({"weight": stack.weight[k], "bias": stack.bias[k]})
        twin = x[k].detach().clone().requires_grad_()
        alone(twin).square().sum().backward()
        torch.testing.assert_close(stack(x)[k], alone(twin))
        torch.testing.assert_close(x.grad[k], twin.grad)
        torch.testing.assert_close(stack.weight.grad[k], alone.weight.grad)


def test_a_taken_over_layer_remembers_input_preactivation_and_gradient_and_nothing_more():
    layer = ImplicitLinear(5, 3, "relu")
    layer.implicit = True
    x = torch.randn(7, 5)
    layer(x).sum().backward()
    (record,) = layer.records
    assert layer.weight.grad is None
    torch.testing.assert_close(record.z, x)
    torch.testing.assert_close(record.s, F.linear(x, layer.weight, layer.bias))
    torch.testing.assert_close(record.b, torch.ones(7, 3))


def test_a_forward_pass_without_a_backward_pass_leaves_nothing_behind():
    layer = ImplicitLinear(5, 3)
    layer.implicit = True
    layer(torch.randn(7, 5))
    with torch.no_grad():
        layer(torch.randn(7, 5))
    assert layer.records == []


@pytest.mark.parametrize("which", ["input", "preactivation"])
def test_what_was_changed_in_place_is_refused_and_never_solved_from(which):
    layer = ImplicitLinear(5, 3, "linear")
    layer.implicit = True
    x = torch.randn(7, 5)
    out = layer(x.clone().requires_grad_() if which == "preactivation" else x)
    loss = (out.relu_() if which == "preactivation" else out).sum()
    if which == "input":
        x.mul_(2)
    with pytest.raises(MisuseError, match="changed in place"):
        loss.backward()


def test_a_second_backward_pass_through_one_graph_adds_to_its_record():
    layer = ImplicitLinear(5, 3, "arctan")
    layer.implicit = True
    loss = layer(torch.randn(7, 5)).sum()
    loss.backward(retain_graph=True)
    loss.backward()
    (record,) = layer.records
    torch.testing.assert_close(record.b, torch.full((7, 3), 2.0))


def test_a_finished_pass_is_freed_at_once_and_not_by_the_collector():
    layer = ImplicitLinear(5, 3, "linear")
    layer.implicit = True
    gc.disable()
    out = layer(torch.randn(7, 5))
    alive = weakref.ref(out)
    out.sum().backward()
    del out
    try:
        assert alive() is None
    finally:
        gc.enable()


def test_wrong_sizes_and_names_are_said_in_a_sentence():
    with pytest.raises(InvalidSpec, match="reads 5 inputs"):
        ImplicitLinear(5, 3)(torch.randn(7, 4))
    with pytest.raises(UnknownName, match=r"swish.*arctan"):
        ImplicitLinear(5, 3, "swish")
    with pytest.raises(InvalidSpec, match="at least one"):
        ImplicitLinear(0, 3)


def test_every_activation_of_the_contract_can_be_used():
    for name in ACTIVATIONS:
        assert ImplicitLinear(2, 2, name)(torch.zeros(1, 2)).shape == (1, 2)
