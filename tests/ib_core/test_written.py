"""Numbers as people write them: understood, or refused in a sentence that says what would work."""

import pytest

from ib_core.errors import InvalidSpec
from ib_core.sweep.request import read_body
from ib_core.written import (
    NumberKind,
    Unreadable,
    read_norms,
    read_number,
    read_rates,
    read_seeds,
    written,
)
from tests.dashboard.number_cases import CASES, WRITTEN

RATE = NumberKind("rate", 1e-12, 1e12)
COUNT = NumberKind("The number of rates", 1, 1000, whole=True)
SEED = NumberKind("seed", 0, 2**31 - 1, whole=True)
NORM = NumberKind("norm", 1e-12, 1e12)


@pytest.mark.parametrize(("kind", "text", "expected"), CASES)
def test_a_text_is_its_number_or_a_sentence(kind, text, expected):
    if isinstance(expected, str):
        with pytest.raises(Unreadable) as caught:
            read_number(text, kind)
        assert str(caught.value) == expected
    else:
        assert read_number(text, kind) == expected


def test_a_whole_number_is_an_int():
    assert isinstance(read_number("1e3", COUNT), int)


@pytest.mark.parametrize(("value", "text"), WRITTEN)
def test_a_number_is_written_with_all_its_digits(value, text):
    assert written(value) == text
    if value is not None:
        assert float(text) == value


@pytest.mark.parametrize(
    ("text", "rates"),
    [
        ("1e-4, 1e-3", [0.0001, 0.001]),
        ("1,5", [1, 5]),
        ("0.1; 1 10,", [0.1, 1, 10]),
        ("0.01:100:9", {"from": 0.01, "to": 100, "count": 9}),
        (" 1e-2 : 1e2 : 9 ", {"from": 0.01, "to": 100, "count": 9}),
    ],
)
def test_rates_are_a_list_or_a_grid(text, rates):
    assert read_rates(text, RATE, COUNT) == rates


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "Write at least one rate, as 0.1, 1, 10, or a grid, as 0.01:100:9."),
        ("0.1, one", "That is no number: write it as 0.01 or 1e-2; got one."),
        ("0.1, 0, 1", "The second rate must be above 0; got 0."),
        ("0.01:100", "Write a grid alone, as 0.01:100:9 (from, to, how many); got 0.01:100."),
        (
            "0.01:100:9, 200",
            "Write a grid alone, as 0.01:100:9 (from, to, how many); got 0.01:100:9, 200.",
        ),
        ("0:100:9", "The grid’s start must be above 0; got 0."),
        (
            "0.01:100:2.5",
            "The grid’s number of rates must be a whole number from 1 to 1,000; got 2.5.",
        ),
        ("0.01::9", "The grid’s end is needed."),
    ],
)
def test_rates_that_cannot_be_read_say_what_would_work(text, sentence):
    with pytest.raises(Unreadable) as caught:
        read_rates(text, RATE, COUNT)
    assert str(caught.value) == sentence


@pytest.mark.parametrize(
    ("wrong", "named"), [(0, "first"), (9, "tenth"), (10, "11th"), (11, "12th")]
)
def test_the_one_of_many_that_is_wrong_is_named(wrong, named):
    words = ["0" if index == wrong else str(index + 1) for index in range(12)]
    with pytest.raises(Unreadable, match=rf"^The {named} rate must be above 0; got 0\.$"):
        read_rates(", ".join(words), RATE, COUNT)


@pytest.mark.parametrize(
    ("text", "seeds"),
    [("5", 5), ("1,2,7", [1, 2, 7]), ("1 2 7", [1, 2, 7]), ("3,", [3]), ("0,", [0]), ("", None)],
)
def test_seeds_are_how_many_or_which(text, seeds):
    assert read_seeds(text, COUNT, SEED) == seeds


@pytest.mark.parametrize("text", ["1-5", "1..5", "1 - 5", "1:5"])
def test_a_range_of_seeds_is_told_how_it_is_written(text):
    with pytest.raises(Unreadable, match=r"Write 5 for seeds 1 to 5, or name them"):
        read_seeds(text, COUNT, SEED)


@pytest.mark.parametrize("text", ["-5", "2.5", "many", "1, x", "1, -2", "1,5.5", "0", "9999"])
def test_what_is_no_number_of_seeds_is_refused(text):
    with pytest.raises(Unreadable):
        read_seeds(text, COUNT, SEED)


@pytest.mark.parametrize(
    ("text", "norms"), [("none, 1", [None, 1]), ("1e-1", [0.1]), ("", None), ("None", [None])]
)
def test_norms_may_be_none(text, norms):
    assert read_norms(text, NORM) == norms


@pytest.mark.parametrize("text", ["0,5", ",5", "-0,5"])
def test_a_fraction_with_a_comma_is_not_taken_for_two_numbers(text):
    for read in (
        lambda: read_norms(text, NORM),
        lambda: read_rates(text, RATE, COUNT),
        lambda: read_body({"task": "digits_mlp", "mu": text}, typed=True),
    ):
        with pytest.raises((Unreadable, InvalidSpec), match=r"5, with a point, or .*, 5 for two"):
            read()


def test_two_numbers_are_written_apart_and_whole_numbers_as_one_likes():
    assert read_body({"task": "digits_mlp", "mu": "0, 5"}, typed=True)["mu"] == [0, 5]
    assert read_body({"task": "digits_mlp", "warmup": "0,5"}, typed=True)["warmup"] == [0, 5]


def test_the_norm_that_is_wrong_is_named():
    with pytest.raises(Unreadable, match=r"^The first norm must be above 0; got -1\.$"):
        read_norms("-1, 2", NORM)
