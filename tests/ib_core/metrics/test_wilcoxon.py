from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import rankdata, wilcoxon

from ib_core.metrics.paired import _exact_p, _normal_p, least_p, signed_rank


def slow_p(differences: list[int]) -> float:
    """The slow twin: rank once, then try all 2^n signs."""
    ranks = rankdata(np.abs(differences))
    observed = ranks[np.array(differences) > 0].sum()
    sums = [ranks[np.array(signs)].sum() for signs in product([True, False], repeat=len(ranks))]
    tail = min(np.mean(np.array(sums) <= observed), np.mean(np.array(sums) >= observed))
    return min(1.0, 2 * float(tail))


@given(st.lists(st.integers(-6, 6).filter(bool), min_size=1, max_size=8))
def test_p_counts_every_pattern_of_signs_ties_included(differences):
    assert signed_rank(differences).p == pytest.approx(slow_p(differences), abs=1e-12)


@pytest.mark.parametrize("n", [5, 20, 50])
def test_p_agrees_with_scipys_exact_test_where_nothing_ties(n):
    differences = np.random.default_rng(n).normal(0.3, size=n)
    theirs = wilcoxon(differences, method="exact").pvalue
    assert signed_rank(differences.tolist()).p == pytest.approx(theirs, rel=1e-9)


def test_many_pairs_take_the_normal_approximation_which_agrees_with_the_exact_count():
    ranks = 2 * np.arange(1, 101)
    positive = int(ranks[::2].sum()) + 900
    assert _normal_p(ranks, positive) == pytest.approx(_exact_p(ranks, positive), abs=2e-3)
    assert signed_rank(list(range(1, 151))).p < 1e-20


def test_five_seeds_all_better_still_give_only_a_sixteenth():
    found = signed_rank([-1.0, -2.0, -3.0, -4.0, -5.0])
    assert found.p == found.least_p == 0.0625
    assert "p cannot fall below 0.0625" in found.note


@pytest.mark.parametrize(("n", "floor"), [(0, 1.0), (1, 1.0), (5, 0.0625), (6, 0.03125)])
def test_the_smallest_possible_p(n, floor):
    assert least_p(n) == floor


def test_six_seeds_need_no_warning():
    assert signed_rank([1.0, 2.0, 3.0, 4.0, 5.0, 6.0]).note == ""


@pytest.mark.parametrize("differences", [[], [0.0, 0.0]])
def test_nothing_to_rank_is_said_instead_of_a_p(differences):
    found = signed_rank(differences)
    assert found.p is None
    assert "nothing to test" in found.note


def test_zeros_are_left_out_and_the_floor_follows():
    found = signed_rank([0.0, 0.0, -1.0, -2.0, -3.0])
    assert (found.n, found.least_p) == (3, 0.25)
