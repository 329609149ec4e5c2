"""The paper's own rule, its headroom, and the chance to diverge."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest

from ib_core.errors import InvalidSpec
from ib_core.metrics import Number, RateCurve, SeedResult
from ib_core.metrics.paper import (
    PaperRule,
    divergence_probability,
    paper_divergence_rate,
    paper_divergence_threshold,
    paper_headroom,
    paper_rule,
    paper_threshold,
    sensible_threshold,
)

GRID = [0.01, 0.1, 1.0, 10.0, 100.0]
# Three decimals: closer numbers than rounding can tell apart count as equal by design.
loss = st.integers(1, 10**6).map(lambda thousandths: thousandths / 1000)
mean = st.one_of(st.just(math.nan), loss)
means = st.lists(mean, min_size=5, max_size=5)


def one_seed(values, lrs=GRID, initial=None) -> RateCurve:
    return RateCurve.from_results(
        (lr, SeedResult(1, value, initial)) for lr, value in zip(lrs, values, strict=True)
    )


CALM = one_seed([0.1] * 5)


def rate_of(values, threshold) -> Number:
    return paper_divergence_rate(PaperRule(CALM, threshold), one_seed(values), 1)


def only(number: Number) -> tuple[float | None, str]:
    return number.value, number.censored


def slow_rate(values, threshold):
    """The slow twin: the definition, read aloud."""
    finite = [value for value in values if not math.isnan(value)]
    if not finite or min(finite) > threshold:
        return GRID[0], "below"
    best = values.index(min(finite))
    for lr, value in list(zip(GRID, values, strict=True))[best + 1 :]:
        if math.isnan(value) or value > threshold:
            return lr, "none"
    return GRID[-1], "above"


def test_the_threshold_is_midway_and_ignores_means_that_are_not_finite():
    eb = one_seed([1.0, 0.2, 0.5, 3.0, math.nan])
    assert paper_threshold(eb) == pytest.approx(1.6)
    assert paper_divergence_threshold(paper_rule(eb), 1).value == pytest.approx(1.6)


def test_the_threshold_is_one_of_means_over_seeds_without_those_that_lost_one(make_curve):
    eb = make_curve({0.1: [0.2, 0.4], 1.0: [1.0, 2.0], 10.0: [0.1, None]})
    assert paper_threshold(eb) == pytest.approx((0.3 + 1.5) / 2)


def test_without_a_finite_mean_of_eb_there_is_no_threshold(make_curve):
    assert paper_threshold(make_curve({1.0: [None], 2.0: [math.nan]})) is None
    assert paper_threshold(make_curve({1.0: [0.25], 2.0: [0.75]})) == 0.5


def test_huge_means_do_not_push_the_threshold_to_infinity():
    assert math.isfinite(paper_threshold(one_seed([1e308, 1.5e308], [1, 2])))


def test_a_lost_mean_is_above_even_a_huge_threshold():
    assert only(rate_of([1.0, 1.0, math.nan, 1.0, 1.0], 1.7976931348623157e308)) == (1.0, "none")


@pytest.mark.parametrize(("initial", "says"), [(2.0, True), (1.0, False), (None, True)])
def test_the_rule_says_something_up_to_the_initial_loss_or_where_that_is_unknown(initial, says):
    eb = one_seed([1.0, 0.2, 0.5, 3.0, math.nan], initial=initial)
    assert (sensible_threshold(eb) is not None) is says
    assert (paper_divergence_rate(paper_rule(eb), eb, 1).value is not None) is says


def test_one_unrecorded_start_leaves_the_initial_loss_unknown():
    results = [(1.0, SeedResult(1, 0.5, 0.1)), (2.0, SeedResult(1, 0.7))]
    assert sensible_threshold(RateCurve.from_results(results)) == pytest.approx(0.6)


def test_slow_rates_below_the_best_one_do_not_count_as_diverged():
    assert only(rate_of([9.0, 5.0, 0.1, 0.2, 7.0], 1.0)) == (100.0, "none")


def test_a_curve_that_recovers_diverged_at_its_first_crossing():
    assert only(rate_of([0.1, 5.0, 0.2, 0.2, 5.0], 1.0)) == (0.1, "none")


def test_a_mean_that_is_not_finite_exceeds_every_threshold():
    assert only(rate_of([0.1, 0.2, math.nan, 0.2, 0.2], 1e30)) == (1.0, "none")


def test_a_curve_that_never_crosses_is_above_the_grid():
    found = rate_of([0.5, 0.1, 0.2, 0.2, 0.3], 1.0)
    assert only(found) == (100.0, "above")
    assert "Above the grid" in found.note


def test_best_at_the_grids_end_is_above_the_grid():
    assert only(rate_of([5.0, 4.0, 3.0, 2.0, 0.5], 1.0)) == (100.0, "above")


@pytest.mark.parametrize("values", [[2.0, 3.0, 2.0, 2.0, 2.0], [math.nan] * 5])
def test_a_method_always_above_the_threshold_is_below_the_grid_not_above_it(values):
    found = rate_of(values, 1.0)
    assert only(found) == (0.01, "below")
    assert "Below the grid" in found.note


def test_equal_means_never_diverge_despite_rounding():
    eb = one_seed([0.3, 0.1 + 0.2, 0.3, 0.1 + 0.2, 0.3])
    assert only(paper_divergence_rate(paper_rule(eb), eb, 1)) == (100.0, "above")


def test_the_best_rate_of_equal_means_is_the_lowest_despite_rounding():
    # From the lowest rate on the one that is lost in between counts, from the next it would not.
    assert only(rate_of([0.1 + 0.2, math.nan, 0.3, 0.3, 9.0], 1.0)) == (0.1, "none")


def test_one_rate_cannot_diverge():
    eb = one_seed([0.5], [1.0])
    assert only(paper_divergence_rate(paper_rule(eb), eb, 1)) == (1.0, "above")


def test_no_threshold_is_said_in_words():
    rule = paper_rule(one_seed([math.nan] * 5))
    curve = one_seed([0.1] * 5)
    for found in (
        paper_divergence_threshold(rule, 1),
        paper_divergence_rate(rule, curve, 1),
        paper_headroom(rule, curve, 1),
    ):
        assert found.value is None
        assert "no mean loss of EB is finite" in found.note


@given(values=means, threshold=loss)
def test_divergence_rate_agrees_with_its_definition_read_aloud(values, threshold):
    assert only(rate_of(values, threshold)) == slow_rate(values, threshold)


# Whole losses and powers of two keep ties exact, so that no case has to be left out.
whole = st.lists(st.one_of(st.just(math.nan), st.integers(1, 40)), min_size=5, max_size=5)


@given(values=whole, eb=whole, power=st.integers(-8, 8), shift=st.integers(-9, 9))
def test_headroom_does_not_depend_on_the_unit_of_loss_or_rate(values, eb, power, shift):
    def ratio(lrs, scale, offset):
        method = one_seed([scale * v + offset for v in values], lrs)
        base = one_seed([scale * v + offset for v in eb], lrs)
        return paper_headroom(paper_rule(base), method, 1)

    plain = ratio(GRID, 1, 0)
    moved = ratio([lr * 7 for lr in GRID], 2.0**power, shift)
    assert moved.value == pytest.approx(plain.value)
    assert (moved.censored, moved.note) == (plain.censored, plain.note)


#: Curves by where they cross a threshold of 1.
CROSSING = {
    "nowhere": [0.1] * 5,
    "at 1": [0.1, 0.1, 9.0, 9.0, 9.0],
    "at 10": [0.1, 0.1, 0.1, 9.0, 9.0],
    "everywhere": [9.0] * 5,
}


@pytest.mark.parametrize(
    ("method", "eb", "expected"),
    [
        ("at 10", "at 1", (10.0, "none")),
        ("at 1", "at 10", (0.1, "none")),
        ("nowhere", "at 10", (10.0, "above")),  # only the method outlasts the grid: at least
        ("at 10", "nowhere", (0.1, "below")),  # only EB does: at most
        ("everywhere", "at 10", (0.001, "below")),
        ("everywhere", "nowhere", (0.0001, "below")),
    ],
)
def test_the_papers_headroom_of_bounds_is_a_bound(method, eb, expected):
    rule = PaperRule(one_seed(CROSSING[eb]), 1.0)
    found = paper_headroom(rule, one_seed(CROSSING[method]), 1)
    assert only(found) == (pytest.approx(expected[0]), expected[1])


def test_headroom_is_undefined_if_both_outlast_the_grid():
    found = paper_headroom(PaperRule(CALM, 1.0), CALM, 1)
    assert found.value is None
    assert found.note == "Neither this method nor EB diverges on the grid."


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
