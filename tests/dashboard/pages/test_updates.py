"""The updates page: what it asks for, and what it says."""

from typing import Any

import pytest
from dash import no_update

from backend.client.calls import Call
from backend.schemas import ActivationRead, RuleCase
from dashboard.components.update_words import notes, update_words
from dashboard.pages import updates
from tests.coroutines import run
from tests.dashboard.component_tree import said
from tests.dashboard.illustration_views import relu_view


def redraw(monkeypatch: pytest.MonkeyPatch, **changes: Any) -> tuple[Any, list[Call[Any]]]:
    asked: list[Call[Any]] = []

    async def answer(call: Call[Any]) -> Any:
        asked.append(call)
        return relu_view(call.query["s"], call.query["b"], call.query["lr"])

    monkeypatch.setattr(updates, "ask", answer)
    settings = {
        "activation": "relu",
        "b": 1,
        "s": 0.3,
        "lr": 1,
        "z_sq": 1,
        "mu": 0,
        "span": "whole",
        "scheme": "dark",
    }
    return run(updates.redraw(**{**settings, **changes})), asked


def test_every_setting_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    _, asked = redraw(monkeypatch, activation="gelu", lr=30, z_sq=4, mu=0.5)
    assert asked[0].parameters == {
        "activation": "gelu",
        "b": 1,
        "s": 0.3,
        "lr": 30,
        "z_sq": 4,
        "mu": 0.5,
    }


def test_a_near_view_fixes_the_width_of_the_picture(monkeypatch: pytest.MonkeyPatch) -> None:
    _, asked = redraw(monkeypatch, span="near")
    assert asked[0].query["reach"] == updates.NEAR


def test_the_slider_of_s_is_as_wide_as_the_picture(monkeypatch: pytest.MonkeyPatch) -> None:
    outputs, _ = redraw(monkeypatch)
    figure, (low, high, step, marks) = outputs[0], outputs[-4:]
    assert (low, high) == tuple(figure.layout.xaxis.range)
    assert step == pytest.approx(0.03)
    assert [mark["label"] for mark in marks] == ["−3", "0", "3"]


def test_a_half_typed_number_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    outputs, asked = redraw(monkeypatch, lr="")
    assert outputs is no_update
    assert asked == []


def test_the_papers_numbers_are_said() -> None:
    down, up = said(update_words(relu_view(), 1)), said(update_words(relu_view(), -1))
    assert "b = 1, from s = 0.3" in down
    assert "EB −0.7 −0.3" in down
    assert "IB 0 −0.3" in down
    assert "b = −1, from s = −0.3" in up
    assert "EB −0.3 0" in up
    assert "IB 0.7 −0.7" in up


def test_the_case_that_applies_is_marked() -> None:
    view = relu_view().model_copy(
        update={
            "cases": [
                RuleCase(b=1, condition="s ≤ 0", words="No step.", applies=False),
                RuleCase(b=1, condition="0 < s", words="The step stops.", applies=True),
                RuleCase(b=-1, condition="s > 0", words="Full.", applies=True),
            ]
        }
    )
    words = said(update_words(view, 1))
    assert "▸  0 < s The step stops." in words
    assert "▸  s ≤ 0" not in words
    assert "Full." not in words


def test_an_approximation_states_its_bound() -> None:
    exact = said(notes(relu_view()))
    close = said(
        notes(relu_view().model_copy(update={"activation": "tanh", "approximation_error": 8e-4}))
    )
    assert "exact" in exact
    assert "approximation" in close
    assert "0.0008" in close or "8×10⁻⁴" in close


def test_a_ridge_is_explained_only_if_there_is_one() -> None:
    assert "shrinks" not in said(notes(relu_view()))
    assert "shrinks" in said(notes(relu_view().model_copy(update={"mu": 0.1})))


def test_activations_with_a_formula_come_first() -> None:
    found = updates.choices_of(
        [ActivationRead(name="tanh", approximation_error=1e-3), ActivationRead(name="relu")]
    )
    assert [group["items"] for group in found] == [["relu"], ["tanh"]]
