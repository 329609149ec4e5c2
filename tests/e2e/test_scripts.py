"""What the pages' own scripts do, one function at a time, on a page that has nothing else."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from tests.e2e.browser import patient

ASSETS = Path(__file__).resolve().parents[2] / "dashboard" / "assets"
#: What Dash offers scripts; what they set is noted.
DASH = """
window.told = [];
window.etascope = {};
window.dash_clientside = {
  no_update: "nothing",
  set_props: (id, props) => window.told.push([id, props]),
};
"""


@pytest.fixture(scope="module")
def empty_page(browser: Browser) -> Iterator[Page]:
    page = patient(browser.new_page())
    yield page
    page.close()


def load(page: Page, script: str, body: str) -> Page:
    page.evaluate("body => { document.body.innerHTML = body; }", body)
    page.evaluate(DASH)
    page.evaluate((ASSETS / script).read_text())
    return page


# --- The table of studies


def row(id: int, **changes: Any) -> dict[str, Any]:
    about = {
        "id": id,
        "name": f"Study {id}",
        "about": "digits_mlp",
        "tags": ["first"],
        "methods": [{"name": "EB", "colour": "#D55E00"}],
        "changed": "2026-11-16T03:00:00+00:00",
        "archive": "Archive",
        "spark": None,
        "state": {"name": "running", "kind": "running"},
        "words": "20 of 54 trials ended",
        "bar": [{"state": "completed", "percent": 37}],
    }
    return {**about, **changes}


@pytest.fixture
def table(empty_page: Page) -> Page:
    page = load(empty_page, "history.js", "<div id='history-list'></div>")
    show(page, "replace", row(1), row(2))
    return page


def show(page: Page, how: str, *studies: dict[str, Any]) -> None:
    page.evaluate("given => window.etascope.showStudies(given)", {"how": how, "studies": studies})


def names(page: Page) -> list[str]:
    return page.locator(".history-name").all_inner_texts()


def told(page: Page, id: str) -> list[Any]:
    return [props for name, props in page.evaluate("window.told") if name == id]


def test_rows_are_replaced_and_added_to(table: Page) -> None:
    assert names(table) == ["Study 1", "Study 2"]
    show(table, "add", row(3))
    assert names(table) == ["Study 1", "Study 2", "Study 3"]
    show(table, "replace", row(3))
    assert names(table) == ["Study 3"]
    show(table, "replace")
    assert table.locator("table").count() == 0


def test_a_running_row_is_brought_up_to_date_and_others_are_left_alone(table: Page) -> None:
    table.evaluate("window.kept = document.querySelector('tr[data-study=\"1\"] .history-name')")
    spark = {"src": "data:image/svg+xml,%3Csvg/%3E", "alt": "Loss against learning rate"}
    done = {"state": {"name": "completed", "kind": "completed"}, "words": "54 trials", "bar": []}
    show(table, "update", row(1, spark=spark, **done), row(99))
    first, second = (table.locator(f"tr[data-study='{id}']") for id in (1, 2))
    assert first.locator(".history-state").inner_text().split() == ["completed", "54", "trials"]
    assert first.locator("img").get_attribute("alt") == "Loss against learning rate"
    assert "running" in second.inner_text()
    assert table.evaluate("document.contains(window.kept)")
    assert names(table) == ["Study 1", "Study 2"]


def test_texts_of_studies_are_never_markup(table: Page) -> None:
    evil = "<img src=x onerror='window.hurt=1'>"
    show(table, "replace", row(1, name=evil, about=evil, tags=[evil], words=evil))
    assert names(table) == [evil]
    assert table.locator("img").count() == 0
    assert table.evaluate("window.hurt") is None


def test_chosen_studies_are_told_and_forgotten_when_they_leave_the_table(table: Page) -> None:
    table.get_by_label("Select Study 1 for comparing").check()
    table.get_by_label("Select Study 2 for comparing").check()
    assert told(table, "history-selected")[-1] == {"data": [1, 2]}
    show(table, "replace", row(2))
    assert told(table, "history-selected")[-1] == {"data": [2]}
    assert table.get_by_label("Select Study 2 for comparing").is_checked()
    words = table.evaluate("[[], [1], [1, 2]].map(ids => window.etascope.countSelected(ids))")
    assert words == [
        [True, "Compare selected"],
        [True, "Compare selected"],
        [False, "Compare 2 studies"],
    ]


def test_a_name_goes_to_its_study_without_loading_the_page_anew(table: Page) -> None:
    table.get_by_role("link", name="Study 2").click()
    assert told(table, "location") == [{"href": "/studies/2"}]
    assert names(table) == ["Study 1", "Study 2"]


def test_only_who_may_archive_is_offered_to(table: Page) -> None:
    show(table, "replace", row(1), row(2, archive=None))
    table.get_by_role("button", name="Archive Study 1").click()
    assert told(table, "history-pressed")[-1]["data"]["study"] == 1
    assert table.get_by_role("button").count() == 1


# --- A figure in place of another

PLOT = "<div id='graph'><div class='js-plotly-plot'></div></div>"


@pytest.fixture
def plot(empty_page: Page) -> Page:
    return load(empty_page, "zoom.js", PLOT)


def figure(ends: list[float], revision: str = "loss") -> dict[str, Any]:
    axes = {"xaxis": {"range": ends}, "yaxis": {"range": [0, 1]}}
    lines = [{"legendgroup": name} for name in ("eb", "ib")]
    return {"layout": {"height": 500, "uirevision": revision, **axes}, "data": lines}


def give(page: Page, given: dict[str, Any]) -> dict[str, Any]:
    """Give the graph a figure, as Dash does; return what it then shows."""
    return page.evaluate(
        """given => {
          const [figure, style] = window.etascope.keepView('graph', given);
          const plot = document.querySelector('.js-plotly-plot');
          Object.assign(plot, JSON.parse(JSON.stringify(figure)));
          return {...figure, style};
        }""",
        given,
    )


def zoom(page: Page, ends: list[float]) -> None:
    page.evaluate(
        "ends => { document.querySelector('.js-plotly-plot').layout.xaxis.range = ends; }", ends
    )


def test_a_zoom_is_kept_under_new_numbers(plot: Page) -> None:
    give(plot, figure([-2, 2]))
    zoom(plot, [-1, 0])
    shown = give(plot, figure([-2, 3]))
    assert shown["layout"]["xaxis"] == {"range": [-1, 0], "autorange": False}
    assert shown["layout"]["yaxis"]["range"] == [0, 1]
    assert shown["style"] == {"height": "500px"}
    assert give(plot, figure([-2, 4]))["layout"]["xaxis"]["range"] == [-1, 0]


def test_axes_nobody_touched_follow_the_numbers(plot: Page) -> None:
    give(plot, figure([-2, 2]))
    assert give(plot, figure([-2, 3]))["layout"]["xaxis"]["range"] == [-2, 3]


def test_another_question_begins_with_its_own_view(plot: Page) -> None:
    give(plot, figure([-2, 2]))
    zoom(plot, [-1, 0])
    assert give(plot, figure([-2, 2], "accuracy"))["layout"]["xaxis"]["range"] == [-2, 2]


def test_hidden_curves_stay_hidden(plot: Page) -> None:
    give(plot, figure([-2, 2]))
    plot.evaluate("document.querySelector('.js-plotly-plot').data[1].visible = 'legendonly'")
    shown = give(plot, figure([-2, 2]))
    assert [line.get("visible") for line in shown["data"]] == [None, "legendonly"]


def test_a_page_that_was_left_takes_its_zoom_along(plot: Page) -> None:
    give(plot, figure([-2, 2]))
    zoom(plot, [-1, 0])
    plot.evaluate("body => { document.body.innerHTML = body; }", PLOT)
    assert give(plot, figure([-2, 2]))["layout"]["xaxis"]["range"] == [-2, 2]


def test_a_zoom_is_told_once_and_another_question_ends_it(plot: Page) -> None:
    def told_zoom(given: dict[str, Any], known: str) -> str:
        keep = "([given, known]) => window.etascope.keepView('graph', given, known)[2]"
        return plot.evaluate(keep, [given, known])

    give(plot, figure([-2, 2]))
    zoom(plot, [-1, 0])
    assert told_zoom(figure([-2, 3]), "") == "-1,0"
    assert told_zoom(figure([-2, 3]), "-1,0") == "nothing"
    assert told_zoom(figure([-2, 3], "accuracy"), "-1,0") == ""


# --- News of studies

PULSE = """() => {
  window.asked = [];
  window.ended = [];
  window.fetch = async (address) => {
    window.asked.push(address);
    return { ok: true, json: async () => ({ ended: window.ended }) };
  };
}"""


@pytest.fixture
def pulse(empty_page: Page) -> Page:
    """Load the pulse on a page with an address: a blank one has nowhere to remember anything."""
    empty_page.route("http://etascope.test/", lambda route: route.fulfill(body=""))
    empty_page.goto("http://etascope.test/")
    page = load(empty_page, "pulse.js", "")
    page.evaluate("window.sessionStorage.clear()")
    page.evaluate(PULSE)
    return page


def test_a_study_that_was_seen_running_is_announced_when_it_rests(pulse: Page) -> None:
    pulse.evaluate("window.etascope.awaitStudy(7, false)")
    pulse.evaluate("window.ended = [{id: 7, name: 'Seven', state: 'completed'}]")
    pulse.evaluate("window.etascope.awaitStudy(7, true)")
    pulse.wait_for_function("() => window.told.some(([id]) => id === 'notices')")
    assert pulse.evaluate("window.asked") == ["/dashboard/pulse?studies=7"]
    (said,) = told(pulse, "notices")
    assert said["sendNotifications"][0]["message"] == "“Seven” has ended: completed."
    pulse.evaluate("window.etascope.awaitStudy(7, true)")
    assert len(pulse.evaluate("window.asked")) == 1


def test_a_study_that_had_ended_before_is_no_news(pulse: Page) -> None:
    pulse.evaluate("window.etascope.awaitStudy(7, true)")
    assert pulse.evaluate("window.asked") == []


# --- Explanations

TERM = (
    "<span id='term' style='position: absolute; left: 200px; top: %dpx'"
    " data-explanation='It is.'>t</span>"
)


@pytest.fixture
def bubble(empty_page: Page) -> Iterator[Locator]:
    """Point at a term that lies far down a long page; yield what explains it."""
    empty_page.goto("about:blank")  # what the script listens to stays with its document
    page = load(empty_page, "explanations.js", f"<div style='height: 9000px'></div>{TERM % 3000}")
    page.mouse.move(0, 0)
    page.evaluate("window.scrollTo(0, 2800)")
    page.locator("#term").hover()
    shown = page.get_by_role("tooltip")
    expect(shown).to_have_text("It is.")
    yield shown
    page.evaluate("window.scrollTo(0, 0)")


def test_a_scroll_that_is_told_late_does_not_take_an_explanation_away(bubble: Locator) -> None:
    bubble.page.evaluate("document.dispatchEvent(new Event('scroll'))")
    expect(bubble).to_be_visible()


def test_an_explanation_does_not_stay_where_its_term_was_before_a_scroll(bubble: Locator) -> None:
    bubble.page.evaluate("window.scrollTo(0, 1000)")
    expect(bubble).to_be_hidden()


def test_a_term_drawn_anew_under_the_mouse_is_explained_at_the_next_move(bubble: Locator) -> None:
    again = "html => { document.getElementById('term').outerHTML = html; }"
    bubble.page.evaluate(again, (TERM % 3000).replace("It is.", "It was."))
    bubble.page.locator("#term").hover(position={"x": 1, "y": 1})
    expect(bubble).to_have_text("It was.")


def test_a_term_that_was_taken_away_is_not_explained_for_ever(bubble: Locator) -> None:
    bubble.page.evaluate("document.getElementById('term').remove()")
    bubble.page.mouse.move(10, 10)
    expect(bubble).to_be_hidden()
