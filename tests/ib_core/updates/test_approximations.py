"""The approximations are as close to their activations as they are said to be, everywhere."""

import pytest
import torch

from ib_core.updates import ACTIVATIONS, ALPHA_RULES, APPROXIMATION_ERROR, APPROXIMATIONS, SOLVABLE

approximations = pytest.mark.parametrize("name", APPROXIMATIONS)

#: Dense where anything bends, and far out into both tails.
LINE = torch.cat(
    [
        torch.linspace(-15, 15, 300_001, dtype=torch.float64),
        torch.logspace(1, 6, 2000, dtype=torch.float64),
        -torch.logspace(1, 6, 2000, dtype=torch.float64),
    ]
)


@approximations
def test_value_and_slope_are_within_the_stated_error_on_the_whole_line(name):
    curve, activation, error = APPROXIMATIONS[name], ACTIVATIONS[name], APPROXIMATION_ERROR[name]
    assert (curve.value(LINE) - activation.value(LINE)).abs().max() <= error.value
    assert (curve.slope(LINE) - activation.slope(LINE)).abs().max() <= error.slope


@approximations
def test_the_stated_error_is_no_larger_than_allowed(name):
    assert APPROXIMATION_ERROR[name].value <= 1e-3
    assert APPROXIMATION_ERROR[name].slope <= 1e-2


@approximations
def test_the_approximation_is_monotone_if_its_activation_is(name):
    curve, activation = APPROXIMATIONS[name], ACTIVATIONS[name]
    assert (curve.slope_range[0] >= 0) == activation.monotone


@approximations
def test_the_approximation_has_no_kink_and_no_jump(name):
    curve = APPROXIMATIONS[name]
    x = torch.tensor([knot.x for knot in curve.knots], dtype=torch.float64)
    assert all(knot.left_slope == knot.right_slope for knot in curve.knots)
    for function in (curve.value, curve.slope):
        torch.testing.assert_close(function(x - 1e-9), function(x + 1e-9), rtol=0, atol=1e-8)


def test_every_approximation_states_its_error():
    assert list(APPROXIMATIONS) == list(APPROXIMATION_ERROR)


def test_the_list_that_needs_no_torch_names_every_rule_in_the_same_order():
    assert list(SOLVABLE) == list(ALPHA_RULES)
    assert set(APPROXIMATION_ERROR) == set(APPROXIMATIONS)
