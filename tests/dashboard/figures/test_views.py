"""Map, against a setting, learning curves, box plot: what is drawn is what the API said."""

import math
from dataclasses import replace

import pytest

from backend.schemas import MovementRead, RateCellRead
from dashboard.figures import Answers, Family, Picture, view_figure
from dashboard.theme import BROKEN, METHOD_STYLE
from tests.dashboard.answers import INITIAL, RATES, SEEDS, learnt
from tests.dashboard.figures.test_families import line, traces
from tests.dashboard.scored_answers import rows as scored_rows

WIDTHS = (8, 32, 128)


@pytest.fixture
def answers():
    series = [line(method, width=width) for method in ("eb", "ib") for width in WIDTHS]
    by_method = {row.method: row for row in scored_rows()}
    rows = [
        by_method[one.method].model_copy(
            update={"id": one.id, "settings": one.settings, "label": one.label}
        )
        for one in series
    ]
    return Answers(series, rows, {one.id: learnt(one) for one in series}, initial=INITIAL)


def cells(figure, panel=0):
    heat = [trace for trace in figure.data if trace.type == "heatmap" and trace.meta == "cells"]
    return heat[panel]


def test_a_map_has_a_row_a_value_and_a_panel_a_method(answers):
    figure = view_figure("map", answers, Picture(scale="full"))
    assert len([t for t in figure.data if t.meta == "cells"]) == 2
    eb = cells(figure)
    assert len(eb.z) == len(WIDTHS)
    assert list(figure.layout.yaxis.ticktext) == ["8", "32", "128"]
    assert len(eb.x) == len(RATES) + 1
    told = {cell[0]: cell[1] for cell in eb.customdata[0]}
    assert len(told) == len(RATES)


def test_a_cell_is_the_mean_and_what_broke_has_its_own_colour(answers):
    broke = [RateCellRead(lr=lr, state="tested", n=3, broke=0 if lr < 3 else 3) for lr in RATES]
    answers.rows[0].strip.cells[:] = broke
    figure = view_figure("map", answers, Picture(scale="full"))
    means = [point.mean for point in answers.series[0].points]
    drawn = cells(figure).z[0]
    log = figure.layout.coloraxis.cmin < 0
    for mean, lr, shown in zip(means, RATES, drawn, strict=True):
        if lr >= 3:
            assert shown is None
        else:
            assert shown == pytest.approx(math.log10(mean) if log else mean)
    lost = next(trace for trace in figure.data if trace.meta == "broken")
    assert lost.colorscale[0][1] == BROKEN
    assert [one == 1.0 for one in lost.z[0]] == [lr >= 3 for lr in RATES]


def test_the_optimums_line_runs_through_every_rows_best_rate(answers):
    figure = view_figure("map", answers, Picture())
    best = traces(figure, "best")[0]
    for x, one in zip(best.x, answers.series[:3], strict=True):
        means = {p.lr: p.mean for p in one.points if p.mean is not None}
        assert means[x] == min(means.values())
    assert traces(figure, "edge")


def test_a_map_of_shares_runs_from_none_to_all(answers):
    figure = view_figure("map", answers, Picture(family=Family(cell="broken")))
    assert (figure.layout.coloraxis.cmin, figure.layout.coloraxis.cmax) == (0, 1)
    shares = [one for row in cells(figure).z for one in row]
    assert all(0 <= one <= 1 for one in shares)


def test_a_map_over_epochs_begins_behind_the_first_step(answers):
    figure = view_figure("map", answers, Picture(family=Family(over="epoch")))
    assert len([t for t in figure.data if t.meta == "cells"]) == len(answers.series)
    assert list(cells(figure).y) == [0.5, 1.5, 2.5]


@pytest.mark.parametrize(
    ("view", "over", "most"), [("map", "width", 24), ("map", "epoch", 24), ("learning", "auto", 12)]
)
def test_panels_that_no_screen_holds_are_counted(view, over, most):
    rows = WIDTHS if over == "width" else WIDTHS[:1]
    more = [line("eb", depth=depth, width=width) for depth in range(most + 3) for width in rows]
    answers = Answers(more, learning={one.id: learnt(one) for one in more})
    for beyond, words in ((3, ["3 more panels not drawn: choose with “Show only”."]), (0, [])):
        some = replace(answers, series=more[: (most + beyond) * len(rows)])
        figure = view_figure(view, some, Picture(family=Family(over=over)))
        told = [one.text for one in figure.layout.annotations if "Show only" in one.text]
        assert told == words


