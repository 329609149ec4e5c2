"""What is published looks as it does on every other page, and says what became of every trial."""

import pytest

from backend.services.publishing import html_page
from backend.services.publishing.contents import DASHES, SHAPES, drawing, looks, svg
from ib_core.methods import IMPORTED_LOOK, METHODS, OTHER_LOOKS, Look, series_look
from ib_core.methods.catalogue import VARIANTS
from tests.published import LOST, contents, curve
from tests.published import METHODS as DRAWN

EVERY_LOOK = [IMPORTED_LOOK, *OTHER_LOOKS, *(method.look for method in METHODS.values())]


def every_look() -> set[Look]:
    return {
        series_look(method, clipped=clipped, imported=imported, variant=variant)
        for method in (*METHODS, "file.py:mine", "torch.optim.RAdam")
        for clipped in (False, True)
        for imported in (False, True)
        for variant in range(len(VARIANTS))
    }


@pytest.mark.parametrize("order", [("eb", "ib"), ("ib", "eb"), ("adam", "ib_plus", "eb", "ib")])
def test_a_method_has_its_colour_wherever_it_stands(order: tuple[str, ...]) -> None:
    series = [curve(method) for method in order]
    page = drawing(contents(series))["metrics"][0]["series"]
    drawn = {one["method"]: one["look"] for one in page}
    assert {name: look["colour"] for name, look in drawn.items()} == {
        name: METHODS[name].look.colour for name in order
    }
    assert drawn["eb"]["dash"] == DASHES["dot"]
    assert drawn["ib"]["dash"] == ""
    picture = svg(series, title="", value="loss")
    for look in drawn.values():
        mark = f'd="{look["marker"]}" '
        filled = [line for line in picture.splitlines() if mark in line and "stroke" in line]
        assert len(filled) > 5
        assert all(f'fill="{look["colour"]}"' in line for line in filled)


def test_every_look_of_a_curve_can_be_drawn() -> None:
    for look in {*EVERY_LOOK, *every_look()}:
        assert look.marker.removesuffix("-open") in (*SHAPES, "circle"), look
        assert look.dash in DASHES, look


def test_two_curves_of_one_method_share_its_colour_and_nothing_else() -> None:
    plain, rule, clipped, elsewhere = looks(
        [
            curve("ib"),
            curve("ib", label="ib, share", batch_rule="share"),
            curve("ib", label="ib, clip 1", clip=1.0),
            curve("ib", label="ib, imported", imported=True),
        ]
    )
    assert plain.colour == rule.colour == clipped.colour == METHODS["ib"].look.colour
    assert elsewhere.colour == IMPORTED_LOOK.colour
    assert (plain.marker, plain.dash) != (rule.marker, rule.dash)
    assert clipped.open
    assert clipped.width < plain.width
    first, other = looks([curve("ib"), curve("ib", task="mnist")])
    assert first == other, "they never share a picture"


def test_an_open_symbol_stays_one_when_its_curve_is_clipped() -> None:
    for method in METHODS:
        assert series_look(method, clipped=True).marker.count("-open") == 1, method


def test_a_diverged_trial_with_a_finite_loss_is_not_taken_for_a_completed_one() -> None:
    series = drawing(contents())["metrics"][0]["series"]
    assert len(series) == len(DRAWN)
    lost = [seed for one in series for point in one["points"] for seed in point["seeds"] if seed[3]]
    finite = [seed for seed in lost if seed[1] is not None]
    assert len(finite) == LOST * len(DRAWN)
    assert len(lost) == sum(point["diverged"] for one in series for point in one["points"])


def test_a_line_breaks_where_a_mean_is_over_some_seeds_only() -> None:
    one = curve("ib")
    middle = one.points[5].model_copy(update={"mean": None})
    broken = one.model_copy(update={"points": [*one.points[:5], middle, *one.points[6:]]})
    pictures = [svg([drawn], title="", value="").splitlines() for drawn in (one, broken)]
    paths = [next(line for line in lines if 'fill="none"' in line) for lines in pictures]
    assert [path.count("M") for path in paths] == [1, 2]
    assert drawing(contents([broken]))["metrics"][0]["series"][0]["points"][5]["partial"]


def test_what_diverged_is_counted_above_the_curves() -> None:
    ends = [0, *range(8, 20, 4)]
    one = curve("eb")
    far = one.model_copy(update={"points": [one.points[place] for place in ends]})
    picture = svg([far], title="", value="")
    for point in far.points:
        if point.diverged:
            assert f">{point.diverged}/{point.n}</text>" in picture
    assert "/25</text>" not in svg([one], title="", value=""), "no room, only triangles"
    assert "25 of 25 diverged" in svg([one], title="", value="")


def test_two_thousand_trials_make_less_than_two_megabytes() -> None:
    assert len(html_page(contents()).encode()) < 2_000_000
