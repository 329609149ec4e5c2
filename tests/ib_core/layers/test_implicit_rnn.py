import pytest
import torch

from ib_core import ImplicitRNN
from ib_core.errors import InvalidSpec


def unrolled(x, weight, bias, activation=torch.atan):
    """The layer as one would write it by hand: a loop over time, autograd for the rest."""
    h, states = torch.zeros(*x.shape[:-2], len(bias), dtype=x.dtype), []
    for t in range(x.shape[-2]):
        h = activation(torch.cat([x[..., t, :], h], dim=-1) @ weight.mT + bias)
        states.append(h)
    return torch.stack(states, dim=-2)


@pytest.mark.parametrize("shape", [(6, 4), (3, 6, 4), (3, 1, 4)])
def test_it_equals_a_loop_over_time_forwards_and_backwards(shape):
    torch.manual_seed(1)
    layer = ImplicitRNN(4, 5).double()
    x = torch.randn(*shape, dtype=torch.float64, requires_grad=True)
    twins = [p.detach().clone().requires_grad_() for p in (x, layer.weight, layer.bias)]
    layer(x).square().sum().backward()
    unrolled(*twins).square().sum().backward()
    torch.testing.assert_close(layer(x), unrolled(*twins))
    for ours, twin in zip((x, layer.weight, layer.bias), twins, strict=True):
        torch.testing.assert_close(ours.grad, twin.grad)


def test_a_stack_computes_what_its_members_would_alone():
    torch.manual_seed(2)
    stack = ImplicitRNN(4, 5, members=3).double()
    x = torch.randn(3, 2, 6, 4, dtype=torch.float64)
    stack(x).square().sum().backward()
    for k in range(3):
        twins = [p[k].detach().clone().requires_grad_() for p in (stack.weight, stack.bias)]
        h = unrolled(x[k], *twins)
        h.square().sum().backward()
        torch.testing.assert_close(stack(x)[k], h)
        torch.testing.assert_close(stack.weight.grad[k], twins[0].grad)
        torch.testing.assert_close(stack.bias.grad[k], twins[1].grad)


def test_its_record_holds_every_time_step_with_what_it_saw():
    torch.manual_seed(3)
    layer = ImplicitRNN(4, 5).double()
    layer.implicit = True
    x = torch.randn(6, 4, dtype=torch.float64)
    h = layer(x)
    h.sum().backward()
    (record,) = layer.records
    assert record.rows == 6
    torch.testing.assert_close(record.z[:, :4], x)
    torch.testing.assert_close(record.z[1:, 4:], h[:-1].detach())
    assert (record.z[0, 4:] == 0).all()
    torch.testing.assert_close(torch.atan(record.s), h.detach())


def test_wrong_shapes_are_said_in_a_sentence():
    with pytest.raises(InvalidSpec, match=r"time, input.*shape \(6, 3\)"):
        ImplicitRNN(4, 5)(torch.randn(6, 3))
    with pytest.raises(InvalidSpec, match="members, batch, time, input"):
        ImplicitRNN(4, 5, members=2)(torch.randn(2, 6, 4))
