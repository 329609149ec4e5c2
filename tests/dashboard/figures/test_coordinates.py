"""The coordinate check: every panel one rate, every line a layer, in the order of widths."""

from dataclasses import replace

import pytest

from backend.schemas import RecordingRead, SeriesRead
from dashboard.figures import COORDINATES, Answers, Family, Picture, check_rates, view_figure
from dashboard.figures.families import ramp
from tests.dashboard.answers import RATES, series

WIDTHS, SCALINGS = (128, 32, 512), ("standard", "mup")
LAYERS = ["first", "output"]


def line(width: int, scaling: str) -> SeriesRead:
    settings = {"width": width, "scaling": scaling}
    own = {"id": f"{scaling}-{width}", "settings": settings, "label": f"eb, {width}, {scaling}"}
    return series("eb").model_copy(update=own)


LINES = [line(width, scaling) for scaling in SCALINGS for width in WIDTHS]


def looked(width: int, scaling: str, rate: float) -> RecordingRead:
    """An output whose change grows with the width unless scaled, and doubles with the rate."""
    change = rate * (width / 32 if scaling == "standard" else 1)
    return RecordingRead(
        trial_id=1, state="done", steps=[0], outputs=LAYERS, looked_at=[0, 1, 10],
        sizes=[[1, 1, 1]] * 2, changes=[[0, 9, rate], [0, 9, change]],
    )  # fmt: skip


RECORDED = {
    one.id: {rate: looked(one.settings["width"], one.settings["scaling"], rate) for rate in RATES}
    for one in LINES
}


def drawn(recorded=None, **family):
    picture = Picture(family=replace(Family(), **family))
    return view_figure(COORDINATES, Answers(LINES, recorded=recorded or RECORDED), picture)


def of(figure, axis):
    return {one.name: (list(one.x), list(one.y)) for one in figure.data if one.yaxis == axis}


def test_standard_outputs_grow_with_the_width_and_scaled_ones_stay():
    figure = drawn(rate=1.0)
    assert of(figure, "y")["output"] == ([32, 128, 512], [1, 4, 16])
    assert of(figure, "y2")["output"] == ([32, 128, 512], [1, 1, 1])
    assert of(figure, "y")["first"][1] == [1, 1, 1]
    said = [one.text for one in figure.layout.annotations]
    assert "rate 1, widest over narrowest: × 1 to 16" in said
    assert "rate 1, widest over narrowest: × 1" in said
    told = figure.layout.meta["label"]
    assert "scaling standard, rate 1, widest over narrowest: × 1 to 16" in told


def test_few_layers_are_told_apart_beside_a_network_of_many():
    many = {one.id: ["first", *map(str, range(9)), "output"] for one in LINES[3:]}
    recorded = {
        id: {
            rate: one.model_copy(
                update={
                    "outputs": many[id],
                    "sizes": [[1, 1, 1]] * len(many[id]),
                    "changes": [[0, 9, 1]] * len(many[id]),
                }
            )
            if id in many
            else one
            for rate, one in by_rate.items()
        }
        for id, by_rate in RECORDED.items()
    }
    figure = drawn(recorded, rate=1.0)
    shades = {one.name: one.line.color for one in figure.data}
    assert len(shades) == 11
    assert [shades["first"], shades["output"]] == ramp(2, "light")
    assert len(set(shades.values())) == 11


def test_a_panel_has_one_rate_for_all_widths_the_best_of_the_narrowest_or_the_one_asked_for():
    def best(one):
        return min((p for p in one.points if p.mean is not None), key=lambda p: p.mean).lr

    narrow = {one.settings["scaling"]: best(one) for one in LINES if one.settings["width"] == 32}
    found = check_rates(LINES, Picture())
    assert found == {one.id: narrow[one.settings["scaling"]] for one in LINES}
    assert set(check_rates(LINES, Picture(family=Family(rate=2.2))).values()) == {3.0}
    assert drawn(rate=2.2).layout.meta["scrub"]["chosen"] == 3.0


def test_what_was_lost_or_never_looked_at_leaves_a_gap_and_no_panel():
    lost = looked(512, "mup", 1.0).model_copy(update={"changes": [[0, None], [0, None]]})
    some = {**RECORDED, "mup-512": {1.0: lost}, "standard-32": {}}
    figure = drawn(some, rate=1.0)
    assert of(figure, "y")["output"] == ([32, 128, 512], [1, 1, None])
    assert not of(figure, "y2")


@pytest.mark.parametrize("recorded", [{}, {"standard-32": {}}])
def test_without_recorded_outputs_it_says_what_is_needed(recorded):
    assert "records activations" in view_figure(
        COORDINATES, Answers(LINES, recorded=recorded), Picture()
    )
    one_width = [line(32, scaling) for scaling in SCALINGS]
    assert isinstance(view_figure(COORDINATES, Answers(one_width), Picture()), str)
