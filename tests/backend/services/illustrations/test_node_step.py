"""What the update pictures are given besides the step itself."""

import pytest

from backend.services.illustrations import node_update
from ib_core.updates import ALPHA_RULES, SOLVABLE

PAPER = {"b": 1.0, "s": 0.3, "lr": 1.0, "z_sq": 1.0, "mu": 0.0}


@pytest.mark.parametrize("activation", list(ALPHA_RULES))
def test_the_change_is_the_loss_after_minus_before(activation: str) -> None:
    for step in node_update(activation=activation, **PAPER).steps:
        assert step.origin is not None
        assert step.loss is not None
        assert step.change == pytest.approx(step.loss - step.b * step.origin)


@pytest.mark.parametrize("activation", list(ALPHA_RULES))
def test_only_stand_ins_have_an_error_and_it_keeps_its_bound(activation: str) -> None:
    view = node_update(activation=activation, **PAPER)
    assert (view.approximation_error is None) == (SOLVABLE[activation] is None)
    assert view.approximation_error is None or view.approximation_error <= 1e-3
    assert view.slope_error is None or view.slope_error <= 1e-2


def test_the_picture_shows_every_case_and_the_step_whole() -> None:
    view = node_update(**{**PAPER, "activation": "relu", "lr": 30.0})
    assert view.jump is not None
    assert view.s[0] < view.jump < 30.0 < view.s[-1]


def test_its_width_can_be_chosen() -> None:
    view = node_update(activation="relu", reach=3.0, **PAPER)
    assert (view.s[0], view.s[-1]) == pytest.approx((-3.0, 3.0))


@pytest.mark.parametrize(
    ("activation", "s", "words"),
    [
        ("linear", 0.3, "As EB."),
        ("arctan", 0.3, "A shorter step than EB"),
        ("hardtanh", 0.3, "As EB."),
        ("softplus", -2.0, "A shorter step than EB"),
    ],
)
def test_the_implicit_step_is_compared_with_the_explicit_one(
    activation: str, s: float, words: str
) -> None:
    view = node_update(**{**PAPER, "activation": activation, "s": s})
    assert view.steps[1].case.startswith(words)


def test_looking_past_a_flat_is_called_a_longer_step() -> None:
    view = node_update(**{**PAPER, "activation": "leaky_relu", "s": 0.3})
    assert view.steps[3].case.startswith("A longer step than EB")


def test_as_the_rate_grows_ibs_step_stops_at_the_hinge_and_ebs_grows_with_it() -> None:
    view = node_update(activation="relu", **PAPER)
    eb, ib = view.by_rate[:2]
    assert (eb.method, ib.method) == ("eb", "ib")
    for rate, explicit, implicit in zip(view.rates, eb.length, ib.length, strict=True):
        assert explicit == pytest.approx(rate)  # b = |z|^2 = 1
        assert implicit == pytest.approx(min(rate, PAPER["s"]))


@pytest.mark.parametrize("activation", list(ALPHA_RULES))
def test_at_the_asked_rate_the_length_by_rate_is_the_step_itself(activation: str) -> None:
    view = node_update(activation=activation, **PAPER)
    here = view.rates.index(1.0)
    for step, sweep in zip(view.steps, view.by_rate, strict=True):
        assert step.landing is not None
        assert sweep.length[here] == pytest.approx(abs(step.s - step.landing))
