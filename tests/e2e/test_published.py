"""A published study in a real browser with the network off: drawn, and its controls work."""

import csv
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from backend.services.publishing import html_page
from ib_core.methods import METHODS
from tests.e2e.browser import patient, watch
from tests.published import LOST, contents
from tests.published import METHODS as DRAWN


@pytest.fixture
def page(browser: Browser, tmp_path: Path) -> Any:
    file = tmp_path / "out.html"
    file.write_text(html_page(contents()), encoding="utf-8")
    context = patient(browser.new_context(offline=True, viewport={"width": 1000, "height": 900}))
    opened = context.new_page()
    seen = watch(opened, "http://nowhere")
    opened.goto(file.as_uri())
    yield opened
    assert seen.complaints == []
    assert seen.foreign == []
    context.close()


def lines(page: Page) -> list[str | None]:
    """Return the colours of the curves that are drawn."""
    found = page.locator("#picture .line")
    return [one.get_attribute("stroke") for one in found.all()]


def test_a_published_study_is_alive_without_a_network(page: Page) -> None:
    expect(page.locator("#picture .mark").first).to_be_attached()
    assert lines(page) == [METHODS[name].look.colour for name in DRAWN]
    page.get_by_role("button", name="adam").click()
    assert lines(page) == [METHODS[name].look.colour for name in DRAWN if name != "adam"]
    expect(page.get_by_role("button", name="adam")).to_have_attribute("aria-pressed", "false")
    page.locator("#picture .mark").nth(3).hover()
    expect(page.locator("#hover")).to_contain_text("25 seeds")
    before = page.locator("#picture .line").first.get_attribute("d")
    page.get_by_label("log losses").uncheck()
    assert page.locator("#picture .line").first.get_attribute("d") != before


def test_a_diverged_trial_with_a_finite_loss_is_told_from_a_completed_one(page: Page) -> None:
    expect(page.locator("#picture .lost").first).to_be_attached()
    page.locator("#picture .lost").last.hover()
    expect(page.locator("#hover")).to_contain_text("diverged")
    assert page.locator("#picture .seed").count() == 0
    page.get_by_label("every seed").check()
    assert page.locator("#picture circle.seed").count() > 500
    crosses = page.locator("#picture path.seed.diverged")
    expect(crosses).to_have_count(LOST * len(DRAWN))
    crosses.nth(2).hover(force=True)
    expect(page.locator("#hover")).to_contain_text("seed 3:")
    expect(page.locator("#hover")).to_contain_text(", diverged")
    with page.expect_download() as saved:
        page.get_by_role("button", name="Save the data").click()
    with Path(saved.value.path()).open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 2000
    finite = [row for row in rows if row["outcome"] == "diverged" and row["loss"]]
    assert len(finite) == LOST * len(DRAWN)
    assert {row["outcome"] for row in rows} == {"completed", "diverged"}
