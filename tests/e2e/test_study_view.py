"""How a study is looked at: its zoom, its controls by keyboard, its words, and an empty one."""

import re

import httpx
import pytest
from playwright.sync_api import Page, expect

from tests.e2e.browser import insist, rested, settled
from tests.e2e.installation import submit
from tests.servers import wait_for

GRAPH = "#study-graph"
PLOT = f"{GRAPH} .js-plotly-plot"
pytestmark = pytest.mark.usefixtures("first_study")


def drawn(page: Page) -> Page:
    page.wait_for_function(f"() => document.querySelector('{PLOT}')?._fullData?.length > 3")
    settled(page)  # what stands above the picture comes after it
    rested(page, GRAPH)
    return page


def ends(page: Page) -> list[float]:
    """Return the ends of both axes, as plotly has them."""
    return page.eval_on_selector(
        PLOT, "plot => [...plot._fullLayout.xaxis.range, ...plot._fullLayout.yaxis.range]"
    )


def place(page: Page, across: float, up: float) -> tuple[float, float]:
    """Return where on the screen a share of the main panel's width and height is."""
    left, top, width, height = page.eval_on_selector(
        PLOT,
        """plot => {
            plot.scrollIntoView({block: "end"});
            const {xaxis, yaxis} = plot._fullLayout, box = plot.getBoundingClientRect();
            return [box.left + xaxis._offset, box.top + yaxis._offset, xaxis._length, yaxis._length]
        }""",
    )
    return left + across * width, top + (1 - up) * height


def zoom(page: Page) -> None:
    def drag() -> None:
        page.mouse.move(*place(page, 0.3, 0.7))
        page.mouse.down()
        page.mouse.move(*place(page, 0.6, 0.3), steps=5)
        page.mouse.up()

    insist(drag, lambda: zoomed(page), what="a zoom")


def zoomed(page: Page) -> bool:
    return bool(page.evaluate("location.search.includes('zoom=')"))


def same(one: list[float], other: list[float]) -> bool:
    return one == pytest.approx(other, abs=2e-3)


def test_a_zoom_is_in_the_address_for_a_colleague_and_a_double_click_ends_it(visit, window):
    page = drawn(visit.open("/studies/1"))
    everything = ends(page)
    zoom(page)
    closer = ends(page)
    assert not same(closer, everything)
    colleague = window.new_page()
    colleague.goto(page.url)
    assert same(ends(drawn(colleague)), closer)
    insist(
        lambda: colleague.mouse.dblclick(*place(colleague, 0.5, 0.5)),
        lambda: not zoomed(colleague),
        what="the end of the zoom",
    )
    wait_for(lambda: same(ends(colleague), everything), what="all of the picture")
    colleague.go_back()
    wait_for(lambda: same(ends(colleague), closer), what="the zoom that was before")
    colleague.close()


def test_what_was_shown_before_is_there_before_the_server_answers_and_stays(visit):
    page = drawn(visit.open("/studies/1"))
    shows = "words => document.querySelector('#study-graph .ytitle').textContent.startsWith(words)"

    def choose(split: str, words: str) -> None:
        page.locator("#study-split").get_by_text(split, exact=True).click()
        page.wait_for_function(shows, arg=words)

    choose("Test", "test loss")
    choose("Training", "training loss")
    held = []
    page.route("**/_dash-update-component*", lambda route: held.append(route))
    choose("Test", "test loss")
    assert "study-drawn" in "".join(one.request.post_data or "" for one in held)
    with page.expect_response(lambda one: "study-drawn" in (one.request.post_data or "")) as answer:
        for one in held:
            one.continue_()
        page.unroute("**/_dash-update-component*")
    assert "study-drawn" not in answer.value.json()["response"]  # a mark says all
    assert page.evaluate(shows, "test loss")


def test_a_button_ends_a_zoom_and_is_there_only_then(visit):
    page = drawn(visit.open("/studies/1"))
    everything = ends(page)
    button = page.get_by_role("button", name="Show all again")
    expect(button).to_be_hidden()
    zoom(page)
    button.click()
    page.wait_for_function("() => !location.search.includes('zoom')")
    wait_for(lambda: same(ends(page), everything), what="all of the picture")
    expect(button).to_be_hidden()


def test_another_question_is_not_looked_at_through_the_last_one_s_zoom(visit):
    page = drawn(visit.open("/studies/1"))
    zoom(page)
    page.get_by_text("Accuracy", exact=True).click()
    page.wait_for_function("() => !location.search.includes('zoom')")
    drawn(page)
    low, high = ends(page)[2:]
    assert low <= 0.1
    assert high >= 0.9


