"""All pages: on a phone, by keyboard, light and dark, and without an API."""

import itertools
import re

import pytest
from playwright.sync_api import expect

from tests.dashboard import fake_api
from tests.dashboard.paper_answer import paper_answer
from tests.e2e.browser import insist, patient, rested, settled, watch
from tests.e2e.installation import submit, wait_for_study
from tests.e2e.screenshots import examine, pages_of, window
from tests.servers import wait_for

pytestmark = pytest.mark.usefixtures("first_study")

#: Other views of pages that a phone shows as well; `make screenshots` has all of them.
WIDE_ONLY = ("study-log", "study-difference", "new-preset", "not-found")


@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (390, "dark")])
def test_no_page_complains_asks_elsewhere_or_scrolls_sideways(browser, site, width, scheme):
    paths = pages_of(site)
    wanted = {name: paths[name] for name in paths if width == 1280 or name not in WIDE_ONLY}
    with window(browser, width=width, scheme=scheme) as context:
        wrong = {name: examine(context, site, path) for name, path in wanted.items()}
    assert {"study", "compare", "trial", "paper"} <= set(wrong)
    assert {name: words for name, words in wrong.items() if words} == {}


SMALL = {"task": "digits_mlp", "methods": ["eb"], "learning_rates": [0.05, 0.5], "seeds": 1}


def test_the_history_finds_archives_undoes_and_compares(visit):
    page = visit.open("/history")
    expect(page.locator(".history-name").first).to_be_visible()
    page.get_by_label("Search").fill("handwritten")
    expect(page.locator(".history-name")).to_have_count(1)
    expect(page.get_by_alt_text(re.compile("Loss against learning rate"))).to_be_visible()
    page.wait_for_url("**/history?q=handwritten")
    page.get_by_role("button", name=re.compile("^Archive")).click()
    expect(page.get_by_text("No study matches.")).to_be_visible()
    page.get_by_role("button", name="Undo").click()
    expect(page.locator(".history-name")).to_have_count(1)


def test_studies_can_be_selected_and_compared(visit):
    for name in ("One", "Two"):
        wait_for_study(visit.url, submit(visit.url, name, SMALL))
    page = visit.open("/history")
    for name in ("One", "Two"):
        page.get_by_label(f"Select {name} for comparing").check()
    page.get_by_role("button", name="Compare 2 studies").click()
    page.wait_for_url("**/compare?studies=*")
    page.wait_for_function(
        "() => document.querySelector('#compare-graph .js-plotly-plot')?._fullData"
        "?.filter(trace => trace.meta === 'mean').length === 2"
    )


def test_a_picture_of_the_paper_can_be_chosen_linked_to_and_gone_back_from(visit):
    page = visit.open("/paper")
    settled(page)
    chosen = page.locator("#paper-experiment")
    expect(chosen).to_have_value("JSB Chorales")
    row = page.locator("#experiment-11_nottingham")
    row.get_by_role("link", name="Nottingham", exact=True).click()
    expect(chosen).to_have_value("Nottingham")
    expect(chosen).to_be_in_viewport()
    page.reload()
    expect(chosen).to_have_value("Nottingham")
    page.go_back()
    expect(chosen).to_have_value("JSB Chorales")
    page.set_viewport_size({"width": 390, "height": 800})  # where all of it is twenty screens
    expect(row).to_be_hidden()
    page.get_by_role("heading", name="17 experiments, run both ways").click()
    expect(row).to_be_visible()
    page.set_viewport_size({"width": 1280, "height": 900})
    expect(page.get_by_role("heading", name="Run times")).to_be_visible()


def with_its_data(one):
    """Return an experiment of the paper as it is where its data is."""
    whole = {
        profile: found.model_copy(update={"of_here": found.of})
        for profile, found in (("text", one.text), ("authors", one.authors))
    }
    return one.model_copy(update={"present": True, **whole})


