import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest

from ib_core.errors import InvalidSpec
from ib_core.metrics.means import MeanCurves
from ib_core.metrics.number import Reading
from ib_core.metrics.paper import (
    divergence_probability,
    divergence_rate,
    divergence_threshold,
    headroom,
    largest_stable_lr,
    paper_threshold,
)

GRID = [0.01, 0.1, 1.0, 10.0, 100.0]
# Three decimals: closer numbers than rounding can tell apart count as equal by design.
loss = st.integers(1, 10**6).map(lambda thousandths: thousandths / 1000)
mean = st.one_of(st.just(math.nan), loss)
means = st.lists(mean, min_size=5, max_size=5)


def rate_of(values, threshold, lrs=GRID):
    return divergence_rate(MeanCurves.of(lrs, values), np.array([threshold]))


def only(reading: Reading) -> tuple[float, int]:
    return float(reading.value[0]), int(reading.side[0])


def slow_rate(values, threshold):
    """The slow twin: the definition, read aloud."""
    finite = [value for value in values if not math.isnan(value)]
    if not finite or min(finite) > threshold:
        return GRID[0], -1
    best = values.index(min(finite))
    for lr, value in list(zip(GRID, values, strict=True))[best + 1 :]:
        if math.isnan(value) or value > threshold:
            return lr, 0
    return GRID[-1], 1


def test_the_threshold_is_midway_and_ignores_means_that_are_not_finite():
    eb = MeanCurves.of(GRID, [1.0, 0.2, 0.5, 3.0, math.nan])
    assert divergence_threshold(eb).tolist() == [pytest.approx(1.6)]


def test_without_a_finite_mean_of_eb_there_is_no_threshold(make_curve):
    assert paper_threshold(make_curve({1.0: [None], 2.0: [math.nan]})) is None
    assert paper_threshold(make_curve({1.0: [0.25], 2.0: [0.75]})) == 0.5


def test_huge_means_do_not_push_the_threshold_to_infinity():
    assert np.isfinite(divergence_threshold(MeanCurves.of([1, 2], [1e308, 1.5e308]))).all()


def test_slow_rates_below_the_best_one_do_not_count_as_diverged():
    assert only(rate_of([9.0, 5.0, 0.1, 0.2, 7.0], 1.0).grid) == (100.0, 0)


def test_a_curve_that_recovers_diverged_at_its_first_crossing():
    assert only(rate_of([0.1, 5.0, 0.2, 0.2, 5.0], 1.0).grid) == (0.1, 0)


def test_a_mean_that_is_not_finite_exceeds_every_threshold_and_is_not_interpolated():
    found = rate_of([0.1, 0.2, math.nan, 0.2, 0.2], 1e30)
    assert only(found.grid) == (1.0, 0)
    assert only(found.interpolated) == (pytest.approx(1.0), 0)


def test_interpolation_is_linear_in_log_lr():
    found = rate_of([0.0, 0.0, 0.0, 4.0, 8.0], 1.0)
    assert only(found.interpolated) == (pytest.approx(10**0.25), 0)


def test_a_curve_that_never_crosses_is_above_the_grid():
    found = rate_of([0.5, 0.1, 0.2, 0.2, 0.3], 1.0)
    assert only(found.grid) == (100.0, 1)
    assert only(found.interpolated) == (100.0, 1)
    assert "Above the grid" in found.grid.note


def test_best_at_the_grids_end_is_above_the_grid():
    assert only(rate_of([5.0, 4.0, 3.0, 2.0, 0.5], 1.0).grid) == (100.0, 1)


@pytest.mark.parametrize("values", [[2.0, 3.0, 2.0, 2.0, 2.0], [math.nan] * 5])
def test_a_method_always_above_the_threshold_is_below_the_grid_not_above_it(values):
    found = rate_of(values, 1.0)
    assert only(found.grid) == (0.01, -1)
    assert "Below the grid" in found.grid.note


def test_equal_means_never_diverge_despite_rounding():
    eb = MeanCurves.of(GRID, [0.3, 0.1 + 0.2, 0.3, 0.1 + 0.2, 0.3])
    assert only(divergence_rate(eb, divergence_threshold(eb)).grid) == (100.0, 1)


def test_one_rate_cannot_diverge():
    eb = MeanCurves.of([1.0], [0.5])
    assert only(divergence_rate(eb, divergence_threshold(eb)).grid) == (1.0, 1)


