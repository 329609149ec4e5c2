"""The answer on top of a study: words, strip, table and picture agree, and a gap can be tested."""

import re

import httpx
import pytest
from playwright.sync_api import Page, expect

from tests.e2e.browser import patient, rested, settled
from tests.e2e.installation import submit, wait_for_study
from tests.servers import wait_for

GRAPH = "#study-graph"
PLOT = f"{GRAPH} .js-plotly-plot"
#: Where half the seeds break on a fine grid of 25 seeds.
FINE = {"eb": 0.6, "ib": 1.3}
pytestmark = pytest.mark.usefixtures("first_study")

#: By lane: its words, and every span and mark with where its rate lies on the picture's own axis.
PLACED = """() => {
  const plot = document.querySelector('#study-graph .js-plotly-plot');
  const axis = plot._fullLayout.xaxis, left = plot.getBoundingClientRect().left + axis._offset;
  const on = (rate) => left + axis.d2p(rate);
  return [...document.querySelectorAll('.lane')].map((lane) => ({
    words: lane.querySelector('.track').getAttribute('aria-label'),
    marks: [...lane.querySelectorAll('[data-at]')].filter((mark) => !mark.hidden).map((mark) => {
      const box = mark.getBoundingClientRect();
      return { kind: mark.className, rate: Number(mark.dataset.at),
               off: (box.left + box.right) / 2 - on(Number(mark.dataset.at)) };
    }),
    spans: [...lane.querySelectorAll('.span')].filter((span) => !span.hidden).map((span) => {
      const box = span.getBoundingClientRect(), { from, to } = span.dataset;
      const inside = (rate) => Math.min(Math.max(on(rate), left), left + axis._length);
      return { state: span.className.split(' ')[1], from, to,
               off: [from ? box.left - inside(Number(from)) : 0,
                     to ? box.right - inside(Number(to)) : 0] };
    }),
  }));
}"""


def drawn(page: Page) -> Page:
    page.wait_for_function(f"() => document.querySelector('{PLOT}')?._fullData?.length > 3")
    settled(page)
    rested(page, GRAPH)
    return page


def scorecard(url: str, study_id: int = 1) -> dict:
    answer = httpx.get(f"{url}/api/studies/{study_id}/scorecard", trust_env=False, timeout=60)
    return answer.raise_for_status().json()


def test_the_first_study_s_edges_hold_what_a_finer_grid_found(visit):
    """And no number on the page contradicts another, or the picture."""
    page = drawn(visit.open("/studies/1?numbers=all"))
    found = scorecard(visit.url)
    expect(page.locator("#study-answer")).to_contain_text(found["answers"][0]["answer"])
    lanes = {lane["words"].partition(":")[0]: lane for lane in page.evaluate(PLACED)}
    assert len(lanes) == len(found["rows"])
    for row, lane in zip(found["rows"], lanes.values(), strict=True):
        edge, cells = row["metrics"]["edge"], row["strip"]["cells"]
        if row["method"] in FINE:
            assert edge["low"] <= FINE[row["method"]] <= edge["high"]
        shown = {mark["kind"]: mark["rate"] for mark in lane["marks"]}
        assert shown.get("edge") == (edge["value"] if edge["censored"] == "none" else None)
        start = row["metrics"]["start_at"]["value"]
        assert shown["start"] == start
        assert {cell["lr"]: cell["state"] for cell in cells}[start] == "good"
        assert f"Start at {start:g}" in row["advice"]
        expect(page.locator("#study-scorecard")).to_contain_text(row["advice"])
        expect(page.locator("#study-scorecard")).to_contain_text(edge["text"])


def test_what_the_strip_calls_broken_is_on_the_picture_s_rail(visit):
    page = drawn(visit.open("/studies/1"))
    rail = page.eval_on_selector(
        PLOT,
        "plot => plot.data.filter(trace => trace.meta === 'rail diverged')"
        ".map(trace => [trace.legendgroup, [...trace.x]])",
    )
    diverged = dict(map(tuple, rail))
    for row in scorecard(visit.url)["rows"]:
        gone = [cell["lr"] for cell in row["strip"]["cells"] if cell["broke"] == cell["n"]]
        assert set(gone) <= set(diverged.get(row["id"], [])), row["label"]


def aligned(page: Page) -> bool:
    lanes = page.evaluate(PLACED)
    marks = [abs(mark["off"]) for lane in lanes for mark in lane["marks"]]
    spans = [abs(off) for lane in lanes for span in lane["spans"] for off in span["off"]]
    return bool(marks and spans) and max(marks) < 1 and sorted(spans)[-1] < 6