def test_an_experiment_of_the_paper_runs_with_one_click(browser, fake_site, monkeypatch):
    paper = paper_answer()
    here = [with_its_data(one) for one in paper.experiments]
    answer = paper.model_copy(update={"experiments": here})
    monkeypatch.setattr(fake_api, "paper_answer", lambda: answer)
    page = patient(browser.new_page())
    seen = watch(page, fake_site.url)
    page.goto(f"{fake_site.url}/paper?experiment=06_jsb_chorales_clip_8.0&profile=authors")
    page.get_by_role("button", name="Run JSB Chorales, clip 8, authors profile").click()
    page.wait_for_url("**/studies/*")
    sent = [call.json for call in fake_site.api.sent if call.method == "POST"]
    assert sent[-1]["sweep"]["preset"] == "paper/06_jsb_chorales_clip_8.0"
    assert seen.complaints == []
    page.close()


def background(page) -> str:
    return page.evaluate(
        "document.querySelector('#study-graph .js-plotly-plot')._fullLayout.paper_bgcolor"
    )


@pytest.mark.parametrize(("system", "other"), [("light", "dark"), ("dark", "light")])
def test_the_scheme_follows_the_system_until_the_button_is_pressed(browser, site, system, other):
    context = patient(browser.new_context(color_scheme=system))
    page = context.new_page()
    page.goto(f"{site}/studies/1")
    settled(page)
    html = page.locator("html")
    expect(html).to_have_attribute("data-mantine-color-scheme", system)
    before = background(page)
    page.get_by_role("button", name="Switch between light and dark").click()
    expect(html).to_have_attribute("data-mantine-color-scheme", other)
    page.wait_for_function(
        "before => document.querySelector('#study-graph .js-plotly-plot')"
        "._fullLayout.paper_bgcolor !== before",
        arg=before,
    )
    page.reload()
    settled(page)
    expect(html).to_have_attribute("data-mantine-color-scheme", other)
    assert background(page) != before
    context.close()


def test_the_keyboard_reaches_the_content_and_the_controls(visit):
    page = visit.open("/studies/1")
    settled(page)
    page.evaluate("document.activeElement.blur()")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to the content"
    outline = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
    assert outline == "solid"
    insist(
        lambda: page.locator("#study-split input:checked").press("ArrowRight"),
        lambda: "split=test" in page.evaluate("location.search"),
        what="the other split",
    )


def test_the_menu_opens_on_a_phone_and_closes_on_the_next_page(browser, site):
    page = patient(browser.new_page(viewport={"width": 390, "height": 800}))
    page.goto(site)
    settled(page)
    menu, workers = (
        page.get_by_role("button", name="Menu"),
        page.get_by_role("link", name="Workers"),
    )
    expect(workers).to_be_hidden()
    insist(menu.click, workers.is_visible, what="the menu")
    page.keyboard.press("Escape")
    expect(workers).to_be_hidden()
    expect(menu).to_be_focused()
    expect(menu).to_have_attribute("aria-expanded", "false")
    insist(menu.click, workers.is_visible, what="the menu")
    workers.click()
    page.wait_for_url("**/workers")
    expect(page.get_by_role("heading", name="Workers", level=1)).to_be_visible()
    expect(page.get_by_role("link", name="Guide")).to_be_hidden()
    page.close()


def test_escape_closes_the_export_menu_wherever_the_focus_is(browser, fake_site):
    page = patient(browser.new_page())
    page.goto(f"{fake_site.url}/studies/1")
    settled(page)
    export, first = page.get_by_role("button", name="Export"), page.get_by_role("menuitem").first
    for move in ("nowhere", "ArrowDown"):
        insist(export.click, first.is_visible, what="the menu")
        if move != "nowhere":
            page.keyboard.press(move)
        page.keyboard.press("Escape")
        expect(first).to_be_hidden()
        expect(export).to_be_focused()
        expect(export).to_have_attribute("aria-expanded", "false")
    page.close()


def test_no_drawer_that_was_opened_is_a_step_back(browser, fake_site):
    page = patient(browser.new_page())
    page.goto(f"{fake_site.url}/studies/1")
    settled(page)
    before = page.evaluate("history.length")
    opened = "trials => window.dash_clientside.set_props('study-selected', { data: trials })"
    for trials in ("1", "2"):
        page.evaluate(opened, trials)
        page.wait_for_function(f"() => location.search === '?trials={trials}'")
    expect(page.get_by_role("dialog")).to_be_visible()  # there is nothing to close before
    insist(
        lambda: page.keyboard.press("Escape"),
        lambda: page.evaluate("location.search === ''"),
        what="the drawer to close",
    )
    assert page.evaluate("history.length") == before
    page.locator("#study-split").get_by_text("Test", exact=True).click()
    page.wait_for_function("() => location.search === '?split=test'")
    assert page.evaluate("history.length") == before + 1
    page.close()


