"""The scorecard: bounds say that they are bounds, and every number its meaning."""

from pathlib import Path

import dashboard
from dashboard.components.scorecard import advice, scorecard_table
from tests.dashboard.answers import metric, row
from tests.dashboard.dispatch import names, text_of

ROWS = [row("eb"), row("ib")]


def explanations(table):
    return [getattr(one, "data-explanation", "") for one in names(table)]


def test_the_advice_is_a_sentence_a_method():
    words = text_of(advice(ROWS))
    assert "Explicit (EB):  Use 0.1 to 1." in words
    assert "Use 0.1 to at least 100." in words


def test_a_number_the_grid_cuts_off_is_a_bound():
    assert "≥\u202f100" in text_of(scorecard_table(ROWS))


def test_every_number_has_its_definition_on_hover():
    labels = explanations(scorecard_table(ROWS))
    for title in ("Best rate", "Best mean loss", "Divergence rate", "Headroom over EB"):
        assert any(f"What {title} is." in label for label in labels)


def test_a_number_that_is_undefined_says_why():
    labels = explanations(scorecard_table(ROWS))
    assert any("EB is what others are compared to." in label for label in labels)


def test_intervals_stand_below_the_numbers_however_many_curves_there_are():
    for rows in (ROWS, [*ROWS, row("ib")] * 3):
        table = scorecard_table(rows)
        below = [one for one in names(table) if getattr(one, "className", "") == "interval"]
        assert [text_of(one) for one in below].count("0.118 to 0.124") == len(rows)


def test_more_columns_than_fit_can_be_scrolled_to_and_are_hinted_at():
    region = scorecard_table(ROWS * 3)
    assert (region.role, region.tabIndex) == ("region", 0)
    style = (Path(dashboard.__file__).parent / "assets" / "etascope.css").read_text()
    for kind in region.className.split():
        assert f".{kind} {{" in style
    assert "position: sticky" in style.split('.scorecard th[scope="row"], ')[1].split("}")[0]


def test_yes_is_yes():
    assert "yes" in text_of(scorecard_table(ROWS))


def test_a_budget_and_a_share_of_time_are_said_as_what_they_are():
    one = row("ib")
    one.metrics = {
        "expected_best_of_3": metric(0.35, "Expected best of k rates", unit="loss"),
        "overhead": metric(0.17, "Extra time over EB", unit="share"),
    }
    words = text_of(scorecard_table([one]))
    assert "Expected best of 3 rates" in words
    assert "17 %" in words
