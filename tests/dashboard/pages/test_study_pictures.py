"""Pictures of many series on the study page: each drawn from what the API says."""

import pytest

from dashboard.components import family_controls
from dashboard.ids import Study as ids
from dashboard.pages.study import curves
from tests.coroutines import run
from tests.dashboard.dispatch import text_of
from tests.dashboard.pages.test_study import CHOSEN, FAMILY, drawn


@pytest.mark.parametrize("view", ["curves", "map", "against", "learning", "box", "best_of"])
def test_every_picture_of_series_is_drawn_from_what_the_api_says(api, view):
    chosen = (*CHOSEN[:4], view, *CHOSEN[5:])
    only = {"only": ["method:ib"]}
    family = tuple(only.get(one.name, one.fallback) for one in family_controls(ids))
    figure, *_ = drawn(*chosen, *FAMILY)
    alone, *_ = drawn(*chosen, *family)
    assert len(figure.data) > 1
    assert "Methods: Explicit (EB), Implicit (IB)." in figure.layout.meta["caption"]
    if view != "against":  # which one series has nothing to be drawn for
        assert 0 < len(alone.data) < len(figure.data)


def test_a_picture_of_differences_has_the_caption_of_the_curves_it_compares(api):
    figure, *_ = drawn(*CHOSEN[:4], "method", *CHOSEN[5:])
    alone, *_ = drawn()
    caption = figure.layout.meta["caption"]
    assert caption.startswith(alone.layout.meta["caption"])
    assert "Drawn: minus EB, training loss and test loss, paired by seed" in caption


def test_what_can_be_chosen_are_the_settings_that_vary(api):
    found = run(curves.draw("v", *CHOSEN, *FAMILY, "light", False, 1, None, None, None))[4]
    assert [one["value"] for one in found["panel"]] == ["auto", "none", "method"]
    (methods,) = found["only"]
    assert [one["value"] for one in methods["items"]] == ["method:eb", "method:ib"]


def test_a_band_is_explained_where_there_is_one(api):
    _, curves_say, _ = drawn()
    _, map_says, _ = drawn("loss", "train", "final", "all", "map", "std", True, "focus", "all")
    assert "Band: " in text_of(curves_say)
    assert "Click a point" in text_of(curves_say)
    assert "Band: " not in text_of(map_says)