def test_times_are_in_the_viewer_s_zone(browser, fake_site):
    context = patient(browser.new_context(timezone_id="Asia/Tokyo", locale="en-GB"))
    page = context.new_page()
    page.goto(f"{fake_site.url}/history")
    expect(page.locator("time.local-time").first).to_have_text("16 Nov 2026, 12:00")
    context.close()


def test_an_api_that_goes_away_is_said_and_one_that_comes_back_is_used(browser, fake_site):
    page = patient(browser.new_page())
    watch(page, fake_site.url)
    fake_site.api.away = True
    page.goto(f"{fake_site.url}/studies/1")
    expect(page.get_by_text("The API does not answer.")).to_be_visible()
    expect(page.locator("#away")).to_contain_text("does not answer")
    fake_site.api.away = False
    expect(page.get_by_role("heading", name="Digits 1: EB against IB")).to_be_visible()
    expect(page.locator("#away")).to_be_hidden()
    page.close()


def test_a_hidden_tab_only_waits_for_its_study_s_end(browser, fake_site):
    fake_site.api.running = True
    fake_site.api.studies[1] = fake_site.api._study(1)
    page = patient(browser.new_page())
    page.goto(f"{fake_site.url}/studies/1")
    settled(page)
    page.evaluate("Object.defineProperty(document, 'hidden', {get: () => true})")

    def asked():
        pulse = ("/api/health", "/api/studies/1")
        return [call.path for call in fake_site.api.sent if call.path not in pulse]

    def nothing_asked() -> bool:
        before = asked()
        page.wait_for_timeout(5000)  # a visible page asks every 1.5 s
        return asked() == before

    wait_for(nothing_asked, what="a hidden tab to ask nothing")  # what was under way may end
    page.close()


PLOT = "document.querySelector('#study-graph .js-plotly-plot')"
REVISED = f"() => ({PLOT}?._fullData || []).filter(trace => trace.meta === 'mean').length === 1"


def test_a_zoom_outlives_the_updates_and_the_end_is_told_on_other_pages(browser, fake_site):
    api = fake_site.api
    api.running = True
    api.studies[1] = api._study(1)
    page = patient(browser.new_page())
    seen = watch(page, fake_site.url)
    page.goto(f"{fake_site.url}/studies/1")
    page.wait_for_function(f"() => ({PLOT}?._fullData || []).length > 8")
    rested(page, "#study-graph")
    page.evaluate(f"() => {{ window.first = {PLOT}; }}")

    def drag() -> None:
        box = page.locator("#study-graph .nsewdrag").first.bounding_box()
        page.mouse.move(box["x"] + 0.3 * box["width"], box["y"] + 0.3 * box["height"])
        page.mouse.down()
        page.mouse.move(box["x"] + 0.7 * box["width"], box["y"] + 0.8 * box["height"], steps=8)
        page.mouse.up()

    closer = f"() => {PLOT}._fullLayout.xaxis.range[0] > -2"
    insist(drag, lambda: page.evaluate(closer), what="a zoom")
    zoomed = page.evaluate(f"() => {PLOT}._fullLayout.xaxis.range")

    answer = api._sensitivity
    api._sensitivity = lambda *asked: answer(*asked).model_copy(
        update={"series": answer(*asked).series[:1]}
    )
    ended = itertools.count(30)

    def go_on() -> None:
        progress = {"completed": next(ended), "running": 4, "queued": 20}
        api.studies[1] = api.studies[1].model_copy(update={"progress": progress})

    # As a running study does: a page that had read half of the last news reads the next.
    insist(go_on, lambda: page.evaluate(REVISED), what="the new picture")
    assert page.evaluate(f"() => {PLOT}._fullLayout.xaxis.range") == zoomed != [-2.24, 2.24]
    assert page.evaluate(f"() => window.first === {PLOT}")

    page.get_by_role("link", name="Guide").click()
    page.wait_for_url("**/guide")
    api.running = False
    api.studies[1] = api._study(1)
    told = "“Digits 1: EB against IB” has ended: completed."
    expect(page.get_by_text(told)).to_be_visible()
    assert seen.complaints == []
    page.close()
