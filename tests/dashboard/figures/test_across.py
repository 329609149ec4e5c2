"""Pictures of many tasks and of searches: every number in them is the API's."""

from itertools import pairwise

import pytest

from dashboard.figures import Picture, across_figure, best_of_figure, rank_words
from dashboard.figures.ranks import short_name
from tests.dashboard.scored_answers import across, rows

#: What no task has in common with the others.
ELSEWHERE = {"method": "lion", "label": "lion"}
NARROW = pytest.mark.parametrize("narrow", [False, True])


def traces(figure, meta):
    return [trace for trace in figure.data if trace.meta == meta]


@NARROW
def test_every_method_stands_at_its_mean_rank_with_its_name(narrow):
    found = across()
    figure = across_figure(found, Picture(narrow=narrow))
    ranks = found.ranks[0].mean_ranks
    drawn = [one for one in traces(figure, "rank") if one.xaxis == "x"]
    assert sorted(one.x[0] for one in drawn) == sorted(ranks.values())
    for one in drawn:
        assert f"{one.x[0]:.2f}" in one.text[-1]
    if narrow:  # a row each, the best on top: names at both ends would leave nothing between them
        ordered = sorted(drawn, key=lambda one: one.x[0])
        assert [one.y[0] for one in ordered] == [-row for row in range(len(ordered))]
        names = [short_name(label) for label in sorted(ranks, key=ranks.get)]
        assert list(figure.layout.yaxis.ticktext) == names


def test_the_critical_difference_is_drawn_to_scale_and_said():
    found = across()
    figure = across_figure(found, Picture())
    bar = traces(figure, "critical difference")[0]
    assert max(bar.x) - min(bar.x) == pytest.approx(found.ranks[0].critical_difference)
    assert (
        f"{found.ranks[0].critical_difference:.3g}"
        in traces(figure, "critical difference words")[0].text[0]
    )


def test_bars_join_those_and_only_those_that_cannot_be_told_apart():
    found = across()
    ranks = found.ranks[0]
    assert ranks.groups == [["eb", "ib"]] or ranks.groups == [["ib", "eb"]]
    (bar,) = [
        one for one in traces(across_figure(found, Picture()), "rank group") if one.xaxis == "x"
    ]
    inside = {label for label, rank in ranks.mean_ranks.items() if min(bar.x) <= rank <= max(bar.x)}
    assert inside == {"eb", "ib"}
    narrow = across_figure(found, Picture(narrow=True))
    (bar,) = [one for one in traces(narrow, "rank group") if one.xaxis == "x"]
    rows_of = {one.x[0]: one.y[0] for one in traces(narrow, "rank") if one.xaxis == "x"}
    inside = {
        label for label, rank in ranks.mean_ranks.items()
        if min(bar.y) <= rows_of[rank] <= max(bar.y)
    }  # fmt: skip
    assert inside == {"eb", "ib"}


def test_profiles_rise_and_chances_and_middle_halves_have_their_intervals():
    found = across()
    figure = across_figure(found, Picture())
    assert len(traces(figure, "profile")) == 2 * 3
    for line in traces(figure, "profile"):
        assert list(line.y) == sorted(line.y)
    dots = traces(figure, "across dot")
    assert len(dots) == len(found.chances) + len(found.iqm)
    chance = dots[0]
    assert chance.x[0] == pytest.approx(70)
    assert chance.error_x.array[0] == pytest.approx(10)


def test_the_picture_is_told_to_who_does_not_see_it_and_has_no_axis_of_rates():
    figure = across_figure(across(), Picture())
    assert "3 methods over 12 tasks" in figure.layout.meta["label"]
    assert "IB ends lower than EB in 70 %" in figure.layout.meta["label"]
    assert figure.layout.meta["rates"] is False


def test_a_caption_counts_the_tasks_and_names_what_is_compared_on_them():
    found = across_figure(across(), Picture(), [*rows(), rows()[0].model_copy(update=ELSEWHERE)])
    caption = found.layout.meta["caption"]
    assert caption.startswith("12 tasks: training loss after 5 epochs.")
    assert "Methods: Explicit (EB), Implicit (IB)." in caption
    assert "From the top: Mean ranks: Best mean loss (12 tasks" in caption
    assert "caption" in best_of_figure(rows(), Picture()).layout.meta


