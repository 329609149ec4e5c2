import math
from itertools import pairwise, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ib_core.errors import InvalidSpec
from ib_core.metrics.means import MeanCurves
from ib_core.metrics.sensitivity import expected_best, expected_lowest


@given(st.lists(st.floats(-10, 10), min_size=1, max_size=5), st.integers(1, 4))
def test_expected_lowest_is_the_average_over_every_possible_draw(values, k):
    draws = [min(draw) for draw in product(values, repeat=k)]
    assert expected_lowest(np.array([values]), k)[0] == pytest.approx(np.mean(draws), abs=1e-9)


def test_expected_lowest_agrees_with_drawing():
    values = np.random.default_rng(0).gamma(1.0, size=13)
    draws = np.random.default_rng(1).choice(values, size=(200_000, 3)).min(axis=1)
    assert expected_lowest(values[None], 3)[0] == pytest.approx(draws.mean(), rel=0.01)


@given(st.lists(st.floats(0, 10), min_size=1, max_size=8))
def test_more_tries_never_hurt_and_end_at_the_best(values):
    found = [float(expected_lowest(np.array([values]), k)[0]) for k in (1, 2, 5, 400)]
    assert all(later <= earlier + 1e-9 for earlier, later in pairwise(found))
    assert found[0] == pytest.approx(np.mean(values), abs=1e-9)
    assert found[-1] == pytest.approx(min(values), abs=1e-9)


def test_a_rate_that_diverged_counts_as_having_learnt_nothing():
    curves = MeanCurves.of([1.0, 2.0], [1.0, math.nan], initial=3.0)
    assert expected_best(curves, k=1).value.tolist() == [2.0]


def test_without_initial_losses_the_plain_means_stand_in_while_they_are_finite():
    assert expected_best(MeanCurves.of([1.0, 2.0], [1.0, 5.0]), k=1).value.tolist() == [3.0]
    lost = expected_best(MeanCurves.of([1.0, 2.0], [1.0, math.nan]), k=1)
    assert np.isnan(lost.value).all()
    assert "not finite" in lost.note


def test_trying_nothing_is_refused():
    with pytest.raises(InvalidSpec, match="At least one"):
        expected_lowest(np.ones((1, 3)), 0)
