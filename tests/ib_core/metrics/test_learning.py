"""Losses over training: what the seeds of one rate have in common, against slow twins."""

import numpy as np
import pytest

from ib_core.metrics import SeedCurve, learning_curve
from ib_core.metrics.curve import RatePoint, SeedResult
from ib_core.metrics.learning import running_mean


def slow_running_mean(losses: list[float], over: int) -> list[float]:
    found = []
    for t, loss in enumerate(losses):
        before = [one for one in losses[max(0, t - over + 1) : t + 1] if np.isfinite(one)]
        found.append(sum(before) / len(before) if np.isfinite(loss) else loss)
    return found


@pytest.mark.parametrize("over", [1, 2, 5, 50])
def test_a_running_mean_is_that_of_the_last_finite_losses(over: int) -> None:
    losses = [3.0, 1e20, float("inf"), 1.5, 1.0, 0.8, float("inf"), 0.5]
    found = running_mean(np.array(losses), over)
    assert found.tolist() == pytest.approx(slow_running_mean(losses, over))


def curve(losses: list[float], *, steps: list[int] | None = None, diverged: bool = False):
    at = np.array(steps or range(0, 10 * len(losses), 10), dtype=float)
    return SeedCurve(at, at / 10, np.array(losses), diverged)


def test_a_mean_is_over_all_seeds_and_lost_with_one_of_them() -> None:
    found = learning_curve([curve([2, 1, 0.5]), curve([2, 3], diverged=True)])
    assert found.steps.tolist() == [0, 10, 20]
    assert found.mean.tolist() == [2, 2, np.inf]  # the second stopped where it diverged
    assert found.broken.tolist() == [0, 1, 1]  # 3 is above its start, then it is lost
    assert found.measured.tolist() == [2, 2, 2]


def test_what_was_not_measured_is_no_loss() -> None:
    found = learning_curve([curve([2, 1, 0.5]), curve([2, 0.7], steps=[0, 20])])
    assert found.mean.tolist() == pytest.approx([2, 1, 0.6])
    assert found.measured.tolist() == [2, 1, 2]
    assert found.broken.sum() == 0


def test_thinning_keeps_both_ends() -> None:
    found = learning_curve([curve(list(range(100, 0, -1)))], points=7)
    assert len(found.steps) == 7
    assert (found.steps[0], found.steps[-1]) == (0, 990)
    assert (found.mean[0], found.mean[-1]) == (100, 1)


@pytest.mark.parametrize("count", [1, 2, 3, 4, 5, 10])
def test_quartiles_are_numpys_where_all_seeds_are_finite(count: int) -> None:
    losses = [((7 * i) % 11) / 3 + 0.1 for i in range(count)]
    point = RatePoint(0.1, tuple(SeedResult(i, loss) for i, loss in enumerate(losses)))
    assert point.quartiles == pytest.approx(tuple(np.quantile(losses, [0.25, 0.5, 0.75])))


def test_a_lost_seed_is_above_all_others() -> None:
    point = RatePoint(0.1, tuple(SeedResult(i, loss) for i, loss in enumerate([1.0, 2, 3, None])))
    assert point.quartiles == (1.75, 2.5, None)
