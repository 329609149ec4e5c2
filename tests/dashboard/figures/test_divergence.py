"""The strip's steps."""

import pytest

from dashboard.figures.divergence import step_edges, strip_traces
from dashboard.theme import series_style
from tests.dashboard.answers import series


def test_a_rate_s_step_reaches_half_way_to_its_neighbours_in_log_rate():
    assert step_edges([1.0, 100.0]) == pytest.approx([0.1, 10.0, 1000.0])


def test_a_single_rate_has_a_step():
    low, high = step_edges([1.0])
    assert low < 1 < high


def test_the_band_is_the_api_s_interval():
    band = next(strip_traces(series("eb"), "EB", series_style("eb")))
    assert band["meta"] == "strip band"
    assert max(band["y"]) == 1.0


def test_a_curve_without_points_draws_nothing():
    line = series("eb")
    line.points = []
    assert list(strip_traces(line, "EB", series_style("eb"))) == []
