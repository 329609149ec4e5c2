"""What must be true of every rule, whatever the activation."""

import math
from itertools import product

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from ib_core.errors import UnknownName
from ib_core.updates import ACTIVATIONS, ALPHA_RULES, alpha_rule
from tests.ib_core.updates.cases import DTYPES, EVERY, RuleCase, nodes, ordinary_nodes

every_rule = pytest.mark.parametrize("case", EVERY, ids=lambda case: case.name)
every_dtype = pytest.mark.parametrize("dtype", DTYPES, ids=str)

EXTREMES = (0.0, 1e-30, 1e-8, 0.3, 1.0, 3.0**0.5, 2.0, 1e3, 1e12, 1e20, 1e30)


def explicit(case: RuleCase, s: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return ACTIVATIONS[case.name].slope(s) * b


@given(node=nodes())
def test_the_share_of_b_is_a_slope_of_sigma(node):
    """So alpha is 0 or has b's sign where sigma is monotone, and no step beats the steepest."""
    for case, dtype in product(EVERY, DTYPES):
        low, high = case.slope_range
        slack = 8 * torch.finfo(dtype).eps
        alpha = case.rule(*node.to(dtype)).double() * node.shrink
        share = torch.where(node.b == 0, low, alpha / node.b)
        assert (share >= low - slack).all(), (case.name, dtype)
        assert (share <= high * (1 + slack)).all(), (case.name, dtype)
        assert (alpha[node.b == 0] == 0).all(), (case.name, dtype)
        if ACTIVATIONS[case.name].monotone:
            assert (alpha * node.b >= 0).all(), (case.name, dtype)


@given(node=nodes(), lr=st.floats(1e-12, 1e-9))
def test_as_the_rate_vanishes_the_explicit_alpha_returns(node, lr):
    s, b = node.s.clamp(-1e3, 1e3), node.b.clamp(-1e3, 1e3)
    for case, dtype in product(EVERY, DTYPES):
        off_hinge = torch.stack([(s - kink).abs() > 1e-5 for kink in (*case.kinks, torch.inf)])
        alpha = case.rule(s.to(dtype), b.to(dtype), torch.ones_like(s), lr).double()
        error = (alpha - explicit(case, s, b)).abs()
        allowed = (case.slope_error + 1e-5) * b.abs()
        assert (error <= allowed)[off_hinge.all(dim=0)].all(), (case.name, dtype)


@every_rule
@every_dtype
def test_a_layer_that_sees_nothing_takes_the_explicit_alpha_even_in_a_hinge(case, dtype):
    s = torch.tensor([-1.5, -1.0, -0.5, 0.0, 0.5, 1.0, 1.5, 40.0], dtype=dtype)
    for b in (torch.full_like(s, 2.0), torch.full_like(s, -2.0)):
        expected = explicit(case, s, b)
        for z_sq, lr in ((torch.zeros_like(s), 3.0), (torch.ones_like(s), 0.0)):
            alpha = case.rule(s, b, z_sq, lr)
            torch.testing.assert_close(alpha, expected, rtol=1e-5, atol=2 * case.slope_error)
        shrunk = case.rule(s * 7, b, torch.zeros_like(s), 3.0, 2.0)
        torch.testing.assert_close(shrunk * 7, expected, rtol=1e-5, atol=2 * case.slope_error)


@given(node=nodes(), mu=st.floats(0.01, 10))
def test_with_a_ridge_the_step_stays_bounded_however_large_the_rate(node, mu):
    s, b, z_sq, *_ = node
    for case, lr in product(EVERY, (1e2, 1e5, 1e8, 1e12)):
        step = lr * case.rule(s, b, z_sq, lr, mu).abs() * z_sq.sqrt()
        bound = max(map(abs, case.slope_range)) * b.abs() * z_sq.sqrt() / mu
        assert (step <= bound * (1 + 1e-9)).all(), (case.name, lr)


@every_rule
@every_dtype
@pytest.mark.parametrize("mu", [0.0, 10.0])
def test_finite_nodes_never_give_nan(case, dtype, mu):
    size = torch.tensor(EXTREMES, dtype=dtype)
    signed = torch.cat([-size, size])
    s, b, z_sq, lr = torch.meshgrid(
        signed, signed, size, torch.tensor([1e-8, 1e-3, 1.0, 1e3, 1e8], dtype=dtype), indexing="ij"
    )
    alpha = case.rule(s, b, z_sq, lr, mu)
    assert alpha.isfinite().all()
    assert (alpha[b == 0] == 0).all()


@every_rule
@every_dtype
@pytest.mark.parametrize("argument", range(5))
def test_nan_in_any_argument_is_nan_in_that_node_and_no_other(case, dtype, argument):
    node = list(ordinary_nodes(6).to(dtype))
    for b in (node[1], torch.zeros_like(node[1])):
        spoilt = [node[0].clone(), b.clone(), *(x.clone() for x in node[2:])]
        spoilt[argument][2] = math.nan
        alpha = case.rule(*spoilt)
        assert alpha.isnan().tolist() == [False, False, True, False, False, False]


@every_rule
@pytest.mark.parametrize("argument", ["lr", "mu"])
def test_a_rate_or_ridge_that_is_nan_spoils_every_node(case, argument):
    s, b, z_sq, *_ = ordinary_nodes(6)
    assert case.rule(s, b, z_sq, **{"lr": 0.1, "mu": 0.2, argument: math.nan}).isnan().all()


@every_rule
@every_dtype
def test_an_infinite_node_gives_a_limit_or_nan(case, dtype):
    one = torch.ones(1, dtype=dtype)
    low, high = case.slope_range
    for s in (torch.inf, -torch.inf):
        share = case.rule(one * s, one, one, 0.1).item()
        assert math.isnan(share) or low - 1e-6 <= share <= high
    for sign in (1, -1):
        alpha = case.rule(one, one * sign * torch.inf, one, 0.1).item()
        assert math.isnan(alpha) or low < 0 or alpha * sign >= 0


@every_rule
@every_dtype
def test_a_stack_with_a_rate_each_equals_separate_calls(case, dtype):
    s, b, z_sq, *_ = (x.to(dtype) for x in ordinary_nodes(3 * 4 * 5))
    s, b, z_sq = s.view(3, 4, 5), b.view(3, 4, 5), z_sq[:12].view(3, 4, 1)
    lr = torch.tensor([0.01, 1.0, 300.0], dtype=dtype).view(3, 1, 1)
    mu = torch.tensor([0.0, 0.1, 2.0], dtype=dtype).view(3, 1, 1)
    together = case.rule(s, b, z_sq, lr, mu)
    apart = [case.rule(s[i], b[i], z_sq[i], lr[i].item(), mu[i].item()) for i in range(3)]
    torch.testing.assert_close(together, torch.stack(apart))
    one_layer = case.rule(s[0], b[0], z_sq[0], lr, mu)
    assert one_layer.shape == (3, 4, 5)
    torch.testing.assert_close(one_layer[0], together[0])


@every_rule
def test_the_result_has_the_dtype_of_s_whatever_the_other_dtypes(case):
    s, b, z_sq, lr, mu = ordinary_nodes(6)
    alpha = case.rule(s.float(), b, z_sq, lr, mu)
    assert alpha.dtype == torch.float32
    torch.testing.assert_close(alpha.double(), case.rule(s, b, z_sq, lr, mu), rtol=2e-5, atol=1e-6)


@every_rule
def test_arguments_are_left_as_they_are_and_no_graph_is_built(case):
    node = [x.clone().requires_grad_() for x in ordinary_nodes(6)]
    before = [x.detach().clone() for x in node]
    assert not case.rule(*node).requires_grad
    assert all(torch.equal(x.detach(), y) for x, y in zip(node, before, strict=True))


@every_rule
def test_a_transposed_layer_is_solved_like_a_contiguous_one(case):
    s, b, z_sq, *_ = ordinary_nodes(20)
    s, b, z_sq = s.view(4, 5), b.view(4, 5), z_sq[:4].view(4, 1)
    turned = case.rule(s.T.contiguous().T, b.T.contiguous().T, z_sq, 2.0, 0.1)
    torch.testing.assert_close(turned, case.rule(s, b, z_sq, 2.0, 0.1))


def test_every_activation_has_a_rule_and_every_rule_an_activation():
    assert list(ALPHA_RULES) == list(ACTIVATIONS)
    assert {case.name for case in EVERY} == set(ACTIVATIONS)


def test_an_unknown_activation_is_answered_with_the_known_ones():
    with pytest.raises(UnknownName, match=r"no activation called 'swish'.*arctan.*tanh"):
        alpha_rule("swish")