def test_many_series_of_many_rates_have_fewer_panels_so_that_nobody_waits():
    more = [line("eb", depth=depth) for depth in range(13)]
    rates = [0.001 * 1.3**place for place in range(20)]
    many = [
        one.model_copy(
            update={"points": [one.points[0].model_copy(update={"lr": rate}) for rate in rates]}
        )
        for one in more
    ]
    learning = {one.id: learnt(one) for one in more}
    for series, words in ((many, "7 more panels"), (more, "1 more panel")):
        figure = view_figure("learning", Answers(series, learning=learning), Picture())
        told = [one.text for one in figure.layout.annotations if "Show only" in one.text]
        assert [one.partition(" not")[0] for one in told] == [words]


def test_numbers_are_drawn_against_the_setting_as_they_were_scored(answers):
    figure = view_figure("against", answers, Picture())
    for name in ("best_rate", "edge", "best_mean", "lr_sensitivity"):
        drawn = traces(figure, name)
        if not drawn:
            assert all(row.metrics.get(name) is None for row in answers.rows)
            continue
        assert drawn[0].y[0] == answers.rows[0].metrics[name].value
        assert len(drawn[0].y) == len(WIDTHS)
    assert figure.layout.xaxis.type == "log"
    assert list(figure.layout.xaxis.tickvals) == list(WIDTHS)


def test_many_lines_of_one_method_have_a_colour_each(answers):
    def shades(*scalings, **family):
        made = [line("adam", width=w, scaling=s) for s in scalings for w in WIDTHS]
        rows = [
            answers.rows[0].model_copy(
                update={
                    "id": one.id,
                    "method": one.method,
                    "settings": one.settings,
                    "label": one.label,
                }
            )
            for one in made
        ]
        picture = Picture(family=Family(**family))
        figure = view_figure("against", replace(answers, series=made, rows=rows), picture)
        return {one.name: one.line.color for one in traces(figure, "best_rate")}

    adam = METHOD_STYLE["adam"].colour
    assert set(shades("a", "b").values()) == {adam}
    three = shades("a", "b", "c")
    assert len(three) == len(set(three.values())) == 3
    assert set(shades("a", "b", "c", colour="method").values()) == {adam}
    assert set(shades(*"abcdefghij").values()) == {adam}  # more lines than colours


def by_activation(answers):
    made = [line(method, activation=one) for method in ("eb", "ib") for one in ("tanh", "relu")]
    rows = [
        answers.rows[0].model_copy(
            update={"id": o.id, "method": o.method, "settings": o.settings, "label": o.label}
        )
        for o in made
    ]
    return replace(answers, series=made, rows=rows)


def test_values_without_an_order_are_rows_and_not_joined(answers):
    figure = view_figure("against", by_activation(answers), Picture())
    drawn = traces(figure, "edge")
    assert [one.mode for one in drawn] == ["markers"] * 2
    assert drawn[0].x[0] == answers.rows[0].metrics["edge"].value
    assert list(figure.layout.yaxis.ticktext) == ["tanh", "relu"]  # as they were asked for
    assert figure.layout.yaxis.range[0] > figure.layout.yaxis.range[1]  # the first on top
    assert all(one.error_x.array is not None for one in drawn)
    best = traces(view_figure("map", by_activation(answers), Picture()), "best")
    assert [one.mode for one in best] == ["markers"] * 2


def test_against_the_method_each_has_its_own_look_and_short_name(answers):
    alone = [replace_id(row, "eb") for row in answers.rows[:1]]
    rows = [*alone, replace_id(answers.rows[0], "ib"), replace_id(answers.rows[0], "momo")]
    figure = view_figure("against", replace(answers, rows=rows), Picture())
    drawn = traces(figure, "best_rate")
    assert [one.marker.color for one in drawn] == [
        METHOD_STYLE[name].colour for name in ("eb", "ib", "momo")
    ]
    assert list(figure.layout.yaxis.ticktext) == ["EB", "IB", "MoMo"]
    assert figure.layout.showlegend is False


def replace_id(row, method):
    return row.model_copy(update={"id": method, "method": method, "label": method, "settings": {}})


def test_a_caption_says_whether_the_best_rate_moves_with_the_setting_drawn(answers):
    eb = [row.id for row in answers.rows if row.method == "eb"]
    moves = [
        MovementRead(setting="width", rows=eb, text="EB: it moves."),
        MovementRead(setting="depth", rows=eb, text="EB: not drawn."),
        MovementRead(setting="width", rows=[*eb, "hidden"], text="EB: not all shown."),
    ]
    told = replace(answers, moves=moves)
    caption = view_figure("against", told, Picture()).layout.meta["caption"]
    assert caption.endswith("Arrows: at least, or at most. EB: it moves.")


