"""The browser's numbers of the illustrated pages against the API's, on the same random questions.

Dragging a slider asks no server: `assets/illustrations` holds the formulas once more. What the API
answers is the slow twin. Its rules are those that train, and its searches are plain.
"""

import json
import math
import os
from collections.abc import Iterator
from random import Random
from typing import Any

import numpy as np
import pytest
from playwright.sync_api import Browser, Page

from backend.services.illustrations import TOY_LOSSES, descent, node_update
from dashboard.pages import toy, updates
from ib_core.updates import SOLVABLE
from tests.e2e.browser import patient
from tests.e2e.test_scripts import ASSETS, DASH

#: Random questions a formula; what the API makes of one takes a while.
QUESTIONS = 60 if os.environ.get("ETASCOPE_TEST_FULL") else 12
#: Numbers agree to this share of themselves, or to rounding of the largest they are made of.
SHARE = 1e-9
ROUNDING = 1e-12
#: Once a path multiplies an error by more than this, the last digit of a tanh decides its course.
CHAOS = 1e5


@pytest.fixture(scope="module")
def scripts(browser: Browser) -> Iterator[Page]:
    """Load the formulas onto a page that has nothing else."""
    page = patient(browser.new_page())
    page.evaluate(DASH)
    for name in ("descent", "piecewise_cubic", "node_update"):
        page.evaluate((ASSETS / "illustrations" / f"{name}.js").read_text())
    yield page
    page.close()


#: Written as text, since a browser hands over long lists number by number, a hundred times slower;
#: what JSON has no number for stays visible.
WRITTEN = """JSON.stringify(%s, (_, value) =>
  typeof value === "number" && !Number.isFinite(value) ? String(value) : value)"""


def answered(scripts: Page, formula: str, asked: Any) -> list[dict[str, Any]]:
    """Return what a formula of the browser's makes of a question."""
    answers: list[dict[str, Any]] = json.loads(
        scripts.evaluate(f"asked => {WRITTEN % formula}", asked)
    )
    return answers


def anywhere(random: Random, slider: Any) -> float:
    """Return a number of a slider: one of its ends, 0, a round one or any."""
    place = random.uniform(slider.place(slider.low), slider.place(slider.high))
    value = 10**place if slider.log else place
    edges = [slider.low, slider.high, *(mark for mark in slider.marks if mark)]
    chosen = random.choice([random.choice(edges), round(value, 1) or value, value, value, value])
    inside = min(max(chosen, slider.low), slider.high)
    return round(inside) if slider.whole else inside


def close(got: float | None, wanted: float | None, scale: float) -> bool:
    if got is None or wanted is None:
        return got is wanted
    return math.isclose(got, wanted, rel_tol=SHARE, abs_tol=ROUNDING * scale)


def differing(got: list[Any], wanted: list[Any], scale: float) -> list[Any]:
    assert len(got) == len(wanted)
    return [
        (place, *pair)
        for place, pair in enumerate(zip(got, wanted, strict=True))
        if not close(*pair, scale)
    ]


# --- Descent


def descents(loss: str, count: int) -> list[dict[str, Any]]:
    random = Random(f"descent {loss}")
    return [
        {"loss": loss, **{name: anywhere(random, s) for name, s in toy.SLIDERS.items()}}
        for _ in range(count)
    ]


def known_steps(asked: dict[str, Any], thetas: list[float | None]) -> int:
    """Return for how many steps rounding does not decide where an explicit path goes."""
    if asked["loss"] in ("quadratic", "absolute"):
        return len(thetas)  # an error grows no faster than the path
    slope, k, h = TOY_LOSSES[asked["loss"]].slope, asked["lr"] * asked["curvature"], 1e-6
    growth = 1.0
    for step, theta in enumerate(thetas):
        assert theta is not None  # these losses have bounded slopes
        bend = float(np.diff(slope(np.array([theta - h, theta + h])))[0]) / (2 * h)
        growth *= max(1.0, abs(1 - k * bend))
        if growth > CHAOS:
            return step
    return len(thetas)


