"""The study page in a real browser, on a real study."""

import json
import re

import pytest
from playwright.sync_api import Page, expect

from tests.e2e.browser import insist, rested, settled
from tests.servers import wait_for

PLOT = "#study-graph .js-plotly-plot"
pytestmark = pytest.mark.usefixtures("first_study")


def metas(page: Page) -> list[str]:
    return page.eval_on_selector(PLOT, "plot => plot._fullData.map(trace => trace.meta)")


def drawn(page: Page) -> Page:
    page.wait_for_function(f"() => document.querySelector('{PLOT}')?._fullData?.length > 3")
    settled(page)  # what stands above the picture comes after it
    return page


def axis_title(page: Page) -> str:
    return page.locator("#study-graph .ytitle").first.text_content() or ""


def test_the_first_study_shows_what_diverged_and_what_did_not(visit):
    page = drawn(visit.open("/studies/1"))
    assert {"mean", "band", "seeds completed", "rail diverged", "strip line"} <= set(metas(page))
    expect(page.locator("#study-scorecard")).to_contain_text("Start at ")
    expect(page).to_have_title(
        "First study: explicit against implicit steps on handwritten digits · Etascope"
    )


def test_the_view_lives_in_the_address(visit):
    page = drawn(visit.open("/studies/1"))
    page.get_by_text("Test", exact=True).first.click()
    page.wait_for_url("**/studies/1?split=test")
    page.get_by_text("Log", exact=True).first.click()
    page.wait_for_url("**/studies/1?split=test&y=log")
    page.wait_for_function(
        f"() => document.querySelector('{PLOT}')._fullLayout.yaxis.type === 'log'"
    )
    assert axis_title(page) == "test loss after 10 epochs"
    page.go_back()
    page.wait_for_function(
        f"() => document.querySelector('{PLOT}')._fullLayout.yaxis.type === 'linear'"
    )
    assert page.url.endswith("?split=test")
    page.reload()
    drawn(page)
    assert axis_title(page) == "test loss after 10 epochs"
    expect(page.locator("#study-split input:checked")).to_have_value("test")


def place_of(page: Page, method: str, index: int) -> list[float]:
    """Return where on the screen a curve's point is."""
    return page.eval_on_selector(
        PLOT,
        """(plot, [method, index]) => {
            plot.scrollIntoView({block: "end"});
            const line = plot._fullData.find(t => t.meta === "mean" && t.name.startsWith(method));
            const {xaxis, yaxis} = plot._fullLayout, box = plot.getBoundingClientRect();
            return [box.left + xaxis._offset + xaxis.d2p(line.x[index]),
                    box.top + yaxis._offset + yaxis.d2p(line.y[index])];
        }""",
        [method, index],
    )


def test_a_click_on_a_point_opens_its_trials_and_escape_closes_them(visit):
    page = drawn(visit.open("/studies/1"))
    rested(page, "#study-graph")

    def click() -> None:
        x, y = place_of(page, "Implicit + output", 7)
        page.mouse.move(x, y)
        page.mouse.click(x, y)

    insist(click, lambda: "trials=" in page.evaluate("location.search"), what="its trials")
    expect(page.get_by_role("dialog").get_by_role("row").nth(1)).to_be_visible()
    page.keyboard.press("Escape")
    page.wait_for_function("() => !location.search.includes('trials=')")


#: The same numbers again and again, as a running study's picture comes.
REDRAWING = """plot => {
    const again = () => window.Plotly.react(plot, plot.data.map(t => ({...t})), {...plot.layout});
    window.redrawing = setInterval(again, 120);
}"""


def test_no_click_on_a_mean_is_lost_while_the_picture_is_redrawn(visit):
    """Plotly itself tells of a click only if its label, at most one in 50 ms, was there before."""
    page = drawn(visit.open("/studies/1"))
    rested(page, "#study-graph")
    page.eval_on_selector(PLOT, REDRAWING)
    for index in (3, 1, 1, 3, 3):
        x, y = place_of(page, "Implicit (IB)", index)
        page.mouse.move(x - 40, y - 30)
        page.mouse.move(x, y)
        page.mouse.down()
        page.wait_for_timeout(60)
        page.mouse.up()
        expect(page.get_by_role("dialog").get_by_role("row")).to_have_count(1 + 5)
        page.keyboard.press("Escape")
        expect(page.get_by_role("dialog")).to_have_count(0)
    page.evaluate("clearInterval(window.redrawing)")


