"""The updates page in a real browser: every control, and the numbers behind it."""

import pytest
from playwright.sync_api import Browser

from ib_core.updates import SOLVABLE
from tests.e2e.browser import patient
from tests.e2e.conftest import Visit
from tests.e2e.illustrated import FOLLOWS_MS, Illustration

DOWN, UP = "updates-down", "updates-up"
EXACT = [name for name, bound in SOLVABLE.items() if bound is None]
CLOSE = [name for name in SOLVABLE if name not in EXACT]


@pytest.fixture
def updates(visit: Visit) -> Illustration:
    found = Illustration(visit.page, visit.url)
    found.open("/updates", UP)
    return found


def lands(updates: Illustration, graph: str, *, eb: float, ib: float) -> None:
    """Wait until both methods land here."""
    for method, place in (("eb", eb), ("ib", ib)):
        updates.until(
            lambda method=method, place=place: (
                updates.trace(graph, f"{method} landing")["x"][0] == pytest.approx(place, abs=1e-9)
            ),
            f"{method} to land at {place} in {graph}",
        )


def by_hand(s: float, b: float, k: float, shrink: float = 1.0) -> dict[str, float]:
    """Where a relu's steps land from s > 0 under b > 0; k = lr|z|^2, shrink = 1 + lr*mu."""
    return {"eb": s * (2 - shrink) - k * b, "ib": s / shrink - k * min(b, s / k) / shrink}


def test_it_opens_with_the_papers_relu_figure(updates: Illustration) -> None:
    lands(updates, DOWN, eb=-0.7, ib=0.0)
    lands(updates, UP, eb=-0.3, ib=0.7)
    assert updates.trace(DOWN, "eb words")["text"] == ["EB: loss −0.3"]
    assert updates.trace(UP, "eb words")["text"] == ["EB stays"]
    assert [text for text, _ in updates.layout(DOWN)["notes"]] == ["EB jumps"]
    jumps = dict(updates.layout(UP)["notes"])
    assert jumps["EB jumps"] == pytest.approx(0, abs=0.03)
    assert jumps["IB jumps"] == pytest.approx(-0.5, abs=0.03)


def test_a_number_the_slider_sent_never_moves_it_back_however_late_it_is_told(
    updates: Illustration,
) -> None:
    kept = updates.page.evaluate(
        """async () => {
          const id = "updates-push", { slid, typed } = window.etascope;
          const slide = (value) => slid(id, Math.log10(value), true, false, 0.01, 10);
          const kept = (value) =>
            typed(id, value, true, 0.01, 10, Math.log10(4)) === window.dash_clientside.no_update;
          slide(2);
          slide(3);
          await new Promise((done) => setTimeout(done, 300)); // both are sent by then
          const late = [2, 3, 3, 2].map(kept);
          slide(4); // the field tells of 3 once more while 4 is on its way
          return [...late, kept(3)];
        }"""
    )
    assert kept == [True] * 5
    updates.until(lambda: updates.number("updates-push") == 4, "the last number")


def test_a_number_typed_while_the_slider_still_moves_to_the_one_before_stays(
    updates: Illustration,
) -> None:
    updates.page.fill("#updates-push", "5")
    updates.page.fill("#updates-push", "5.7")
    updates.page.evaluate(  # the slider tells late that it went where 5 had put it
        """() => window.etascope.slid("updates-push", Math.log10(5.7), true, false, 0.01, 10)"""
    )
    updates.page.wait_for_timeout(500)
    assert updates.number("updates-push") == 5.7
    thumb = updates.page.locator("#updates-push-slider [role=slider]")
    updates.until(lambda: thumb.get_attribute("aria-valuenow") == "5.7", "the slider to follow")


@pytest.mark.parametrize(("typed", "shown"), [("0.123456", "0.123"), ("7.5", "7.5")])
def test_a_slider_follows_a_typed_number_and_leaves_it_as_it_is(
    updates: Illustration, typed: str, shown: str
) -> None:
    thumb = updates.page.locator("#updates-push-slider [role=slider]")
    updates.insist(
        lambda: updates.page.fill("#updates-push", typed),
        lambda: thumb.get_attribute("aria-valuenow") == shown,
        "the slider to follow",
    )
    updates.page.wait_for_timeout(700)
    assert updates.number("updates-push") == float(typed)


def test_every_slider_moves_the_numbers_it_should(updates: Illustration) -> None:
    s = updates.press("updates-place", "ArrowRight", 3)
    assert s > 0.3
    lands(updates, DOWN, **by_hand(s, 1, 1))
    updates.until(lambda: updates.trace(UP, "start")["x"] == pytest.approx([-s]), "the mirror")

    b = updates.press("updates-push", "ArrowLeft", 8)
    assert b < 1
    lands(updates, DOWN, **by_hand(s, b, 1))

    z_sq = updates.press("updates-input", "ArrowRight", 8)
    assert z_sq > 1
    lands(updates, DOWN, **by_hand(s, b, z_sq))

    rate = updates.press("updates-rate", "ArrowLeft", 8)
    assert rate < 1
    lands(updates, DOWN, **by_hand(s, b, rate * z_sq))

    mu = updates.press("updates-ridge", "ArrowRight", 8)
    lands(updates, DOWN, **by_hand(s, b, rate * z_sq, 1 + rate * mu))
    assert "shrinks the weights" in updates.words("updates-note")

    updates.page.click("#updates-paper")
    lands(updates, DOWN, eb=-0.7, ib=0.0)
    updates.until(lambda: updates.address().endswith("/updates"), "a plain address")


