"""The y scale: for the runs one can learn from."""

import pytest

from dashboard.figures.scale import Scale, choose_scale
from tests.dashboard.answers import INITIAL, series


def test_the_best_of_every_curve_is_on_the_scale():
    lines = [series("eb"), series("ib")]
    scale = choose_scale(lines, "train_loss", "focus", INITIAL)
    for line in lines:
        best = min(point.mean for point in line.points if point.mean is not None)
        assert scale.low <= best <= scale.high


def test_a_curve_that_never_learns_does_not_break_the_scale():
    line = series("eb")
    line.points = line.points[-2:]
    scale = choose_scale([line], "train_loss", "focus", INITIAL)
    assert scale.low < scale.high


def test_without_any_value_there_is_a_scale():
    assert choose_scale([], "train_loss", "focus") == Scale(0.0, 1.0)


def test_equal_values_still_have_room_around_them():
    line = series("ib")
    for point in line.points:
        point.mean = point.low = point.high = 0.5
        point.seeds = []
    scale = choose_scale([line], "train_loss", "focus")
    assert scale.low < 0.5 < scale.high


def test_time_starts_at_zero():
    assert choose_scale([series("ib")], "seconds", "focus").low == 0


def test_log_ends_a_hundredfold_above_the_initial_loss():
    scale = choose_scale([series("eb"), series("ib")], "train_loss", "log", INITIAL)
    assert scale.log
    assert scale.high <= 130 * INITIAL


@pytest.mark.parametrize("log", [False, True])
def test_shares_run_from_bottom_to_top(log):
    scale = Scale(0.1, 10.0, log=log)
    assert scale.share(0.1) == pytest.approx(0)
    assert scale.share(10.0) == pytest.approx(1)


def test_without_an_initial_loss_exploded_runs_still_do_not_stretch_the_scale():
    exploded = series("eb")
    for point in exploded.points[5:]:
        point.mean, point.diverged = 5000.0, 0
        for seed in point.seeds:
            seed.value, seed.outcome = 5000.0, "completed"
    assert choose_scale([exploded, series("ib")], "train_loss", "focus").high < 10
