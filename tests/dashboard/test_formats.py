"""Numbers in words: three digits, units, no needless exponents."""

import pytest

from dashboard.theme import about, count, counted, duration, number, percent, rough, signed, size


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (0.14449, "0.144"),
        (1.0, "1"),
        (12.345, "12.3"),
        (1234.0, "1230"),
        (9999.0, "10000"),
        (0.001, "0.001"),
        (0.00123, "0.00123"),
        (0.0, "0"),
        (-0.5, "−0.5"),
    ],
)
def test_numbers_between_a_thousandth_and_ten_thousand_have_no_exponent(value, words):
    assert number(value) == words


@pytest.mark.parametrize(
    ("value", "words"), [(0.000123, "1.23×10⁻⁴"), (123456.0, "1.23×10⁵"), (1e300, "1×10³⁰⁰")]
)
def test_other_numbers_are_powers_of_ten(value, words):
    assert number(value) == words


@pytest.mark.parametrize("value", [None, float("nan"), float("inf")])
def test_what_is_no_number_is_a_dash(value):
    assert number(value) == "–"
    assert duration(value) == "–"


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0.0042, "4.2 ms"),
        (1.234, "1.23 s"),
        (59.6, "1 min"),
        (125, "2 min 5 s"),
        (3600, "1 h"),
        (3725, "1 h 2 min"),
        (90000, "1 d 1 h"),
    ],
)
def test_durations_have_their_two_largest_units(seconds, words):
    assert duration(seconds) == words


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0.2, "a few seconds"),
        (3.83, "a few seconds"),
        (12.5, "12 s"),
        (23, "25 s"),
        (54, "55 s"),
        (57, "1 min"),
        (100, "1 min 30 s"),
        (200, "3 min 30 s"),
        (400, "7 min"),
        (800, "15 min"),
        (3500, "1 h"),
        (7000, "2 h"),
        (90000, "1 d 1 h"),
    ],
)
def test_an_estimate_is_told_as_roughly_as_it_is_known(seconds, words):
    assert rough(seconds) == words


def test_an_estimate_stands_in_a_sentence():
    assert (about(3.0), about(23.0)) == ("a few seconds", "about 25 s")


def test_a_difference_that_is_higher_bears_a_plus():
    assert [signed(value) for value in (0.5, -0.5, 0.0, None)] == ["+0.5", "−0.5", "0", "–"]


def test_amounts_have_units():
    assert size(87_500_000) == "87.5 MB"
    assert size(999_999) == "1 MB"
    assert percent(0.1234) == "12.3 %"
    assert count(12000) == "12,000"
    assert counted(1, "seed") == "1 seed"
    assert counted(3, "seed") == "3 seeds"
    assert signed(0.2) == "+0.2"
    assert signed(-0.2) == "−0.2"
