"""The edge found from the form, and a broken trial replayed by a worker, in a browser."""

import re

import httpx
import pytest
from playwright.sync_api import expect

from tests.e2e.conftest import Visit
from tests.e2e.installation import wait_for_study

#: How many times its own size an image of vectors is shown in.
SHRUNK = """image => {
  const [, box] = decodeURIComponent(image.src).match(/viewBox="([^"]+)"/);
  const [, , width, height] = box.split(" ");
  return Math.min(image.clientWidth / width, image.clientHeight / height);
}"""
LARGEST_STEP = 2.0  # of EB on a loss whose curvature is 1: 2/lambda


def get(visit: Visit, path: str) -> dict:
    return httpx.get(f"{visit.url}/api{path}", trust_env=False, timeout=30).json()


def test_the_edge_is_found_in_rounds_and_agrees_with_two_over_lambda(visit: Visit) -> None:
    page = visit.open("/new?task=toy/quadratic&methods=eb&seeds=2&rate_from=0.01&rate_to=100")
    page.get_by_text("Find the edge", exact=True).click()
    expect(page.get_by_label("Within a factor of")).to_be_visible()
    page.get_by_label("Within a factor of").fill("1.05")
    expect(page.locator("#new-forecast")).to_contain_text("at most")
    expect(page.locator("#new-submit")).to_be_enabled()
    page.locator("#new-submit").click()
    page.wait_for_url(re.compile(r"/studies/\d+"))
    study = int(page.url.rsplit("/", 1)[1].partition("?")[0])
    wait_for_study(visit.url, study)
    expect(page.get_by_text("a grid as fine takes")).to_be_visible()
    # What is written in the picture of the brackets is as large as what stands beside it.
    assert page.eval_on_selector(".search img", SHRUNK) > 0.85
    [sweep] = get(visit, f"/studies/{study}/sweeps")["items"]
    [series] = sweep["search"]["series"]
    assert series["value"] == pytest.approx(LARGEST_STEP, rel=0.05)
    assert sweep["search"]["trials"] * 5 <= sweep["search"]["grid_trials"]


def test_a_broken_trial_is_replayed_and_its_story_told(visit: Visit, first_study: None) -> None:
    trials = get(visit, "/sweeps/1/trials?state=diverged&limit=1")["items"]
    page = visit.open(f"/trials/{trials[0]['id']}")
    expect(page.get_by_role("heading", name="Why did it break?")).to_be_visible()
    page.get_by_role("button", name="Replay", exact=True).click()
    expect(page.get_by_role("button", name="Replay again")).to_be_visible()
    story = page.locator("#trial-story .story")
    expect(story).to_contain_text(re.compile(r"step \d+"))
    page.wait_for_function(
        "() => document.querySelector('#trial-way .js-plotly-plot')?._fullData?.length > 1"
    )
    told = get(visit, f"/trials/{trials[0]['id']}/recording")
    assert story.inner_text() == " ".join(told["story"])
    expect(page.locator("#trial-story")).to_contain_text(told["agreement"])
    with page.expect_download() as download:
        page.get_by_role("link", name="All rows as CSV").click()
    assert download.value.suggested_filename.endswith(".csv")
