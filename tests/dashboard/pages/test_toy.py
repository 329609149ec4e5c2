"""The toy page: what its address sets, and what the browser is told to draw with."""

import pytest

from dashboard.components.browser_drawn import sliders_for_browser
from dashboard.ids import Toy
from dashboard.pages import toy
from dashboard.theme import METHOD_STYLE, looks
from ib_core.written import Unreadable, read_number
from tests.dashboard.component_tree import find


def test_without_an_address_it_is_the_papers_figure() -> None:
    page = toy.layout()
    assert find(page, Toy.LOSS).value == "quadratic"
    assert find(page, Toy.RATE).value == 1.75
    assert find(page, Toy.START).value == 2
    assert find(page, Toy.STEPS).value == 10
    assert find(page, Toy.CURVATURE).value == 1


def test_the_address_sets_every_control() -> None:
    page = toy.layout(loss="logistic", lr="3.5", curvature="2", start="-1.5", steps="20", log="1")
    values = [find(page, id).value for id in (Toy.LOSS, Toy.RATE, Toy.CURVATURE, Toy.START)]
    assert values == ["logistic", 3.5, 2, -1.5]
    assert find(page, Toy.STEPS).value == 20
    assert find(page, Toy.LOG).checked is True


@pytest.mark.parametrize(
    ("given", "shown"), [("1e9", 100), ("0", 0.01), ("nan", 1.75), ("inf", 1.75), ("x", 1.75)]
)
def test_an_impossible_rate_in_the_address_becomes_a_possible_one(given: str, shown: float) -> None:
    assert find(toy.layout(lr=given), Toy.RATE).value == shown


@pytest.mark.parametrize("given", ["500", "-1", "abc", ""])
def test_what_the_address_asks_for_in_vain_stays_in_its_field_which_says_why(given: str) -> None:
    field = find(toy.layout(lr=given), Toy.RATE)
    assert field.text == given
    with pytest.raises(Unreadable):  # by the same rules as the field's own in the browser
        read_number(field.text, toy.RATE.kind)


def test_a_rate_that_is_taken_is_written_as_everywhere() -> None:
    assert find(toy.layout(lr="1e1"), Toy.RATE).text == "10"
    assert find(toy.layout(), Toy.RATE).text == "1.75"


def test_every_number_has_a_named_slider() -> None:
    page = toy.layout()
    for slider in toy.SLIDERS.values():
        assert find(page, slider.slider_id).thumbLabel == slider.label
        assert find(page, slider.id).kind["low"] == slider.low


def test_the_browser_draws_methods_as_on_every_other_page() -> None:
    told = looks()
    assert told["methods"]["eb"]["colour"] == METHOD_STYLE["eb"].colour
    assert told["dark"]["template"]["layout"]["paper_bgcolor"] == told["dark"]["palette"]["paper"]


def test_the_browser_knows_the_ends_of_every_slider() -> None:
    told = {slider["name"]: slider for slider in sliders_for_browser(toy.SLIDERS)}
    assert told["lr"]["id"] == Toy.RATE
    assert (told["lr"]["low"], told["lr"]["high"], told["lr"]["log"]) == (0.01, 100, True)
    assert told["steps"]["whole"] is True
