import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ib_core.errors import InvalidSpec
from ib_core.metrics.means import MeanCurves, mean_curves
from ib_core.metrics.number import MetricValue
from ib_core.metrics.sensitivity import (
    best_lr,
    best_mean,
    lr_sensitivity,
    lr_sensitivity_normalised,
    rate_weights,
    recommendation,
    robust_range,
)

GRID = [0.01, 0.1, 1.0, 10.0, 100.0]
values = st.lists(st.one_of(st.just(math.nan), st.floats(0.01, 5)), min_size=5, max_size=5).filter(
    lambda found: min((v for v in found if v == v), default=9) < 1.9
)


def value(reading):
    return float(reading.value[0])


def end(at, censored="none", note=""):
    return MetricValue(at, None, None, censored, "learning rate", "", note)


def test_sensitivity_of_a_hand_made_curve():
    curves = MeanCurves.of(GRID, [1.0, 0.5, 0.0, 3.0, math.nan], initial=2.0)
    assert value(lr_sensitivity(curves)) == pytest.approx((1.0 + 0.5 + 0.0 + 2.0 + 2.0) / 5)
    assert value(lr_sensitivity_normalised(curves)) == pytest.approx(5.5 / 5 / 2)
    assert lr_sensitivity(curves).note == "Over 0.01 to 100."


def test_losses_are_capped_seed_by_seed_before_they_are_averaged(make_curve):
    curves = mean_curves(make_curve({1.0: [0.0, 0.0], 10.0: [0.0, None]}, initial=2.0))
    assert value(lr_sensitivity(curves)) == pytest.approx((0.0 + 1.0) / 2)


def test_a_capped_mean_below_the_best_mean_counts_nothing_instead_of_negative(make_curve):
    curves = mean_curves(make_curve({1.0: [0.6, 0.6], 10.0: [0.1, 100.0]}, initial=1.0))
    assert curves.capped[0, 1] < curves.best_mean[0]
    assert value(lr_sensitivity(curves)) == 0.0


def test_a_dense_corner_of_an_uneven_grid_does_not_dominate():
    lrs = [0.01, 1.0, 1.1, 1.2, 1.3, 100.0]
    weights = rate_weights(np.array(lrs))
    assert weights.sum() == pytest.approx(1)
    assert weights[[0, -1]].tolist() == pytest.approx([0.25, np.log10(100 / 1.3) / 8], rel=1e-9)


@pytest.mark.parametrize("lrs", [[0.1, 0.3, 1, 3, 10], [1, 2, 4, 8], [0.01, 0.0316, 0.1]])
def test_rounded_log_grids_count_as_even(lrs):
    assert rate_weights(np.array(lrs)).tolist() == pytest.approx([1 / len(lrs)] * len(lrs))


@pytest.mark.parametrize(
    ("means", "initial", "reason"),
    [
        ([0.1] * 5, None, "not recorded"),
        ([math.nan] * 5, 2.0, "not finite"),
        ([2.0] * 5, 2.0, "below its initial value"),  # l0 == l*
        ([3.0] * 5, 2.0, "below its initial value"),
    ],
)
def test_what_cannot_be_measured_says_why(means, initial, reason):
    curves = MeanCurves.of(GRID, means, initial=initial)
    robust = robust_range(curves)
    for reading in (
        lr_sensitivity(curves),
        lr_sensitivity_normalised(curves),
        robust.low,
        robust.high,
        robust.decades,
    ):
        assert np.isnan(reading.value).all()
        assert reason in reading.note


def test_one_rate_has_no_sensitivity_and_a_range_of_at_least_nothing():
    curves = MeanCurves.of([1.0], [0.5], initial=2.0)
    assert "two learning rates" in lr_sensitivity(curves).note
    robust = robust_range(curves)
    assert (value(robust.decades), robust.decades.side[0]) == (0.0, 1)


def test_the_robust_range_of_a_hand_made_curve():
    # l* = 0, l0 = 2, so the bound is 0.2: half way up to 0.4 on both sides.
    robust = robust_range(MeanCurves.of(GRID, [2.0, 0.4, 0.0, 0.4, 2.0], initial=2.0))
    assert value(robust.low) == pytest.approx(10**-0.5)
    assert value(robust.high) == pytest.approx(10**0.5)
    assert value(robust.decades) == pytest.approx(1.0)
    assert robust.decades.side.tolist() == [0]


def test_the_robust_range_stops_at_the_first_bad_rate_even_if_a_later_one_is_good():
    robust = robust_range(MeanCurves.of(GRID, [0.0, 2.0, 0.1, 0.1, 0.1], initial=2.0))
    assert value(robust.high) < 0.1


def test_an_end_at_the_grids_is_a_bound_given_as_typed():
    robust = robust_range(MeanCurves.of([0.3, 3.0, 30.0], [0.0, 0.0, 2.0], initial=2.0))
    assert (value(robust.low), robust.low.side[0]) == (0.3, -1)
    assert robust.high.side[0] == 0
    assert robust.decades.side[0] == 1


