"""The toy's pictures, by their traces."""

import json
from typing import Any

import plotly.graph_objects as go
import pytest

from dashboard.figures.toy import path_figure
from dashboard.figures.toy_history import history_figure
from dashboard.theme import METHOD_STYLE
from tests.dashboard.illustration_views import quadratic_view


def trace(figure: go.Figure, name: str) -> Any:
    return next(trace for trace in figure.data if trace.name == name)


def test_the_papers_figure_has_both_paths_from_the_same_start() -> None:
    view = quadratic_view()
    explicit = trace(path_figure(view, "esgd"), "dots")
    implicit = trace(path_figure(view, "isgd"), "dots")
    assert explicit.x[0] == implicit.x[0] == 2.0
    assert len(explicit.x) == len(implicit.x) == 11
    assert explicit.x[1] == pytest.approx(-1.5)
    assert implicit.x[1] == pytest.approx(2 / 2.75)


def test_dots_are_numbered_by_step_until_they_crowd() -> None:
    texts = [text.strip() for text in trace(path_figure(quadratic_view(), "esgd"), "dots").text]
    assert texts[:5] == ["0", "1", "2", "3", "4"]
    assert texts[-1] == ""


def test_the_connection_joins_every_step_to_the_next() -> None:
    line = trace(path_figure(quadratic_view(), "esgd"), "path")
    assert list(line.x[:6]) == pytest.approx([2.0, -1.5, None, -1.5, 1.125, None])
    assert set(line.customdata) == set(range(1, 11))


def test_a_diverging_path_does_not_stretch_the_axes() -> None:
    calm, wild = (path_figure(quadratic_view(lr=lr), "esgd") for lr in (1.75, 100.0))
    assert wild.layout.xaxis.range == calm.layout.xaxis.range
    assert wild.layout.yaxis.range == calm.layout.yaxis.range


def test_a_diverging_path_says_when_it_left() -> None:
    figure = path_figure(quadratic_view(lr=2.2), "esgd")
    assert trace(figure, "left").text[0] == "▲ left the picture at step 3 (θ = −3.46)"
    assert list(trace(figure, "left").customdata) == [3]
    assert list(trace(figure, "dots").customdata) == [0, 1, 2]
    assert trace(figure, "exit").y[1] == pytest.approx(figure.layout.shapes[1].y1)


def test_a_converging_path_claims_no_exit() -> None:
    figure = path_figure(quadratic_view(), "isgd")
    assert len(trace(figure, "left").x) == 0
    assert len(trace(figure, "exit").x) == 0


def test_overflow_is_drawn_as_an_exit_and_not_as_a_hole() -> None:
    view = quadratic_view(lr=2.2, steps=5)
    path = view.paths[0].model_copy(
        update={"theta": [2.0, -2.4, None, None, None, None], "loss": [2.0, 2.88] + [None] * 4}
    )
    figure = path_figure(view.model_copy(update={"paths": [path, view.paths[1]]}), "esgd")
    assert "beyond all numbers" in trace(figure, "left").text[0]
    json.loads(figure.to_json())


@pytest.mark.parametrize(("method", "style"), [("esgd", "eb"), ("isgd", "isgd")])
def test_methods_look_as_on_every_other_page(method: str, style: str) -> None:
    dots = trace(path_figure(quadratic_view(), method), "dots")
    assert dots.marker.color == METHOD_STYLE[style].colour
    assert dots.marker.symbol == METHOD_STYLE[style].marker


def test_every_trace_that_grows_knows_the_step_of_each_point() -> None:
    view = quadratic_view(lr=2.2)
    figures = [
        path_figure(view, "esgd"),
        history_figure(view, "loss"),
        history_figure(view, "theta"),
    ]
    growing = [t for figure in figures for t in figure.data if (t.meta or {}).get("grows")]
    assert growing
    assert all(len(t.customdata) == len(t.x) for t in growing)


def test_history_shows_losses_of_both_methods_by_step() -> None:
    figure = history_figure(quadratic_view(), "loss")
    explicit = trace(figure, "ESGD")
    assert list(explicit.x) == list(range(11))
    assert explicit.y[1] == pytest.approx(1.5**2 / 2)
    assert trace(figure, "ISGD").y[1] == pytest.approx((2 / 2.75) ** 2 / 2)


def test_history_marks_steps_out_of_the_picture_on_the_rail() -> None:
    figure = history_figure(quadratic_view(lr=2.2), "theta")
    assert list(trace(figure, "rail").x) == list(range(3, 11))


def test_a_logarithmic_axis_shows_growth_whole() -> None:
    figure = history_figure(quadratic_view(lr=2.2), "loss", log=True)
    assert figure.layout.yaxis.type == "log"
    assert len(trace(figure, "ESGD").x) == 11
    assert len(trace(figure, "rail").x) == 0


def test_a_loss_of_exactly_zero_stays_on_a_logarithmic_axis() -> None:
    figure = history_figure(quadratic_view(lr=1.0), "loss", log=True)
    explicit = trace(figure, "ESGD")
    assert len(explicit.x) == 11
    assert all(y > 0 for y in explicit.y)
    assert explicit.text[1] == "0"


def test_theta_has_no_logarithmic_axis() -> None:
    assert history_figure(quadratic_view(), "theta", log=True).layout.yaxis.type == "linear"


def test_dark_pages_get_the_dark_template() -> None:
    figures = [
        path_figure(quadratic_view(), "esgd", "dark"),
        history_figure(quadratic_view(), "loss", "dark"),
    ]
    assert {figure.layout.template.layout.paper_bgcolor for figure in figures} == {"#17191C"}
