"""Differences paired by seed: line, scatter, and what is off the scale."""

import pytest

from backend.schemas import DifferencesRead
from dashboard.figures.difference import difference_figure, focus, name_of, off_scale
from dashboard.figures.sensitivity import Picture
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
