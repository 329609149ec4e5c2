"""The kernels for a GPU, run by Triton's interpreter, against the rules in float64."""

import os

import pytest
import torch
import torch.nn.functional as F

os.environ["TRITON_INTERPRET"] = "1"  # read where the kernels are made
pytest.importorskip("triton", reason="triton (etascope[gpu]) is not installed")

from ib_core.kernels import find_kernel, fused, launched, newton_steps, torch_formulas
from ib_core.kernels.launched import has_rule
from ib_core.updates import alpha_rule, batch_alpha
from ib_core.updates.output_layer import cross_entropy_output

#: NumPy, which plays the GPU here, warns where a GPU returns a NaN.
pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")
RULES = ("relu", "leaky_relu", "arctan", "hardtanh", "smoothstep", "tanh", "gelu")


def heavy(seed, *shape, size=1.0):
    """Heavy tails: a few numbers are a thousand times the others."""
    draw = torch.Generator().manual_seed(seed)
    return size * torch.randn(shape, generator=draw) / torch.rand(shape, generator=draw).clamp(1e-3)


@pytest.mark.parametrize("lr", [1e-4, 1.0, 1e3])
@pytest.mark.parametrize("size", [1e-6, 1.0, 1e20])
@pytest.mark.parametrize("rule", RULES)
def test_a_fused_kernel_lands_where_the_rule_does(rule, size, lr):
    assert has_rule(rule)
    s, b = heavy(1, 3, 5, 40, size=3.0), heavy(2, 3, 5, 40, size=size)
    z_sq = heavy(3, 3, 1, 40).abs() * 20
    found = fused.solve(rule, s, b, (lr * z_sq).reshape(3, 40), (3, 5, 40, 40))
    with torch_formulas():
        wanted = alpha_rule(rule)(s.double(), b.double(), z_sq.double(), lr)
    off = (lr * z_sq * (found - wanted)).abs() / (1 + s.abs() + (lr * z_sq * b).abs())
    assert (off > 1e-4).float().mean() <= 0.01  # between two minima of one height rounding decides
    if find_kernel(rule) is not None:
        compiled = alpha_rule(rule)(s, b, z_sq, lr)
        apart = (lr * z_sq * (found - compiled)).abs() / (1 + s.abs() + (lr * z_sq * b).abs())
        assert (apart > 1e-4).float().mean() <= 0.01


@pytest.mark.parametrize("rule", RULES)
def test_a_number_that_is_none_comes_through_and_harms_no_neighbour(rule):
    nan = float("nan")
    s, b = torch.tensor([[nan, 1.0, 2.0, 2.0]]), torch.tensor([[1.0, nan, 1.0, 1.0]])
    k = torch.tensor([[1.0, 1.0, nan, 1.0]])
    found = fused.solve(rule, s, b, k, (1, 1, 4, 4))
    assert found.isnan().tolist() == [[True, True, True, False]]


@pytest.mark.parametrize("rho", [1e-6, 0.1, 1.0, 100.0, 1e6])
@pytest.mark.parametrize("classes", [2, 3, 10, 37])
def test_the_softmax_solve_lands_where_torch_calls_do(classes, rho):
    s = 5 * heavy(4, 2, classes, 10).mT  # as a stack lies in memory, the rows last
    draw = torch.Generator().manual_seed(5)
    y = F.one_hot(torch.randint(0, classes, (2, 10), generator=draw), classes)
    b = (s.softmax(-1) - y) / 10
    each = torch.full((2, 10), rho)
    found = fused.solve_cross_entropy(s, b, each, 10.0, newton_steps(classes, torch.float32))
    assert found.stride() == s.stride()
    exact = {"lr": 1.0, "mu": 0.0, "divisor": 10, "scale": 10.0}
    each = each.unsqueeze(-1)
    wanted = cross_entropy_output(s.double(), b.double(), each.double(), **exact)
    size = (1 + s.abs() + 10 * rho * wanted.abs()) / (10 * max(rho, 1.0))
    off = ((found - wanted).abs() / size).max().item()
    # The target comes from a float32 gradient: its rounding, times rho, is in both.
    in_torch = ((cross_entropy_output(s, b, each, **exact) - wanted).abs() / size).max().item()
    assert off < 1e-4 + 2 * in_torch


