"""The implicit step of a one-dimensional loss against a plain search."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from backend.services.illustrations import TOY_LOSSES, implicit_step


@pytest.mark.parametrize("name", list(TOY_LOSSES))
@given(theta=st.floats(-50, 50), k=st.floats(1e-3, 1e3))
def test_no_other_point_does_better(name: str, theta: float, k: float) -> None:
    loss = TOY_LOSSES[name]  # type: ignore[index]

    def cost(u: np.ndarray) -> np.ndarray:
        return k * loss.value(u) + (u - theta) ** 2 / 2

    anywhere = np.linspace(-abs(theta) - 1, abs(theta) + 1, 10_001)
    found = cost(np.array(implicit_step(loss, theta, k)))
    assert found <= cost(anywhere).min() + 1e-6 * (1 + abs(found))


@pytest.mark.parametrize("name", list(TOY_LOSSES))
def test_every_loss_has_its_minimum_and_its_curvature_at_zero(name: str) -> None:
    loss, h = TOY_LOSSES[name], 1e-4  # type: ignore[index]
    assert loss.value(np.array(0.0)) == pytest.approx(0.0)
    if name != "absolute":
        curvature = (loss.slope(np.array(h)) - loss.slope(np.array(-h))) / (2 * h)
        assert curvature == pytest.approx(1.0, abs=1e-6)
