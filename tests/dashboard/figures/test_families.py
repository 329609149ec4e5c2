"""Many series: order, colours, panels, what is shown, and words that name only what varies."""

import math
from dataclasses import replace
from itertools import combinations

import pytest

from backend.schemas import SeriesRead
from dashboard.figures import (
    Family,
    Picture,
    series_name,
    shown_only,
    token,
    varied,
    with_titles,
)
from dashboard.figures.families import (
    RAMPS,
    Arrangement,
    Naming,
    arrange,
    joined,
    light_twins,
    panels_of,
    ramp,
    styles,
)
from dashboard.figures.sensitivity import sensitivity_figure
from dashboard.figures.traces import OPEN_RAIL
from dashboard.theme import BROKEN, CATEGORY_COLOURS, IMPORTED_STYLE, METHOD_STYLE, PALETTE
from tests.dashboard.answers import RATES, SEEDS, series
from tests.dashboard.test_theme import contrast


def line(method: str, **settings) -> SeriesRead:
    told = ", ".join([method, *(f"{name} {value}" for name, value in settings.items())])
    made = series(method, label=told)
    return made.model_copy(update={"settings": settings, "id": told})


@pytest.fixture
def widths():
    return [line(method, width=width) for method in ("eb", "ib") for width in (128, 8, 32)]


def traces(figure, meta):
    return [trace for trace in figure.data if trace.meta == meta]


def test_numbers_are_in_the_order_of_numbers(widths):
    method, width = varied(widths)
    assert (method.name, method.values) == ("method", ("eb", "ib"))
    assert (width.values, width.ordered) == ((8, 32, 128), True)
    clips = [line("eb", clip=value) for value in (1.0, None, 0.1)]
    assert varied(clips)[0].values == (None, 0.1, 1.0)


def test_an_ordered_setting_gets_the_ramp_and_the_method_the_panels(widths):
    found = arrange(widths, Family())
    assert (found.colour.name, found.panel.name) == ("width", "method")
    assert [title for title, _ in panels_of(widths, found.panel)] == [
        "Explicit (EB)",
        "Implicit (IB)",
    ]
    looks = styles(widths, found, "light")
    same = {looks["eb, width 8"].colour, looks["ib, width 8"].colour}
    assert len(same) == 1
    assert len({look.colour for look in looks.values()}) == 3


def test_options_that_settings_tell_make_no_methods_of_their_own():
    lines = [
        line(f"{method}(warmup={steps})" if steps else method, warmup=steps)
        for method in ("eb", "ib")
        for steps in (0, 5, 50)
    ]
    method, warmup = varied(lines)
    assert (method.values, warmup.values) == (("eb", "ib"), (0, 5, 50))
    panels = panels_of(lines, arrange(lines, Family()).panel)
    assert [(title, len(own)) for title, own in panels] == [
        ("Explicit (EB)", 3),
        ("Implicit (IB)", 3),
    ]
    assert series_name(lines[1], "eb, warmup 5") == "Explicit (EB), warmup 5"
    other = line("torch.optim.AdamW(weight_decay=0.1)", warmup=0)
    assert varied([*lines, other])[0].values[-1] == "torch.optim.AdamW(weight_decay=0.1)"


def test_what_the_task_decides_is_not_told_beside_it():
    tasks = {"digits_wide": (3, 50), "gpt_bytes": (6, 8)}
    lines = [
        line("adam", task=task, epochs=epochs, batch_size=batch, width=width)
        for task, (epochs, batch) in tasks.items()
        for width in (32, 64)
    ]
    assert [one.name for one in varied(lines)] == ["task", "width"]
    assert Naming(varied(lines)).of(lines[0]) == "digits_wide, width 32"


def test_panels_of_tasks_have_their_titles_and_not_their_ids():
    lines = [line("eb", task=task) for task in ("bundled/iris", "digits_mlp", "own.py:net")]
    lines = [one.model_copy(update={"task": one.settings["task"]}) for one in lines]
    found = with_titles(lines, {"bundled/iris": "Iris", "digits_mlp": "Digits"})
    (setting,) = varied(found)
    assert [title for title, _ in panels_of(found, setting)] == ["Digits", "Iris", "own.py:net"]


def transfer():
    """As the shipped study of transfer has it: two tasks, scalings that fit the method."""
    return [
        line(method, task=task, scaling=scaling, width=width)
        for method, task, own, widths in (
            ("eb", "digits", "mup", (32, 512, 128)),
            ("adam", "digits", "mup_adam", (32, 128, 512)),
            ("adam", "gpt", "mup_adam", (32, 64, 128)),
        )
        for scaling in ("standard", own)
        for width in widths
    ]


