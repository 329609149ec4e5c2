"""One node's step, by the traces of its picture."""

from typing import Any

import plotly.graph_objects as go
import pytest

from dashboard.figures.update_step import update_figure
from dashboard.figures.update_sweep import jumps, with_breaks
from dashboard.theme import METHOD_STYLE
from tests.dashboard.illustration_views import relu_view


def trace(figure: go.Figure, name: str) -> Any:
    return next(trace for trace in figure.data if trace.name == name)


def words(figure: go.Figure) -> set[str]:
    return {annotation.text for annotation in figure.layout.annotations}


def test_for_positive_b_eb_overshoots_the_hinge_where_ib_stops() -> None:
    figure = update_figure(relu_view(), 1)
    assert trace(figure, "start").x == (0.3,)
    assert trace(figure, "eb landing").x[0] == pytest.approx(-0.7)
    assert trace(figure, "ib landing").x[0] == pytest.approx(0.0)
    assert trace(figure, "eb words").text == ("EB: loss −0.3",)
    assert trace(figure, "ib words").text == ("IB: loss −0.3",)


def test_for_negative_b_eb_stays_where_ib_looks_past_the_hinge() -> None:
    figure = update_figure(relu_view(), -1)
    assert trace(figure, "start").x == (-0.3,)
    assert trace(figure, "eb landing").x[0] == pytest.approx(-0.3)
    assert trace(figure, "ib landing").x[0] == pytest.approx(0.7)
    assert trace(figure, "eb words").text == ("EB stays",)
    assert trace(figure, "ib words").text == ("IB: loss −0.7",)
    assert len(trace(figure, "eb arrow").x) == 0


def test_the_arrow_follows_the_activation_from_s_to_the_landing() -> None:
    arrow = trace(update_figure(relu_view(), 1), "eb arrow")
    assert (arrow.x[0], arrow.x[-1]) == pytest.approx((0.3, -0.7))
    assert list(arrow.x) == sorted(arrow.x, reverse=True)
    assert arrow.marker.size[-1] > 0 == max(arrow.marker.size[:-1])


def test_a_step_out_of_the_picture_ends_at_its_edge_and_says_where_it_went() -> None:
    figure = update_figure(relu_view(lr=30.0), 1)
    assert trace(figure, "eb landing").x[0] == -3.0
    assert trace(figure, "eb words").text == ("EB: loss −0.3<br>out, at s′ = −29.7",)
    assert list(figure.layout.xaxis.range) == [-3.0, 3.0]


def test_for_positive_b_only_eb_jumps() -> None:
    assert words(update_figure(relu_view(), 1)) == {"EB jumps"}


def test_for_negative_b_both_jump_eb_at_the_hinge_and_ib_left_of_it() -> None:
    figure = update_figure(relu_view(), -1)
    places = {annotation.text: annotation.x for annotation in figure.layout.annotations}
    assert places["EB jumps"] == pytest.approx(0.0, abs=0.03)
    assert places["IB jumps"] == pytest.approx(-0.5, abs=0.03)
    assert [shape.x0 for shape in figure.layout.shapes] == pytest.approx([-0.3, -0.5])


def test_steps_are_counted_in_the_direction_that_lowers_the_loss() -> None:
    for sign in (1, -1):
        line = trace(update_figure(relu_view(), sign), "IB")
        assert min(y for y in line.y if y is not None) == 0.0
        assert max(y for y in line.y if y is not None) == pytest.approx(1.0)


def test_markers_below_sit_at_the_present_s() -> None:
    figure = update_figure(relu_view(), 1)
    assert trace(figure, "eb step here").y[0] == pytest.approx(1.0)
    assert trace(figure, "ib step here").y[0] == pytest.approx(0.3)
    assert trace(figure, "ib loss here").y[0] == pytest.approx(0.0)


def test_a_jump_is_a_hole_and_a_slope_is_not() -> None:
    xs, ys = with_breaks([0.0, 1.0, 2.0, 3.0], [0.0, 0.0, 1.0, 1.0])
    assert xs == [0.0, 1.0, None, 2.0, 3.0]
    assert ys == [0.0, 0.0, None, 1.0, 1.0]
    assert jumps([i / 20 for i in range(21)]) == []


def test_rounding_noise_is_not_blown_up_to_an_axis() -> None:
    view = relu_view()
    noisy = [
        sweep.model_copy(update={"loss": [1e-17 * (i % 2) for i in range(len(view.s))]})
        for sweep in view.sweeps
    ]
    figure = update_figure(view.model_copy(update={"sweeps": noisy}), 1)
    low, high = figure.layout.yaxis3.range
    assert high - low > 1


def test_a_step_beyond_all_numbers_is_still_drawn() -> None:
    view = relu_view()
    gone = view.steps[0].model_copy(update={"landing": None, "value": None, "loss": None})
    figure = update_figure(view.model_copy(update={"steps": [gone, *view.steps[1:]]}), 1)
    assert trace(figure, "eb words").text == ("EB goes beyond all numbers",)
    assert trace(figure, "eb landing").x[0] == -3.0


def test_methods_keep_their_colours() -> None:
    figure = update_figure(relu_view(), 1, "dark")
    assert trace(figure, "EB").line.color == METHOD_STYLE["eb"].colour
    assert trace(figure, "IB").line.dash == METHOD_STYLE["ib"].dash
    assert figure.layout.template.layout.paper_bgcolor == "#17191C"
