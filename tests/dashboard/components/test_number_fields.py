"""A slider and its field: places, ends, and what an address may ask for."""

import pytest

from dashboard.components.browser_drawn import NumberSlider
from tests.dashboard.component_tree import find

RATE = NumberSlider("rate", "Learning rate", 0.01, 100, 0.01, log=True, marks=(0.01, 1, 100))
COUNT = NumberSlider("count", "Steps", 1, 50, 1, whole=True)


def test_a_logarithmic_slider_has_a_decade_per_equal_length() -> None:
    assert [RATE.percent(value) for value in (0.01, 0.1, 1, 100)] == pytest.approx([0, 25, 50, 100])


@pytest.mark.parametrize("value", ["", "2.", None, 0, 101, float("nan")])
def test_what_is_not_a_legal_number_is_not_accepted(value: object) -> None:
    assert not RATE.accepts(value)


@pytest.mark.parametrize(
    ("given", "shown"), [(1e9, 100), (0.5, 0.5), (float("inf"), 3), (float("nan"), 3), ("x", 3)]
)
def test_an_address_gets_the_nearest_legal_number(given: object, shown: float) -> None:
    assert RATE.legal(given, 3) == shown


def test_a_whole_number_stays_whole() -> None:
    assert COUNT.legal(7.6, 1) == 8


def test_slider_and_field_have_one_name_and_the_same_ends() -> None:
    drawn = RATE.draw(2.0)
    slider, field = find(drawn, "rate-slider"), find(drawn, "rate")
    assert slider.thumbLabel == "Learning rate"
    assert slider.attributes["thumb"] == {"aria-valuemin": 0.01, "aria-valuemax": 100}
    assert (field.kind["low"], field.kind["high"], field.value) == (0.01, 100, 2.0)
    assert field.text == "2"
    assert [mark["label"] for mark in slider.marks] == ["0.01", "1", "100"]


def test_marks_of_a_logarithmic_slider_are_not_said_to_be_passed() -> None:
    assert "number-slider-log" in RATE.draw(2.0).className.split()
    assert "number-slider-log" not in COUNT.draw(2.0).className.split()