def test_where_a_methods_panel_is_a_thicket_everything_but_the_colour_gets_panels():
    figure = sensitivity_figure(transfer(), Picture())
    panels = panels_of(transfer(), arrange(transfer(), Family()).panel)
    assert [title for title, _ in panels] == [
        "Explicit (EB), digits, scaling standard",
        "Explicit (EB), digits, scaling mup",
        "Adam, digits, scaling standard",
        "Adam, digits, scaling mup_adam",
        "Adam, gpt, scaling standard",
        "Adam, gpt, scaling mup_adam",
    ]
    assert [len(own) for _, own in panels] == [3] * 6
    assert len(traces(figure, "best")) == 6  # an optimum's line each
    named = [one for one in traces(figure, "mean") if one.showlegend]
    assert {one.name for one in named} == {"width 32", "width 64", "width 128", "width 512"}
    ranks = sorted((one.legendrank, one.name) for one in named)
    assert [name for _, name in ranks] == ["width 32", "width 64", "width 128", "width 512"]


def test_curves_of_one_colour_have_panels_of_their_own():
    """IB with a rule for batches or the other: both would be a curve of every batch's colour."""
    rules = (("eb", None), ("ib", "own"), ("ib", "share"))
    lines = [
        line(method, batch_rule=rule, batch_size=size)
        for method, rule in rules
        for size in (9, 8, 7)
    ]
    found = arrange(lines, Family())
    assert [title for title, _ in panels_of(lines, found.panel)] == [
        "Explicit (EB)",
        "Implicit (IB), own",
        "Implicit (IB), share",
    ]
    named = [one.name for one in traces(sensitivity_figure(lines, Picture()), "mean")]
    assert set(named) == {"batch size 7", "batch size 8", "batch size 9"}


def test_a_title_says_of_the_band_only_what_is_drawn(widths):
    few = sensitivity_figure(widths, Picture(title="Digits"))  # three curves a panel
    assert few.layout.title.text.endswith("mean ± 1 std of 3 seeds")
    many = [line(m, width=width) for m in ("eb", "ib") for width in (8, 16, 32, 64)]
    figure = sensitivity_figure(many, Picture(title="Digits"))
    assert figure.layout.title.text.endswith("mean of 3 seeds")
    assert not traces(figure, "band")


def test_a_methods_first_line_keeps_its_colour_where_every_line_has_one():
    lines = [line("eb", scaling=one) for one in ("standard", "mup")]
    lines += [line("adam", scaling=one) for one in "abc"]
    every = joined(varied(lines), lines)
    looks = styles(lines, Arrangement(every, None), "light")
    for method, first in (("eb", lines[0]), ("adam", lines[2])):
        assert looks[first.id].colour == METHOD_STYLE[method].colour
    assert len({look.colour for look in looks.values()}) == 5
    assert METHOD_STYLE["ib"].colour not in {look.colour for look in looks.values()}


def test_a_folded_rail_says_how_many_are_lost_and_from_where_on_all_are(widths):
    (rail, *_) = traces(sensitivity_figure(widths, Picture()), "rail folded")
    assert rail.text[-1] == "" or rail.text[-1].endswith("→")
    whole = [i for i, words in enumerate(rail.text) if words.endswith("→")]
    assert len(whole) == 1
    lost, seeds = rail.text[whole[0]].removesuffix(" →").split("/")
    assert lost == seeds == str(3 * len(SEEDS))
    assert len(rail.x) == len(rail.hovertext)  # what is not marked can still be asked
    assert list(rail.marker.opacity[whole[0] + 1 :]) == [0.0] * (len(rail.x) - whole[0] - 1)


def test_few_series_are_coloured_by_method_in_one_panel():
    found = arrange([line("eb", activation="relu"), line("ib", activation="tanh")], Family())
    assert (found.colour, found.panel) == (None, None)


def test_a_person_may_choose_otherwise(widths):
    found = arrange(widths, Family(colour="method", panel="width"))
    assert found.colour is None
    assert found.panel.name == "width"
    assert arrange(widths, Family(panel="none")).panel is None
    nonsense = Family(colour="hue", panel="hue")
    assert arrange(widths, nonsense) == arrange(widths, Family())


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_neighbours_on_the_ramp_are_told_apart_and_from_the_page(scheme):
    def light(colour):
        return [int(colour[i : i + 2], 16) for i in (1, 3, 5)]

    colours = [light(one) for one in ramp(6, scheme)]
    paper = [255] * 3 if scheme == "light" else [0x17, 0x19, 0x1C]

    def apart(one, other):
        return sum(abs(a - b) for a, b in zip(one, other, strict=True))

    assert min(apart(one, other) for one, other in combinations(colours, 2)) > 40
    assert min(apart(one, paper) for one in colours) > 90


def test_values_of_one_setting_add_up_and_settings_narrow_down(widths):
    only = [token("width", 8), token("width", 32), token("method", "ib"), "width:7", "no:thing"]
    assert [one.label for one in shown_only(widths, only)] == ["ib, width 8", "ib, width 32"]
    assert shown_only(widths, ["width:7"]) == widths


def test_an_address_can_hold_any_value():
    odd = [line("ib(a=1,b=2)", task="a:b, c"), line("eb", task="d")]
    (kept,) = shown_only(odd, [token("task", "a:b, c")])
    assert kept is odd[0]
    assert all("," not in token(one.name, value) for one in varied(odd) for value in one.values)


