import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ib_core.errors import InvalidSpec
from ib_core.metrics.curve import RateCurve, SeedResult
from ib_core.metrics.means import MeanCurves, draw_weights, mean_curves

cell = st.one_of(st.none(), st.floats(0, 100), st.just(math.nan))


def slow_means(curve: RateCurve, drawn: dict[int, int]) -> list[float]:
    """The slow twin: write every drawn seed out and average."""
    means = []
    for point in curve.points:
        losses = [r.finite_loss for r in point.results for _ in range(drawn[r.seed])]
        losses = losses or [r.finite_loss for r in point.results]
        means.append(math.nan if None in losses else float(np.mean(losses)))
    return means


def slow_capped(curve: RateCurve, drawn: dict[int, int]) -> list[float]:
    capped = []
    for point in curve.points:
        losses = [r.capped_loss for r in point.results for _ in range(drawn[r.seed])]
        capped.append(float(np.mean(losses or [r.capped_loss for r in point.results])))
    return capped


@given(
    table=st.lists(st.lists(cell, min_size=1, max_size=5), min_size=1, max_size=4),
    rng_seed=st.integers(0, 2**31),
)
def test_resampled_means_are_those_of_the_seeds_written_out(make_curve, table, rng_seed):
    curve = make_curve({10.0**k: losses for k, losses in enumerate(table)}, initial=7.0)
    weights = draw_weights(len(curve.seeds), 6, rng_seed)
    curves = mean_curves(curve, weights=weights)
    for row, drawn in enumerate(weights.astype(int)):
        counts = dict(zip(curve.seeds, drawn.tolist(), strict=True))
        np.testing.assert_allclose(curves.mean[row], slow_means(curve, counts), rtol=1e-9)
        np.testing.assert_allclose(curves.capped[row], slow_capped(curve, counts), rtol=1e-9)


def test_a_resample_without_the_lost_seed_has_a_mean(make_curve):
    curve = make_curve({1.0: [1.0, None]})
    curves = mean_curves(curve, weights=np.array([[1.0, 1.0], [2.0, 0.0], [0.0, 2.0]]))
    np.testing.assert_array_equal(curves.mean[:, 0], [np.nan, 1.0, np.nan])
    np.testing.assert_array_equal(curves.diverged[:, 0], [0.5, 0.0, 1.0])


def test_a_rate_none_of_whose_seeds_is_drawn_is_as_observed(make_curve):
    curve = make_curve({1.0: [1.0, 5.0], 2.0: [4.0]})
    curves = mean_curves(curve, weights=np.array([[1.0, 1.0], [0.0, 1.0]]))
    np.testing.assert_array_equal(curves.mean, [[3.0, 4.0], [5.0, 4.0]])


def test_one_unrecorded_start_leaves_no_capped_loss_rather_than_a_partial_one():
    curve = RateCurve.from_results(
        [(1.0, SeedResult(1, 0.5, 2.0)), (1.0, SeedResult(2, 0.5)), (2.0, SeedResult(1, 0.5, 2.0))]
    )
    curves = mean_curves(curve)
    assert np.isnan(curves.initial).all()
    assert np.isnan(curves.capped).all()
    assert curves.mean.tolist() == [[0.5, 0.5]]


def test_draws_repeat_with_their_seed_and_differ_with_another():
    again = draw_weights(5, 20, rng_seed=3)
    np.testing.assert_array_equal(again, draw_weights(5, 20, rng_seed=3))
    assert not np.array_equal(again, draw_weights(5, 20, rng_seed=4))
    assert (again[0] == 1).all()


def test_resampled_means_spread_like_the_standard_error():
    losses = np.random.default_rng(1).normal(size=6)
    means = draw_weights(6, 20000, rng_seed=1)[1:] @ losses / 5
    assert means.std() == pytest.approx(losses.std(ddof=1) / np.sqrt(6), rel=0.02)


def test_the_best_rate_of_equal_means_is_the_lowest_despite_rounding():
    wobbly = [0.3, 0.1 + 0.2, 0.3 - 1e-17, 0.30000000000000004]
    assert MeanCurves.of([1, 2, 3, 4], wobbly).best_index.tolist() == [0]
    falling = [0.30000000000000004, 0.3]
    assert MeanCurves.of([1, 2], falling).best_index.tolist() == [0]


def test_a_mean_that_overflows_counts_as_not_finite(make_curve):
    curves = mean_curves(make_curve({1.0: [1.7e308, 1.7e308], 2.0: [1.0, 1.0]}))
    np.testing.assert_array_equal(curves.mean, [[np.nan, 1.0]])


@pytest.mark.parametrize("lrs", [[2.0, 1.0], [1.0, 1.0], [0.0, 1.0], [-1.0, 1.0], []])
def test_bare_means_need_ascending_positive_rates(lrs):
    with pytest.raises(InvalidSpec, match="ascending"):
        MeanCurves.of(lrs, [1.0] * len(lrs))


def test_bare_means_need_one_mean_per_rate():
    with pytest.raises(InvalidSpec, match="2 learning rates need as many means, not 3"):
        MeanCurves.of([1.0, 2.0], [1.0, 2.0, 3.0])
