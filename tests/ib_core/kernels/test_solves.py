"""The compiled kernels against the torch formulas they stand in for."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from ib_core.kernels import find_kernel, loops, solved, solved_layer, torch_formulas
from ib_core.updates import alpha_rule

COMPILED = ("relu", "arctan", "tanh", "sigmoid", "gelu", "silu", "softplus", "elu")


def nodes(seed: int, shape: tuple[int, ...], size: float) -> tuple[torch.Tensor, torch.Tensor]:
    draw = torch.Generator().manual_seed(seed)
    s = torch.randn(shape, generator=draw) * 3
    b = torch.randn(shape, generator=draw) * size
    return s, b


@given(
    seed=st.integers(0, 2**31),
    rows=st.integers(1, 300),
    size=st.sampled_from([1e-6, 1e-2, 1.0, 1e3]),
    lr=st.sampled_from([1e-4, 0.1, 1.0, 30.0]),
)
@pytest.mark.parametrize("rule", COMPILED)
def test_a_kernel_lands_where_its_formula_does_in_every_layout(rule, seed, rows, size, lr):
    assert find_kernel(rule) is not None
    for shape, of_row in (
        ((rows, 7), (rows, 1)),
        ((3, 5, rows), (3, 1, rows)),
        ((3, rows, 5), (3, rows, 1)),
        ((rows,), (rows,)),
    ):
        s, b = nodes(seed, shape, size)
        z_sq = torch.rand(of_row, generator=torch.Generator().manual_seed(seed)) * 20
        found = solved(rule, s, b, z_sq, lr, 0.0)
        with torch_formulas():
            expected = alpha_rule(rule)(s, b, z_sq, lr)
        assert found is not None
        landed, wanted = (s - lr * z_sq * alpha for alpha in (found, expected))
        # Between two minima of one height rounding decides: a few nodes in a million may differ.
        far = (landed - wanted).abs() > 1e-4 * (1 + s.abs() + (lr * z_sq * b).abs())
        assert far.float().mean() <= 0.01


@pytest.mark.parametrize("rule", COMPILED)
def test_what_a_kernel_cannot_solve_is_left_to_the_formula(rule):
    s, b = nodes(1, (4, 3), 1.0)
    z_sq = torch.ones(4, 1)
    assert solved(rule, s, b, z_sq, 0.1, 0.5) is None, "a ridge"
    assert solved(rule, s.double(), b.double(), z_sq.double(), 0.1, 0.0) is None, "float64"
    assert solved(rule, s, b, torch.ones(3), 0.1, 0.0) is None, "another layout"
    with torch_formulas():
        assert solved(rule, s, b, z_sq, 0.1, 0.0) is None


@given(
    seed=st.integers(0, 2**31),
    rows=st.integers(1, 40),
    inputs=st.integers(1, 40),
    rate=st.sampled_from([1e-4, 0.1, 30.0]),
    bias=st.booleans(),
)
@pytest.mark.parametrize("rule", COMPILED)
def test_a_layer_is_solved_from_its_input_as_from_its_norms(rule, seed, rows, inputs, rate, bias):
    s, b = nodes(seed, (rows, 7), 1.0)
    z = torch.randn(rows, inputs, generator=torch.Generator().manual_seed(seed))
    found = solved_layer(rule, s, b, z, rate, bias=bias)
    z_sq = z.square().sum(-1, keepdim=True) + bias
    expected = solved(rule, s, b, z_sq, rate, 0.0)
    assert found is not None
    assert expected is not None
    # |z|^2 is summed in another order; where two minima are equally deep, that may decide.
    far = (found - expected).abs() > 1e-4 * (1e-3 + expected.abs())
    assert far.sum() <= 1 + 0.01 * far.numel()


def test_a_layer_that_no_kernel_reads_is_left_to_the_formulas():
    s, b = nodes(1, (4, 3), 1.0)
    z = torch.ones(4, 2)
    assert solved_layer("hardtanh", s, b, z, 0.1, bias=True) is None
    assert solved_layer("relu", s.double(), b.double(), z.double(), 0.1, bias=True) is None
    assert solved_layer("relu", s, b, z[:1].expand(4, 2), 0.1, bias=True) is None, "not one block"
    with torch_formulas():
        assert solved_layer("relu", s, b, z, 0.1, bias=True) is None


def test_the_arctans_solve_multiplies_normal_numbers_only():
    """A processor takes three times as long where it meets others, at nearly every node here."""
    least = float(loops._LEAST)
    assert least * least**0.5 >= torch.finfo(torch.float32).tiny
    assert float(loops._TINY_HALF) >= torch.finfo(torch.float32).tiny
