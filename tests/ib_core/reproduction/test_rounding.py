from math import inf, nan

import pytest

from ib_core.reproduction.verify import Roundings, nudged, roundings
from ib_core.sweep.spec import SweepSpec


@pytest.mark.parametrize(
    ("values", "spread", "chaotic"),
    [
        ((0.5, 0.502, 0.499), 0.003, False),
        ((0.5, 0.6), 0.1, True),
        ((0.5, nan), inf, True),
        ((nan, nan), 0.0, False),
        ((0.5, inf), inf, True),
    ],
)
def test_only_what_rounding_moves_is_chaotic(values, spread, chaotic):
    found = Roundings(values)
    assert found.spread == pytest.approx(spread)
    assert found.chaotic == chaotic


def test_a_recorded_number_is_covered_or_not():
    found = Roundings((0.2, 0.5, 0.3))
    assert found.covers(0.25)
    assert not found.covers(0.6)
    assert found.between(0.25, 0.6) == 2


def test_twins_differ_by_a_rounding_error_and_a_stable_rate_does_not_care():
    trials = SweepSpec.create(
        "toy/quadratic", methods=["eb"], learning_rates=[0.5], seeds=[1, 2], epochs=1
    ).expand()
    twins = nudged(trials[0], 3)
    assert len({twin.lr for twin in twins}) == 3
    assert all(0 < twin.lr / 0.5 - 1 < 1e-6 for twin in twins)
    found = roundings(trials, 3)
    assert len(found.values) == 3
    assert not found.chaotic
