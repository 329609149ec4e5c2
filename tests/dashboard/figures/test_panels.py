"""The axis of learning rates, which all panels share; room for titles, names and legends."""

import pytest

from dashboard.figures.panels import (
    LEGEND_ROW,
    LETTER,
    PHONE,
    WIDE,
    columns_for,
    legend_place,
    legend_rows,
    panel_titles,
    rate_axis,
    title_place,
)
from dashboard.theme import template


def test_a_tick_a_decade_where_they_stand_beside_each_other():
    for narrow in (False, True):
        axis = rate_axis([0.01, 0.1, 1, 10, 100], narrow=narrow)
        assert (axis["dtick"], axis["tickangle"]) == (1, 0)


@pytest.mark.parametrize("rates", [(1e-4, 1e3), (1e-6, 1e6), (3e-5, 20.0), (1e-12, 1e12)])
def test_on_a_phone_labels_stay_level_apart_and_name_the_last_decade(rates):
    axis = rate_axis(rates, narrow=True)
    low, high = axis["range"]
    every, last = axis["dtick"], int(high // 1)
    assert axis["tickangle"] == 0
    assert axis["tick0"] == last
    longest = max(len(f"{10.0**power:g}") for power in range(last, int(low), -every))
    assert every * PHONE / (high - low) > LETTER * longest


@pytest.mark.parametrize(("narrow", "columns"), [(False, 2), (False, 4), (True, 2)])
def test_labels_of_panels_beside_each_other_do_not_meet(narrow, columns):
    axis = rate_axis([0.001, 100], narrow=narrow, columns=columns)
    (low, high), every = axis["range"], axis["dtick"]
    room = (PHONE if narrow else WIDE) / columns
    assert every * room / (high - low) > LETTER * len("0.001")


@pytest.mark.parametrize("narrow", [False, True])
def test_a_range_of_a_decade_names_more_than_one_rate(narrow):
    assert rate_axis([0.5, 1, 2, 4], narrow=narrow)["dtick"] == "D2"  # 1 alone says no scale
    assert rate_axis([0.2, 2], narrow=narrow, columns=3)["dtick"] == ("D2" if not narrow else 1)


def test_one_rate_has_an_axis():
    assert rate_axis([1.0], narrow=True)["dtick"] == "D2"
    assert rate_axis([], narrow=True)["range"] == [-2.0, 2.0]


def test_the_title_has_room_above_names_that_do_not_fit_beside_each_other():
    long = "Implicit (IB), Digits with and without clipping, no clip"
    assert 2 * LETTER * len(long) > WIDE
    assert legend_rows([long] * 7, narrow=False) == 7
    assert legend_rows(["EB", "IB", "IB+"], narrow=False) == 1
    assert legend_rows(["EB", long, "IB"], narrow=False) == 1
    assert legend_rows(["EB", long, long, "IB"], narrow=False) == 2
    assert legend_rows([], narrow=False) == 1
    assert legend_rows(["EB", "IB", "IB+"], narrow=True) == 1
    assert legend_rows(["Explicit (EB)"] * 3, narrow=True) == 3


def test_a_legend_of_many_rows_stands_below_where_it_meets_no_title():
    long = "IB − EB, bundled/wine, 10 epochs, batch 100, and what else there is to say"
    for names, narrow, above in (([long] * 2, False, True), ([long] * 3, False, False)):
        legend, over, under = legend_place(names, 400, narrow=narrow)
        assert (over > 0, under > 0) == (above, not above)
        assert (legend["y"] == 1) is above
    assert legend_place(["EB"], 400, narrow=True)[0]["y"] < 0


@pytest.mark.parametrize("narrow", [False, True])
@pytest.mark.parametrize("letters", [5, 24, 40, 90])
def test_no_panel_s_name_reaches_into_the_next_one(letters, narrow):
    names = [f"{number:x}" * letters for number in range(12)]
    columns = columns_for(names, narrow=narrow)
    room = (PHONE if narrow else WIDE) / columns
    for title in panel_titles(names, narrow=narrow):
        assert LETTER * len(title.removeprefix("<b>").removesuffix("</b>")) <= room
    assert columns_for(["EB", "IB"], narrow=False) == 2
    assert panel_titles(["a <b>"], narrow=narrow) == ["<b>a &lt;b&gt;</b>"]


@pytest.mark.parametrize("narrow", [False, True])
def test_a_name_that_is_too_long_keeps_the_end_in_which_it_differs(narrow):
    names = [f"{'Adam, The Zen of Python, ' * 3}scaling {one}" for one in ("standard", "mup_adam")]
    first, second = panel_titles(names, narrow=narrow)
    assert first.startswith("<b>Adam, The Z")
    assert first.endswith("scaling standard</b>")
    assert second.endswith("scaling mup_adam</b>")


def test_a_legend_of_single_series_has_rows_as_high_as_are_counted():
    """Plotly's rows are 20 pixels high and as far apart as groups are, which series are here.

    Beyond half a figure's height it would give a legend a scroll bar, which no paper has.
    """
    assert 20 + template("light").layout.legend.tracegroupgap <= LEGEND_ROW
    assert template("light").layout.legend.maxheight == 1


def test_several_lines_of_a_title_begin_a_line_lower_than_one():
    """Plotly takes the first one's foot for their top."""
    assert title_place(2)["pad"]["t"] - title_place(1)["pad"]["t"] >= 11


def test_names_of_panels_that_would_meet_are_shortened_and_keep_what_tells_them_apart():
    names = [f"Model-based momentum (MoMo), momentum {one}" for one in (0.5, 0.9)]
    assert panel_titles(names, narrow=False) == [
        "<b>MoMo, momentum 0.5</b>", "<b>MoMo, momentum 0.9</b>"
    ]  # fmt: skip
    assert columns_for(names, narrow=False) == 2
    assert panel_titles(["Explicit (EB)"], narrow=False) == ["<b>Explicit (EB)</b>"]