def test_a_drag_over_a_mean_opens_nothing(visit):
    page = drawn(visit.open("/studies/1"))
    rested(page, "#study-graph")
    x, y = place_of(page, "Implicit (IB)", 1)
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x + 60, y + 60, steps=4)
    page.mouse.up()
    page.wait_for_timeout(500)
    assert page.get_by_role("dialog").count() == 0


def test_an_address_can_point_at_a_trial(visit):
    page = drawn(visit.open("/studies/1?trials=1"))
    expect(page.get_by_role("dialog")).to_contain_text("Reproducibility record")


def test_notes_are_markdown_without_anybody_s_markup(visit):
    page = visit.open("/studies/1")
    page.get_by_role("button", name="Edit").click()
    page.get_by_label("Notes").fill(
        "**bold** <img src=x onerror='window.hurt=1'> ![i](http://x.example/i.png)"
    )
    page.get_by_role("button", name="Save").click()
    expect(page.locator("#study-notes strong")).to_have_text("bold")
    assert page.locator("#study-notes img").count() == 0
    assert page.evaluate("window.hurt") is None


def test_a_sweep_can_be_copied_as_a_command(visit):
    page = visit.open("/studies/1")
    page.get_by_role("button", name="Copy as…").first.click()
    code = page.get_by_role("dialog").locator("pre").first
    expect(code).to_contain_text(f"{visit.url}/api/studies/1/sweeps")
    body = code.inner_text().split("-d '")[1].rsplit("'", 1)[0]
    assert json.loads(body)["task"] == "digits_mlp"


def test_the_table_scrolls_through_all_trials(visit):
    page = visit.open("/studies/1")
    grid = page.locator("#study-grid")
    expect(grid.locator(".ag-center-cols-container .ag-row").first).to_contain_text("EB")
    view, last = grid.locator(".ag-body-viewport"), grid.locator("[row-index='164']").first

    def scrolled() -> bool:
        view.evaluate("view => view.scrollTo(0, 1e6)")  # there is more below with every page
        return last.is_visible()

    wait_for(scrolled, what="the last trial", every=0.1)


def test_an_unknown_study_is_a_page_that_says_so(visit):
    page = visit.open("/studies/4711")
    expect(page.get_by_role("heading", name="Not found")).to_be_visible()
    expect(page).to_have_title("Not found · Etascope")


def test_a_diverged_point_tells_where_it_broke(visit):
    page = drawn(visit.open("/studies/1"))
    rested(page, "#study-graph")
    dialog = page.get_by_role("dialog")
    insist(lambda: click_on_the_rail(page), dialog.is_visible, what="the diverged trials")
    expect(dialog.locator(".state-diverged")).to_have_count(5)
    page.wait_for_function(
        "() => document.querySelector('[role=dialog] .js-plotly-plot')"
        "?._fullData?.filter(trace => trace.meta === 'train').length === 5"
    )
    dialog.get_by_role("link", name=re.compile("^EB")).first.click()
    page.wait_for_url("**/trials/*")
    expect(page.get_by_text(re.compile(r"at step \d+")).first).to_be_visible()
    page.get_by_role("link", name="See one update at this rate").click()
    page.wait_for_url("**/updates?lr=*")


def click_on_the_rail(page: Page) -> None:
    """Click where the first rate lies at which seeds diverged."""
    x, y = page.eval_on_selector(
        PLOT,
        """plot => {
            const rail = plot._fullData.find(t => t.meta === "rail diverged");
            const {xaxis, yaxis2} = plot._fullLayout, box = plot.getBoundingClientRect();
            return [box.left + xaxis._offset + xaxis.d2p(rail.x[0]),
                    box.top + yaxis2._offset + yaxis2.d2p(rail.y[0])];
        }""",
    )
    page.mouse.move(x, y)
    page.mouse.click(x, y)


def test_a_number_s_definition_appears_on_hover_and_on_focus(visit):
    page = drawn(visit.open("/studies/1"))
    term = page.locator("#study-scorecard").get_by_text("LR sensitivity")
    bubble = page.get_by_role("tooltip")

    def point() -> None:
        page.mouse.move(0, 0)  # a mouse that rests points at nothing that was drawn anew under it
        term.hover()

    insist(point, bubble.is_visible, what="the explanation")
    expect(bubble).to_contain_text("Mean over the common range")
    page.keyboard.press("Escape")
    expect(bubble).to_be_hidden()

    def focus() -> None:
        term.blur()
        term.focus()

    insist(focus, bubble.is_visible, what="the explanation")
    assert term.get_attribute("aria-describedby") == "explanation"
