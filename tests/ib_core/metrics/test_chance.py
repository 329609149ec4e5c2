import numpy as np
import pytest

from ib_core.metrics import RateCurve, SeedResult
from ib_core.metrics.compared import chance_interval
from ib_core.metrics.scoring import score_task
from tests.ib_core.metrics import slow_twins as slow


def test_a_lower_loss_wins_a_tie_is_half_and_what_is_not_finite_loses(make_curve):
    eb = make_curve({1.0: [0.5, 0.5, None], 10.0: [None, 3.0, None]})
    ib = make_curve({1.0: [0.4, 0.5, 9.0], 10.0: [None, None, 1.0]})
    row = score_task({"eb": eb, "ib": ib}).rows["ib"]
    assert row["chance_better"].value == pytest.approx((1 + 0.5 + 1 + 0.5 + 0 + 1) / 6)
    assert row["chance_better"].n == 3


def test_the_method_that_explodes_more_does_not_look_better(make_curve):
    eb = make_curve({1.0: [0.5] * 4})
    ib = make_curve({1.0: [0.4, 0.4, None, 1e30]})
    row = score_task({"eb": eb, "ib": ib}).rows["ib"]
    assert row["chance_better"].value == 0.5
    assert row["mean_difference"].value == pytest.approx((-0.1 - 0.1 + 1.5 + 1.5) / 4)


def test_the_mean_difference_has_students_interval_over_seeds(make_curve):
    eb = make_curve({1.0: [0.5, 0.6, 0.7], 10.0: [1.0, 1.0, 1.0]})
    ib = make_curve({1.0: [0.4, 0.7, 0.4], 10.0: [0.9, 0.8, 1.3]})  # none broke: nothing unseen
    row = score_task({"eb": eb, "ib": ib}).rows["ib"]
    low, high = slow.student_interval([-0.1, -0.05, 0.0])
    assert row["mean_difference"].value == pytest.approx(-0.05)
    assert (row["mean_difference"].low, row["mean_difference"].high) == pytest.approx((low, high))


def test_luck_that_two_methods_share_decides_nothing(make_curve):
    luck = [0.0, 3.0, 1.0, 7.0, 2.0]
    eb = make_curve({1.0: luck, 2.0: luck}, initial=9.0)
    ib = make_curve({lr: [x - 0.1 for x in luck] for lr in (1.0, 2.0)}, initial=9.0)
    row = score_task({"eb": eb, "ib": ib}).rows["ib"]
    found = row["mean_difference"]
    assert (found.low, found.value, found.high) == pytest.approx((-0.1, -0.1, -0.1))
    assert row["chance_better"].value == 1.0


@pytest.mark.parametrize("seed", range(5))
def test_it_is_what_loops_count(seed):
    rng = np.random.default_rng(seed)

    def curve(rates):
        return RateCurve.from_results(
            (lr, SeedResult(one, rng.choice([0.1, 0.2, 0.3, np.nan, 7.0]), 2.0))
            for lr in rates
            for one in range(6)
            if rng.random() < 0.8
        )

    curves = {"eb": curve((0.1, 1.0, 3.0, 10.0)), "ib": curve((1.0, 3.0, 10.0, 30.0))}
    found = score_task(curves).rows["ib"]["chance_better"]
    assert found.value == pytest.approx(slow.chance(curves["ib"], curves["eb"]))
    assert 0 <= found.low <= found.value <= found.high <= 1


def test_its_interval_stays_open_where_all_seeds_agree():
    low, high = chance_interval(np.full(5, 6.0), np.full(5, 11.0))
    assert 0.4 < low < 6 / 11 < high < 0.7
    assert chance_interval(np.full(5, 11.0), np.full(5, 11.0))[1] == 1.0


def test_its_interval_repeats_and_narrows_with_seeds():
    rng = np.random.default_rng(0)
    few, many = rng.binomial(10, 0.6, 5).astype(float), rng.binomial(10, 0.6, 80).astype(float)
    ends = chance_interval(few, np.full(5, 10.0))
    assert ends == chance_interval(few, np.full(5, 10.0))
    narrow = chance_interval(many, np.full(80, 10.0))
    assert narrow[1] - narrow[0] < (ends[1] - ends[0]) / 2


def test_without_a_pair_there_is_no_number(make_curve):
    row = score_task({"eb": make_curve({1.0: [0.5]}), "ib": make_curve({2.0: [0.5]})}).rows["ib"]
    for name in ("chance_better", "mean_difference"):
        assert row[name].value is None
        assert "shares no rate" in row[name].note
