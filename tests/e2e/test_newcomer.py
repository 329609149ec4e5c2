"""A fresh installation in a real browser: the first study begins, moves, and the paper follows."""

import re
from collections.abc import Iterator

import httpx
import pytest
from playwright.sync_api import expect

from tests.e2e.browser import insist, patient, watch
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
    context = patient(browser.new_context(viewport={"width": 1280, "height": 900}))
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
    counts = re.compile(r"losses of \d+ of 17 experiments match theirs")
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
    context = patient(browser.new_context(viewport={"width": 1280, "height": 900}))
    page = context.new_page()
    seen = watch(page, fresh)
    page.goto(f"{fresh}/history")
    fold = page.get_by_role("button", name="The paper's reproduction")
    expect(fold).to_have_attribute("aria-expanded", "false")
    expect(page.locator(".history-name")).to_have_count(1)
    insist(
        lambda: fold.press("Enter"),
        lambda: fold.get_attribute("aria-expanded") == "true",
        what="the fold to open",
    )
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
