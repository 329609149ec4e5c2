"""The axis of learning rates, which all panels share."""

import pytest

from dashboard.figures.panels import LETTER, PHONE, WIDE, legend_rows, rate_axis


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


def test_one_rate_has_an_axis():
    assert rate_axis([1.0], narrow=True)["dtick"] == 1
    assert rate_axis([], narrow=True)["range"] == [-2.0, 2.0]


def test_the_title_has_room_above_names_that_do_not_fit_beside_each_other():
    long = "Implicit (IB), Digits with and without clipping, no clip"
    assert 2 * LETTER * len(long) > WIDE
    assert legend_rows([long] * 7, narrow=False) == 7
    assert legend_rows(["EB", "IB", "IB+"], narrow=False) == 1
    assert legend_rows(["EB", long, "IB"], narrow=False) == 1
    assert legend_rows(["EB", long, long, "IB"], narrow=False) == 2
    assert legend_rows([], narrow=False) == 1
    assert legend_rows(["EB", "IB", "IB+"], narrow=True) == 3
