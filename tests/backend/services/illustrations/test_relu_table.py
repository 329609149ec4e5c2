"""The words for IB's relu rule against the rule itself."""

import pytest

from backend.services.illustrations import node_update
from backend.services.illustrations.node_step import relu_cases, relu_words


def implicit_step(s: float, b: float, lr: float = 2.0, z_sq: float = 1.5) -> tuple[float, str]:
    view = node_update(activation="relu", b=b, s=s, lr=lr, z_sq=z_sq, mu=0.0)
    step = view.steps[1]
    assert step.landing is not None
    return step.landing - s, step.case


@pytest.mark.parametrize("b", [0.5, -0.5])
@pytest.mark.parametrize("s", [-3.0, -1.6, -1.4, -0.8, -0.7, 0.0, 0.2, 1.4, 1.6, 3.0])
def test_the_words_tell_what_the_rule_does(s: float, b: float) -> None:
    moved, words = implicit_step(s, b)
    full = -2.0 * 1.5 * b
    if words.startswith("No step"):
        assert moved == 0
    elif "stops at the hinge" in words:
        assert s + moved == pytest.approx(0.0)
    else:
        assert moved == pytest.approx(full)


def test_every_case_is_met_on_the_way_along_s() -> None:
    met = {relu_words(s / 100, b, 1.0) for s in range(-200, 201) for b in (1.0, -1.0)}
    assert len(met) == 5  # the full step is one sentence for both signs


def test_one_line_applies_for_each_sign() -> None:
    lines = relu_cases(0.3, 1.0, 1.0)
    assert [line.condition for line in lines if line.applies] == [
        "0 < s ≤ η|z|²b",
        "η|z|²b/2 < s ≤ 0",
    ]
    assert [line.b for line in lines] == [1.0] * 3 + [-1.0] * 3


def test_without_a_gradient_there_is_no_table() -> None:
    assert relu_cases(0.3, 0.0, 1.0) == []
    assert relu_words(0.3, 0.0, 1.0) == "No step: b is zero."
