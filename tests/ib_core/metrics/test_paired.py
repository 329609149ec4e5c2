import inspect
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from ib_core.metrics.curve import RateCurve, SeedResult
from ib_core.metrics.paired import DIFFERENCE, WILCOXON, paired_differences, signed_rank

table = st.lists(st.lists(st.floats(0, 10), min_size=3, max_size=3), min_size=2, max_size=2)


@pytest.mark.parametrize(
    ("definition", "function"), [(DIFFERENCE, paired_differences), (WILCOXON, signed_rank)]
)
def test_every_function_quotes_the_definition_that_screens_show(definition, function):
    assert definition in " ".join(inspect.getdoc(function).split())


def test_pairs_share_rate_and_seed_and_nothing_else_is_compared():
    first = RateCurve.from_results(
        [(1.0, SeedResult(1, 0.5)), (1.0, SeedResult(2, 0.7)), (9.0, SeedResult(1, 0.1))]
    )
    second = RateCurve.from_results(
        [(1.0, SeedResult(2, 1.0)), (1.0, SeedResult(3, 9.0)), (2.0, SeedResult(1, 0.1))]
    )
    found = paired_differences(first, second)
    assert [(pair.lr, pair.seed) for pair in found.overall.pairs] == [(1.0, 2)]
    assert found.points[0].mean == pytest.approx(-0.3)
    assert (found.points[0].low, found.points[0].high) == (None, None)  # one pair: no interval


def test_nothing_in_common_is_an_empty_comparison():
    one = RateCurve.from_results([(1.0, SeedResult(1, 0.5))])
    two = RateCurve.from_results([(2.0, SeedResult(1, 0.5))])
    found = paired_differences(one, two)
    assert found.points == ()
    assert found.overall.mean is None
    assert found.overall.test.p is None


def test_pairing_removes_what_the_seeds_have_in_common(make_curve):
    seeds = [0.1, 5.0, 2.0, 9.0, 7.0]
    first = make_curve({1.0: [s + 0.10 for s in seeds]}, initial=10.0)
    second = make_curve({1.0: seeds}, initial=10.0)
    found = paired_differences(first, second).points[0]
    assert (found.low, found.mean, found.high) == pytest.approx((0.1, 0.1, 0.1))
    assert found.test.p == pytest.approx(0.0625)


def test_an_explosion_stays_in_the_mean_as_what_learning_nothing_costs():
    """The method that explodes more must not look better for it."""

    def curve(losses):
        return RateCurve.from_results(
            (1.0, SeedResult(seed, loss, initial_loss=2.0)) for seed, loss in enumerate(losses)
        )

    first, second = curve([0.5, None, 9e30, 0.5]), curve([1.0, 1.0, 1.0, math.nan])
    found = paired_differences(first, second).points[0]
    differences = [-0.5, 1.0, 1.0, -1.5]
    assert [pair.difference for pair in found.pairs] == differences
    assert (found.n, found.n_finite, found.mean) == (4, 4, 0.0)
    assert [pair.sign for pair in found.pairs] == [-1, 1, 1, -1]
    half = stats.t.ppf(0.975, 3) * stats.sem(differences)
    assert found.low <= -half
    assert found.high == pytest.approx(half)  # the longer tail is the lower one


def test_without_an_initial_loss_a_lost_pair_enters_no_mean_but_is_counted_and_listed(make_curve):
    first = make_curve({1.0: [1.0, 1.0, None, None]}, initial=None)
    second = make_curve({1.0: [2.0, math.nan, 1.0, math.inf]}, initial=None)
    found = paired_differences(first, second).points[0]
    assert (found.n, found.n_finite, found.mean) == (4, 1, -1.0)
    assert (found.lower, found.higher) == (2, 1)
    assert [pair.sign for pair in found.pairs] == [-1, -1, 1, 0]


def test_a_rate_without_a_finite_pair_keeps_its_row(make_curve):
    first = make_curve({1.0: [1.0, 2.0], 2.0: [1.0, 2.0]}, initial=None)
    second = make_curve({1.0: [2.0, 4.0], 2.0: [None, None]}, initial=None)
    found = paired_differences(first, second)
    assert [(point.lr, point.mean, point.lower) for point in found.points] == [
        (1.0, -1.5, 2),
        (2.0, None, 2),
    ]
    assert found.overall.mean == -1.5


@given(table, table)
def test_differences_change_sign_with_the_order_of_the_methods(make_curve, one, two):
    first = make_curve(dict(enumerate(one, 1)), initial=10.0)
    second = make_curve(dict(enumerate(two, 1)), initial=10.0)
    there, back = paired_differences(first, second), paired_differences(second, first)
    assert there.overall.mean == pytest.approx(-back.overall.mean, abs=1e-9)
    assert there.overall.mean == pytest.approx(np.mean(one) - np.mean(two), abs=1e-9)
    assert (there.overall.lower, there.overall.higher) == (back.overall.higher, back.overall.lower)
    assert there.overall.test.p == back.overall.test.p


def test_the_overall_interval_leaves_out_one_seed_at_a_time(make_curve):
    rng = np.random.default_rng(0)
    one, two = rng.uniform(size=(2, 2, 8))
    first = make_curve({1.0: one[0].tolist(), 3.0: one[1].tolist()})
    second = make_curve({1.0: two[0].tolist(), 3.0: two[1].tolist()})
    found = paired_differences(first, second).overall
    each = (one - two).mean(axis=0)  # every seed is at both rates, so this is Student's interval
    half = stats.t.ppf(0.975, 7) * stats.sem(each)
    assert found.mean == pytest.approx(each.mean())
    assert min(found.mean - found.low, found.high - found.mean) == pytest.approx(half)
