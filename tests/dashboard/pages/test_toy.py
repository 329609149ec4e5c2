"""The toy page: what it asks for, and what it says."""

from typing import Any

import pytest
from dash import no_update

from backend.client.calls import Call
from dashboard.components.descent_words import descent_words
from dashboard.ids_illustrations import Toy
from dashboard.pages import toy
from tests.coroutines import run
from tests.dashboard.component_tree import find, said
from tests.dashboard.illustration_views import quadratic_view


def test_without_an_address_it_is_the_papers_figure() -> None:
    page = toy.layout()
    assert find(page, Toy.LOSS).value == "quadratic"
    assert find(page, Toy.RATE).value == 1.75
    assert find(page, Toy.START).value == 2
    assert find(page, Toy.STEPS).value == 10
    assert find(page, Toy.CURVATURE).value == 1


def test_the_address_sets_every_control() -> None:
    page = toy.layout(loss="logistic", lr="3.5", curvature="2", start="-1.5", steps="20", log="1")
    values = [find(page, id).value for id in (Toy.LOSS, Toy.RATE, Toy.CURVATURE, Toy.START)]
    assert values == ["logistic", 3.5, 2, -1.5]
    assert find(page, Toy.STEPS).value == 20
    assert find(page, Toy.LOG).checked is True


@pytest.mark.parametrize(
    ("given", "shown"), [("1e9", 100), ("0", 0.01), ("nan", 1.75), ("inf", 1.75), ("x", 1.75)]
)
def test_an_impossible_rate_in_the_address_becomes_a_possible_one(given: str, shown: float) -> None:
    assert find(toy.layout(lr=given), Toy.RATE).value == shown


def test_every_number_has_a_label_and_a_named_slider() -> None:
    page = toy.layout()
    for slider in toy.SLIDERS.values():
        assert find(page, slider.slider_id).thumbLabel == slider.label
        assert find(page, slider.id).kind["low"] == slider.low


def redraw(monkeypatch: pytest.MonkeyPatch, **changes: Any) -> tuple[Any, list[Call[Any]]]:
    asked: list[Call[Any]] = []

    async def answer(call: Call[Any]) -> Any:
        asked.append(call)
        query = call.query
        return quadratic_view(query["lr"], query["start"], query["steps"], query["curvature"])

    monkeypatch.setattr(toy, "ask", answer)
    settings = {
        "loss": "quadratic",
        "lr": 1.75,
        "curvature": 1,
        "start": 2,
        "steps": 10,
        "log": False,
        "scheme": "light",
    }
    return run(toy.redraw(**{**settings, **changes})), asked


def test_new_settings_are_asked_for_and_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    (data, _words, mark, style), asked = redraw(monkeypatch, lr=3, steps=4)
    assert asked[0].path == "/api/illustrations/quadratic"
    assert asked[0].query["lr"] == 3
    assert data["steps"] == 4
    assert len(data["pictures"]) == 4
    assert mark == "limit 2/λ = 2"
    assert float(style["left"].rstrip("%")) == pytest.approx(57.5, abs=0.1)


@pytest.mark.parametrize("half_typed", ["", None, "1.", -1, 1e9])
def test_a_half_typed_number_is_waited_for(
    monkeypatch: pytest.MonkeyPatch, half_typed: Any
) -> None:
    outputs, asked = redraw(monkeypatch, lr=half_typed)
    assert outputs is no_update
    assert asked == []


def test_a_loss_without_a_limit_has_no_mark() -> None:
    view = quadratic_view().model_copy(update={"stability_limit": None})
    assert toy.limit_mark(view) == ("", {"display": "none"})


@pytest.mark.parametrize(
    ("lr", "expected"),
    [
        (0.5, "1 − ηλ = 0.5 . It stays on its side of the minimum and converges."),
        (1.0, "1 − ηλ = 0 . It lands on the minimum in one step."),
        (1.75, "1 − ηλ = −0.75 . It jumps over the minimum, less far every time"),
        (2.0, "1 − ηλ = −1 . At the limit 2/λ = 2 it jumps to and fro for ever."),
        (2.5, "1 − ηλ = −1.5 . It jumps farther every time, as at every rate above 2/λ = 2."),
    ],
)
def test_the_explicit_factor_is_said_with_its_consequence(lr: float, expected: str) -> None:
    assert expected in said(descent_words(quadratic_view(lr=lr)))


@pytest.mark.parametrize("lr", [0.5, 2.5, 100.0])
def test_the_implicit_factor_converges_at_every_rate(lr: float) -> None:
    words = said(descent_words(quadratic_view(lr=lr)))
    assert f"1/(1 + ηλ) = {1 / (1 + lr):.3g}"[:16] in words
    assert "never jumps over the minimum" in words


def test_divergence_is_named() -> None:
    words = said(descent_words(quadratic_view(lr=2.5)))
    assert "diverges" in words
    assert "converges" in words


def test_another_loss_is_judged_by_its_last_steps() -> None:
    view = quadratic_view()
    paths = [
        path.model_copy(update={"factor": None, "verdict": verdict})
        for path, verdict in zip(view.paths, ("cycles", "converges"), strict=True)
    ]
    words = said(descent_words(view.model_copy(update={"loss": "logistic", "paths": paths})))
    assert "never settles" in words
    assert "below 2/λ = 2" in words