@pytest.mark.parametrize(
    "text",
    [
        *(pytest.param(text, marks=pytest.mark.slow) for text in ("x", "1", "-1,-2")),
        "5,1,9,2",
        ",,nan,inf",
    ],
)
def test_nonsense_in_the_address_is_no_zoom(visit, text):
    page = drawn(visit.open(f"/studies/1?zoom={text}"))
    low, high, bottom, _ = ends(page)
    assert low < -2
    assert high > 3
    assert bottom <= 0.01


def test_the_first_control_is_a_few_tab_stops_away_and_plotly_s_buttons_come_later(visit):
    page = drawn(visit.open("/studies/1"))
    inside, stops = "document.activeElement.closest('.controls') !== null", 0
    while not page.evaluate(inside) and stops < 6:
        page.keyboard.press("Tab")
        stops += 1
        if page.evaluate("document.activeElement.innerText").startswith("Skip to"):
            page.keyboard.press("Enter")
    assert page.evaluate(inside)
    assert stops <= 5
    order = page.evaluate(
        """() => {
            const control = document.querySelector('#study-scale');
            const button = document.querySelector('#study-graph .modebar-btn');
            return control.compareDocumentPosition(button) & Node.DOCUMENT_POSITION_FOLLOWING;
        }"""
    )
    assert order


@pytest.mark.parametrize("path", ["/studies/1", "/compare?studies=1", "/trials/1"])
def test_plotly_s_buttons_do_not_lie_over_a_title(visit, path):
    page = visit.open(path)
    plot = page.locator(".figure-card .js-plotly-plot").first
    page.wait_for_function(
        "() => document.querySelector('.figure-card .js-plotly-plot')?._fullData?.length > 0"
    )
    plot.hover()
    buttons, picture = (
        page.locator(f".figure-card {place}").first.bounding_box()
        for place in (".modebar", ".main-svg")
    )
    assert buttons["y"] >= picture["y"] + picture["height"] - 1


def test_the_picture_says_what_it_shows_and_follows_the_data(visit):
    page = drawn(visit.open("/studies/1"))
    shown = "Training loss after 10 epochs against the learning rate"
    picture = page.get_by_role("img", name=shown)
    expect(picture).to_have_attribute("aria-label", re.compile(r"Explicit \(EB\), best 0\."))
    page.get_by_text("Test", exact=True).first.click()
    expect(page.get_by_role("img", name="Test loss after 10 epochs")).to_have_count(1)


def test_controls_that_do_nothing_for_time_cannot_be_pressed_and_say_why(visit):
    page = drawn(visit.open("/studies/1?quantity=seconds&view=method"))
    for name in ("split", "reducer", "view"):
        own = f"#study-{name} input, input#study-{name}"  # all in view, or a list
        expect(page.locator(own).first).to_be_disabled()
    expect(page.get_by_text("It has no split")).to_be_visible()
    expect(page.get_by_role("img", name="Share of a stack's time (s) against")).to_have_count(1)
    page.get_by_text("Loss", exact=True).click()
    expect(page.get_by_text("It has no split")).to_have_count(0)
    expect(page.locator("#study-split input").first).to_be_disabled()  # differences show both
    page.locator("input#study-view").click()
    page.get_by_role("option", name="Curves", exact=True).click()
    expect(page.locator("#study-split input").first).to_be_enabled()


def test_an_empty_study_is_quiet_and_can_be_edited(visit):
    made = httpx.post(f"{visit.url}/api/studies", json={"name": "Empty"}, trust_env=False)
    page = visit.open(f"/studies/{made.json()['id']}")
    expect(page.get_by_role("heading", name="No sweep yet")).to_be_visible()
    page.get_by_role("button", name="Edit").click()
    page.get_by_label("Name").fill("Still empty")
    page.get_by_label("Notes").fill("A *plan*.")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("heading", name="Still empty")).to_be_visible()
    expect(page.locator("#study-notes em")).to_have_text("plan")


def test_an_empty_comparison_offers_the_studies_there_are(visit):
    submit(visit.url, "A second one", {"task": "toy/quadratic", "learning_rates": [0.1]})
    page = visit.open("/compare")
    expect(page.get_by_role("heading", name="Choose studies")).to_be_visible()
    expect(page.get_by_role("heading", name="Scorecard")).to_be_hidden()
    page.get_by_role("button", name="+ First study").click()
    page.wait_for_url("**/compare?studies=1")
    page.wait_for_function(
        "() => document.querySelector('#compare-graph .js-plotly-plot')?._fullData?.length > 3"
    )
    expect(page.get_by_role("heading", name="Scorecard")).to_be_visible()
