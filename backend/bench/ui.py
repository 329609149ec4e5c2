"""How long a person waits at the dashboard, in a real browser.

A study of 10,000 finished trials in five curves and one of 12,000 in sixty: the first picture, and
what each control takes. A history of 200 studies: its first page, paging, filtering. A slider of
each illustrated page. What five watchers cost is in `service`.
"""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from backend.bench import open_browser
from backend.bench.installation import WebProcess, finish_everything, web_process
from backend.bench.service import Row

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

Tell = Callable[[str], None]

#: What is promised, in milliseconds.
PICTURE_MS, REACTION_MS, HISTORY_MS, SLIDER_MS = 3000.0, 300.0, 1000.0, 50.0
FAMILY_PICTURE_MS, FAMILY_REACTION_MS = 2500.0, 250.0

#: 20 rates x 5 methods x 100 seeds.
LARGE = {
    "task": "digits_mlp",
    "methods": ["eb", "ib", "ib_plus", "momentum", "adam"],
    "learning_rates": {"from": 0.001, "to": 100, "count": 20},
    "seeds": 100,
    "epochs": 5,
}
CURVES = 5
#: 12 widths x 5 methods = 60 series, x 20 rates x 10 seeds.
FAMILY = {**LARGE, "seeds": 10, "width": [4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192]}
SERIES = 60
SMALL = {"task": "digits_mlp", "methods": ["eb", "ib"], "learning_rates": [0.1, 1.0], "seeds": 2}
STUDIES = 200

#: Controls of the study page: component, and the values they are set to and back.
CONTROLS: dict[str, tuple[str, str, str]] = {
    "training or test": ("study-split", "test", "train"),
    "loss or accuracy": ("study-quantity", "accuracy", "loss"),
    "last or best": ("study-reducer", "best", "final"),
    "band": ("study-band", "quantile", "std"),
    "y scale": ("study-scale", "log", "focus"),
    "curves or differences": ("study-view", "method", "curves"),
}
#: The same for many series; every picture is chosen from the curves, and left for them again.
FAMILY_CONTROLS: dict[str, tuple[str, str, str]] = {
    "colour by": ("study-colour", "width", "auto"),
    "panel by": ("study-panel", "width", "auto"),
    "y scale": ("study-scale", "log", "focus"),
    "training or test": ("study-split", "test", "train"),
    "map": ("study-view", "map", "curves"),
    "against a setting": ("study-view", "against", "curves"),
    "learning curves": ("study-view", "learning", "curves"),
    "box plot": ("study-view", "box", "curves"),
}

DRAWN = """curves => {
  const plot = document.querySelector('#study-graph .js-plotly-plot');
  const means = ((plot && plot._fullData) || []).filter(trace => trace.meta === 'mean');
  return means.length === curves && performance.now();
}"""
#: From a click to the first frame with a new picture; its data are then another object.
CHOOSE = """async ([id, value]) => {
  const plot = document.querySelector('#study-graph .js-plotly-plot');
  const before = plot.data;
  const start = performance.now();
  const choice = document.querySelector(`#${id} input[value="${value}"]`);
  if (choice) {
    choice.click();
  } else { // a list that has to be opened first: what its choice sets
    window.dash_clientside.set_props(id, { value });
  }
  while (plot.data === before) {
    if (performance.now() - start > 30000) throw new Error(`${id} ${value} changed nothing`);
    await new Promise(done => requestAnimationFrame(done));
  }
  await new Promise(done => requestAnimationFrame(done));
  return performance.now() - start;
}"""
#: Sliders of the illustrated pages: page, field, picture.
SLIDERS = (("toy", "toy-rate", "toy-explicit"), ("updates", "updates-rate", "updates-down"))
PICTURED = "id => document.getElementById(id)?.figure !== undefined"
#: From a key to the frame with the picture that follows it: the page draws an SVG of its own.
SLIDE = """async ([field, picture]) => {
  const thumb = document.querySelector(`#${field}-slider [role=slider]`);
  const before = thumb.getAttribute('aria-valuenow');
  const drawn = new Promise((done, fail) => {
    const watch = new MutationObserver(() => { watch.disconnect(); done(); });
    watch.observe(document.getElementById(picture), {childList: true});
    setTimeout(() => fail(new Error(`${field} changed nothing`)), 30000);
  });
  const start = performance.now();
  thumb.dispatchEvent(new KeyboardEvent('keydown', {key: 'ArrowLeft', bubbles: true}));
  await drawn;
  await new Promise(done => requestAnimationFrame(done));
  const taken = performance.now() - start;
  if (thumb.getAttribute('aria-valuenow') === before) throw new Error(`${field} did not move`);
  return taken;
}"""
ROWS = "count => document.querySelectorAll('.history-name').length === count && performance.now()"