def test_all_equal_losses_are_robust_over_the_whole_grid():
    curves = MeanCurves.of(GRID, [0.3, 0.1 + 0.2, 0.3, 0.3, 0.3], initial=2.0)
    robust = robust_range(curves)
    assert (value(robust.decades), robust.decades.side[0]) == (pytest.approx(4.0), 1)
    assert value(lr_sensitivity(curves)) == pytest.approx(0.0, abs=1e-15)


@pytest.mark.parametrize("tolerance", [0.0, 1.0, -1.0])
def test_a_tolerance_that_is_no_share_is_refused(tolerance):
    with pytest.raises(InvalidSpec, match="share"):
        robust_range(MeanCurves.of(GRID, [1.0] * 5, initial=2.0), tolerance)


@given(values, st.floats(0.02, 0.9))
def test_robust_range_agrees_with_a_dense_walk_along_the_curve(means, tolerance):
    curves = MeanCurves.of(GRID, means, initial=2.0)
    bound = curves.best_mean[0] * (1 - tolerance) + tolerance * 2.0
    logs = np.linspace(-2, 2, 8001)
    good = np.interp(logs, np.log10(GRID), curves.capped[0]) <= bound + 1e-9
    start = int(curves.best_index[0]) * 2000
    walk = {
        "high": next((i for i in range(start, 8001) if not good[i]), 8000),
        "low": next((i for i in range(start, -1, -1) if not good[i]), 0),
    }
    robust = robust_range(curves, tolerance)
    assert math.log10(value(robust.high)) == pytest.approx(logs[walk["high"]], abs=2e-3)
    assert math.log10(value(robust.low)) == pytest.approx(logs[walk["low"]], abs=2e-3)


@given(values)
def test_normalised_sensitivity_is_a_share_and_a_wider_tolerance_a_wider_range(means):
    curves = MeanCurves.of(GRID, means, initial=2.0)
    assert 0 <= value(lr_sensitivity_normalised(curves)) <= 1
    widths = [value(robust_range(curves, d).decades) for d in (0.05, 0.1, 0.5)]
    assert widths == sorted(widths)


@given(values, st.floats(0.1, 10), st.floats(-5, 5))
def test_shifting_and_scaling_losses_changes_no_share_and_no_range(means, scale, shift):
    plain = MeanCurves.of(GRID, means, initial=2.0)
    moved = MeanCurves.of(GRID, [scale * m + shift for m in means], initial=scale * 2.0 + shift)
    assert value(lr_sensitivity_normalised(moved)) == pytest.approx(
        value(lr_sensitivity_normalised(plain)), abs=1e-6
    )
    assert value(robust_range(moved).decades) == pytest.approx(
        value(robust_range(plain).decades), abs=1e-4
    )


@pytest.mark.parametrize(
    ("means", "at", "note"),
    [
        ([0.5, 0.1, 0.2, 0.3, 0.4], 0.1, ""),
        ([0.1, 0.2, 0.2, 0.3, 0.4], 0.01, "lowest rate tried"),
        ([0.5, 0.4, 0.3, 0.2, 0.1], 100.0, "highest rate tried"),
        ([math.nan, 0.4, math.nan, 0.4, 0.5], 0.1, ""),
    ],
)
def test_the_best_rate_says_when_it_lies_at_the_grids_end(means, at, note):
    found = best_lr(MeanCurves.of(GRID, means))
    assert value(found) == at
    assert note in found.note


def test_no_finite_mean_means_no_best_rate():
    lost = MeanCurves.of(GRID, [math.nan] * 5)
    assert np.isnan(best_lr(lost).value).all()
    assert np.isnan(best_mean(lost).value).all()
    assert "not finite" in best_mean(lost).note


@pytest.mark.parametrize(
    ("low", "high", "words"),
    [
        (end(0.3), end(30.0), "Use 0.3 to 30."),
        (end(10 ** math.log10(0.3)), end(10 ** math.log10(30)), "Use 0.3 to 30."),
        (end(0.2817), end(31.62), "Use 0.29 to 31."),  # inwards: 0.28 and 32 lie outside
        (end(0.01, "below"), end(31.62), "Use 0.01 to 31; lower rates were not tried."),
        (end(0.3), end(1000.0, "above"), "Use 0.3 to 1000; higher rates were not tried."),
        (
            end(0.01, "below"),
            end(100.0, "above"),
            "Use 0.01 to 100, every rate tried; the range may be wider.",
        ),
        (end(1.0, "below"), end(1.0, "above"), "Use 1, the only rate tried."),
        (end(1.001), end(1.004), "Use 1.001 to 1.004."),
        (end(None, note="No start."), end(None), "No recommendation. No start."),
    ],
)
def test_the_recommendation_never_leaves_the_range(low, high, words):
    assert recommendation(low, high) == words
