"""The picture: nothing is dropped, and everything is where a reader looks for it."""

from dataclasses import replace

import numpy as np
import plotly.graph_objects as go
import pytest

from dashboard.figures.families import Family, arrange, styles
from dashboard.figures.sensitivity import Picture, sensitivity_figure
from dashboard.figures.traces import finite_mean_trace
from dashboard.theme import METHOD_COLOUR, number
from ib_core.methods.base import OTHER_LOOKS
from ib_core.methods.catalogue import METHODS, VARIANTS
from tests.dashboard.answers import INITIAL, RATES, SEEDS, series


def by_method(lines):
    return styles(lines, arrange(lines, Family(colour="method", panel="none")), "light")


def traces(figure, meta):
    return [trace for trace in figure.data if trace.meta == meta]


@pytest.fixture
def lines():
    return [series("eb"), series("ib")]


@pytest.fixture
def figure(lines):
    picture = Picture(title="Digits")
    return sensitivity_figure(lines, picture, threshold=1.2, initial=INITIAL)


def test_every_seed_is_a_dot_or_counted_on_the_rail(lines, figure):
    dots = sum(
        len(trace.x)
        for kind in ("completed", "diverged")
        for trace in traces(figure, f"seeds {kind}")
    )
    on_rail = {
        trial
        for meta in ("rail diverged", "rail off scale")
        for trace in traces(figure, meta)
        for trials in trace.customdata
        for trial in trials.split(",")
    }
    dotted = {
        trial
        for kind in ("completed", "diverged")
        for trace in traces(figure, f"seeds {kind}")
        for trial in trace.customdata
    }
    everybody = {
        str(seed.trial_id) for line in lines for point in line.points for seed in point.seeds
    }
    assert dotted | on_rail == everybody
    assert dots < len(everybody)  # some really are off this scale


def test_the_rail_counts_diverged_seeds_of_all(figure):
    (rail,) = traces(figure, "rail diverged")
    counts = dict(zip(rail.x, rail.text, strict=True))
    assert counts[100.0] == "3/3"
    assert rail.yaxis == "y2"


def test_off_scale_and_diverged_are_different_markers(figure):
    (diverged,) = traces(figure, "rail diverged")
    off_scale = traces(figure, "rail off scale")[0]
    assert diverged.marker.symbol != off_scale.marker.symbol
    names = [trace.name for trace in traces(figure, "legend")]
    assert names == ["diverged seeds", "seeds off scale"]


def test_the_scale_is_not_stretched_by_exploded_runs(figure):
    low, high = figure.layout.yaxis.range
    assert low <= 0.12
    assert high < 2 * INITIAL


def test_full_shows_every_finite_value(lines):
    figure = sensitivity_figure(lines, Picture(scale="full"), initial=INITIAL)
    highest = max(
        seed.value
        for line in lines
        for point in line.points
        for seed in point.seeds
        if seed.value is not None
    )
    assert figure.layout.yaxis.type == "log"  # four orders of magnitude: nothing else is readable
    assert 10 ** figure.layout.yaxis.range[1] >= highest
    assert traces(figure, "rail off scale") == []


def test_the_band_never_holds_a_gap(lines):
    for trace in traces(sensitivity_figure(lines, Picture()), "band"):
        assert None not in trace.y
        assert trace.fill == "toself"


def test_a_mean_that_is_no_number_leaves_a_gap_and_the_finite_mean_beside_it(figure):
    eb = next(trace for trace in traces(figure, "mean") if "EB" in trace.name)
    assert eb.y[-1] is None
    assert eb.connectgaps is False
    (finite,) = traces(figure, "finite mean")
    assert finite.x == (100.0,)
    assert "2 of 3 seeds are not finite" in finite.hovertext[0]


MARKERS = {look.marker for look in (*(one.look for one in METHODS.values()), *OTHER_LOOKS)}


