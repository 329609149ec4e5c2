"""The toy page in a real browser: every control, and the numbers behind it."""

import pytest
from playwright.sync_api import Browser

from tests.e2e.browser import patient
from tests.e2e.conftest import Visit
from tests.e2e.illustrated import FOLLOWS_MS, Illustration

LEFT, RIGHT = "toy-explicit", "toy-implicit"

#: Which words of a slider lie over others: its name, its field, its mark, the numbers below it, and
#: the bubble that a slider may show over its thumb.
COVERED = """id => {
  const parts = [".number-slider-label", ".number-field-input", ".slider-mark",
    ".mantine-Slider-markLabel", ".mantine-Slider-label"];
  const slider = document.getElementById(id).closest(".number-slider");
  const seen = [...slider.querySelectorAll(parts)].filter((one) => one.checkVisibility());
  const boxes = seen.map((one) => [one.textContent || one.id, one.getBoundingClientRect()]);
  const meet = (a, b) =>
    a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom;
  return boxes.flatMap(([one, a], place) => boxes.slice(place + 1)
    .filter(([, b]) => meet(a, b)).map(([other]) => [one, other]));
}"""


@pytest.fixture
def toy(visit: Visit) -> Illustration:
    found = Illustration(visit.page, visit.url)
    found.open("/toy", LEFT)
    return found


def dots(toy: Illustration, graph: str = LEFT) -> list[float]:
    return list(toy.trace(graph, "dots")["x"])


def starts_with(toy: Illustration, explicit: list[float], implicit: list[float]) -> None:
    """Wait until both paths begin like this."""
    toy.until(
        lambda: dots(toy)[: len(explicit)] == pytest.approx(explicit), f"ESGD to begin {explicit}"
    )
    toy.until(
        lambda: dots(toy, RIGHT)[: len(implicit)] == pytest.approx(implicit),
        f"ISGD to begin {implicit}",
    )


def test_every_slider_moves_the_numbers_it_should(toy: Illustration) -> None:
    starts_with(toy, [2, -1.5, 1.125], [2, 2 / 2.75])
    assert "1 − ηλ = −0.75" in toy.words("toy-words")
    assert "1/(1 + ηλ) = 0.364" in toy.words("toy-words")
    assert toy.words("toy-rate-mark") == "limit 2/λ = 2"

    rate = toy.press("toy-rate", "ArrowLeft", 8)
    assert rate < 1.75
    starts_with(toy, [2, 2 * (1 - rate)], [2, 2 / (1 + rate)])

    curvature = toy.press("toy-curvature", "ArrowLeft", 8)
    assert curvature < 1
    starts_with(toy, [2, 2 * (1 - rate * curvature)], [2, 2 / (1 + rate * curvature)])
    limit = float(toy.words("toy-rate-mark").split("=")[1])
    assert limit == pytest.approx(2 / curvature, rel=0.01)

    start = toy.press("toy-start", "ArrowLeft", 4)
    assert start == pytest.approx(1.8)
    starts_with(toy, [start], [start])

    assert toy.press("toy-steps", "ArrowRight", 5) == 15
    toy.until(lambda: len(toy.trace("toy-losses", "ESGD")["x"]) == 16, "15 steps")
    toy.until(lambda: toy.words("toy-at-words") == "Step 15 of 15", "the player to know")
    toy.until(
        lambda: f"lr={rate:g}&" in toy.address() and "steps=15" in toy.address(), "the address"
    )


def test_a_rate_past_the_limit_leaves_the_picture_and_says_so(toy: Illustration) -> None:
    near = toy.layout(LEFT)["x"]
    toy.insist(
        lambda: toy.page.fill("#toy-rate", "2.5"),
        lambda: toy.trace(LEFT, "left")["text"] == ["▲ out at step 5; at step 10 θ = 115"],
        "the rail to say it",
    )
    assert toy.trace(LEFT, "exit words")["text"] == ["  5: θ = −15.2  "]
    assert toy.layout(LEFT)["x"] == [4 * end for end in near]
    assert toy.layout(RIGHT)["x"] == near
    assert dots(toy) == pytest.approx([2, -3, 4.5, -6.75, 10.125])
    assert "diverges" in toy.words("toy-words")
    assert "every rate above 2/λ = 2" in toy.words("toy-words")
    thumb = toy.page.locator("#toy-rate-slider [role=slider]")
    assert thumb.get_attribute("aria-label") == "Learning rate η"
    assert float(thumb.get_attribute("aria-valuenow") or 0) == pytest.approx(2.5)
    toy.page.locator("#toy-log").check(force=True)
    toy.until(lambda: toy.layout("toy-losses")["up"] == "log", "a logarithmic axis")
    assert len(toy.trace("toy-losses", "ESGD")["x"]) == 11


def test_every_loss_is_drawn(toy: Illustration) -> None:
    formulas = {"Absolute": "λ|θ|", "Logistic": "log cosh", "Arctan well": "arctan(θ)²"}
    for label, formula in formulas.items():
        before = toy.trace(LEFT, "f")["y"]
        choice = toy.page.get_by_text(label, exact=True)
        toy.insist(choice.click, lambda formula=formula: formula in toy.words("toy-words"), formula)
        toy.until(lambda before=before: toy.trace(LEFT, "f")["y"] != before, f"{label} to be drawn")


def turn(toy: Illustration, button: str, words: str) -> None:
    """Press a button of the player until it says so."""
    toy.insist(
        lambda: toy.page.click(f"#toy-{button}"),
        lambda: toy.words("toy-at-words") == words,
        f"{words} after {button}",
    )