def test_the_lines_of_the_relu_table_are_named_on_the_way(updates: Illustration) -> None:
    off, stops = "No step: the node is off.", "The step stops at the hinge."
    full, past = "The full step, as EB.", "It looks past the hinge: the full step."
    far = "No step: the hinge is too far away."
    marked = updates.page.locator(".case.applies")
    for s, down, up in (
        ("-1.5", off, full),
        ("0.3", stops, past),
        ("0.8", stops, far),
        ("1.5", full, far),
    ):
        updates.insist(
            lambda s=s: updates.page.fill("#updates-place", s),
            lambda down=down, up=up: (
                marked.count() == 2
                and down in marked.nth(0).inner_text()
                and up in marked.nth(1).inner_text()
            ),
            f"the cases of s = {s}",
        )


def test_a_study_can_link_here_at_its_rate(visit: Visit) -> None:
    updates = Illustration(visit.page, visit.url)
    updates.open("/updates?activation=relu&lr=30", UP)
    lands(updates, DOWN, eb=-29.7, ib=0.0)
    assert updates.number("updates-rate") == 30
    assert updates.layout(DOWN)["x"] == [-45, 45]
    near = updates.page.get_by_text("Near zero")
    updates.insist(near.click, lambda: updates.layout(DOWN)["x"] == [-3, 3], "the narrow view")
    assert updates.trace(DOWN, "eb words")["text"] == ["EB: loss −0.3<br>out, at s′ = −29.7"]
    updates.until(lambda: "view=near" in updates.address(), "the address")


def test_every_activation_is_drawn_and_says_how_exact_it_is(updates: Illustration) -> None:
    updates.page.click("#updates-activation")
    offered = updates.page.get_by_role("option").all_inner_texts()
    assert sorted(offered) == sorted((*EXACT, *CLOSE))
    updates.page.keyboard.press("Escape")
    for name in offered:
        updates.page.click("#updates-activation")
        updates.page.get_by_role("option", name=name, exact=True).click()
        # The picture is there before the list has closed; a click meanwhile would meet the old one.
        updates.page.get_by_role("option").first.wait_for(state="hidden")
        updates.until(
            lambda name=name: updates.layout(DOWN)["title"] == f"{name}(s)", f"{name} to be drawn"
        )
        updates.until(lambda name=name: name in updates.words("updates-note"), f"a note on {name}")
        note = updates.words("updates-note")
        assert ("approximation" in note) == (name in CLOSE)
        assert (f"of {name} is exact" in note) == (name in EXACT)


def test_an_activation_can_be_chosen_by_keyboard(updates: Illustration) -> None:
    field = updates.page.locator("#updates-activation")
    arctan = updates.page.get_by_role("option", name="arctan", exact=True)
    updates.insist(lambda: field.press("Enter"), arctan.is_visible, "the activations")
    updates.page.keyboard.press("ArrowDown")
    updates.page.keyboard.press("Enter")
    updates.until(lambda: updates.layout(DOWN)["title"] != "relu(s)", "another activation")


def test_a_phone_shows_all_of_it_in_light_and_dark(site: str, browser: Browser) -> None:
    for scheme, paper in (("light", "#FFFFFF"), ("dark", "#17191C")):
        page = patient(
            browser.new_page(viewport={"width": 390, "height": 844}, color_scheme=scheme)
        )
        updates = Illustration(page, site)
        updates.open("/updates", UP)
        updates.until(
            lambda updates=updates, paper=paper: updates.layout(UP)["paper"] == paper, scheme
        )
        assert page.evaluate("() => document.documentElement.scrollWidth") == 390
        page.close()


@pytest.mark.parametrize("activation", ["relu", "gelu"])
def test_the_picture_follows_the_slider_at_once(visit: Visit, activation: str) -> None:
    updates = Illustration(visit.page, visit.url)
    updates.open(f"/updates?activation={activation}", UP)
    milliseconds = updates.milliseconds_to_draw("updates-rate", UP, 20)
    assert sorted(milliseconds)[1] < FOLLOWS_MS


def test_an_end_of_the_slider_of_s_does_not_run_away_from_a_thumb_held_there(
    updates: Illustration,
) -> None:
    track = updates.page.locator("#updates-place-slider .mantine-Slider-track").bounding_box()
    assert track is not None
    y = track["y"] + 3
    updates.page.mouse.move(track["x"] + 0.5 * track["width"], y)
    updates.page.mouse.down()
    for jitter in range(12):
        updates.page.mouse.move(track["x"] + track["width"] + 20 + jitter, y)
        updates.page.wait_for_timeout(60)
    updates.page.mouse.up()
    updates.until(lambda: updates.number("updates-place") == 2, "the slider's end")
    updates.until(lambda: updates.layout(DOWN)["x"] == [-2.5, 2.5], "the wider picture")


def test_links_into_the_guide_arrive(updates: Illustration) -> None:
    updates.insist(
        updates.page.get_by_text("What does this mean?").first.click,
        lambda: updates.page.evaluate("() => document.activeElement.id") == "updates",
        "the section",
    )
    assert updates.page.evaluate("() => window.scrollY") > 500