@pytest.mark.parametrize("marker", sorted(MARKERS | {one for one, _ in VARIANTS if one}))
def test_a_finite_mean_has_a_symbol_that_plotly_knows(lines, marker):
    look = replace(by_method(lines)[lines[0].id], marker=marker)
    (trace,) = finite_mean_trace(lines[0], "EB", look, "std", {})
    assert go.Figure([trace]).data[0].marker.symbol.startswith(marker.removesuffix("-open"))


def test_the_x_axis_is_logarithmic_with_one_tick_a_decade(figure):
    assert figure.layout.xaxis.type == "log"
    assert figure.layout.xaxis.dtick == 1


def test_reference_lines_say_what_they_are(figure):
    words = " ".join(annotation.text for annotation in figure.layout.annotations)
    assert "EB's best mean" in words
    assert "divergence threshold 1.2" in words
    assert "initial loss 2.31" in words


def test_a_reference_above_the_scale_is_named_in_the_rail(lines):
    figure = sensitivity_figure(lines, Picture(), threshold=37_800.0, initial=INITIAL)
    words = [annotation.text for annotation in figure.layout.annotations]
    assert any("divergence threshold 3.78×10⁴ ↑" in text for text in words)


def test_title_and_axis_say_what_is_averaged_after_how_long(figure):
    assert figure.layout.title.text == "<b>Digits</b> · mean ± 1 std of 3 seeds"
    assert figure.layout.yaxis.title.text == "training loss after 5 epochs"


def test_of_one_seed_there_is_no_spread_to_speak_of(lines):
    single = [
        line.model_copy(update={"points": [p.model_copy(update={"n": 1}) for p in line.points]})
        for line in lines
    ]
    title = sensitivity_figure(single, Picture(title="Digits")).layout.title.text
    assert title == "<b>Digits</b> · 1 seed"


def test_methods_keep_their_colours(figure):
    colours = {trace.name: trace.line.color for trace in traces(figure, "mean")}
    assert colours["Explicit (EB)"] == METHOD_COLOUR["eb"]
    assert colours["Implicit (IB)"] == METHOD_COLOUR["ib"]


def test_one_legend_entry_switches_a_whole_curve(figure):
    for line in ("1-eb-None", "1-ib-None"):
        own = [trace for trace in figure.data if trace.legendgroup == line]
        assert {"band", "mean", "strip line"} <= {trace.meta for trace in own}
        assert sum(trace.showlegend is not False for trace in own) == 1


def test_a_click_on_a_mean_opens_its_seeds(figure):
    eb = next(trace for trace in traces(figure, "mean") if "EB" in trace.name)
    assert [trials.count(",") + 1 for trials in eb.customdata] == [len(SEEDS)] * len(RATES)


def test_a_click_on_the_rail_opens_the_seeds_it_counts(lines, figure):
    outcomes = {
        str(seed.trial_id): seed.outcome
        for line in lines
        for point in line.points
        for seed in point.seeds
    }
    for meta, outcome in (("rail diverged", "diverged"), ("rail off scale", "completed")):
        for trace in traces(figure, meta):
            for trials, count in zip(trace.customdata, trace.text, strict=True):
                opened = [outcomes[trial] for trial in trials.split(",")]
                assert opened == [outcome] * int(count.partition("/")[0])


def test_a_seed_that_diverged_is_a_cross_and_one_that_completed_a_ring(lines):
    full = sensitivity_figure(lines, Picture(scale="full"), initial=INITIAL)
    for kind, symbol in (("completed", "circle-open"), ("diverged", "x-thin-open")):
        assert {trace.marker.symbol for trace in traces(full, f"seeds {kind}")} == {symbol}


def test_a_band_ends_where_no_seed_is_finite(lines):
    lost = lines[1].points[4]
    lines[1].points[4] = lost.model_copy(
        update={"mean": None, "finite_mean": None, "low": None, "high": None, "n_finite": 0}
    )
    picture = sensitivity_figure(lines, Picture(), initial=INITIAL)
    parts = [trace for trace in traces(picture, "band") if trace.legendgroup == lines[1].id]
    assert len(parts) == 2
    assert all(lost.lr not in trace.x for trace in parts)


