"""The strip's steps."""

import pytest

from dashboard.figures.divergence import RailEntry, rail_traces
from dashboard.figures.scale import step_edges
from dashboard.figures.sensitivity import strip_traces
from dashboard.theme import series_style
from tests.dashboard.answers import series


def test_a_rate_s_step_reaches_half_way_to_its_neighbours_in_log_rate():
    assert step_edges([1.0, 100.0]) == pytest.approx([0.1, 10.0, 1000.0])


def test_a_single_rate_has_a_step():
    low, high = step_edges([1.0])
    assert low < 1 < high


@pytest.mark.parametrize(
    ("decades", "short", "shown"),
    [(4, False, "3/3"), (12, False, "3"), (40, False, None), (4, True, "3"), (9, True, None)],
)
def test_counts_are_shown_where_no_marker_stands_in_their_way(decades, short, shown):
    line = series("eb")
    entries = [RailEntry(point, 3, []) for point in line.points]
    (rail,) = rail_traces(
        line, "EB", series_style("eb"), entries, lane=0, decades=decades, short=short
    )
    assert rail["mode"] == ("markers+text" if shown else "markers")
    assert shown is None or set(rail["text"]) == {shown}


def test_a_count_makes_way_for_a_marker_of_the_other_kind():
    line = series("eb")
    first, second = (
        RailEntry(line.points[0], 0, [1, 2]),
        RailEntry(line.points[0].model_copy(update={"lr": line.points[0].lr * 1.05}), 3, []),
    )
    for entries, mode in (([first], "markers+text"), ([first, second], "markers")):
        found = rail_traces(line, "EB", series_style("eb"), entries, lane=0, decades=4, short=False)
        assert {trace["mode"] for trace in found} == {mode}


def test_the_band_is_the_api_s_interval():
    band = next(strip_traces(series("eb"), "EB", series_style("eb")))
    assert band["meta"] == "strip band"
    assert max(band["y"]) == 1.0


def test_a_curve_without_points_draws_nothing():
    line = series("eb")
    line.points = []
    assert list(strip_traces(line, "EB", series_style("eb"))) == []
