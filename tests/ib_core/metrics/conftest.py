"""One way to write a curve down: losses by learning rate, seeds numbered from 1."""

from collections.abc import Callable, Mapping, Sequence

import pytest

from ib_core.metrics.curve import RateCurve, RatePoint, SeedResult

MakeCurve = Callable[..., RateCurve]


def _make_curve(
    losses: Mapping[float, Sequence[float | None]], initial: float | None = 2.0
) -> RateCurve:
    return RateCurve(
        tuple(
            RatePoint(lr, tuple(SeedResult(i, loss, initial) for i, loss in enumerate(found, 1)))
            for lr, found in losses.items()
        )
    )


@pytest.fixture(scope="session")
def make_curve() -> MakeCurve:
    return _make_curve
