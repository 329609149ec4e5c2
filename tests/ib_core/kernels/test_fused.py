"""The kernels for a GPU, run by Triton's interpreter, against the rules in float64."""

import math
import os

import pytest
import torch
import torch.nn.functional as F

os.environ["TRITON_INTERPRET"] = "1"  # read where the kernels are made
pytest.importorskip("triton", reason="triton (etascope[gpu]) is not installed")

from ib_core.kernels import fused, torch_formulas
from ib_core.updates import alpha_rule
from ib_core.updates.output_layer import STEPS, STEPS_PER_DECADE, _softmax_excess

#: NumPy, which plays the GPU here, warns where a GPU returns a NaN.
pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")
RULES = ("relu", "leaky_relu", "arctan", "tanh", "gelu")


def heavy(seed, *shape, size=1.0):
    """Heavy tails: a few numbers are a thousand times the others."""
    draw = torch.Generator().manual_seed(seed)
    return size * torch.randn(shape, generator=draw) / torch.rand(shape, generator=draw).clamp(1e-3)


@pytest.mark.parametrize("lr", [1e-4, 1.0, 1e3])
@pytest.mark.parametrize("size", [1e-6, 1.0, 1e20])
@pytest.mark.parametrize("rule", RULES)
def test_a_fused_kernel_lands_where_the_rule_does(rule, size, lr):
    assert fused.has_rule(rule)
    s, b = heavy(1, 3, 5, 40, size=3.0), heavy(2, 3, 5, 40, size=size)
    z_sq = heavy(3, 3, 1, 40).abs() * 20
    found = fused.solve(rule, s, b, (lr * z_sq).reshape(3, 40), (3, 5, 40, 40))
    with torch_formulas():
        wanted = alpha_rule(rule)(s.double(), b.double(), z_sq.double(), lr)
    off = (lr * z_sq * (found - wanted)).abs() / (1 + s.abs() + (lr * z_sq * b).abs())
    assert (off > 1e-4).float().mean() <= 0.01  # between two minima of one height rounding decides


@pytest.mark.parametrize("rule", RULES)
def test_a_number_that_is_none_comes_through_and_harms_no_neighbour(rule):
    nan = float("nan")
    s, b = torch.tensor([[nan, 1.0, 2.0]]), torch.tensor([[1.0, nan, 1.0]])
    found = fused.solve(rule, s, b, torch.ones(1, 1), (1, 1, 3, 1))
    assert found.isnan().tolist() == [[True, True, False]]


@pytest.mark.parametrize("rho", [1e-6, 0.1, 1.0, 100.0, 1e6])
@pytest.mark.parametrize("classes", [2, 3, 10, 37])
def test_the_softmax_solve_is_that_of_torch_calls(classes, rho):
    c = 5 * heavy(4, 20, classes)
    draw = torch.Generator().manual_seed(5)
    y = F.one_hot(torch.randint(0, classes, (20,), generator=draw), classes).float()
    steps = STEPS[torch.float32] + math.ceil(STEPS_PER_DECADE * math.log10(classes))
    found = fused.solve_softmax(c, y, torch.full((20,), rho), steps)
    each = torch.full((20,), rho, dtype=torch.float64)
    wanted = _softmax_excess(c.double().T.contiguous(), y.double().T.contiguous(), each).T
    off = (found - wanted).abs() * max(rho, 1.0) / (1 + c.abs() + rho * wanted.abs())
    assert off.max().item() < 1e-4