def test_one_series_has_nothing_to_be_drawn_against(answers):
    alone = Answers(answers.series[:1], answers.rows[:1])
    assert isinstance(view_figure("against", alone, Picture()), str)


def test_every_trial_is_in_the_learning_curves_under_its_rate(answers):
    figure = view_figure("learning", answers, Picture())
    curves = [trace for trace in figure.data if isinstance(trace.meta, dict) and "lr" in trace.meta]
    assert len(curves) == len(answers.series) * len(RATES)
    assert sum(list(one.x).count(0.0) for one in curves) == len(curves) * len(SEEDS)
    lit = [trace for trace in figure.data if isinstance(trace.meta, dict) and trace.meta.get("lit")]
    assert len(lit) == len(answers.series)
    assert {one.xaxis for one in lit} == {one.xaxis for one in curves}
    scrub = figure.layout.meta["scrub"]
    assert list(scrub["rates"]) == list(RATES)
    means = [{p.lr: p.mean for p in line.points if p.mean is not None} for line in answers.series]
    assert scrub["chosen"] in {min(own, key=own.__getitem__) for own in means}  # one that learns
    by_rate = {one.meta["lr"]: one.line.color for one in curves}
    assert [by_rate[rate] for rate in scrub["rates"]] == list(scrub["colours"])


def test_the_rates_of_all_series_stand_on_top_in_a_line_for_each_look(answers):
    figure = view_figure("learning", answers, Picture())
    lines = traces(figure, "overview")
    drawn = [(x, y) for one in lines for x, y in zip(one.x, one.y, strict=True) if x is not None]
    told = [(point.lr, point.mean) for line in answers.series for point in line.points]
    assert sorted(map(str, drawn)) == sorted(map(str, told))
    assert len(lines) == len({line.method for line in answers.series}) < len(answers.series)


def test_without_single_trials_the_means_are_drawn(answers):
    means = {
        key: one.model_copy(
            update={"rates": [rate.model_copy(update={"seeds": []}) for rate in one.rates]}
        )
        for key, one in answers.learning.items()
    }
    figure = view_figure("learning", Answers(answers.series, learning=means), Picture())
    first = next(t for t in figure.data if isinstance(t.meta, dict) and "lr" in t.meta)
    assert list(first.y) == list(answers.learning[answers.series[0].id].rates[0].mean)


def test_a_box_has_the_quartiles_of_the_answer_and_counts_what_is_off_the_scale(answers):
    with_quartiles = [
        one.model_copy(
            update={
                "points": [
                    p.model_copy(update={"q1": 0.1, "median": 0.2, "q3": 0.3}) for p in one.points
                ]
            }
        )
        for one in answers.series
    ]
    picture = Picture(family=Family(rate=0.31))
    figure = view_figure("box", Answers(with_quartiles), picture)
    boxes = traces(figure, "box")
    assert sorted(place for box in boxes for place in box.y) == [*range(len(answers.series))]
    assert len(boxes) < len(answers.series)  # one of each colour: sixty traces would be slow
    assert (boxes[0].q1[0], boxes[0].median[0], boxes[0].q3[0]) == (0.1, 0.2, 0.3)
    assert "0.3" in figure.layout.title.text
    broken = view_figure("box", Answers(with_quartiles), Picture(family=Family(rate=100.0)))
    counted = {text for trace in traces(broken, "rail") for text in trace.text}
    assert "3/3" in counted
    dots = sum(len(trace.x) for trace in traces(broken, "seeds"))
    lost = sum(int(text.split("/")[0]) for t in traces(broken, "rail") for text in t.text)
    assert dots + lost == len(answers.series) * len(SEEDS)


@pytest.mark.parametrize("view", ["map", "learning"])
def test_without_curves_a_picture_says_so(answers, view):
    picture = Picture(family=Family(over="epoch"))
    said = view_figure(view, Answers(answers.series, answers.rows), picture)
    assert "no losses over training" in said


def test_what_is_off_the_scale_has_a_mark_and_no_box_through_it(answers):
    figure = view_figure("box", answers, Picture(family=Family(rate=100.0)))
    low, high = figure.layout.xaxis.range
    ends = (10**low, 10**high) if figure.layout.xaxis.type == "log" else (low, high)
    boxes = traces(figure, "box")
    assert all(q1 <= ends[1] for box in boxes for q1 in box.q1)
    assert traces(figure, "rail")


def test_lines_that_stand_aside_are_within_the_axis(answers):
    figure = view_figure("against", answers, Picture())
    last = max(x for trace in figure.data for x in trace.x)
    assert math.log10(last) < figure.layout.xaxis.range[1]
