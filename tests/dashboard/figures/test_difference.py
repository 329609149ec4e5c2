"""Differences paired by seed: line, scatter, and what is off the scale."""

from itertools import pairwise

import pytest

from backend.schemas import DifferencesRead, PairedRead
from dashboard.figures.difference import difference_figure, focus, name_of, off_scale
from dashboard.figures.families import Family
from dashboard.figures.sensitivity import Picture
from dashboard.figures.wording import lane_names
from tests.dashboard.answers import INITIAL, paired


def view(metric: str = "train_loss", kind: str = "method") -> DifferencesRead:
    return DifferencesRead(
        study_id=1, metric=metric, reducer="final", kind=kind, definition="", items=[paired()]
    )


def metas(figure) -> set[str]:
    return {trace.meta for trace in figure.data}


def test_training_and_test_stand_above_each_other_with_line_and_scatter():
    figure = difference_figure(
        [view(), view("test_loss")], Picture(title="Digits"), initial=INITIAL
    )
    assert metas(figure) >= {"mean difference", "pairs", "interval"}
    assert figure.layout.yaxis.title.text == "difference of training loss"
    assert figure.layout.yaxis2.title.text == "difference of test loss"
    assert figure.layout.xaxis2.title.text == "learning rate"


def test_the_legend_names_each_difference_once():
    figure = difference_figure([view(), view("test_loss")], Picture())
    shown = [trace.name for trace in figure.data if trace.showlegend]
    assert shown == ["IB − EB"]
    assert name_of(paired()) == "IB − EB"


def test_markup_in_a_label_is_shown_letter_by_letter():
    item = paired().model_copy(update={"first_label": "ib, <b>mine</b>"})
    figure = difference_figure([view().model_copy(update={"items": [item]})], Picture())
    texts = [text for trace in figure.data for text in (trace.name, *(trace.hovertext or ()))]
    assert any("&lt;b&gt;mine" in (text or "") for text in texts)
    assert not any("<b>mine" in (text or "") for text in texts)


def test_accuracies_are_compared_as_errors():
    figure = difference_figure([view("train_accuracy")], Picture())
    assert figure.layout.yaxis.title.text == "difference of training error"


def test_zero_is_in_the_middle():
    figure = difference_figure([view()], Picture(), initial=INITIAL)
    low, high = figure.layout.yaxis.range
    assert low == pytest.approx(-high)


def test_exploded_pairs_do_not_stretch_the_scale_and_are_counted_at_its_edge():
    scale = focus(view(), full=False, initial=INITIAL)
    assert scale <= 1.1 * INITIAL
    assert {entry[0] for entry in off_scale(paired(), scale)} >= {30.0, 100.0}
    assert "edge" in metas(difference_figure([view()], Picture(), initial=INITIAL))


def times(factor: float, label: str) -> PairedRead:
    """Return a difference so many times as large, of another series."""
    item = paired()
    pairs = [
        pair.model_copy(update={"difference": pair.difference and factor * pair.difference})
        for pair in item.pairs
    ]
    return item.model_copy(update={"pairs": pairs, "first_label": label})


def test_a_difference_is_seen_beside_many_that_are_smaller_or_none():
    alone = focus(view().model_copy(update={"items": [times(1, "adam")]}), full=False)
    small = [times(0.001, f"ib, width {width}") for width in (8, 16, 32)]
    beside = view().model_copy(update={"items": [*small, times(1, "adam")]})
    assert focus(beside, full=False) == alone
    none = view().model_copy(update={"items": [times(0, "ib"), times(1, "adam")]})
    assert focus(none, full=False) == alone
    assert focus(view().model_copy(update={"items": [times(0, "ib")]}), full=False) == 1.0


def test_a_lane_is_named_by_what_varies():
    assert lane_names(["IB, width 8, batch 50", "Adam, width 8, batch 50"]) == ["IB", "Adam"]
    assert lane_names(["IB, width 8", "IB, width 16"]) == ["IB 8", "IB 16"]
    assert lane_names(["IB, no clip", "IB, activation smoothstep"]) == ["IB no clip", "IB smooths…"]
    assert lane_names([]) == []


def exploded() -> PairedRead:
    """Return a difference that leaves the scale for two rates, once upwards and once down."""
    item = paired()
    far = {4: 1e6, 5: -1e6}
    points = [
        point.model_copy(update={"mean": far[i], "low": far[i] - 1, "high": far[i] + 1})
        if i in far
        else point
        for i, point in enumerate(item.points)
    ]
    return item.model_copy(update={"points": points})


