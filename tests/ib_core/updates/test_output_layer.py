"""The implicit output layer solves its own problem, for any weight of the step."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from ib_core.kernels import torch_formulas
from ib_core.updates.output_layer import (
    cross_entropy_output,
    softmax_cross_entropy_alpha,
    squared_error_alpha,
)
from ib_core.updates.reference import reference_softmax_q
from tests.ib_core.updates.cases import DTYPES

every_dtype = pytest.mark.parametrize("dtype", DTYPES, ids=str)


@st.composite
def rows(draw):
    """Rows of logits of one scale, one-hot or soft targets, and a step weight from 1e-8 to 1e8."""
    classes = draw(st.integers(2, 12))
    generator = torch.Generator().manual_seed(draw(st.integers(0, 2**32)))
    scale = 10 ** draw(st.floats(-3, 5))
    s = scale * torch.randn(3, classes, generator=generator)
    if draw(st.booleans()):
        s *= torch.randn(3, classes, generator=generator).mul_(3).exp_()
    y = torch.eye(classes)[torch.randint(classes, (3,), generator=generator)]
    if draw(st.booleans()):
        y = torch.softmax(3 * torch.randn(3, classes, generator=generator), dim=-1)
    k = 10 ** draw(st.floats(-8, 8))
    return s.double(), y.double(), torch.full((3, 1), k).double()


@given(row=rows())
def test_logits_move_to_where_the_softmax_says_for_steps_from_tiny_to_enormous(row):
    s, y, k = row
    q = reference_softmax_q(s, y, k, torch.ones_like(k))
    size = s.abs().amax(-1, keepdim=True) + (s - q).abs().amax(-1, keepdim=True) + 1
    twin_error = 4 * torch.finfo(torch.float64).eps * k
    for dtype in DTYPES:
        eps = torch.finfo(dtype).eps
        alpha = softmax_cross_entropy_alpha(s.to(dtype), y.to(dtype), k.to(dtype), 1.0).double()
        allowed = 64 * eps * size + twin_error
        assert ((s - k * alpha - q).abs() <= allowed).all(), dtype
        assert ((alpha - (torch.softmax(q, dim=-1) - y)).abs() <= allowed).all(), dtype


@every_dtype
def test_the_equation_holds_for_logits_as_training_meets_them(dtype):
    generator = torch.Generator().manual_seed(0)
    s = 3 * torch.randn(500, 10, generator=generator, dtype=dtype)
    y = torch.eye(10, dtype=dtype)[torch.randint(10, (500,), generator=generator)]
    for k in 10.0 ** torch.arange(-8, 9):
        alpha = softmax_cross_entropy_alpha(s, y, torch.full((500, 1), k, dtype=dtype), 1.0)
        q = s.double() - k * alpha.double()
        residual = torch.softmax(q, dim=-1) - y - alpha
        # An error of one rounding in q moves the softmax by as much.
        rounding = torch.finfo(dtype).eps * (1 + (k * alpha.double()).abs().max())
        assert residual.abs().max() <= 8 * rounding


@every_dtype
@pytest.mark.parametrize("spread", [0.1, 100.0])
def test_targets_off_by_a_rounding_are_met_to_as_much_however_large_the_step(dtype, spread):
    generator = torch.Generator().manual_seed(0)
    s = spread * torch.randn(500, 10, generator=generator, dtype=dtype)
    y = torch.eye(10, dtype=dtype)[torch.randint(10, (500,), generator=generator)]
    b = torch.log_softmax(s, dim=-1).exp() - y
    for power in (8, 10, 12, 16, 20, 30):
        k = torch.full((500, 1), 10.0**power, dtype=dtype)
        with torch_formulas():
            alpha = cross_entropy_output(s, b, k, 1.0, 0.0, divisor=1, scale=1.0)
        # Logits travel k*alpha: no further than apart, and from there until p is about 1/k.
        travel = 10 * spread + 5 * power
        assert alpha.abs().max() <= 8 * torch.finfo(dtype).eps + travel / 10.0**power


@every_dtype
@pytest.mark.parametrize("classes", [2, 10, 100])
def test_a_ridge_and_a_weight_only_rescale_the_problem(dtype, classes):
    generator = torch.Generator().manual_seed(classes)
    s = 5 * torch.randn(20, classes, generator=generator, dtype=dtype)
    y = torch.eye(classes, dtype=dtype)[torch.randint(classes, (20,), generator=generator)]
    z_sq = 4 * torch.rand(20, 1, generator=generator, dtype=dtype)
    lr, mu, weight = 3.0, 0.5, 0.25
    alpha = softmax_cross_entropy_alpha(s, y, z_sq, lr, mu, weight).double()
    shrink = 1 + lr * mu
    q = (s.double() - shrink * lr * z_sq * alpha) / shrink
    expected = weight * (torch.softmax(q, dim=-1) - y) / shrink
    torch.testing.assert_close(
        alpha, expected, rtol=0, atol=1e-5 if dtype == torch.float32 else 1e-13
    )


@every_dtype
def test_a_vanishing_step_gives_the_explicit_alpha(dtype):
    s = torch.tensor([[1.0, -2.0, 0.5]], dtype=dtype)
    y = torch.tensor([[0.0, 1.0, 0.0]], dtype=dtype)
    expected = torch.softmax(s, dim=-1) - y
    for z_sq in (0.0, 1e-12):
        alpha = softmax_cross_entropy_alpha(s, y, torch.full((1, 1), z_sq, dtype=dtype), 1.0)
        torch.testing.assert_close(alpha, expected, rtol=1e-5, atol=1e-6)


@every_dtype
def test_a_row_with_nan_is_nan_and_leaves_the_others_alone(dtype):
    s = torch.randn(4, 5, dtype=dtype, generator=torch.Generator().manual_seed(0))
    y, z_sq = torch.eye(5, dtype=dtype)[:4], torch.ones(4, 1, dtype=dtype)
    clean = softmax_cross_entropy_alpha(s, y, z_sq, 10.0)
    for spoilt in (s, y, z_sq):
        saved = spoilt[2, 0].item()
        spoilt[2, 0] = math.nan
        alpha = softmax_cross_entropy_alpha(s, y, z_sq, 10.0)
        spoilt[2, 0] = saved
        assert alpha[2].isnan().all()
        assert torch.equal(alpha[[0, 1, 3]], clean[[0, 1, 3]])


def test_a_stack_with_a_rate_each_equals_separate_calls():
    generator = torch.Generator().manual_seed(0)
    s = torch.randn(3, 4, 5, generator=generator)
    y = torch.eye(5)[torch.randint(5, (3, 4), generator=generator)]
    z_sq = torch.rand(3, 4, 1, generator=generator)
    lr = torch.tensor([0.1, 10.0, 1e4]).view(3, 1, 1)
    for solve in (softmax_cross_entropy_alpha, squared_error_alpha):
        together = solve(s, y, z_sq, lr, 0.1, 0.5)
        apart = [solve(s[i], y[i], z_sq[i], lr[i].item(), 0.1, 0.5) for i in range(3)]
        torch.testing.assert_close(together, torch.stack(apart))
        assert together.is_contiguous()


@given(lr=st.floats(1e-6, 1e6), mu=st.floats(0, 10), weight=st.floats(1e-3, 10))
def test_the_squared_error_s_alpha_makes_the_gradient_of_its_problem_vanish(lr, mu, weight):
    generator = torch.Generator().manual_seed(0)
    s, y = (torch.randn(6, 4, generator=generator, dtype=torch.float64) for _ in range(2))
    z_sq = torch.rand(6, 1, generator=generator, dtype=torch.float64) + 0.1
    shrink, k = 1 + lr * mu, lr * z_sq
    alpha = squared_error_alpha(s, y, z_sq, lr, mu, weight).requires_grad_()
    q = s / shrink - k * alpha
    problem = weight / 2 * (y - q) ** 2 + k * shrink * alpha**2 / 2
    (gradient,) = torch.autograd.grad(problem.sum(), alpha)
    assert (gradient.abs() <= 1e-11 * k * (shrink * alpha.abs() + weight * (1 + q.abs()))).all()


def test_the_squared_error_s_step_never_overshoots_the_target():
    s, y, one = torch.tensor([[3.0]]), torch.tensor([[1.0]]), torch.ones(1, 1)
    landings = [(s - lr * squared_error_alpha(s, y, one, lr)).item() for lr in (0.1, 1, 10, 1e8)]
    assert landings == sorted(landings, reverse=True)
    assert landings[-1] == pytest.approx(1.0)
