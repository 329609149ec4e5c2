"""Pictures of many series in a browser: the scrubber, what is shown alone, a paper's figure."""

import math
import re
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from dashboard.theme import METHOD_STYLE, PALETTE
from tests.e2e.browser import settled, watch

PLOT = "#study-graph .js-plotly-plot"
#: The chosen rate's curves: how many points each panel lights up, and the line's place.
LIT = """plot => ({
  points: plot.data.filter((one) => one.meta && one.meta.lit).map((one) => one.x.length),
  line: (plot.layout.shapes || []).filter((one) => one.name === "scrubber").map((one) => one.x0),
})"""


def drawn(page: Page) -> Page:
    page.wait_for_function(f"() => document.querySelector('{PLOT}')?._fullData?.length > 3")
    settled(page)
    return page


def test_one_rate_lights_up_by_key_and_by_drag_and_is_in_the_address(fake_site, browser):
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    page.set_default_timeout(240_000)
    seen = watch(page, fake_site.url)
    page.goto(f"{fake_site.url}/studies/1?view=learning&lr=0.1")
    drawn(page)
    slider = page.get_by_role("slider", name="Learning rate")
    expect(slider).to_have_attribute("aria-valuetext", "learning rate 0.1")
    page.wait_for_function(f"() => ({LIT})(document.querySelector('{PLOT}')).line[0] === 0.1")
    first = page.eval_on_selector(PLOT, LIT)
    assert all(count > 3 for count in first["points"])
    slider.focus()
    page.keyboard.press("ArrowRight")
    expect(slider).to_have_attribute("aria-valuetext", "learning rate 0.3")
    page.wait_for_url(re.compile(r"lr=0\.3"))
    assert page.eval_on_selector(PLOT, LIT)["line"] == [0.3]
    left, top, width, height = page.eval_on_selector(
        PLOT,
        """plot => { plot.scrollIntoView({block: "start"});
          const {xaxis, yaxis} = plot._fullLayout, box = plot.getBoundingClientRect();
          return [
            box.left + xaxis._offset, box.top + yaxis._offset, xaxis._length, yaxis._length
          ] }""",
    )
    page.mouse.move(left + 0.5 * width, top + 0.5 * height)
    page.mouse.down()
    page.mouse.move(left + 0.99 * width, top + 0.5 * height, steps=4)
    page.mouse.up()
    page.wait_for_url(re.compile(r"lr=100"))
    expect(slider).to_have_attribute("aria-valuetext", "learning rate 100")
    assert seen.complaints == []
    page.close()


#: From the top of a picture: an axis title's foot, the legend's head and foot; and its height.
PLACES = """plot => {
  const top = plot.getBoundingClientRect().top;
  const box = (name) => plot.querySelector(name)?.getBoundingClientRect();
  const [axis, legend] = [box(".infolayer .xtitle"), box(".infolayer .legend")];
  return [axis ? axis.bottom - top : 0, legend.top - top, legend.bottom - top, plot.offsetHeight];
}"""


@pytest.mark.parametrize("asked", ["", "&panel=method"])
def test_a_legend_below_is_at_its_place_on_the_first_drawing(fake_site, browser, asked):
    """A blank picture with other margins was there before."""
    page = browser.new_page(viewport={"width": 390, "height": 844})
    page.set_default_timeout(240_000)
    page.goto(f"{fake_site.url}/compare?studies=1,2{asked}")
    plot = "#compare-graph .js-plotly-plot"
    page.wait_for_function(f"() => document.querySelector('{plot}')?._fullData?.length > 3")
    settled(page)
    first = page.eval_on_selector(plot, PLACES)
    page.eval_on_selector(plot, "plot => window.Plotly.redraw(plot)")
    assert page.eval_on_selector(plot, PLACES) == pytest.approx(first, abs=1)
    axis, top, bottom, height = first
    assert axis < top < bottom <= height
    page.close()


@pytest.mark.parametrize("view", ["map", "learning", "best_of"])
def test_a_gap_can_be_tested_beside_every_picture(fake_site, browser, view):
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    page.set_default_timeout(240_000)
    page.goto(f"{fake_site.url}/studies/1?view={view}")
    drawn(page)
    for words in ("Test the gap of", "Narrow it to within"):
        expect(page.get_by_role("button", name=re.compile(words)).first).to_be_visible()
    page.close()


def for_a_paper(page: Page) -> str:
    """Return the SVG that the dialog makes."""
    page.get_by_role("button", name="Export").click()
    page.get_by_role("menuitem", name="For a paper…").click()
    dialog = page.get_by_role("dialog", name="Figure for a paper")
    expect(dialog.get_by_label("Caption")).to_have_value(re.compile("3 seeds at 9 learning rates"))
    with page.expect_download() as download:
        dialog.get_by_role("button", name="SVG").click()
    return Path(download.value.path()).read_text("utf-8")


def colours(svg: str) -> list[tuple[int, ...]]:
    """Return every colour of a picture, in order."""
    found = re.findall(r"rgba?\((\d+), ?(\d+), ?(\d+)|#([0-9a-fA-F]{6})", svg)
    return [
        tuple(bytes.fromhex(written)) if written else tuple(map(int, parts))
        for *parts, written in found
    ]