def test_no_line_or_band_crosses_the_panel_between_points_that_are_off_it():
    item = exploded()
    figure = difference_figure([view().model_copy(update={"items": [item]})], Picture())
    scale = figure.layout.yaxis.range[1]
    (mean,) = [trace for trace in figure.data if trace.meta == "mean difference"]
    ends = list(pairwise(mean.y))
    assert len([one for one in mean.y if one is not None]) == len(
        [point for point in item.points if point.lr and point.mean is not None]
    )
    assert not any(
        a is not None and b is not None and abs(a) > scale and abs(b) > scale for a, b in ends
    )
    kept = [point for point in item.points if point.mean is not None and abs(point.mean) <= scale]
    for band in (trace for trace in figure.data if trace.meta == "interval"):
        assert set(band.x) <= {point.lr for point in kept}


def test_what_left_the_scale_has_lanes_of_its_own_with_names_and_a_legend():
    figure = difference_figure([view(), view("test_loss")], Picture(), initial=INITIAL)
    edges = [trace for trace in figure.data if trace.meta == "edge"]
    assert edges
    curves = {trace.yaxis for trace in figure.data if trace.meta == "mean difference"}
    assert not curves & {trace.yaxis for trace in edges}
    axes = [figure.layout[trace.yaxis.replace("y", "yaxis")] for trace in edges]
    assert all(axis.ticktext == ("IB",) for axis in axes)
    taken = sorted(axis.domain for axis in figure.select_yaxes())
    assert all(above[0] >= below[1] - 1e-9 for below, above in pairwise(taken))
    explained = {trace.name for trace in figure.data if trace.meta == "legend"}
    sides = {trace.marker.symbol for trace in edges}
    assert len(explained) == len(sides)


def test_more_lanes_than_curves_leave_room_for_are_one_with_their_sums():
    items = [
        paired().model_copy(update={"first_label": f"ib, width {width}"}) for width in range(8)
    ]
    many = view().model_copy(update={"items": items})
    folded = difference_figure([many], Picture(), initial=INITIAL)
    opened = difference_figure([many], Picture(family=Family(rail="open")), initial=INITIAL)
    sums = [
        {lr: sum(int(t) for one in made for at, t in zip(one.x, one.text, strict=True) if at == lr)
         for lr in {lr for one in made for lr in one.x}}
        for figure in (folded, opened)
        if (made := [one for one in figure.data if one.meta == "edge"])
    ]  # fmt: skip
    assert sums[0] == sums[1] != {}
    assert len([one for one in opened.data if one.meta == "edge"]) % 8 == 0
    for trace in (one for one in folded.data if one.meta == "edge"):
        assert figure_axis(folded, trace).ticktext == ("8 curves",)


def figure_axis(figure, trace):
    return figure.layout[trace.yaxis.replace("y", "yaxis")]


def test_the_legend_stands_where_that_of_the_curves_does():
    assert difference_figure([view()], Picture()).layout.legend.y == 1
    assert difference_figure([view()], Picture(narrow=True)).layout.legend.y < 0


def test_a_pair_one_of_which_is_lost_counts_for_the_other():
    item = paired()
    lost = item.points[0].model_copy(update={"lower": 2, "higher": 0})
    pairs = [pair for pair in item.pairs if pair.lr != lost.lr]
    item = item.model_copy(update={"points": [lost, *item.points[1:]], "pairs": pairs})
    assert off_scale(item, 1e9)[0] == (lost.lr, 2, 0)


def test_full_holds_every_finite_pair():
    scale = focus(view(), full=True)
    assert all(abs(pair.difference or 0) <= scale for pair in paired().pairs)


def test_clipping_says_what_is_subtracted():
    title = difference_figure([view(kind="clip")], Picture(title="Digits")).layout.title.text
    assert "clipped minus unclipped" in title


def test_what_both_have_in_common_is_said_once():
    item = view().items[0]
    same = item.model_copy(update={"first_label": "ib, width 8", "second_label": "eb, width 8"})
    other = item.model_copy(update={"first_label": "eb, clip 1", "second_label": "eb, no clip"})
    assert [name_of(same), name_of(other)] == ["IB − EB, width 8", "EB, clip 1 − EB, no clip"]
