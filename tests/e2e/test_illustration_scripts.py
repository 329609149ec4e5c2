"""What the illustrated pages draw and write, one figure at a time, on an otherwise empty page."""

from collections.abc import Iterator
from random import Random
from typing import Any

import pytest
from playwright.sync_api import Browser, Page

from dashboard.theme import METHOD_STYLE, looks, number
from tests.e2e.browser import patient
from tests.e2e.test_scripts import ASSETS, DASH


@pytest.fixture(scope="module")
def scripts(browser: Browser) -> Iterator[Page]:
    page = patient(browser.new_page())
    page.evaluate(DASH)
    for path in sorted((ASSETS / "illustrations").glob("*.js")):  # as Dash loads them
        page.evaluate(path.read_text())
    page.evaluate(
        """looks => { window.inLight = window.etascope.parts.lookIn(looks, "light");
          window.inDark = window.etascope.parts.lookIn(looks, "dark"); }""",
        looks(),
    )
    yield page
    page.close()


PAPER = {"loss": "quadratic", "curvature": 1, "start": 2, "lr": 1.75, "steps": 10}
RELU = {"activation": "relu", "b": 1, "s": 0.3, "lr": 1, "z_sq": 1, "mu": 0, "reach": None}
EXACT = {"stand_in": None, "approximation_error": None, "slope_error": None}


def path(page: Page, method: str = "esgd", **asked: Any) -> dict[str, Any]:
    return page.evaluate(
        """([asked, method]) => window.etascope.toyPaths.pathFigure(
          window.etascope.descent(asked), method, inLight)""",
        [{**PAPER, **asked}, method],
    )


def history(page: Page, quantity: str, *, log: bool = False, **asked: Any) -> dict[str, Any]:
    return page.evaluate(
        """([asked, quantity, log]) => window.etascope.toyPaths.historyFigure(
          window.etascope.descent(asked), quantity, inDark, log)""",
        [{**PAPER, **asked}, quantity, log],
    )


def step(page: Page, sign: int, **asked: Any) -> dict[str, Any]:
    return page.evaluate(
        """([asked, rule, sign]) => window.etascope.updateFigure(
          window.etascope.nodeUpdate(asked, rule), sign, inLight)""",
        [{**RELU, **asked}, EXACT, sign],
    )


def trace(figure: dict[str, Any], name: str) -> dict[str, Any]:
    return next(trace for trace in figure["data"] if trace["name"] == name)


def words(page: Page, **asked: Any) -> str:
    """Return what is said about a descent, as one text."""
    return page.evaluate(
        """asked => {
          const text = (part) => typeof part === "string" ? part : all(part.props.children);
          const all = (parts) => parts.map(text).join("");
          const view = window.etascope.descent(asked);
          return window.etascope.descentWords(view, inLight).map(text).join(" ");
        }""",
        {**PAPER, **asked},
    )


def test_numbers_are_written_as_on_every_other_page(scripts: Page) -> None:
    random = Random("numbers")
    values = [10 ** random.uniform(-8, 8) * random.choice([1, -1]) for _ in range(300)]
    values += [0, 1, 2.5, -0.75, 1000, 9999, 9995, 10_000, 0.001, 0.00099]
    assert scripts.evaluate("all => all.map(window.etascope.parts.number)", values) == [
        number(value) for value in values
    ]


# --- The toy


def test_the_papers_figure_has_both_paths_from_the_same_start(scripts: Page) -> None:
    explicit, implicit = (trace(path(scripts, method), "dots") for method in ("esgd", "isgd"))
    assert explicit["x"][:2] == [2, -1.5]
    assert implicit["x"][:2] == pytest.approx([2, 2 / 2.75])
    assert len(explicit["x"]) == len(implicit["x"]) == 11
    assert [text.strip() for text in explicit["text"][:5]] == ["0", "1", "2", "3", "4"]
    assert explicit["text"][-1] == ""  # crowded
    assert explicit["marker"]["color"] == METHOD_STYLE["eb"].colour