@pytest.mark.parametrize("view", ["curves", "map", "learning&lr=0.3", "method", "best_of"])
def test_a_figure_for_a_paper_is_dark_on_white_whatever_the_page_is(fake_site, browser, view):
    made = {}
    for scheme in ("light", "dark"):
        page = browser.new_page(
            viewport={"width": 1280, "height": 900}, color_scheme=scheme, reduced_motion="reduce"
        )
        page.set_default_timeout(240_000)
        page.goto(f"{fake_site.url}/studies/1?view={view}")
        drawn(page)
        paper = page.eval_on_selector(PLOT, "plot => plot._fullLayout.paper_bgcolor")
        assert paper == PALETTE[scheme].paper
        made[scheme] = for_a_paper(page)
        page.close()
    dark, light = colours(made["dark"]), colours(made["light"])
    assert len(dark) == len(light) > 20
    # Along a ramp a colour is found again but for what rounding took.
    assert all(math.dist(one, other) <= 3 for one, other in zip(dark, light, strict=True))
    for colour in (PALETTE["dark"].text, PALETTE["dark"].paper, METHOD_STYLE["eb"].ink_dark):
        assert tuple(bytes.fromhex(colour[1:])) not in dark
    assert tuple(bytes.fromhex(PALETTE["light"].text[1:])) in dark
    assert "<image" not in made["dark"]


def test_the_cells_of_a_map_are_taken_along_as_areas_and_not_as_pixels(fake_site, browser):
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    page.set_default_timeout(240_000)
    page.goto(f"{fake_site.url}/studies/1?view=map")
    drawn(page)
    cells = page.eval_on_selector(
        PLOT,
        "plot => plot.data.filter((one) => one.type === 'heatmap')"
        ".flatMap((one) => one.z.flat()).filter((one) => one !== null).length",
    )
    made = {}
    for kind in ("SVG", "PDF"):
        page.get_by_role("button", name="Export").click()
        with page.expect_download() as download:
            page.get_by_role("menuitem", name=kind, exact=True).click()
        made[kind] = Path(download.value.path()).read_bytes()
    assert made["SVG"].count(b'<g class="point">') == cells > 10
    assert b"<image" not in made["SVG"]
    sides = re.findall(
        r'<g class="point"><path d="M([-\d.]+),[\d.]+V[\d.]+H([\d.]+)', str(made["SVG"])
    )
    widths = [float(right) - float(left) for left, right in sides]
    assert len(widths) == cells
    assert max(widths) < 1.2 * min(widths)  # half decades are alike on an axis of decades
    assert b"/Subtype /Image" not in made["PDF"]
    page.close()


#: Names of two panels beside each other, as they are written on paper of so many pixels.
NAMES = """([names, width]) => {
  const place = (text, index) => ({ text, x: 0.52 * index, xanchor: "left", yanchor: "bottom" });
  const annotations = [...names.map(place), { text: "<b>no name</b>", xanchor: "right" }];
  const layout = { margin: { l: 72, r: 16 }, annotations };
  window.etascope.wrapTitles(layout, width);
  return layout.annotations.map(({ text, font }) => [text, font && font.size]);
}"""


def test_names_of_narrow_panels_are_written_in_lines_and_not_over_each_other(fake_site, browser):
    page = browser.new_page()
    page.goto(f"{fake_site.url}/studies/1")
    page.wait_for_function("() => window.etascope?.wrapTitles")
    names = ["<b>Adam, The Zen of Python, scaling standard</b>", "<b>EB</b>"]
    *narrow, other = page.evaluate(NAMES, [names, 391])
    assert narrow == [
        ["<b>Adam, The Zen of Python,<br>scaling standard</b>", 9],
        ["<b>EB</b>", None],
    ]
    assert other == ["<b>no name</b>", None]
    middling = page.evaluate(NAMES, [["<b>EB, Digits, scaling standard</b>", "<b>EB</b>"], 391])
    assert middling[0] == ["<b>EB, Digits, scaling<br>standard</b>", 11]
    assert page.evaluate(NAMES, [names, 800])[0] == [names[0], None]
    page.close()


def test_what_is_shown_alone_is_in_the_address_and_a_paper_gets_its_centimetres(fake_site, browser):
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    page.set_default_timeout(240_000)
    seen = watch(page, fake_site.url)
    page.goto(f"{fake_site.url}/studies/1?only=method:ib&panel=method")
    drawn(page)
    names = "plot => plot.data.filter((one) => one.meta === 'mean').map((one) => one.name)"
    assert page.eval_on_selector(PLOT, names) == ["Implicit (IB)"]
    svg = for_a_paper(page)
    size = re.search(r'width="([\d.]+)pt" height="([\d.]+)pt"', svg)
    assert size is not None
    assert float(size.group(1)) == 240.94  # 8.5 cm
    texts = " ".join(re.findall(r"<text[^>]*>(.*?)</text>", svg))
    assert "mean ± 1 std" not in texts  # the title is off
    assert "learning rate" in texts
    assert "<image" not in svg
    assert seen.complaints == []
    page.close()
