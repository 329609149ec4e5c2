import math
import time

import numpy as np
import pytest

from ib_core.errors import InvalidSpec
from ib_core.metrics import METRICS, RateCurve, SeedResult, recommendation, scorecard

RELATIVE = ("divergence_rate", "divergence_rate_interpolated", "headroom", "better_than_eb")


def noisy_curve(edge: float, rates: int, seeds: int) -> RateCurve:
    """A bowl in log lr that turns ragged, then not finite, above its edge."""
    rng = np.random.default_rng(int(edge * 10))

    def results():
        for lr in np.logspace(-3, 3, rates).tolist():
            for seed in range(seeds):
                past = math.log10(lr) - edge
                loss = 0.2 + 0.02 * past**2 + 0.01 * rng.random() + 2 * max(0, past) * rng.random()
                lost = past > 1 and rng.random() < 0.3
                yield lr, SeedResult(seed, math.nan if lost else loss, 2.3)

    return RateCurve.from_results(results())


def test_a_hand_made_study(make_curve):
    rows = scorecard(
        {
            "eb": make_curve({0.1: [1.0, 1.0], 1.0: [0.0, 0.0], 10.0: [8.0, 8.0]}),
            "ib": make_curve({0.1: [1.0, 1.0], 1.0: [0.0, 0.0], 10.0: [0.1, 0.1]}),
        }
    )
    eb, ib = rows["eb"], rows["ib"]
    assert (eb["divergence_rate"].value, eb["divergence_rate"].censored) == (10.0, "none")
    assert ib["divergence_rate"].text == "at least 10"
    assert ib["headroom"].text == "at least 1"
    assert ib["better_than_eb"].value == 1.0
    assert ib["best_lr"].value == 1.0
    assert ib["lr_sensitivity"].value == pytest.approx(1.1 / 3)
    assert ib["expected_best_of_3"].value == pytest.approx((0.0 * 19 + 0.1 * 7 + 1.0) / 27)
    assert eb["headroom"].value == 1.0
    assert eb["better_than_eb"].value is None
    words = recommendation(ib["robust_low"], ib["robust_high"])
    assert words == "Use 0.64 to 10; higher rates were not tried."


def test_every_value_is_registered_defined_and_never_nan(make_curve):
    lost = make_curve({1.0: [None, 1.0], 2.0: [None, math.nan]})
    unknown = make_curve({1.0: [0.5, 0.6], 2.0: [3.0, None]}, initial=None)
    single = make_curve({1.0: [0.5]})
    rows = scorecard({"eb": unknown, "lost": lost, "single": single})
    for row in rows.values():
        assert row.keys() - METRICS.keys() == {"expected_best_of_3"}
        for value in row.values():
            assert value.definition
            numbers = [value.value, value.low, value.high]
            assert all(number is None or math.isfinite(number) for number in numbers)
            assert value.value is not None or value.note
            assert value.value is not None or (value.low, value.high) == (None, None)


def test_without_the_baseline_relative_numbers_are_none_and_name_it(make_curve):
    row = scorecard({"ib": make_curve({1.0: [0.5, 0.4], 2.0: [1.0, 1.1]})})["ib"]
    for name in RELATIVE:
        assert row[name].value is None
        assert "'eb'" in row[name].note
    assert row["robust_range"].value is not None


def test_a_baseline_lost_everywhere_gives_no_threshold_to_anyone(make_curve):
    curves = {"eb": make_curve({1.0: [None], 2.0: [None]}), "ib": make_curve({1.0: [0.5]})}
    row = scorecard(curves)["ib"]
    assert "no mean loss of EB is finite" in row["divergence_rate"].note
    assert row["headroom"].value is None
    assert row["headroom"].note


def test_a_changed_setting_is_named_and_does_not_hide_a_reason(make_curve):
    curve = make_curve({1.0: [0.5, 0.4], 2.0: [1.0, 1.1]})
    row = scorecard({"ib": curve}, tolerance=0.25, stable_share=0.9, k=7)["ib"]
    assert row["robust_range"].note == "d = 0.25."
    assert row["largest_stable_lr"].note == "q = 0.9."
    assert "expected_best_of_7" in row
    unknown = make_curve({1.0: [0.5], 2.0: [1.0]}, initial=None)
    assert "not recorded" in scorecard({"ib": unknown}, tolerance=0.25)["ib"]["robust_range"].note


def test_one_seed_gives_values_without_intervals(make_curve):
    row = scorecard({"eb": make_curve({1.0: [0.5], 2.0: [1.5]})})["eb"]
    assert row["best_mean"].value == 0.5
    assert (row["best_mean"].low, row["best_mean"].high) == (None, None)
    assert "One seed gives no interval." in row["best_mean"].note


