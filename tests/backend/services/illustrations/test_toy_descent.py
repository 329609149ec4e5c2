"""What a path comes to, and where it is drawn."""

import pytest

from backend.services.illustrations import descent


def verdict(loss: str, lr: float, steps: int = 10) -> str:
    view = descent(loss=loss, curvature=1.0, start=2.0, lr=lr, steps=steps)  # type: ignore[arg-type]
    return view.paths[0].verdict


@pytest.mark.parametrize(
    ("loss", "lr", "expected"),
    [
        ("absolute", 0.5, "converges"),
        ("absolute", 50.0, "cycles"),
        ("logistic", 0.5, "converges"),
        ("logistic", 1.75, "oscillates"),
        ("logistic", 2.5, "cycles"),
        ("logistic", 50.0, "cycles"),
        ("arctan_well", 0.5, "converges"),
        ("arctan_well", 50.0, "diverges"),
    ],
)
def test_jumping_between_two_points_is_a_cycle_however_far_they_are(
    loss: str, lr: float, expected: str
) -> None:
    assert verdict(loss, lr) == expected


@pytest.mark.parametrize("loss", ["absolute", "logistic", "arctan_well"])
def test_one_step_is_enough_for_a_verdict(loss: str) -> None:
    assert verdict(loss, 0.1, steps=1) == "converges"


def test_the_picture_is_the_same_at_every_rate() -> None:
    views = [
        descent(loss="quadratic", curvature=1.0, start=2.0, lr=lr, steps=10)
        for lr in (0.01, 1.75, 100.0)
    ]
    assert {view.function.x[-1] for view in views} == {3.0}


def test_a_start_at_the_minimum_has_a_picture_too() -> None:
    view = descent(loss="quadratic", curvature=1.0, start=0.0, lr=1.75, steps=3)
    assert view.function.x[-1] > 0