def test_no_threshold_is_said_in_words():
    found = rate_of([0.1] * 5, math.nan)
    assert np.isnan(found.grid.value).all()
    assert "no mean loss of EB is finite" in found.grid.note


@given(values=means, threshold=loss)
def test_divergence_rate_agrees_with_its_definition_read_aloud(values, threshold):
    found = rate_of(values, threshold)
    assert only(found.grid) == slow_rate(values, threshold)
    grid, between = only(found.grid), only(found.interpolated)
    assert between[1] == grid[1]
    assert grid[0] / 10 * (1 - 1e-9) <= between[0] <= grid[0] * (1 + 1e-9)


# Whole losses and powers of two keep ties exact, so that no case has to be left out.
whole = st.lists(st.one_of(st.just(math.nan), st.integers(1, 40)), min_size=5, max_size=5)


@given(values=whole, eb=whole, power=st.integers(-8, 8), shift=st.integers(-9, 9))
def test_headroom_does_not_depend_on_the_unit_of_loss_or_rate(values, eb, power, shift):
    def ratio(lrs, scale, offset):
        method = MeanCurves.of(lrs, [scale * v + offset for v in values])
        base = MeanCurves.of(lrs, [scale * v + offset for v in eb])
        threshold = divergence_threshold(base)
        return headroom(
            divergence_rate(method, threshold).grid, divergence_rate(base, threshold).grid
        )

    plain = ratio(GRID, 1, 0)
    moved = ratio([lr * 7 for lr in GRID], 2.0**power, shift)
    np.testing.assert_allclose(moved.value, plain.value)
    assert moved.side.tolist() == plain.side.tolist()


@pytest.mark.parametrize(
    ("method", "eb", "expected"),
    [
        ((20.0, 0), (10.0, 0), (2.0, 0)),
        ((100.0, 1), (10.0, 0), (10.0, 1)),  # only the method outlasts the grid: at least
        ((10.0, 0), (100.0, 1), (0.1, -1)),  # only EB does: at most
        ((0.01, -1), (10.0, 0), (0.001, -1)),
        ((0.01, -1), (100.0, 1), (0.0001, -1)),
    ],
)
def test_headroom_of_bounds_is_a_bound(method, eb, expected):
    found = headroom(Reading.of([method[0]], [method[1]]), Reading.of([eb[0]], [eb[1]]))
    assert only(found) == (pytest.approx(expected[0]), expected[1])


def test_headroom_is_undefined_if_both_outlast_the_grid():
    found = headroom(Reading.of([100.0], [1]), Reading.of([100.0], [1]))
    assert np.isnan(found.value).all()
    assert found.note == "Neither this method nor EB diverges on the grid."


@pytest.mark.parametrize(
    ("shares", "expected"),
    [
        ([0, 0, 0.2, 0, 1], (0.1, 0)),  # stability must hold at every lower rate as well
        ([0, 0, 0, 0, 0], (100.0, 1)),
        ([0.2, 0, 0, 0, 0], (0.01, -1)),
    ],
)
def test_the_largest_stable_rate_stops_at_the_first_divergence(shares, expected):
    assert only(largest_stable_lr(MeanCurves.of(GRID, [1.0] * 5, diverged=shares))) == expected


def test_a_share_of_divergence_can_be_tolerated():
    curves = MeanCurves.of(GRID, [1.0] * 5, diverged=[0, 0.1, 0.2, 0.3, 1])
    assert only(largest_stable_lr(curves, stable_share=0.8)) == (1.0, 0)
    with pytest.raises(InvalidSpec, match="share in"):
        largest_stable_lr(curves, stable_share=0)


@given(n=st.integers(1, 200), data=st.data())
def test_wilson_interval_agrees_with_scipy(n, data):
    k = data.draw(st.integers(0, n))
    found = divergence_probability(k, n)
    theirs = binomtest(k, n).proportion_ci(0.95, method="wilson")
    assert (found.low, found.high) == pytest.approx((theirs.low, theirs.high), abs=1e-12)
    assert 0 <= found.low <= found.value <= found.high <= 1


def test_no_divergence_in_five_seeds_is_not_never():
    found = divergence_probability(0, 5)
    assert (found.value, found.low) == (0.0, 0.0)
    assert found.high == pytest.approx(0.434, abs=1e-3)


@pytest.mark.parametrize(("k", "n"), [(0, 0), (3, 2), (-1, 2)])
def test_an_impossible_share_is_refused(k, n):
    with pytest.raises(InvalidSpec, match="not a share"):
        divergence_probability(k, n)
