"""The start page in a real browser: a rate to turn, and a study that runs before one's eyes."""

import re
from collections.abc import Iterator

import httpx
import pytest
from playwright.sync_api import Page, expect

from tests.e2e.browser import watch
from tests.e2e.conftest import PATIENCE_MS
from tests.e2e.installation import SHIPPED, installation
from tests.servers import wait_for

#: The beginning of the first study takes longer than several looks for it.
SLOW_BEGINNING = """
const at_once = window.fetch;
window.fetch = async (address, options) => {
  if (String((options || {}).body).includes('"output":"start-begun.data"')) {
    await new Promise((done) => setTimeout(done, 5000));
  }
  return at_once(address, options);
};
"""
#: What the race's thick lines look like now.
LINES = "[...document.querySelectorAll('#start-picture .chart-line')].map(p => p.getAttribute('d'))"


@pytest.fixture(scope="module")
def race(site: str) -> dict[float, dict]:
    answer = httpx.get(f"{site}/api/illustrations/race", trust_env=False).json()
    return {rate["lr"]: rate for rate in answer["rates"]}


def shown(page: Page, rate: dict) -> None:
    """Expect the words of a rate, beside a slider that says it."""
    expect(page.locator("#start-words")).to_have_text(rate["words"])
    expect(page.locator("#start-ahead")).to_have_text(rate["ahead"])
    expect(page.locator("#start-number")).to_have_text(f"{rate['lr']:g}")
    expect(page.get_by_role("slider")).to_have_attribute("aria-valuetext", f"{rate['lr']:g}")
    expect(page.locator("#start-picture svg")).to_have_attribute(
        "aria-label", f"{rate['words']} {rate['ahead']}"
    )


def test_arrow_keys_change_words_curves_and_address(visit, race):
    page = visit.open("/")
    shown(page, race[0.5])
    before = page.evaluate(LINES)
    assert len(before) == 3
    slider = page.get_by_role("slider", name="Learning rate")
    slider.focus()
    page.keyboard.press("ArrowRight")
    shown(page, race[0.7])
    assert page.evaluate(LINES) != before
    page.wait_for_url("**/?lr=0.7")
    page.keyboard.press("End")
    shown(page, race[100])
    page.wait_for_url("**/?lr=100")
    page.keyboard.press("Home")
    shown(page, race[0.01])
    page.wait_for_url("**/?lr=0.01")
    page.reload()
    shown(page, race[0.01])


def test_going_back_turns_the_rate_back(visit, race):
    page = visit.open("/?lr=2")
    shown(page, race[2])
    page.get_by_role("slider").focus()
    page.keyboard.press("ArrowRight")
    page.wait_for_url("**/?lr=3")
    page.go_back()
    shown(page, race[2])


def test_a_rate_nobody_trained_is_the_nearest_one_that_was(visit, race):
    shown(visit.open("/?lr=0.51"), race[0.5])
    shown(visit.open("/?lr=-4"), race[0.5])
    shown(visit.open("/?lr=1e9"), race[100])


def test_a_drag_is_followed_within_50_ms(visit, race):
    page = visit.open("/?lr=0.01")
    shown(page, race[0.01])
    box = page.get_by_role("slider").bounding_box()
    assert box is not None
    middle = box["y"] + 18
    page.mouse.move(box["x"] + 15, middle)
    page.mouse.down()
    seen = []
    for share in (0.2, 0.4, 0.6, 0.8, 1.0):
        page.mouse.move(box["x"] + 15 + (box["width"] - 30) * share, middle, steps=3)
        seen.append(page.locator("#start-words").inner_text())
    page.mouse.up()
    assert len(set(seen)) >= 3
    shown(page, race[100])
    # What one event costs, from the finger to the drawn curves.
    spent = page.evaluate(
        """() => {
          const slider = document.getElementById('start-slider');
          return Array.from({ length: 20 }, (_, place) => {
            slider.value = place;
            const began = performance.now();
            slider.dispatchEvent(new Event('input'));
            document.getElementById('start-picture').getBoundingClientRect();
            return performance.now() - began;
          }).sort((a, b) => a - b)[10];
        }"""
    )
    assert spent < 50


