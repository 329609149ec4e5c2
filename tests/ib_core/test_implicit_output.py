"""The implicit output layer of `ImplicitSGD`."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from ib_core import ImplicitLinear, ImplicitSGD
from ib_core.errors import MisuseError


def network(output="linear"):
    torch.manual_seed(1)
    return nn.Sequential(ImplicitLinear(4, 6, "arctan"), ImplicitLinear(6, 3, output)).double()


def batch():
    draw = torch.Generator().manual_seed(2)
    x = torch.randn(8, 4, dtype=torch.float64, generator=draw)
    return x, torch.randint(0, 3, (8,), generator=draw)


@pytest.mark.parametrize(
    ("output_loss", "reduction"),
    [
        ("cross_entropy", "mean"),
        ("cross_entropy", "sum"),
        ("squared_error", "mean"),
        ("squared_error", "sum"),
    ],
)
def test_an_implicit_output_layer_solves_its_row_exactly(output_loss, reduction):
    torch.manual_seed(6)
    lr, mu = 5.0, 0.1
    layer = ImplicitLinear(4, 3, "linear").double()
    z = torch.randn(1, 4, dtype=torch.float64)
    start = [p.detach().clone() for p in layer.parameters()]
    y = torch.tensor([1]) if output_loss == "cross_entropy" else torch.randn(1, 3).double()
    loss_of = {"cross_entropy": F.cross_entropy, "squared_error": F.mse_loss}[output_loss]
    optimizer = ImplicitSGD(layer, lr, mu, output_loss=output_loss, reduction=reduction)
    loss_of(layer(z), y, reduction=reduction).backward()
    optimizer.step()
    # The proximal step's optimality: theta' = theta - lr * (grad loss(theta') + mu theta').
    ends = [p.detach().clone().requires_grad_() for p in layer.parameters()]
    loss_of(F.linear(z, *ends), y, reduction=reduction).backward()
    for end, before in zip(ends, start, strict=True):
        torch.testing.assert_close(
            end.detach(), before - lr * (end.grad + mu * end.detach()), rtol=1e-8, atol=1e-10
        )


@pytest.mark.parametrize(
    "loss",
    [
        lambda out, y: F.cross_entropy(out, y, weight=torch.tensor([1.0, 5.0, 1.0]).double()),
        lambda out, y: F.cross_entropy(out, y, label_smoothing=0.2),
        lambda out, y: 3 * F.cross_entropy(out, y),
    ],
)
def test_weighted_smoothed_and_scaled_losses_are_refused_by_an_implicit_output(loss):
    model = network()
    optimizer = ImplicitSGD(model, 1.0, output_loss="cross_entropy")
    x, y = batch()
    loss(model(x), y).backward()
    with pytest.raises(MisuseError, match=r"plain F\.cross_entropy"):
        optimizer.step()


@pytest.mark.parametrize("hidden", ["arctan", "linear"])
def test_no_layer_but_the_last_is_solved_under_the_loss(hidden):
    ends = []
    for output_loss in (None, "cross_entropy"):
        torch.manual_seed(1)
        model = nn.Sequential(ImplicitLinear(4, 3, hidden), ImplicitLinear(3, 3, "linear")).double()
        optimizer = ImplicitSGD(model, 10.0, output_loss=output_loss)
        x, y = batch()
        F.cross_entropy(model(x), y).backward()
        optimizer.step()
        ends.append([parameter.detach() for parameter in model.parameters()])
    without, solved = ends
    for index, same in enumerate([True, True, False, False]):  # two layers: weight and bias
        assert torch.allclose(without[index], solved[index], rtol=0.01) == same


def test_an_output_layer_with_an_activation_cannot_be_solved():
    with pytest.raises(MisuseError, match="activation='linear'"):
        ImplicitSGD(network(output="relu"), 1.0, output_loss="cross_entropy")
