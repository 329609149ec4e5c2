import numpy as np
import pytest

from ib_core.metrics.number import MetricValue, Reading, interval, number_text


def metric_value(value, censored="none"):
    return MetricValue(value, None, None, censored, "", "")


def test_an_undefined_value_has_no_side():
    assert Reading.of([np.nan, 1.0], [1, 1]).side.tolist() == [0, 1]


def test_the_interval_covers_the_middle_of_the_resamples():
    reading = Reading.of([500.0, *range(1000)])
    assert interval(reading, 0.9) == (50.0, 949.0)


def test_an_interval_whose_resamples_leave_the_grid_is_open_above():
    rates = Reading.of([5.0] + [5.0] * 80 + [10.0] * 20, [0] * 81 + [1] * 20)
    assert interval(rates, 0.95) == (5.0, None)


def test_a_bound_has_an_interval_open_on_its_side():
    assert interval(Reading.of([9.0] * 50, [1] * 50), 0.95) == (9.0, None)
    assert interval(Reading.of([9.0] * 50, [-1] * 50), 0.95) == (None, 9.0)


def test_a_rare_bound_does_not_open_the_interval():
    rates = Reading.of([5.0] + [5.0] * 99 + [10.0], [0] * 100 + [1])
    assert interval(rates, 0.95) == (5.0, 5.0)


def test_the_interval_is_widened_to_hold_the_value():
    assert interval(Reading.of([9.0] + [5.0] * 50), 0.95) == (5.0, 9.0)


def test_an_interval_of_the_few_defined_resamples_is_withheld():
    assert interval(Reading.of([1.0] + [1.0] * 8 + [np.nan] * 2), 0.95) == (None, None)
    assert interval(Reading.of([1.0]), 0.95) == (None, None)
    assert interval(Reading.of([np.nan] + [1.0] * 50), 0.95) == (None, None)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (metric_value(2.5), "2.5"),
        (metric_value(2.5, "above"), "at least 2.5"),
        (metric_value(0.01, "below"), "at most 0.01"),
        (metric_value(None), "–"),
    ],
)
def test_a_value_in_words(value, text):
    assert value.text == text


@pytest.mark.parametrize(
    ("value", "text"), [(1000.0, "1000"), (0.30000000000000004, "0.3"), (12345.0, "12300")]
)
def test_numbers_are_written_without_needless_digits_or_exponents(value, text):
    assert number_text(value) == text