def measure_ui(*, rounds: int = 3, tell: Tell = lambda _: None) -> list[Row]:
    """Return every row, measured on an installation of its own.

    Args:
        rounds: How often each is measured.
        tell: Called with what is being done.
    """
    tell("the start of a web process")
    with web_process() as web, open_browser() as browser:
        tell("a study of 10,000 trials")
        study = _study(web, "Ten thousand", LARGE)
        finish_everything(web.engine)
        rows = _pictures(web, browser, study, rounds, tell)
        rows += _reactions(web, browser, study, rounds, tell)
        tell("a study of 60 series and 12,000 trials")
        family = _study(web, "Sixty series", FAMILY)
        finish_everything(web.engine)
        rows += _families(web, browser, family, rounds, tell)
        tell(f"{STUDIES} studies")
        for number in range(STUDIES - 2):
            _study(web, f"Study {number:03d} {'odd' if number % 2 else 'even'}", SMALL)
        finish_everything(web.engine)
        rows += _history(web, browser, rounds, tell)
        rows += _sliders(web, browser, rounds, tell)
    return rows


def _study(web: WebProcess, name: str, sweep: dict[str, Any]) -> int:
    made = web.http.post("/api/studies", json={"name": name, "tags": ["bench"]})
    study = int(made.raise_for_status().json()["id"])
    web.http.post(f"/api/studies/{study}/sweeps", json=sweep).raise_for_status()
    return study


def _wait(page: "Page", condition: str, argument: Any) -> float:
    """Return when a condition became true, in milliseconds since the page was asked for."""
    return float(page.wait_for_function(condition, arg=argument, timeout=60_000).json_value())


def _pictures(
    web: WebProcess, browser: "Browser", study: int, rounds: int, tell: Tell
) -> list[Row]:
    """Open the study in a browser that knows nothing, then in one that has been here."""
    taken = _opened(web, browser, study, rounds, CURVES, tell)
    return [
        Row(f"first picture of 10,000 trials, {name}", tuple(times), "ms", PICTURE_MS)
        for name, times in taken.items()
    ]


def _opened(
    web: WebProcess, browser: "Browser", study: int, rounds: int, curves: int, tell: Tell
) -> dict[str, list[float]]:
    """Return how long a study's first picture took, by who opened it."""
    address = f"{web.http.base_url}".rstrip("/") + f"/studies/{study}"
    taken: dict[str, list[float]] = {"a new browser": [], "a browser that has been here": []}
    for number in range(rounds + 1):
        tell(f"first pictures, round {number} of {rounds}")
        context = browser.new_context()
        for times in taken.values():
            page = context.new_page()
            page.goto(address, wait_until="commit")
            milliseconds = _wait(page, DRAWN, curves)
            page.close()
            if number:  # the first round warms up the server
                times.append(milliseconds)
        context.close()
    return taken


def _reactions(
    web: WebProcess, browser: "Browser", study: int, rounds: int, tell: Tell
) -> list[Row]:
    first, again = _touched(web, browser, study, rounds, CURVES, CONTROLS, tell)
    rows = [Row("a control, first time", tuple(first), "ms", REACTION_MS)]
    return rows + [
        Row(f"a control: {name}", tuple(times), "ms", REACTION_MS)
        for name, times in again.items()
        if times
    ]