@pytest.mark.usefixtures("first_study")
@pytest.mark.parametrize(("width", "most"), [(1280, 900), (390, 3 * 844)])
def test_it_takes_one_screen_on_a_desk_and_three_on_a_phone(browser, site, width, most):
    context = browser.new_context(viewport={"width": width, "height": 844 if width < 640 else 900})
    page = context.new_page()
    page.goto(site)
    expect(page.get_by_text("Load the reproduction")).to_be_visible()
    expect(page.locator("#start-chart svg")).to_be_visible()
    assert page.evaluate("document.documentElement.scrollHeight") <= most
    expect(page.get_by_role("table")).to_have_count(0)
    expect(page.locator(".tag")).to_have_count(0)
    context.close()


# --- A fresh installation ---------------------------------------------------------------------


@pytest.fixture(scope="module")
def fresh(tmp_path_factory) -> Iterator[str]:
    """Run `etascope up` as a newcomer does; nobody has opened it yet."""
    with installation(tmp_path_factory.mktemp("fresh")) as started:
        yield started.url


def studies(url: str, **query: str) -> list[dict]:
    return httpx.get(f"{url}/api/studies", params=query, trust_env=False, timeout=30).json()[
        "items"
    ]


def test_the_first_study_begins_with_the_first_browser_moves_and_is_followed_by_the_paper(
    browser, fresh
):
    assert studies(fresh) == []
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    context.set_default_timeout(PATIENCE_MS)
    page = context.new_page()
    page.add_init_script(SLOW_BEGINNING)
    seen = watch(page, fresh)
    page.goto(fresh)
    expect(page.get_by_text("Running now")).to_be_visible()
    [study] = studies(fresh)
    assert study["tags"] == ["first-study"]
    pictures = set()

    def ended() -> bool:
        found = page.locator("#start-chart svg")
        if found.count():
            pictures.add(found.first.inner_html())
        return page.get_by_text("of them broke.").count() > 0

    wait_for(ended, seconds=240, every=0.5, what="the first study")
    assert len(pictures) >= 3
    [study] = studies(fresh, bundle="false")
    assert study["state"] == "completed"
    broken = study["progress"]["diverged"]
    expect(page.locator("#start-study")).to_contain_text(f"{broken} of them broke.")

    # Nobody clicked: the reproduction comes by itself, and the page says so.
    counts = re.compile(r"\d+ of 17 experiments are reproduced")
    expect(page.locator("#start-verdicts")).to_have_text(counts, timeout=180_000)
    assert len(studies(fresh, bundle="true", limit="100")) == SHIPPED
    latest = page.locator("#start-latest")
    expect(latest.get_by_role("listitem")).to_have_count(1)
    context.close()
    assert (seen.complaints, seen.foreign) == ([], [])


def test_the_history_folds_the_paper_s_studies_and_a_search_finds_them(browser, fresh):
    wait_for(
        lambda: len(studies(fresh, bundle="true", limit="100")) == SHIPPED,
        seconds=240, every=1.0, what="the bundle",
    )  # fmt: skip
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    context.set_default_timeout(PATIENCE_MS)
    page = context.new_page()
    seen = watch(page, fresh)
    page.goto(f"{fresh}/history")
    fold = page.get_by_role("button", name="The paper's reproduction")
    expect(fold).to_have_attribute("aria-expanded", "false")
    expect(page.locator(".history-name")).to_have_count(1)
    fold.focus()
    page.keyboard.press("Enter")
    expect(fold).to_have_attribute("aria-expanded", "true")
    expect(page.locator("#history-folded .history-name")).to_have_count(SHIPPED)
    page.wait_for_url("**/history?bundle=1")
    page.get_by_label("Search").fill("MNIST")
    expect(fold).to_have_count(0)
    expect(page.locator("#history-list .history-name").first).to_contain_text("MNIST")
    page.get_by_label("Search").fill("")
    expect(page.locator("#history-folded .history-name")).to_have_count(SHIPPED)
    fold.click()
    expect(page.locator(".history-name")).to_have_count(1)
    context.close()
    assert (seen.complaints, seen.foreign) == ([], [])
