"""Controls and addresses mirror each other."""

import pytest

from dashboard.components.controls import Control, read_controls
from dashboard.pages import compare, history, trial
from dashboard.pages.study import controls


def test_an_address_sets_the_controls_and_silence_leaves_the_fallbacks():
    values = read_controls(controls.CONTROLS, {"split": "test", "seeds": "0"})
    assert values["split"] == "test"
    assert values["seeds"] is False
    assert values["quantity"] == "loss"


def test_what_a_control_cannot_be_is_ignored():
    assert read_controls(controls.CONTROLS, {"y": "<script>"})["y"] == "focus"


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        ("number", "1.5", 1.5),
        ("number", "3", 3),
        ("number", "x", None),
        ("list", "1,2,", ["1", "2"]),
    ],
)
def test_values_have_their_types(kind, text, value):
    assert Control("a", "id", None, kind=kind).read({"a": text}) == value


@pytest.mark.parametrize("page", [controls, history, compare, trial])
def test_no_two_controls_of_a_page_share_a_name(page):
    names = [control.name for control in page.CONTROLS]
    assert len(set(names)) == len(names)