def test_the_strip_shows_the_share_of_diverged_seeds(figure):
    eb = traces(figure, "strip line")[0]
    assert eb.yaxis == "y3"
    assert eb.y[-1] == 1.0
    assert eb.y[0] == 0.0


def test_accuracy_has_no_rail_for_high_values(lines):
    figure = sensitivity_figure(lines, Picture(metric="train_accuracy"))
    assert traces(figure, "rail off scale") == []


def test_a_picture_of_times_has_no_line_of_losses(lines):
    figure = sensitivity_figure(lines, Picture(metric="seconds"), threshold=1.2, initial=INITIAL)
    assert traces(figure, "best") == []
    assert not any("loss" in annotation.text for annotation in figure.layout.annotations)
    assert not any("threshold" in annotation.text for annotation in figure.layout.annotations)


def test_the_best_accuracy_is_the_highest_in_line_and_words(lines):
    for line in lines:
        for point in line.points:
            point.mean = None if point.mean is None else 1 - min(point.mean, 3.0) / 4
    best = max(lines[0].points, key=lambda point: point.mean or 0.0)
    figure = sensitivity_figure(lines, Picture(metric="test_accuracy"))
    (ring,) = traces(figure, "best")
    assert (ring.x, ring.y) == ((best.lr,), (best.mean,))
    assert f"Explicit (EB), best {number(best.mean)} at rate" in figure.layout.meta["label"]


def test_the_zoom_survives_new_data_but_not_another_metric(lines):
    first = sensitivity_figure(lines, Picture(revision="a"))
    again = sensitivity_figure(lines[:1], Picture(revision="a"))
    assert first.layout.uirevision == again.layout.uirevision == "a"


def test_curves_that_would_look_alike_are_told_apart():
    lines = [series("ib", study_id=1), series("ib", study_id=2)]
    first, second = by_method(lines).values()
    assert first.colour == second.colour
    assert first.marker != second.marker


def test_a_phone_gets_the_legend_below_and_short_counts(lines):
    figure = sensitivity_figure(lines, Picture(narrow=True), initial=INITIAL)
    assert figure.layout.legend.y < 0
    (rail,) = traces(figure, "rail diverged")
    assert set(rail.text) <= {"1", "2", "3"}


def test_no_curve_at_all_is_still_a_figure():
    assert sensitivity_figure([], Picture()).layout.xaxis.type == "log"


def test_thousands_of_seeds_are_one_path_and_all_of_them_are_there():
    line = series("ib")
    for point in line.points:
        seed = point.seeds[0]
        values = [*(0.5 + number / 3000 for number in range(300)), 0.9, 1.5]
        point.seeds = [seed.model_copy(update={"value": value}) for value in values]
    figure = sensitivity_figure([line], Picture(scale="full"))
    (dashes,) = traces(figure, "seeds dashes")
    bars = np.column_stack([dashes.x[::5], dashes.x[2::5], dashes.y[::5], dashes.y[1::5]])
    for point in line.points:
        own = bars[(bars[:, 0] < point.lr) & (point.lr < bars[:, 1])]
        assert len(own) == 3  # a crowd, and two on their own
        assert all(any(low < s.value < high for *_, low, high in own) for s in point.seeds)
    assert traces(figure, "seeds completed") == []


def test_no_figure_needs_webgl(figure):
    assert {trace.type for trace in figure.data} == {"scatter"}


def test_counts_that_would_run_into_each_other_are_left_to_the_hover():
    line = series("eb")
    crowded = [line.points[-1].model_copy(update={"lr": 100 * 1.01**k}) for k in range(1, 30)]
    line.points = line.points + crowded
    (rail,) = traces(sensitivity_figure([line], Picture(), initial=INITIAL), "rail diverged")
    assert rail.mode == "markers"
    assert "diverged 3 of 3" in rail.hovertext[-1]