def test_no_resamples_give_values_without_intervals(make_curve):
    row = scorecard({"eb": make_curve({1.0: [0.5, 0.7]})}, resamples=0)["eb"]
    assert (row["best_mean"].value, row["best_mean"].low) == (0.6, None)


def test_intervals_hold_their_value_and_repeat_with_their_seed():
    curves = {"eb": noisy_curve(0.0, 9, 6), "ib": noisy_curve(0.7, 9, 6)}
    rows = scorecard(curves, rng_seed=1)
    assert rows == scorecard(curves, rng_seed=1)
    assert rows != scorecard(curves, rng_seed=2)
    for row in rows.values():
        for value in row.values():
            if value.value is not None:
                assert value.low is None or value.low <= value.value
                assert value.high is None or value.value <= value.high


def test_an_interval_is_open_where_some_resamples_never_diverge(make_curve):
    eb = make_curve({1.0: [0.0] * 5, 10.0: [0.0, 0.0, 0.0, 0.0, None], 100.0: [0.3] * 5})
    ib = make_curve({1.0: [0.0] * 5, 10.0: [0.0, 0.0, 0.0, 0.0, 5.0], 100.0: [0.0] * 5})
    rate = scorecard({"eb": eb, "ib": ib})["ib"]["divergence_rate"]
    assert (rate.value, rate.low, rate.high) == (10.0, 10.0, None)


def test_methods_are_resampled_with_the_same_seeds_so_that_luck_they_share_decides_nothing(
    make_curve,
):
    luck = [0.0, 3.0, 1.0, 7.0, 2.0]
    eb = make_curve({1.0: luck, 2.0: luck})
    ib = make_curve({1.0: [x - 0.1 for x in luck], 2.0: [x - 0.1 for x in luck]})
    better = scorecard({"eb": eb, "ib": ib})["ib"]["better_than_eb"]
    assert (better.low, better.value, better.high) == (1.0, 1.0, 1.0)


def test_more_seeds_narrow_an_interval():
    few = scorecard({"eb": noisy_curve(0.0, 9, 4)})["eb"]["lr_sensitivity"]
    many = scorecard({"eb": noisy_curve(0.0, 9, 100)})["eb"]["lr_sensitivity"]
    assert many.high - many.low < (few.high - few.low) / 2


def test_methods_with_different_rates_and_seeds_share_a_scorecard(make_curve):
    exact = RateCurve.from_results([(5.0, SeedResult(99, 0.1, 2.0))])
    rows = scorecard({"eb": make_curve({1.0: [0.5, 0.6], 2.0: [9.0, 9.0]}), "isgd": exact})
    assert rows["isgd"]["divergence_rate"].text == "at least 5"
    assert "shares no learning rate" in rows["isgd"]["better_than_eb"].note


def test_an_empty_study_has_an_empty_scorecard():
    assert scorecard({}) == {}


@pytest.mark.parametrize("wrong", [{"resamples": -1}, {"level": 1.0}, {"level": 0.0}])
def test_settings_that_give_no_interval_are_refused(make_curve, wrong):
    with pytest.raises(InvalidSpec, match="resamples and a level"):
        scorecard({"eb": make_curve({1.0: [0.5]})}, **wrong)


def test_ten_times_the_seeds_take_at_most_ten_times_as_long():
    def seconds(seeds: int) -> float:
        curves = {label: noisy_curve(i * 0.4, 20, seeds) for i, label in enumerate("abcde")}
        start = time.process_time()
        scorecard(curves, baseline="a", resamples=500)
        return time.process_time() - start

    turns = [(seconds(100), seconds(10)) for _ in range(5)]
    many, few = (min(times) for times in zip(*turns, strict=True))
    assert many < 10 * few  # most of it is per rate and resample, in whole arrays


@pytest.fixture
def exploding(make_curve) -> dict[str, RateCurve]:
    """EB and IB that start at loss 2; EB is lost from rate 1 on and explodes ever higher."""
    return {
        "eb": make_curve({0.1: [0.5], 1.0: [50.0], 10.0: [1e4], 100.0: [1e8]}),
        "ib": make_curve({0.1: [0.5], 1.0: [0.4], 10.0: [1.9], 100.0: [1e8]}),
    }


def test_a_threshold_above_the_initial_loss_is_owned_up_to(exploding):
    row = scorecard(exploding)["ib"]
    assert row["headroom"].value == 1.0  # the paper's rule: both cross half of 1e8 at 100
    assert "exceeds the initial loss" in row["headroom"].note
    assert "exceeds the initial loss" in row["divergence_rate"].note


def test_capped_losses_find_where_a_curve_that_explodes_broke(exploding):
    capped = {method: curve.capped() for method, curve in exploding.items()}
    row = scorecard(capped)["ib"]
    assert row["divergence_rate"].value == 10.0
    assert row["headroom"].value == 10.0
    assert "initial loss" not in row["headroom"].note