def _families(
    web: WebProcess, browser: "Browser", study: int, rounds: int, tell: Tell
) -> list[Row]:
    """Open a study of sixty series, and ask for every picture it has."""
    opened = _opened(web, browser, study, rounds, SERIES, tell)
    first, again = _touched(web, browser, study, rounds, SERIES, FAMILY_CONTROLS, tell)
    return [
        *(
            Row(f"first picture of 60 series, {name}", tuple(times), "ms", FAMILY_PICTURE_MS)
            for name, times in opened.items()
        ),
        Row("60 series, a control, first time", tuple(first), "ms", None),
        *(
            Row(f"60 series, {name}", tuple(times), "ms", FAMILY_REACTION_MS)
            for name, times in again.items()
            if times
        ),
    ]


def _touched(
    web: WebProcess,
    browser: "Browser",
    study: int,
    rounds: int,
    curves: int,
    controls: dict[str, tuple[str, str, str]],
    tell: Tell,
) -> tuple[list[float], dict[str, list[float]]]:
    """Return how long pictures took to follow a control: the first times, and later by control."""
    page = browser.new_page()
    page.goto(f"{web.http.base_url}/studies/{study}")
    _wait(page, DRAWN, curves)
    page.wait_for_load_state("networkidle")
    page.wait_for_timeout(5000)  # a person looks before touching anything
    first: list[float] = []
    again: dict[str, list[float]] = {name: [] for name in controls}
    for number in range(rounds):
        tell(f"reactions, round {number + 1} of {rounds}")
        for name, (id_, there, back) in controls.items():
            for value in (there, back):
                taken = float(page.evaluate(CHOOSE, [id_, value]))
                (first if number == 0 else again[name]).append(taken)
                page.wait_for_timeout(400)
    page.close()
    return first, again


def _history(web: WebProcess, browser: "Browser", rounds: int, tell: Tell) -> list[Row]:
    context = browser.new_context()
    opened: list[float] = []
    filtered: list[float] = []
    paged: list[float] = []
    for number in range(rounds + 1):
        tell(f"history, round {number} of {rounds}")
        page = context.new_page()
        page.goto(f"{web.http.base_url}/history", wait_until="commit")
        times = [_wait(page, ROWS, 50), *_page_and_filter(page)]
        page.close()
        if number:
            for values, taken in zip((opened, paged, filtered), times, strict=True):
                values.append(taken)
    context.close()
    return [
        Row("history of 200 studies, first page", tuple(opened), "ms", PICTURE_MS),
        Row("history of 200 studies, next page", tuple(paged), "ms", HISTORY_MS),
        Row("history of 200 studies, filter", tuple(filtered), "ms", HISTORY_MS),
    ]


def _page_and_filter(page: "Page") -> Sequence[float]:
    page.wait_for_load_state("networkidle")
    start = float(page.evaluate("performance.now()"))
    page.get_by_role("button", name="Show more").click()
    paged = _wait(page, ROWS, 100) - start
    start = float(page.evaluate("performance.now()"))
    page.get_by_label("Search").fill("123")
    return paged, _wait(page, ROWS, 1) - start


def _sliders(web: WebProcess, browser: "Browser", rounds: int, tell: Tell) -> list[Row]:
    rows = []
    for name, field, picture in SLIDERS:
        tell(f"the sliders of {name}")
        page = browser.new_page()
        page.goto(f"{web.http.base_url}/{name}")
        page.wait_for_function(PICTURED, arg=picture, timeout=60_000)
        page.wait_for_load_state("networkidle")
        taken = []
        for _ in range(rounds + 1):
            taken.append(float(page.evaluate(SLIDE, [field, picture])))
            page.wait_for_timeout(500)  # one touch, not a drag
        page.close()
        rows.append(Row(f"a slider of {name}", tuple(taken[1:]), "ms", SLIDER_MS))
    return rows