def test_a_name_tells_what_varies_and_no_more(widths):
    assert Naming(varied(widths)).of(widths[1]) == "Explicit (EB), width 8"
    own = [one for one in widths if one.method == "eb"]
    assert Naming(varied(own)).of(own[0]) == "width 128"
    assert Naming([]).of(own[0]) == "Explicit (EB)"
    plain = [line("eb", width=8, clip=1.0), line("eb", clip=None)]
    assert Naming(varied(plain)).of(plain[1]) == "usual width, no clip"


def sixty():
    return [
        line(method, width=width, depth=depth)
        for method in ("eb", "ib", "ib_plus")
        for width in (8, 16, 32, 64, 128)
        for depth in (1, 2, 3, 4)
    ]


def test_sixty_series_are_panels_with_one_legend_below():
    figure = sensitivity_figure(sixty(), Picture(title="Digits"))
    means = traces(figure, "mean")
    assert len(means) == 60
    assert len({trace.xaxis for trace in means}) == 3
    assert figure.layout.yaxis2.matches == "y"
    named = [trace.name for trace in means if trace.showlegend]
    assert len(named) == len(set(named)) == 20
    assert figure.layout.legend.y < 0
    assert figure.layout.legend.yanchor == "top"
    assert len(figure.data) < 200
    assert figure.layout.meta["rates"] is False


def rgb(colour: str) -> tuple[int, ...]:
    return tuple(bytes.fromhex(colour[1:]))


def test_what_is_drawn_alike_in_both_schemes_has_no_twin_of_another_colour():
    """On paper a colour of the dark scheme is known by nothing but itself."""
    twins = light_twins()
    alike = {style.colour for style in METHOD_STYLE.values()}
    for colour in alike | {*CATEGORY_COLOURS, BROKEN, IMPORTED_STYLE.colour, "#FFFFFF", "#000000"}:
        assert twins["pairs"].get(colour, colour) == colour
        for name in RAMPS:
            nearest = min(math.dist(rgb(colour), rgb(one)) for one in ramp(500, "dark", name))
            assert nearest > 5, (colour, name)
    inks = {(style.ink_dark, style.ink_light) for style in METHOD_STYLE.values()}
    assert {(dark, twins["pairs"][dark]) for dark, _ in inks} == inks


@pytest.mark.parametrize("name", RAMPS)
@pytest.mark.parametrize(("scheme", "least"), [("light", 1.9), ("dark", 2.8)])
def test_no_end_of_a_ramp_is_lost_on_its_page(scheme, least, name):
    paper = PALETTE[scheme].paper
    assert min(contrast(one, paper) for one in ramp(12, scheme, name)) >= least


@pytest.mark.parametrize(("name", "twins"), [*zip(RAMPS, light_twins()["ramps"], strict=True)])
def test_a_ramp_s_twins_begin_and_end_as_the_ramps_do(name, twins):
    dark, light = (ramp(9, scheme, name) for scheme in ("dark", "light"))
    assert [twins[0], twins[-1]] == [(dark[0], light[0]), (dark[-1], light[-1])]


def test_the_rail_folds_and_counts_everybody():
    lines = [line("eb", width=width) for width in range(1, 10)]
    one = Family(panel="none")
    figure = sensitivity_figure(lines, Picture(family=one))
    (rail,) = traces(figure, "rail folded")
    assert traces(figure, "rail diverged") == []
    assert set(rail.customdata) == {OPEN_RAIL}
    words = dict(zip(rail.x, rail.hovertext, strict=True))
    assert f"{9 * len(SEEDS)} of {9 * len(SEEDS)} seeds" in words[max(RATES)]
    opened = sensitivity_figure(lines, Picture(family=replace(one, rail="open")))
    assert len(traces(opened, "rail diverged")) == 9
    main = figure.layout.yaxis.domain
    assert main[1] - main[0] > 2 / 3


def test_the_optimum_is_ringed_and_joined_along_the_ramp(widths):
    figure = sensitivity_figure(widths, Picture())
    best = traces(figure, "best")
    assert [len(trace.x) for trace in best] == [3, 3]
    assert {trace.mode for trace in best} == {"lines+markers"}


def test_a_caption_states_the_setting(widths):
    caption = sensitivity_figure(widths, Picture(title="Digits")).layout.meta["caption"]
    for words in ("Digits", "5 epochs", "Batch size 100", "3 seeds", "9 learning rates", "8, 32"):
        assert words in caption


def test_many_means_are_lines_without_marks_but_none_is_lost():
    """A line shows nothing of a mean between two rates without one."""
    many = [line(method, width=width) for method in ("eb", "ib") for width in range(1, 14)]
    bare = many[0].points[0].model_copy(update={"mean": None})
    points = [bare, many[0].points[1], bare, *many[0].points[3:]]
    lone = many[0].model_copy(update={"points": points})
    figure = sensitivity_figure([lone, *many[1:]], Picture())
    modes = [trace.mode for trace in traces(figure, "mean")]
    assert modes == ["lines+markers", *["lines"] * 25]
    few = sensitivity_figure(many[:20], Picture())
    assert {trace.mode for trace in traces(few, "mean")} == {"lines+markers"}
