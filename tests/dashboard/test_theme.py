"""One method, one look; and text one can read."""

import math
from itertools import combinations

import pytest

from dashboard.theme import (
    METHOD_STYLE,
    PALETTE,
    faint,
    graph_config,
    method_style,
    series_style,
    template,
)

READABLE = 4.5
VISIBLE = 3.0


def luminance(colour: str) -> float:
    channels = [int(colour[start : start + 2], 16) / 255 for start in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def test_no_two_methods_look_alike_even_in_grey():
    colours = {style.colour for style in METHOD_STYLE.values()}
    shapes = {style.marker for style in METHOD_STYLE.values()}
    assert len(colours) == len(shapes) == len(METHOD_STYLE)


def lab(colour: str) -> tuple[float, float, float]:
    """A colour in CIE's Lab, in which distances are what eyes see."""
    channels = [int(colour[start : start + 2], 16) / 255 for start in (1, 3, 5)]
    r, g, b = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels)
    x = (0.4124 * r + 0.3576 * g + 0.1805 * b) / 0.9505
    y = 0.2126 * r + 0.7152 * g + 0.0722 * b
    z = (0.0193 * r + 0.1192 * g + 0.9505 * b) / 1.0888
    x, y, z = (c ** (1 / 3) if c > 0.008856 else 7.787 * c + 16 / 116 for c in (x, y, z))
    return 116 * y - 16, 500 * (x - y), 200 * (y - z)


def test_no_colour_can_be_taken_for_another_method_s():
    for one, other in combinations(METHOD_STYLE.values(), 2):
        assert math.dist(lab(one.colour), lab(other.colour)) > 10
        for scheme in ("light", "dark"):
            assert one.ink(scheme) != other.ink(scheme)


def test_the_paper_s_methods_have_the_colours_of_the_design():
    assert METHOD_STYLE["eb"].colour == "#D55E00"
    assert METHOD_STYLE["ib"].colour == "#0072B2"
    assert (METHOD_STYLE["eb"].dash, METHOD_STYLE["ib"].dash) == ("dot", "solid")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_is_readable_on_its_page(scheme):
    palette = PALETTE[scheme]
    inks = [style.ink(scheme) for style in METHOD_STYLE.values()]
    for ink in (palette.text, palette.muted, palette.accent, *inks):
        for ground in (palette.paper, palette.rail):
            assert contrast(ink, ground) >= READABLE, (ink, ground)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_marker_has_an_outline_one_can_see(scheme):
    for style in METHOD_STYLE.values():
        assert contrast(style.ink(scheme), PALETTE[scheme].paper) >= VISIBLE


def test_clipped_curves_share_the_colour_with_a_thinner_line_and_an_open_marker():
    plain, clipped = series_style("eb"), series_style("eb", clipped=True)
    assert clipped.colour == plain.colour
    assert clipped.width < plain.width
    assert clipped.marker == f"{plain.marker}-open"


def test_a_second_curve_of_a_method_keeps_its_colour_and_gets_another_marker():
    first, second = series_style("ib"), series_style("ib", variant=1)
    assert first.colour == second.colour
    assert (first.marker, first.dash) != (second.marker, second.dash)


def test_imported_methods_are_grey_whatever_they_are():
    assert method_style("eb", imported=True) == method_style("nobody-knows", imported=True)


def test_a_method_of_one_s_own_keeps_a_look_and_options_do_not_change_it():
    own = method_style("my_file.py:lion(wd=0.1)")
    assert own.colour == method_style("my_file.py:lion").colour
    assert own.colour not in {style.colour for style in METHOD_STYLE.values()}
    assert (own.title, own.short) == ("my_file.py:lion(wd=0.1)", "lion")
    assert method_style("eb(schedule=cosine)").colour == METHOD_STYLE["eb"].colour


def test_imported_methods_are_told_apart_by_marker_and_dash():
    eb, ib = series_style("eb", imported=True), series_style("ib", imported=True)
    assert eb.colour == ib.colour == method_style("eb", imported=True).colour
    assert (eb.marker, eb.dash) != (ib.marker, ib.dash)


def test_no_chart_can_be_sent_to_plotly():
    config = graph_config()
    assert config["showSendToCloud"] is False
    assert config["plotlyServerURL"] == ""
    assert "sendChartToCloud" in config["modeBarButtonsToRemove"]


def test_dark_has_a_template_of_its_own():
    assert template("dark").layout.paper_bgcolor != template("light").layout.paper_bgcolor


def test_faint_keeps_the_colour():
    assert faint("#D55E00", 0.16) == "rgba(213,94,0,0.16)"
