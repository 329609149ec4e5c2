"""Activations have torch's values and autograd's slopes, in the hinges too."""

import pytest
import torch

from ib_core.updates import ACTIVATIONS
from tests.ib_core.updates.cases import EVERY

TORCH = {case.name: case.torchs for case in EVERY}

every_activation = pytest.mark.parametrize("name", ACTIVATIONS)
every_dtype = pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)


def line(dtype: torch.dtype) -> torch.Tensor:
    """Points on both sides of every bend, the hinges -1, 0 and 1 among them."""
    return torch.cat([torch.linspace(-6, 6, 241), torch.tensor([-100.0, -30.0, 30.0, 100.0])]).to(
        dtype
    )


@every_activation
@every_dtype
def test_value_is_that_of_torch(name, dtype):
    s = line(dtype)
    torch.testing.assert_close(ACTIVATIONS[name].value(s), TORCH[name](s))


@every_activation
@every_dtype
def test_slope_and_gradient_are_those_of_autograd_even_in_a_hinge(name, dtype):
    s = line(dtype).requires_grad_()
    (expected,) = torch.autograd.grad(TORCH[name](s).sum(), s)
    s = s.detach()
    torch.testing.assert_close(ACTIVATIONS[name].slope(s), expected)
    torch.testing.assert_close(ACTIVATIONS[name].gradient(s, 3 - s), expected * (3 - s))


@every_activation
def test_slope_range_is_attained_and_not_exceeded(name):
    activation = ACTIVATIONS[name]
    slope = activation.slope(torch.linspace(-2e3, 2e3, 4_000_001, dtype=torch.float64))
    low, high = activation.slope_range
    assert low - 1e-9 <= slope.min()
    assert slope.max() <= high + 1e-9
    assert slope.min().item() == pytest.approx(low, abs=1e-5)
    assert slope.max().item() == pytest.approx(high, abs=1e-5)


def test_only_gelu_and_silu_ever_fall():
    falling = [name for name, activation in ACTIVATIONS.items() if not activation.monotone]
    assert falling == ["gelu", "silu"]