def test_the_strip_stands_on_the_picture_s_axis_at_every_zoom(visit):
    page = drawn(visit.open("/studies/1"))
    wait_for(lambda: aligned(page), what="the strip on the axis")
    page.evaluate(
        "([place]) => window.Plotly.relayout(document.querySelector(place),"
        " {'xaxis.range': [-1, 1]})",
        [PLOT],
    )
    page.wait_for_url("**zoom=*")
    wait_for(lambda: aligned(page), what="the strip on the zoomed axis")
    rates = {mark["rate"] for lane in page.evaluate(PLACED) for mark in lane["marks"]}
    assert max(rates) <= 10
    page.set_viewport_size({"width": 390, "height": 800})
    wait_for(lambda: aligned(page), what="the strip on a phone's axis")
    page.set_viewport_size({"width": 1280, "height": 900})


def test_more_numbers_are_in_the_address_and_stay_on_reload(visit):
    page = drawn(visit.open("/studies/1"))
    flatness = page.locator(".scorecard").get_by_text("Flatness")
    expect(flatness).to_be_hidden()
    page.get_by_role("button", name="More numbers").click()
    expect(flatness).to_be_visible()
    page.wait_for_url("**numbers=all")
    page.reload()
    expect(flatness).to_be_visible()
    page.get_by_role("button", name="Fewer numbers").click()
    expect(flatness).to_be_hidden()


def test_a_search_has_a_picture_and_no_strip_stands_above_it(visit):
    page = visit.open("/studies/1?view=best_of")
    page.wait_for_function(
        f"() => document.querySelector('{PLOT}')?.data?.some(one => one.meta === 'best of k')"
    )
    expect(page.locator(".strip")).to_be_hidden()


COARSE = {
    "task": "digits_mlp",
    "methods": ["eb"],
    "learning_rates": [0.03, 0.1, 3.0],
    "seeds": 3,
    "epochs": 2,
}


def test_a_gap_is_tested_with_one_click_and_the_edge_is_known_better(visit):
    study = submit(visit.url, "With a gap", COARSE)
    wait_for_study(visit.url, study)
    page = drawn(visit.open(f"/studies/{study}"))
    before = scorecard(visit.url, study)["rows"][0]
    offer = page.locator(".gap")
    expect(offer).to_contain_text("0.1 to 3 untried")
    expect(offer).to_contain_text(re.compile(r"\d+ trials, "))
    page.get_by_role("button", name=re.compile("Test the gap of EB")).click()
    expect(page.get_by_text(re.compile("tests the gap of EB"))).to_be_visible()
    wait_for_study(visit.url, study)
    wait_for(
        lambda: len(scorecard(visit.url, study)["rows"][0]["strip"]["cells"]) > 3,
        what="the gap's trials",
    )
    after = scorecard(visit.url, study)["rows"][0]
    assert set(before["gap"]["learning_rates"]) <= {cell["lr"] for cell in after["strip"]["cells"]}
    low, high = after["strip"]["to_test"]
    assert high / low < 3.0 / 0.1
    expect(offer).to_contain_text(f"{low:g} to {high:g} untried")
    rested(page, GRAPH)
    assert len(page.locator(".lane .notch").all()) == len(after["strip"]["cells"])


def test_the_cost_of_a_step_is_measured_on_a_worker(visit):
    page = drawn(visit.open("/studies/1?numbers=all"))
    row = page.locator(".scorecard tr", has_text="Cost of a step")
    expect(row).to_contain_text("not measured")
    page.get_by_role("button", name="Measure the cost of a step").click()
    expect(page.get_by_text("Measured on")).to_be_visible(timeout=180_000)
    expect(row).to_contain_text(re.compile(r"\d\.\d+"))
    found = {one["method"]: one["metrics"]["step_cost"] for one in scorecard(visit.url)["rows"]}
    assert found["ib"]["value"] > 0
    expect(row).to_contain_text(found["ib"]["text"])


def test_the_numbers_of_the_guide_have_pictures_in_both_schemes(browser, site):
    for scheme in ("light", "dark"):
        context = patient(browser.new_context(color_scheme=scheme))
        page = context.new_page()
        page.goto(f"{site}/guide/numbers")
        settled(page)
        shown = page.locator(f".only-{scheme}")
        other = page.locator(".only-dark" if scheme == "light" else ".only-light")
        assert shown.count() == other.count() > 15
        expect(shown.first).to_be_visible()
        expect(other.first).to_be_hidden()
        assert shown.first.evaluate("image => image.naturalWidth > 0")
        context.close()
