"""The start page in a real browser: a rate to turn, and a study that runs before one's eyes."""

import httpx
import pytest
from playwright.sync_api import Page, expect

from tests.e2e.browser import insist, patient

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


def turn(page: Page, key: str) -> None:
    """Press a key on the slider, and see another rate."""
    slider = page.get_by_role("slider", name="Learning rate")
    before = slider.get_attribute("aria-valuetext")
    insist(
        lambda: slider.press(key),
        lambda: slider.get_attribute("aria-valuetext") != before,
        what=f"another rate after {key}",
    )


def test_arrow_keys_change_words_curves_and_address(visit, race):
    page = visit.open("/")
    shown(page, race[0.5])
    before = page.evaluate(LINES)
    assert len(before) == 3
    turn(page, "ArrowRight")
    shown(page, race[0.7])
    assert page.evaluate(LINES) != before
    page.wait_for_url("**/?lr=0.7")
    turn(page, "End")
    shown(page, race[100])
    page.wait_for_url("**/?lr=100")
    turn(page, "Home")
    shown(page, race[0.01])
    page.wait_for_url("**/?lr=0.01")
    page.reload()
    shown(page, race[0.01])


def test_going_back_turns_the_rate_back(visit, race):
    page = visit.open("/?lr=2")
    shown(page, race[2])
    turn(page, "ArrowRight")
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
          }).sort((a, b) => a - b)[1];
        }"""
    )
    assert spent < 50  # of the best tenth: the machine may be busy with anything


@pytest.mark.usefixtures("first_study")
@pytest.mark.parametrize(("width", "most"), [(1280, 900), (390, 3 * 844)])
def test_it_takes_one_screen_on_a_desk_and_three_on_a_phone(browser, site, width, most):
    context = patient(
        browser.new_context(viewport={"width": width, "height": 844 if width < 640 else 900})
    )
    page = context.new_page()
    page.goto(site)
    expect(page.get_by_text("Load the reproduction")).to_be_visible()
    expect(page.locator("#start-chart svg")).to_be_visible()
    assert page.evaluate("document.documentElement.scrollHeight") <= most
    expect(page.get_by_role("table")).to_have_count(0)
    expect(page.locator(".tag")).to_have_count(0)
    context.close()