def test_an_explosion_is_drawn_four_times_as_wide_and_then_cut_with_numbers(scripts: Page) -> None:
    figure = path(scripts, lr=2.5)
    assert figure["layout"]["xaxis"]["range"] == [-12, 12]
    assert "4 times as wide" in figure["layout"]["xaxis"]["title"]["text"]
    assert trace(figure, "dots")["customdata"] == [0, 1, 2, 3, 4]
    assert trace(figure, "exit words")["text"][0].strip() == "5: θ = −15.2"
    assert trace(figure, "left")["text"] == ["▲ out at step 5; at step 10 θ = 115"]
    top = figure["layout"]["shapes"][0]["y0"]
    assert trace(figure, "exit")["y"][1] == pytest.approx(top)


def test_the_axes_are_the_same_at_every_rate_that_stays_inside(scripts: Page) -> None:
    ranges = [path(scripts, lr=lr)["layout"]["xaxis"]["range"] for lr in (0.1, 1.75, 2)]
    assert ranges == [[-3, 3]] * 3
    assert path(scripts, "isgd", lr=100)["layout"]["xaxis"]["range"] == [-3, 3]


def test_a_path_beyond_all_numbers_is_drawn_as_an_exit(scripts: Page) -> None:
    figure = path(scripts, lr=100, curvature=10, steps=110)
    assert "beyond all numbers" in trace(figure, "left")["text"][0]
    assert trace(figure, "exit words")["text"][0].strip() == "1: θ = −2000"


def test_every_trace_that_grows_knows_the_step_of_each_point(scripts: Page) -> None:
    figures = [path(scripts, lr=2.2), history(scripts, "loss", lr=2.2), history(scripts, "theta")]
    growing = [t for figure in figures for t in figure["data"] if t.get("meta", {}).get("grows")]
    assert growing
    assert all(len(t["customdata"]) == len(t["x"]) for t in growing)


def test_steps_out_of_the_picture_are_marked_on_the_rail(scripts: Page) -> None:
    assert trace(history(scripts, "theta", lr=2.5), "rail")["x"] == list(range(5, 11))
    assert trace(history(scripts, "theta"), "rail")["x"] == []


def test_a_step_below_the_picture_is_marked_below_it(scripts: Page) -> None:
    figure = history(scripts, "theta", lr=2.5)
    marks = trace(figure, "rail")
    low, high = figure["layout"]["yaxis"]["range"]
    middle = (low + high) / 2
    # Theta changes its sign with every step, and is above zero at every even one.
    sides = {step: y > middle for step, y in zip(marks["x"], marks["y"], strict=True)}
    assert sides == {step: step % 2 == 0 for step in range(5, 11)}
    assert marks["marker"]["symbol"][:2] == ["triangle-down", "triangle-up"]
    assert len(figure["layout"]["shapes"]) == 2
    assert low <= min(marks["y"]) <= max(marks["y"]) <= high
    assert len(history(scripts, "loss", lr=2.5)["layout"]["shapes"]) == 1


def test_a_logarithmic_axis_shows_growth_whole_and_a_loss_of_zero_at_its_foot(
    scripts: Page,
) -> None:
    growing = history(scripts, "loss", log=True, lr=2.5)
    assert growing["layout"]["yaxis"]["type"] == "log"
    assert len(trace(growing, "ESGD")["x"]) == 11
    at_once = trace(history(scripts, "loss", log=True, lr=1), "ESGD")
    assert min(at_once["y"]) > 0
    assert at_once["text"][1] == "0"
    assert history(scripts, "theta", log=True)["layout"]["yaxis"]["type"] == "linear"


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        ({"lr": 0.5}, "1 − ηλ = 0.5. It stays on its side of the minimum and converges."),
        ({"lr": 1}, "1 − ηλ = 0. It lands on the minimum in one step."),
        ({"lr": 1.75}, "less far every time, as the rate is below 2/λ = 2."),
        ({"lr": 2}, "The rate is exactly 2/λ = 2: it jumps to and fro for ever"),
        ({"lr": 2.5}, "It jumps farther every time, as at every rate above 2/λ = 2."),
        ({"lr": 2.86, "curvature": 0.7}, "at every rate above 2/λ = 2.85714."),
        ({"lr": 2, "loss": "logistic"}, "The rate is exactly 2/λ = 2."),
        ({"lr": 1.9, "loss": "logistic"}, "The rate is below 2/λ = 2."),
        ({"lr": 5, "loss": "logistic"}, "never settles. The rate is above 2/λ = 2."),
        ({"lr": 50}, "1/(1 + ηλ) = 0.0196. That lies between 0 and 1 at every rate"),
    ],
)
def test_the_words_say_which_side_of_the_limit_the_rate_is_on(
    scripts: Page, asked: dict[str, Any], expected: str
) -> None:
    assert expected in words(scripts, **asked)