def test_ranks_in_a_line_begin_with_the_best():
    words = rank_words(across().ranks[0])
    assert words.startswith("Mean ranks by best mean loss: ")
    assert words.index("IB+") > words.index("EB")
    assert rank_words(across().ranks[1]).startswith("Mean ranks by LR sensitivity: ")


@NARROW
def test_the_expected_best_of_k_is_what_the_table_has(narrow):
    found = rows()
    figure = best_of_figure(found, Picture(narrow=narrow))
    lines = traces(figure, "best of k")
    assert [list(line.x) for line in lines] == [list(range(1, 21))] * 2
    for row, line in zip(found, lines, strict=True):
        assert line.y[2] == row.metrics["best_of_3"].value
        assert line.y[9] == row.metrics["best_of_10"].value
        assert list(line.y) == sorted(line.y, reverse=True)
    assert len(traces(figure, "band")) == 2
    assert figure.layout.meta["rates"] is False


def test_many_searches_have_panels_and_no_bands():
    one = rows()[0]
    many = [
        one.model_copy(update={"id": f"{m} {w}", "method": m, "label": m, "settings": {"width": w}})
        for m in ("eb", "ib")
        for w in (8, 16, 32, 64, 128)
    ]
    figure = best_of_figure(many, Picture())
    lines = traces(figure, "best of k")
    assert len(lines) == 10
    assert len({line.xaxis for line in lines}) == 2
    assert [line.name for line in lines if line.showlegend] == [
        f"width {w}" for w in (8, 16, 32, 64, 128)
    ]
    assert not traces(figure, "band")
    assert "interval" not in figure.layout.title.text
    low, high = figure.layout.yaxis.range
    assert all(low <= value <= high for line in lines for value in line.y)


def test_an_accuracy_is_searched_for_as_an_error():
    figure = best_of_figure(rows(), Picture(metric="test_accuracy"))
    assert figure.layout.yaxis.title.text == "expected best test error"


def test_a_logarithmic_axis_holds_all_means():
    figure = best_of_figure(rows(), Picture(scale="log"))
    low, high = (10**end for end in figure.layout.yaxis.range)
    assert all(low < value < high for line in traces(figure, "best of k") for value in line.y)


def test_times_to_the_target_are_a_profile_in_which_who_never_got_there_stays_below():
    found = across()
    figure = across_figure(found, Picture())
    first, second = traces(figure, "profile")[:3], traces(figure, "profile")[3:]
    assert {one.yaxis for one in first} != {one.yaxis for one in second}
    by_label = {line.label: [100 * share for share in line.shares] for line in found.times}
    assert [list(one.y) for one in second] == list(by_label.values())
    assert max(by_label["eb"]) == pytest.approx(100 * 8 / 12)
    assert max(by_label["ib"]) == 100
    headings = [one.text for one in figure.layout.annotations]
    assert any("Epochs to the target" in text for text in headings)
    without = across_figure(found.model_copy(update={"times": []}), Picture())
    assert len(traces(without, "profile")) == 3


def test_every_name_has_its_line_beside_the_profiles():
    found = across()
    many = [found.profiles[0].model_copy(update={"label": f"eb, clip {n}"}) for n in range(20)]
    figure = across_figure(found.model_copy(update={"profiles": many}), Picture())
    drawn = [one for one in figure.layout.annotations if "domain" in str(one.yref)]
    domain = next(a for a in figure.select_yaxes() if "share of tasks" in str(a.title.text)).domain
    margin = figure.layout.margin
    height = (domain[1] - domain[0]) * (figure.layout.height - margin.t - margin.b)
    assert max(one.yshift for one in drawn) + 8 < height
    named = sorted(one.yshift for one in drawn if one.text.startswith("EB, clip"))
    assert len(named) == 20
    assert named[0] >= 7
    assert min(b - a for a, b in pairwise(named)) >= 14.9
    assert all(one.x == 1 and one.xanchor == "left" for one in drawn)  # beside, on no line


def test_profiles_are_drawn_as_far_as_any_of_them_still_rises():
    found = across()
    line = found.profiles[0].model_copy(
        update={"taus": [1.0, 2.0, 4.0, 100.0], "shares": [0.5, 0.5, 1.0, 1.0]}
    )
    alone = found.model_copy(update={"profiles": [line], "times": []})
    figure = across_figure(alone, Picture())
    (axis,) = [one.xaxis for one in traces(figure, "profile")]
    shown = figure.layout[axis.replace("x", "xaxis")].range
    assert 10 ** shown[1] == pytest.approx(5.0)
