"""Arctan's rule takes the stationary point nearest zero, not the lowest one."""

import numpy as np
import pytest
import torch
from hypothesis import given

from ib_core.updates.arctan import BLOCK, arctan_alpha
from ib_core.updates.reference import objective, reference_alpha, reference_arctan_alpha
from tests.ib_core.updates.cases import DTYPES, Nodes, nodes, ordinary_nodes

ACCURACY = {torch.float32: 1e-5, torch.float64: 1e-10}


def sensitivity(node: Nodes, alpha: torch.Tensor) -> torch.Tensor:
    """Return how many times a relative error of the inputs appears in alpha; 1 far from a fold."""
    c, t = node.s / node.shrink, alpha * node.k
    slope = 1 + (t - c) ** 2 + 2 * t * (t - c)
    inputs = (1 + (t - c) ** 2) + (2 * c * (t - c)).abs()
    return (inputs / slope.abs().clamp(min=1e-300)).clamp(min=1)


def assert_accurate(node: Nodes, dtype: torch.dtype) -> None:
    alpha = arctan_alpha(*node.to(dtype)).double()
    exact = reference_arctan_alpha(*node)
    # Two roots about to merge: whether the nearer one still exists is a matter of rounding.
    clear = sensitivity(node, exact) < 0.1 * torch.finfo(dtype).eps ** -0.5
    rounding = 32 * torch.finfo(dtype).eps * sensitivity(node, exact)
    underflow = 1e-37 * node.b.abs()
    error = (alpha - exact).abs()
    assert (error <= (ACCURACY[dtype] + rounding) * exact.abs() + underflow)[clear].all()


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@given(node=nodes(max_size=24))
def test_the_root_nearest_zero_is_found_for_heavy_tailed_nodes_at_any_rate(dtype, node):
    assert_accurate(node, dtype)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_the_root_nearest_zero_is_found_for_nodes_as_training_meets_them(dtype):
    assert_accurate(ordinary_nodes(100_000), dtype)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_nodes_as_training_meets_them_are_solved_to_rounding(dtype):
    """More than the contract asks: at rates where training is chaotic, errors of 5e-6 show."""
    node = ordinary_nodes(100_000, seed=1)
    exact = reference_arctan_alpha(*node)
    error = (arctan_alpha(*node.to(dtype)).double() / exact - 1).abs() / sensitivity(node, exact)
    assert error.max() < 16 * torch.finfo(dtype).eps


def test_the_twin_agrees_with_the_roots_of_the_cubic():
    """The twin bisects; here the cubic of the paper's table is solved for all its roots."""
    node = ordinary_nodes(300)
    for s, b, z_sq, lr, mu, alpha in zip(*node, reference_arctan_alpha(*node), strict=True):
        c, k = s / (1 + lr * mu), lr * z_sq
        cubic = torch.stack([k**2, -2 * c * k, 1 + c**2, -b / (1 + lr * mu)])
        roots = np.roots(cubic.numpy())
        real = roots[np.abs(roots.imag) < 1e-6 * np.abs(roots)].real
        assert alpha.item() == pytest.approx(real[np.abs(real).argmin()], rel=1e-5)


def test_the_nearest_root_is_taken_even_where_another_is_lower():
    s, b, one, zero = (torch.tensor([x], dtype=torch.float64) for x in (3.0, 4.0, 1.0, 0.0))
    alpha = arctan_alpha(s, b, one, one, zero)
    lowest = reference_alpha(torch.atan, (0.0, 1.0), s, b, one, one, zero)
    assert alpha.item() == pytest.approx(2 - 2**0.5)
    assert lowest.item() == pytest.approx(2 + 2**0.5)
    assert objective(torch.atan, lowest, s, b, one, one, zero) < objective(
        torch.atan, alpha, s, b, one, one, zero
    )


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_two_roots_that_have_just_merged_still_count(dtype):
    """c = 2 and a longest step of 2: the cubic's roots are 1, 1 and 2."""
    for sign in (1, -1):
        two, one = torch.tensor([2.0 * sign], dtype=dtype), torch.ones(1, dtype=dtype)
        assert arctan_alpha(two, two, one, 1.0).item() == pytest.approx(sign, rel=1e-3)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_three_roots_that_merge_do_not_divide_by_zero(dtype):
    """At c = sqrt(3) and a longest step of 8/(3 sqrt 3), all three roots are 2/sqrt(3)."""
    near = 3**0.5 + torch.linspace(-4e-7, 4e-7, 41, dtype=dtype)[:, None]
    b = 8 / 27**0.5 + torch.linspace(-4e-7, 4e-7, 41, dtype=dtype)
    alpha = arctan_alpha(near, b, torch.ones(1, dtype=dtype), 1.0)
    assert (alpha - 2 / 3**0.5).abs().max() < 0.02


def test_a_layer_solved_in_blocks_is_solved_as_in_one_piece():
    node = ordinary_nodes(2 * BLOCK + 5).to(torch.float32)
    together = arctan_alpha(*node)
    apart = [arctan_alpha(*part) for part in zip(*(x.split(BLOCK) for x in node), strict=True)]
    assert torch.equal(together, torch.cat(apart))


def test_half_precision_is_solved_in_single_precision():
    node = ordinary_nodes(50).to(torch.bfloat16)
    alpha = arctan_alpha(*node)
    assert alpha.dtype == torch.bfloat16
    exact = reference_arctan_alpha(*node.to(torch.float64))
    torch.testing.assert_close(alpha.double(), exact, rtol=0.05, atol=1e-3)