def test_a_loss_without_a_limit_has_no_mark(scripts: Page) -> None:
    marks = scripts.evaluate(
        """() => [null, 2, 500].map(limit =>
          window.etascope.limitMark({ stability_limit: limit }, { low: 0.01, high: 100 }))"""
    )
    assert marks[0] == marks[2] == ["", {"display": "none"}]
    assert marks[1] == ["limit 2/λ = 2", {"left": "57.53%"}]


# --- Updates


def test_for_positive_b_eb_overshoots_the_hinge_where_ib_stops(scripts: Page) -> None:
    figure = step(scripts, 1)
    assert trace(figure, "eb landing")["x"][0] == pytest.approx(-0.7)
    assert trace(figure, "ib landing")["x"][0] == pytest.approx(0)
    assert trace(figure, "eb words")["text"] == ["EB: loss −0.3"]
    [note] = figure["layout"]["annotations"]
    assert note["text"] == "EB jumps"
    assert (note["xanchor"], note["x"] < 0.3) == ("right", True)  # clear of the line at s = 0.3
    arrow = trace(figure, "eb arrow")["x"]
    assert arrow == sorted(arrow, reverse=True)
    assert trace(figure, "eb arrow head")["x"][-1] == pytest.approx(-0.7)


def test_for_negative_b_eb_stays_where_ib_looks_past_the_hinge(scripts: Page) -> None:
    figure = step(scripts, -1)
    assert trace(figure, "eb words")["text"] == ["EB stays"]
    assert trace(figure, "eb arrow")["x"] == []
    assert trace(figure, "ib landing")["x"][0] == pytest.approx(0.7)
    places = {note["text"]: note["x"] for note in figure["layout"]["annotations"]}
    assert places == pytest.approx({"IB jumps": -0.5, "EB jumps": 0}, abs=0.03)
    assert [shape["x0"] for shape in figure["layout"]["shapes"]] == pytest.approx([-0.3, -0.5])


def test_a_step_out_of_the_picture_ends_at_its_edge_and_says_where_it_went(scripts: Page) -> None:
    figure = step(scripts, 1, lr=30, reach=3)
    assert trace(figure, "eb landing")["x"][0] == -3
    assert trace(figure, "eb words")["text"] == ["EB: loss −0.3<br>out, at s′ = −29.7"]


def test_a_jump_is_a_hole_and_a_slope_is_not(scripts: Page) -> None:
    broken, smooth = scripts.evaluate(
        """() => { const { withBreaks, jumps } = window.etascope.updateSweeps;
          return [withBreaks([0, 1, 2, 3], [0, 0, 1, 1]), jumps([...Array(21).keys()])]; }"""
    )
    assert broken == {"x": [0, 1, None, 2, 3], "y": [0, 0, None, 1, 1]}
    assert smooth == []


def test_rounding_noise_is_not_blown_up_to_an_axis(scripts: Page) -> None:
    low, high = step(scripts, 1, s=-5, lr=0.001, reach=None)["layout"]["yaxis2"]["range"]
    assert high - low < 1
    noise = scripts.evaluate(
        """() => window.etascope.updateSweeps.shownRange(
          [{ b: 1, step: [], loss: [0, 1e-17, 0] }], "loss")"""
    )
    assert noise[1] - noise[0] > 1


# --- Drawing


def test_a_picture_fits_its_place_and_hides_nothing_outside_it(scripts: Page) -> None:
    for width in (300, 700):
        drawn = scripts.evaluate(
            """([figure, width]) => {
              document.body.innerHTML = `<div id="p" style="width:${width}px;height:300px"></div>`;
              window.etascope.plot("p", figure);
              const frame = document.getElementById("p").getBoundingClientRect();
              const parts = [...document.querySelectorAll("#p text, #p path[transform]")];
              const out = parts.filter((part) => {
                const box = part.getBoundingClientRect();
                return box.width && (box.left < frame.left - 1 || box.right > frame.right + 1
                  || box.top < frame.top - 1 || box.bottom > frame.bottom + 1);
              });
              return { out: out.map((part) => part.outerHTML.slice(0, 120)),
                texts: [...document.querySelectorAll("#p text")].map((part) => part.textContent) };
            }""",
            [path(scripts, lr=2.5), width],
        )
        assert drawn["out"] == []
        assert {"5: θ = −15.2", "0", "4", "loss f(θ)", "−10", "10", "80"} <= set(drawn["texts"])