def test_the_path_can_be_stepped_through_and_played(toy: Illustration) -> None:
    turn(toy, "back", "Step 9 of 10")
    turn(toy, "back", "Step 8 of 10")
    toy.until(lambda: len(dots(toy)) == 9, "the dots to follow")
    assert len(toy.trace("toy-thetas", "ISGD")["x"]) == 9
    turn(toy, "next", "Step 9 of 10")
    toy.until(lambda: len(dots(toy)) == 10, "a step")
    turn(toy, "next", "Step 10 of 10")


def test_a_path_that_plays_can_be_paused(visit: Visit) -> None:
    toy = Illustration(visit.page, visit.url)
    toy.open("/toy?lr=0.1&steps=50", LEFT)
    play = toy.page.locator("#toy-play")
    toy.insist(play.click, lambda: toy.words("toy-play") == "Pause", "play to begin")
    toy.until(lambda: toy.words("toy-at-words") != "Step 50 of 50", "play to begin anew")
    toy.insist(play.click, lambda: toy.words("toy-play") == "Play", "the pause")
    assert toy.resting("toy-at-words", 1300) != "Step 50 of 50"


def test_reduced_motion_shows_the_end_at_once(site: str, browser: Browser) -> None:
    page = patient(browser.new_page(reduced_motion="reduce"))
    toy = Illustration(page, site)
    toy.open("/toy", LEFT)
    turn(toy, "back", "Step 9 of 10")
    turn(toy, "play", "Step 10 of 10")
    assert toy.words("toy-play") == "Play"
    page.close()


def test_the_address_is_the_view_and_one_click_brings_the_paper_back(visit: Visit) -> None:
    toy = Illustration(visit.page, visit.url)
    toy.open("/toy?loss=quadratic&lr=0.5&curvature=2&start=-1&steps=5", LEFT)
    toy.until(lambda: dots(toy) == pytest.approx([-1, 0, 0, 0, 0, 0]), "the address's view")
    toy.page.click("#toy-paper")
    toy.until(lambda: toy.address().endswith("/toy"), "a plain address")
    starts_with(toy, [2, -1.5], [2, 2 / 2.75])
    toy.page.go_back()
    toy.until(lambda: toy.number("toy-rate") == 0.5, "the view before")


def covered(toy: Illustration) -> list[list[str]]:
    """Return the words of the rate's slider that lie over others while its thumb is held."""
    found: list[list[str]] = toy.page.evaluate(COVERED, "toy-rate")
    return found


def test_a_slider_can_be_dragged_without_filling_the_history(toy: Illustration) -> None:
    track = toy.page.locator("#toy-rate-slider .mantine-Slider-track").bounding_box()
    assert track is not None
    entries = toy.page.evaluate("() => history.length")
    toy.page.mouse.move(track["x"] + 0.56 * track["width"], track["y"] + 3)
    toy.page.mouse.down()
    toy.page.mouse.move(track["x"] + 0.8 * track["width"], track["y"] + 3, steps=12)
    assert covered(toy) == []
    toy.page.mouse.up()
    toy.until(lambda: f"lr={toy.number('toy-rate'):g}" in toy.address(), "the address")
    toy.until(lambda: toy.number("toy-rate") > 5, "the end of the way")
    assert toy.page.evaluate("() => history.length") <= entries + 3


def test_a_phone_shows_all_of_it_in_light_and_dark(site: str, browser: Browser) -> None:
    for scheme, paper in (("light", "#FFFFFF"), ("dark", "#17191C")):
        page = patient(
            browser.new_page(viewport={"width": 390, "height": 844}, color_scheme=scheme)
        )
        toy = Illustration(page, site)
        toy.open("/toy", LEFT)
        toy.until(lambda toy=toy, paper=paper: toy.layout(LEFT)["paper"] == paper, scheme)
        assert page.evaluate("() => document.documentElement.scrollWidth") == 390
        page.close()


@pytest.mark.parametrize("rate", ["2.5", "100"])
def test_a_phone_shows_the_rate_beside_the_picture(site: str, browser: Browser, rate: str) -> None:
    page = patient(browser.new_page(viewport={"width": 390, "height": 844}))
    toy = Illustration(page, site)
    toy.open(f"/toy?lr={rate}", LEFT)
    for graph in (LEFT, RIGHT, "toy-thetas"):
        page.locator(f"#{graph}").scroll_into_view_if_needed()
        picture = page.locator(f"#{graph}").bounding_box()
        slider = page.locator("#toy-rate-slider").bounding_box()
        assert picture is not None
        assert slider is not None
        assert 0 < slider["y"] < slider["y"] + slider["height"] <= picture["y"]
        assert picture["y"] + picture["height"] <= 844
    page.locator("#toy-rate-slider [role=slider]").hover()
    page.mouse.down()
    assert covered(toy) == []
    page.close()


def test_the_rate_is_a_few_tab_stops_away(toy: Illustration) -> None:
    toy.page.focus("#toy-paper")
    for _ in range(3):
        toy.page.keyboard.press("Tab")
        if toy.page.evaluate("document.activeElement.id") == "toy-rate":
            return
    pytest.fail("the rate was not reached")


def test_pictures_have_a_name_and_are_described(toy: Illustration) -> None:
    for graph in (LEFT, RIGHT, "toy-losses", "toy-thetas"):
        picture = toy.page.locator(f"#{graph}")
        assert picture.get_attribute("role") == "img"
        assert picture.get_attribute("aria-label")
        assert "multiplies θ" in toy.words(picture.get_attribute("aria-describedby") or "")


def test_the_picture_follows_the_slider_at_once(toy: Illustration) -> None:
    milliseconds = toy.milliseconds_to_draw("toy-rate", "toy-thetas", 20)
    assert sorted(milliseconds)[1] < FOLLOWS_MS
