"""The updates page: what it asks the API for, and what it offers."""

from typing import Any

import pytest

from backend.client import Call
from backend.schemas import ActivationRead, UpdateRead
from backend.services.illustrations import node_update
from dashboard.ids import Updates
from dashboard.pages import updates
from tests.coroutines import run
from tests.dashboard.component_tree import find


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch, api: Any) -> list[Call[Any]]:
    """Let the API's own numbers answer, and note what was asked."""
    found: list[Call[Any]] = []

    async def answer(call: Call[Any]) -> UpdateRead:
        found.append(call)
        return node_update(activation=call.query["activation"], b=1, s=0.3, lr=1, z_sq=1, mu=0)

    async def catalog() -> Any:
        activations = [
            ActivationRead(name="relu"),
            ActivationRead(name="tanh", approximation_error=1e-3),
        ]
        return type("Catalog", (), {"activations": activations})

    monkeypatch.setattr(updates, "ask", answer)
    monkeypatch.setattr(updates, "get_catalog", catalog)
    return found


def test_an_exact_rule_needs_no_api(asked: list[Call[Any]]) -> None:
    rule = run(updates.change_rule("relu"))
    assert asked == []
    assert rule == {
        "activation": "relu",
        "stand_in": None,
        "approximation_error": None,
        "slope_error": None,
    }


def test_an_approximated_rule_comes_with_its_stand_in_and_its_bounds(
    asked: list[Call[Any]],
) -> None:
    rule = run(updates.change_rule("tanh"))
    assert [call.path for call in asked] == ["/api/illustrations/update"]
    assert len(rule["stand_in"]) == 9
    assert all(len(knot) == 4 for knot in rule["stand_in"])
    assert 0 < rule["approximation_error"] < 1e-3
    assert 0 < rule["slope_error"] < 1e-2


def test_activations_with_a_formula_come_first() -> None:
    found = updates.choices_of(
        [ActivationRead(name="tanh", approximation_error=1e-3), ActivationRead(name="relu")]
    )
    assert [group["items"] for group in found] == [["relu"], ["tanh"]]


def test_what_the_address_asks_for_in_vain_stays_in_its_field(asked: list[Call[Any]]) -> None:
    page = run(updates.layout(lr="abc", mu="7"))
    assert (find(page, Updates.RATE).text, find(page, Updates.RATE).value) == ("abc", 1)
    assert (find(page, Updates.RIDGE).text, find(page, Updates.RIDGE).value) == ("7", 1)