@pytest.mark.parametrize("rho", [1e10, 1e20, 1e30])
def test_the_softmax_solve_has_an_answer_at_any_step_size(rho):
    s = 5 * heavy(4, 2, 10, 10).mT
    b = (s.softmax(-1) - F.one_hot(torch.arange(10).expand(2, 10), 10)) / 10
    steps, each = newton_steps(10, torch.float32), torch.full((2, 10), rho)
    found = fused.solve_cross_entropy(s, b, each, 10.0, steps)
    exact = {"lr": 1.0, "mu": 0.0, "divisor": 10, "scale": 10.0}
    wanted = cross_entropy_output(s.double(), b.double(), each.double().unsqueeze(-1), **exact)
    assert (found - wanted).abs().max() < 1e-6


def test_a_row_without_numbers_harms_no_row_beside_it():
    s, b, rho = heavy(6, 1, 5, 3), heavy(7, 1, 5, 3, size=0.1), torch.ones(1, 5)
    s[0, 0, 1] = b[0, 1, 2] = rho[0, 2] = float("nan")
    found = fused.solve_cross_entropy(s, b, rho, 1.0, 6)
    assert found.isnan().all(-1).tolist() == [[True, True, True, False, False]]
    assert found[0, 3:].isfinite().all()


@pytest.mark.parametrize("rows_last", [False, True])
@pytest.mark.parametrize("bias", [False, True])
def test_travels_are_rates_times_squared_inputs(bias, rows_last):
    z = heavy(8, 3, 130, 21).mT if rows_last else heavy(8, 3, 21, 130)
    rate = torch.tensor([0.1, 1.0, 30.0])
    found = fused.travels(z, rate, 7.0, bias)
    wanted = 7 * rate.double().view(-1, 1) * (z.double().square().sum(-1) + bias)
    assert torch.allclose(found.double(), wanted, rtol=1e-5)


def test_inputs_that_all_members_share_are_read_where_they_lie():
    z = heavy(9, 21, 5).expand(3, 21, 5)
    assert torch.equal(
        fused.travels(z, torch.ones(3), 1.0, False),
        fused.travels(z.contiguous(), torch.ones(3), 1.0, False),
    )


@pytest.fixture
def here():
    """The operators of a GPU, on the processor: what a stack calls there, from z on."""
    with torch.library._scoped_library("etascope", "IMPL") as library:
        for name in ("travels", "solve", "solve_cross_entropy"):
            library.impl(name, getattr(fused, name), "CPU")
        yield launched


LR, MU = torch.tensor([0.1, 1.0, 30.0]), torch.tensor([0.0, 0.3, 2.0])


def whole(*parts):
    return [part.double().view(-1, 1, 1) if part.dim() == 1 else part.double() for part in parts]


@pytest.mark.parametrize("rows_last", [False, True])
@pytest.mark.parametrize("rule", RULES)
def test_a_layer_with_a_ridge_is_solved_as_one_without(here, rule, rows_last):
    draw = torch.Generator().manual_seed(10)
    s, b, z = (torch.randn(3, 7, n, generator=draw) for n in (5, 5, 4))
    if rows_last:
        s, b, z = (part.mT.contiguous().mT for part in (s, b, z))
    found = here.solve_layer(rule, s, b, z, LR, 7.0, True, 1 + LR * MU)
    exact = whole(s, b, z.square().sum(-1, keepdim=True) + 1, LR, MU)
    with torch_formulas():
        wanted = batch_alpha(alpha_rule(rule), *exact, scale=7.0)
    torch.testing.assert_close(found.double(), wanted, rtol=1e-3, atol=1e-4)


def test_an_output_layer_with_a_ridge_is_solved_as_by_torch_calls(here):
    draw = torch.Generator().manual_seed(11)
    s, z = 3 * torch.randn(3, 7, 5, generator=draw), torch.randn(3, 7, 4, generator=draw)
    y = F.one_hot(torch.randint(0, 5, (3, 7), generator=draw), 5)
    b = (s.softmax(-1) - y) / 7
    found = here.solve_cross_entropy(s, b, z, LR, 7.0, True, 1 + LR * MU, divisor=7)
    exact = whole(s, b, z.square().sum(-1, keepdim=True) + 1, LR, MU)
    wanted = cross_entropy_output(*exact, divisor=7, scale=7.0)
    torch.testing.assert_close(found.double(), wanted, rtol=1e-3, atol=1e-6)
