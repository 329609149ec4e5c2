"""Every rule but arctan's reaches the lowest value of eq. (8), as a search finds it."""

import pytest
import torch
from hypothesis import given

from ib_core.updates.reference import objective, reference_alpha
from tests.ib_core.updates.cases import DTYPES, LOWEST, Nodes, RuleCase, nodes, ordinary_nodes


def rounding(case: RuleCase, node: Nodes, alpha: torch.Tensor) -> torch.Tensor:
    """Return the size of the terms of eq. (8), whose rounding no rule can undercut."""
    c, step = node.s / node.shrink, alpha * node.k
    height = case.sigma(c).abs() + case.sigma(c - step).abs() + c.abs() + step.abs()
    return node.b.abs() * (height + case.height) + node.shrink * alpha.abs() * step.abs()


def assert_lowest(case: RuleCase, node: Nodes) -> None:
    best = reference_alpha(case.sigma, case.slope_range, *node, kinks=case.kinks)
    lowest = objective(case.sigma, best, *node)
    for dtype in DTYPES:
        alpha = case.rule(*node.to(dtype)).double()
        excess = objective(case.sigma, alpha, *node) - lowest
        limits = torch.finfo(dtype)  # what is below the type's smallest number is zero in it
        allowed = 16 * limits.eps * rounding(case, node, best) + limits.tiny
        assert (excess <= allowed).all(), (dtype, alpha, best)


@pytest.mark.parametrize("case", LOWEST, ids=lambda case: case.name)
@given(node=nodes())
def test_the_rule_reaches_the_lowest_value_for_heavy_tailed_nodes_at_any_rate(case, node):
    assert_lowest(case, node)


@pytest.mark.parametrize("case", LOWEST, ids=lambda case: case.name)
def test_the_rule_reaches_the_lowest_value_for_nodes_as_training_meets_them(case):
    assert_lowest(case, ordinary_nodes(200))


@pytest.mark.parametrize("case", LOWEST, ids=lambda case: case.name)
def test_the_search_itself_finds_what_the_rule_finds(case):
    """The twin would be useless if it stopped short of the minimum."""
    node = ordinary_nodes(200, seed=1)
    best = reference_alpha(case.sigma, case.slope_range, *node, kinks=case.kinks)
    alpha = case.rule(*node)
    shortfall = objective(case.sigma, best, *node) - objective(case.sigma, alpha, *node)
    assert (shortfall <= 1e-9 * rounding(case, node, alpha)).all()
