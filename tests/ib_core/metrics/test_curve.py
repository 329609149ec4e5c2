import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ib_core.errors import InvalidSpec
from ib_core.metrics.curve import BAND_DEFINITIONS, Band, RateCurve, RatePoint, SeedResult

losses = st.one_of(
    st.none(), st.floats(allow_nan=True, allow_infinity=True), st.floats(0, 10, width=32)
)


def point(*values: float | None) -> RatePoint:
    return RatePoint(0.1, tuple(SeedResult(seed, value) for seed, value in enumerate(values)))


def test_a_failed_trial_is_refused_and_the_message_says_to_leave_it_out():
    with pytest.raises(InvalidSpec, match=r"'failed'.*leave"):
        SeedResult(1, 0.5, outcome="failed")


@pytest.mark.parametrize("loss", [None, math.nan, math.inf, -math.inf])
def test_a_loss_that_is_not_finite_diverged_whatever_its_outcome_says(loss):
    assert SeedResult(1, loss, outcome="completed").diverged


def test_a_finite_diverged_trial_keeps_its_loss():
    result = SeedResult(1, 50.0, 2.0, outcome="diverged")
    assert result.diverged
    assert result.finite_loss == 50.0


@pytest.mark.parametrize(
    ("loss", "initial", "capped"),
    [
        (0.5, 2.0, 0.5),
        (9.0, 2.0, 2.0),
        (math.nan, 2.0, 2.0),
        (None, 2.0, 2.0),
        (math.inf, 2.0, 2.0),
        (0.5, None, None),
        (0.5, math.nan, None),
    ],
)
def test_the_capped_loss_never_exceeds_the_initial_one(loss, initial, capped):
    assert SeedResult(1, loss, initial).capped_loss == capped


def test_one_seed_that_is_not_finite_takes_the_mean_but_not_the_mean_of_the_others():
    mixed = point(1.0, 3.0, math.nan)
    assert mixed.mean is None
    assert mixed.finite_mean == 2.0
    assert (mixed.n, mixed.n_finite, mixed.n_diverged) == (3, 2, 1)


def test_no_finite_seed_gives_no_mean_and_no_band():
    lost = point(math.nan, None)
    assert lost.mean is None
    assert lost.finite_mean is None
    assert lost.band("std") == Band(None, None)


def test_a_mean_that_overflows_is_none_instead_of_infinite():
    assert point(1.7e308, 1.7e308).mean is None


def test_the_std_band_is_the_population_one_and_the_se_band_the_samples():
    values = (1.0, 2.0, 2.0, 3.0)
    std, se = point(*values).band("std"), point(*values).band("se")
    assert std.high == pytest.approx(2.0 + np.std(values))
    assert se.high == pytest.approx(2.0 + np.std(values, ddof=1) / 2)


def test_a_skewed_band_stops_at_the_lowest_seed_instead_of_going_below_zero():
    skewed = point(0.1, 0.1, 0.1, 0.1, 5.0)
    assert np.mean(skewed.finite) - np.std(skewed.finite) < 0
    assert skewed.band("std").low == 0.1


@pytest.mark.parametrize("kind", BAND_DEFINITIONS)
def test_rounding_does_not_turn_the_band_of_equal_seeds_inside_out(kind):
    equal = 1.934720454796135e-191  # the mean of three of these is smaller than each
    assert point(equal, equal, equal).band(kind) == Band(equal, equal)


def test_one_seed_is_its_own_band():
    assert {point(0.7).band(kind) for kind in BAND_DEFINITIONS} == {Band(0.7, 0.7)}


def test_an_unknown_band_is_refused_by_name():
    with pytest.raises(InvalidSpec, match=r"'iqr'.*std, se or quantile"):
        point(1.0, 2.0).band("iqr")


@given(st.lists(losses, min_size=1, max_size=8), st.sampled_from(sorted(BAND_DEFINITIONS)))
def test_no_band_leaves_the_range_of_the_finite_seeds(values, kind):
    found = point(*values)
    band = found.band(kind)
    if found.finite_mean is None:
        assert band == Band(None, None)
    else:
        assert min(found.finite) <= band.low <= band.high <= max(found.finite)


def test_results_in_any_order_make_the_same_curve():
    results = [(lr, SeedResult(seed, lr * seed)) for lr in (3.0, 0.1, 1.0) for seed in (2, 1)]
    curve = RateCurve.from_results(results)
    assert curve.lrs == (0.1, 1.0, 3.0)
    assert curve.seeds == (1, 2)


@pytest.mark.parametrize("lr", [0.0, -1.0, math.nan, math.inf])
def test_a_rate_that_has_no_logarithm_is_refused(lr):
    with pytest.raises(InvalidSpec, match="positive and finite"):
        RatePoint(lr, (SeedResult(1, 0.5),))


def test_a_trial_counted_twice_is_refused():
    with pytest.raises(InvalidSpec, match="twice at learning rate 1"):
        RateCurve.from_results([(1.0, SeedResult(1, 0.5)), (1.0, SeedResult(1, 0.6))])
    with pytest.raises(InvalidSpec, match="1 occurs twice"):
        RateCurve((RatePoint(1.0, (SeedResult(1, 0.5),)), RatePoint(1.0, (SeedResult(2, 0.5),))))


def test_an_empty_curve_is_refused():
    with pytest.raises(InvalidSpec, match="at least one learning rate"):
        RateCurve(())
    with pytest.raises(InvalidSpec, match="no results"):
        RatePoint(1.0, ())
