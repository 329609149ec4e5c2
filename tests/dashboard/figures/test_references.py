"""Reference lines: which there are, and what happens to those above the scale."""

import plotly.graph_objects as go

from dashboard.figures.scale import Scale
from dashboard.figures.traces import best_point, draw_references, eb_curve, references
from dashboard.theme import PALETTE
from tests.dashboard.answers import series

LINES = [series("ib"), series("eb", clip=1.0), series("eb")]


def lines_of(**changes):
    given = {"threshold": 1.2, "initial": 2.31, "higher_is_better": False}
    return references(LINES, **{**given, **changes})


def test_the_curve_others_are_compared_to_is_eb_without_clipping():
    assert eb_curve(LINES) is LINES[2]
    assert eb_curve(LINES[:2]) is LINES[1]
    assert eb_curve(LINES[:1]) is None


def test_best_means_lowest_loss_or_highest_accuracy():
    points = [point for point in LINES[2].points if point.mean is not None]
    lowest = best_point(LINES[2], higher_is_better=False)
    assert lowest.mean == min(point.mean for point in points)
    highest = best_point(LINES[2], higher_is_better=True)
    assert highest.mean == max(point.mean for point in points)
    assert best_point(None, higher_is_better=False) is None


def test_every_line_is_named_in_words():
    words = [line.words for line in lines_of()]
    assert words[0].startswith("EB's best mean 0.1")
    assert words[1:] == ["divergence threshold 1.2", "initial loss 2.31"]
    assert len(lines_of(threshold=None, initial=None)) == 1


def test_a_line_above_the_scale_is_told_not_drawn():
    figure = go.Figure()
    unseen = draw_references(figure, lines_of(), LINES, Scale(0.0, 2.0), PALETTE["light"])
    assert unseen == ["initial loss 2.31"]
    assert [shape.y0 for shape in figure.layout.shapes] == [lines_of()[0].value, 1.2]
    assert [note.text for note in figure.layout.annotations] == [
        line.words for line in lines_of()[:2]
    ]
