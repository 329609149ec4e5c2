"""Losses over training: what the seeds of one rate have in common, against slow twins."""

import itertools

import numpy as np
import pytest

from ib_core.metrics import RateCurve, SeedCurve, learning_curve, score_task, time_to_target
from ib_core.metrics.curve import RatePoint, SeedResult
from ib_core.metrics.learning import epochs_until, median_ends, running_mean


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


# --- Time to target


def at(*losses: float, diverged: bool = False) -> SeedCurve:
    epochs = np.arange(float(len(losses)))
    return SeedCurve(100 * epochs, epochs, np.array(losses), diverged)


NAN, INF = float("nan"), float("inf")


@pytest.mark.parametrize(
    ("losses", "epochs"),
    [
        ((2, 1, 0.5, 0.4), 2),
        ((2, 1, 0.5 + 1e-16, 0.4), 2),  # the last bits of a mean are no difference
        ((2, 0.4, 3, 0.4), 1),  # the first time counts, whatever comes of it
        ((2, NAN, 0.5), 2),
        ((2, 1, INF), INF),
        ((2, -INF), INF),
        ((), INF),
    ],
)
def test_the_first_loss_at_or_below_the_target_counts(losses, epochs) -> None:
    assert epochs_until(at(*losses), 0.5) == epochs


def test_a_seed_that_never_gets_there_is_later_than_all_that_do() -> None:
    """With a mean it would be infinite, left out it would make the method look quick."""
    soon, late, never = at(2, 0.4, 0.3, 0.2), at(2, 1, 0.6, 0.5), at(2, 1, 1, 1)
    found = time_to_target([soon, late, never], 0.5)
    assert (found.value, found.censored, found.n) == (3, "none", 3)
    assert found.note.startswith("2 of 3 seeds got to 0.5.")
    half = time_to_target([soon, late, never, never], 0.5)
    assert (half.value, half.censored, half.n) == (3, "above", 4)
    lost = time_to_target([soon, at(2, INF, diverged=True), never, never, never], 0.5)
    assert (lost.value, lost.censored, lost.low, lost.high) == (3, "above", 1, None)


def test_without_training_or_target_there_is_no_number_and_it_says_why() -> None:
    curves = {
        "eb": RateCurve((RatePoint(0.1, (SeedResult(1, 0.5, 2.0), SeedResult(2, 0.4, 2.0))),))
    }
    found = score_task(curves).rows["eb"]["time_to_target"]
    assert (found.value, found.n, found.note) == (None, 2, "No losses over training are known.")
    assert "nothing was learnt" in time_to_target([at(2, 1)], NAN).note


def slow_median_ends(values: list[float]) -> tuple[float, float]:
    """The innermost pair between which at least 95 of 100 medians lie, by counting coins."""
    n = len(values)
    best = (values[0], values[-1])
    for k in range(1, n // 2 + 1):
        inside = (
            sum(k <= sum(coins) <= n - k for coins in itertools.product((0, 1), repeat=n)) / 2**n
        )
        if inside >= 0.95:
            best = (values[k - 1], values[n - k])
    return best


@pytest.mark.parametrize("n", [5, 6, 8, 9, 10, 12])
def test_a_median_s_interval_is_that_of_coins(n: int) -> None:
    values = [float(i * i) for i in range(n)]
    assert median_ends(np.array(values)) == slow_median_ends(values)


def test_a_median_s_interval_holds_the_median_and_needs_five_seeds() -> None:
    rng = np.random.default_rng(1)
    for n, least in ((5, 0.92), (10, 0.96)):
        drawn = np.sort(rng.lognormal(0, 1, (2000, n)), axis=1)
        held = [low <= 1 <= high for low, high in map(median_ends, drawn)]
        assert least < np.mean(held) < 0.99
    few = time_to_target([at(2, 0.4)] * 4, 0.5)
    assert (few.value, few.has_interval, few.note.split(". ")[1]) == (
        1,
        False,
        "A median's interval needs 5 seeds.",
    )