@pytest.mark.parametrize("loss", list(TOY_LOSSES))
def test_the_browser_descends_as_the_api_does(scripts: Page, loss: str) -> None:
    questions = descents(loss, QUESTIONS)
    answers = answered(scripts, "asked.map(window.etascope.descent)", questions)
    for asked, got in zip(questions, answers, strict=True):
        wanted = json.loads(descent(**asked).model_dump_json())
        scale = max(abs(asked["start"]), 1e-3)
        height = max(abs(y) for y in wanted["function"]["y"])
        for name in ("loss", "curvature", "start", "lr", "steps", "stability_limit", "minimum"):
            assert got[name] == wanted[name]
        assert got["function"]["x"] == wanted["function"]["x"]
        assert differing(got["function"]["y"], wanted["function"]["y"], height) == []
        for mine, theirs in zip(got["paths"], wanted["paths"], strict=True):
            known = len(theirs["theta"])
            if theirs["method"] == "esgd":
                known = known_steps(asked, theirs["theta"])
            assert mine["method"] == theirs["method"]
            assert close(mine["factor"], theirs["factor"], 0)
            assert differing(mine["theta"][:known], theirs["theta"][:known], scale) == [], asked
            assert differing(mine["loss"][:known], theirs["loss"][:known], height) == [], asked
            if known == len(theirs["theta"]):
                assert mine["verdict"] == theirs["verdict"], asked


# --- Updates


def question(random: Random, activation: str) -> dict[str, Any]:
    asked = {name: anywhere(random, slider) for name, slider in updates.SLIDERS.items()}
    asked["s"] = random.choice([0.0, 0.3, random.gauss(0, 3), random.gauss(0, 3), asked["s"]])
    return {"activation": activation, **asked, "reach": random.choice([None, None, updates.NEAR])}


def same_lengths(got: dict[str, Any], wanted: dict[str, Any], asked: dict[str, Any]) -> None:
    """Hold the lengths of steps at every rate against each other."""
    assert differing(got["rates"], wanted["rates"], 0) == []
    longest = 1 + abs(asked["s"]) + wanted["rates"][-1] * asked["z_sq"] * asked["b"]
    for mine, theirs in zip(got["by_rate"], wanted["by_rate"], strict=True):
        assert (mine["method"], mine["b"]) == (theirs["method"], theirs["b"])
        assert differing(mine["length"], theirs["length"], longest) == [], asked


@pytest.mark.parametrize("activation", list(SOLVABLE))
def test_the_browser_updates_a_node_as_the_api_does(scripts: Page, activation: str) -> None:
    random = Random(f"update {activation}")
    questions = [question(random, activation) for _ in range(QUESTIONS)]
    known = node_update(activation=activation, b=1, s=0, lr=1, z_sq=1, mu=0)
    rule = known.model_dump(mode="json", include={"stand_in", "approximation_error", "slope_error"})
    formula = "asked.questions.map(one => window.etascope.nodeUpdate(one, asked.rule))"
    answers = answered(scripts, formula, {"questions": questions, "rule": rule})
    for asked, got in zip(questions, answers, strict=True):
        wanted = json.loads(node_update(**asked).model_dump_json())
        travel = asked["lr"] * asked["z_sq"] * asked["b"]
        scale = 1 + abs(asked["s"]) + travel
        assert set(got) == set(wanted)
        for name in ("activation", "lr", "z_sq", "mu", "s", "cases", *rule):
            assert got[name] == wanted[name], name
        assert close(got["jump"], wanted["jump"], 0)
        assert differing(got["function"]["y"], wanted["function"]["y"], scale) == []
        for mine, theirs in zip(got["steps"], wanted["steps"], strict=True):
            for name in ("method", "b", "s", "case"):
                assert mine[name] == theirs[name], (asked, name)
            for name in ("alpha", "landing", "value", "loss", "origin", "change"):
                size = asked["b"] if name == "alpha" else scale * max(1, asked["b"])
                assert close(mine[name], theirs[name], size), (asked, name)
        same_lengths(got, wanted, asked)
        for mine, theirs in zip(got["sweeps"], wanted["sweeps"], strict=True):
            size = abs(wanted["s"][-1]) + scale
            for name in ("step", "landing", "loss"):
                found = differing(mine[name], theirs[name], size * max(1, asked["b"]))
                assert found == [], (asked, theirs["method"], name)
