"""The general rule equals the closed forms, and its functions are what their knots say."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from ib_core.errors import InvalidSpec
from ib_core.updates import ACTIVATIONS, ALPHA_RULES
from ib_core.updates.piecewise_cubic import Knot, PiecewiseCubic
from tests.ib_core.updates.cases import DTYPES, RuleCase, nodes, ordinary_nodes
from tests.ib_core.updates.test_lowest_value import assert_lowest

CLOSED_FORMS = {
    "linear": PiecewiseCubic((Knot(0.0, 0.0, 1.0, 1.0),)),
    "relu": PiecewiseCubic((Knot(0.0, 0.0, 0.0, 1.0),)),
    "leaky_relu": PiecewiseCubic((Knot(0.0, 0.0, 0.01, 1.0),)),
    "hardtanh": PiecewiseCubic((Knot(-1.0, -1.0, 0.0, 1.0), Knot(1.0, 1.0, 1.0, 0.0))),
    "smoothstep": PiecewiseCubic((Knot(-1.0, -1.0, 0.0, 0.0), Knot(1.0, 1.0, 0.0, 0.0))),
}
#: Humps, a plateau, kinks of either sort and a falling tail: nothing a network would use.
CROOKED = PiecewiseCubic(
    (
        Knot(-3.0, 1.0, -0.5, 1.0),
        Knot(-1.0, 0.0, -2.0, 0.0),
        Knot(0.5, 0.0, 0.0, 3.0),
        Knot(1.0, 2.0, 1.0, 1.0),
        Knot(3.0, -1.0, -1.0, 0.25),
    )
)

closed_forms = pytest.mark.parametrize("name", CLOSED_FORMS)


@closed_forms
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_the_general_rule_equals_the_closed_form(name, dtype):
    # In single precision more nodes would hit ties, which rounding decides.
    node = ordinary_nodes(50_000 if dtype == torch.float64 else 2000).to(dtype)
    expected = ALPHA_RULES[name](*node)
    alpha = CLOSED_FORMS[name].alpha(*node)
    error = (alpha - expected).abs() * node.shrink / node.b.abs()
    # A short step up to a hinge is a small difference, of which rounding is a large share.
    beta = (node.b * node.k / node.shrink).abs()
    assert (error <= 64 * torch.finfo(dtype).eps * (1 + 1 / beta)).all()


@closed_forms
def test_the_knots_of_the_closed_forms_describe_their_activations(name):
    x = torch.linspace(-4, 4, 1000, dtype=torch.float64)
    curve, activation = CLOSED_FORMS[name], ACTIVATIONS[name]
    torch.testing.assert_close(curve.value(x), activation.value(x))
    torch.testing.assert_close(curve.slope(x), activation.slope(x))
    assert curve.slope_range == pytest.approx(activation.slope_range)


@given(node=nodes())
def test_kinks_humps_and_falling_parts_are_no_obstacle(node):
    kinks = tuple(knot.x for knot in CROOKED.knots)
    low, high = CROOKED.slope_range
    case = RuleCase("crooked", CROOKED.alpha, CROOKED.value, (low, high), kinks, height=4.0)
    assert_lowest(case, node)


@pytest.mark.parametrize(("name", "s", "b"), [("hardtanh", 3.0, 4.0), ("relu", -1.0, -2.0)])
@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_a_tie_goes_to_the_shorter_step(name, s, b, sign):
    """The long step costs what it gains, and neither number is rounded on the way there."""
    curve = CLOSED_FORMS[name]
    if sign < 0:
        knots = [Knot(-x, -value, right, left) for x, value, left, right in curve.knots]
        curve = PiecewiseCubic(tuple(knots[::-1]))
    one = torch.ones(1, dtype=torch.float64)
    assert curve.alpha(sign * s * one, sign * b * one, one, 1.0).item() == 0


@given(st.permutations([0.0, 1.0, 1.0, 2.0]))
def test_knots_out_of_order_are_refused(xs):
    with pytest.raises(InvalidSpec, match="increasing order"):
        PiecewiseCubic(tuple(Knot(x, 0.0, 0.0, 0.0) for x in xs))


def test_slope_range_is_attained_and_not_exceeded():
    slopes = CROOKED.slope(torch.linspace(-6, 6, 120_001, dtype=torch.float64))
    low, high = CROOKED.slope_range
    assert low == pytest.approx(slopes.min().item(), abs=1e-4)
    assert high == pytest.approx(slopes.max().item(), abs=1e-3)