@pytest.mark.parametrize(
    ("range_", "log", "expected"),
    [
        ([-3, 3], False, ["−2", "0", "2"]),
        ([0, 0.004], False, ["0", "0.001", "0.002", "0.003", "0.004"]),
        ([-120000, 120000], False, ["−1×10⁵", "0", "1×10⁵"]),
        ([-2.2, 2.1], True, ["0.01", "0.1", "1", "10", "100"]),
    ],
)
def test_ticks_are_round_numbers(
    scripts: Page, range_: list[float], log: bool, expected: list[str]
) -> None:
    shown = scripts.evaluate(
        """([figure, range, log]) => {
          document.body.innerHTML = '<div id="p" style="width:330px;height:300px"></div>';
          figure.layout.xaxis = { range, type: log ? "log" : "linear", title: { text: "here" } };
          const layout = { ...figure.layout, shapes: [] };
          window.etascope.plot("p", { data: [], layout });
          const texts = [...document.querySelectorAll("#p text")].map((part) => part.textContent);
          return texts.slice(0, texts.indexOf("here"));
        }""",
        [path(scripts), range_, log],
    )
    assert shown == expected


def test_what_is_written_in_a_picture_is_never_markup(scripts: Page) -> None:
    figure = path(scripts)
    figure["layout"]["xaxis"]["title"]["text"] = "<img src=x onerror='window.hit=1'>"
    found = scripts.evaluate(
        """figure => {
          document.body.innerHTML = '<div id="p" style="width:330px;height:300px"></div>';
          window.etascope.plot("p", figure);
          return [document.querySelectorAll("#p img").length, window.hit];
        }""",
        figure,
    )
    assert found == [0, None]


def limit(page: Page, **asked: Any) -> tuple[dict[str, Any], list[str]]:
    return page.evaluate(
        """([asked, rule]) => { const view = window.etascope.nodeUpdate(asked, rule);
          const { limitFigure, limitWords } = window.etascope;
          return [limitFigure(view, inLight), limitWords(view)]; }""",
        [{**RELU, **asked}, EXACT],
    )


def test_the_limit_of_a_step_is_drawn_for_both_methods_and_directions(scripts: Page) -> None:
    """A relu's implicit step down ends at its bend; out of the flat it alone goes.

    Going to s + rate gains rate and costs half of it: it pays above a rate of 2 * 0.3.
    """
    figure, words = limit(scripts, lr=7)
    lines = {one["name"]: dict(zip(one["x"], one["y"], strict=True)) for one in figure["data"]}
    eb, ib = METHOD_STYLE["eb"].short, METHOD_STYLE["ib"].short
    rates = list(lines[f"{eb}, b > 0"])
    assert (len(lines), rates[-1]) == (4, pytest.approx(10_000))
    for rate in rates:
        assert lines[f"{eb}, b > 0"][rate] == pytest.approx(rate)
        assert lines[f"{ib}, b > 0"][rate] == pytest.approx(min(rate, 0.3))
        assert lines[f"{eb}, b < 0"][rate] is None
        out = lines[f"{ib}, b < 0"][rate]
        assert out == pytest.approx(rate) if rate > 0.6 else out is None
    assert words == [
        "b > 0: IB’s step stays near 0.3 however high the rate; EB’s is 1×10⁴ at 10,000.",
        "b < 0: IB’s step grows on, to 1×10⁴ at a rate of 10,000; EB’s is 0.",
    ]
    (mark,) = figure["layout"]["shapes"]
    assert (mark["x0"], mark["x1"]) == (7, 7)
    low, high = figure["layout"]["yaxis"]["range"]
    assert 10**low < rates[0] < rates[-1] < 10**high


def test_where_no_step_is_made_a_log_axis_has_no_line(scripts: Page) -> None:
    figure, words = limit(scripts, s=-1)  # left of the bend a relu has no slope
    assert all(y is None for one in figure["data"] if "> 0" in one["name"] for y in one["y"])
    assert words[0] == "b > 0: IB makes no step at the largest rates; EB’s is 0."
