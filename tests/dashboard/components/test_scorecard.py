"""The scorecard: value, interval and n; bounds say that they are bounds, numbers their meaning."""

from pathlib import Path

import dashboard
from dashboard.components.scorecard import SHORT, scorecard_table
from ib_core.metrics import KINDS, NUMBERS
from tests.dashboard.dispatch import names, text_of
from tests.dashboard.scored_answers import rows, rows_of, scored

ROWS = rows()


def explanations(table):
    return [getattr(one, "data-explanation", "") for one in names(table)]


def body(table):
    """Return the rows of the table by title, each with its class."""
    found = [one for one in names(table) if type(one).__name__ == "Tr"][1:]
    return {text_of(one.children[0].children[0]): one for one in found}


def test_a_number_stands_with_its_n_and_its_interval_below():
    edge = ROWS[0].metrics["edge"]
    cell = body(scorecard_table(ROWS))["Edge"].children[1]
    assert [text_of(part).strip() for part in cell.children] == [edge.text, "n 3", edge.interval]
    assert edge.interval


def test_a_number_the_grid_cuts_off_is_a_bound():
    assert ROWS[1].metrics["edge"].censored == "above"
    assert "at least 100" in text_of(scorecard_table(ROWS))


def test_every_number_has_its_definition_on_hover_and_says_which_way_is_better():
    table = scorecard_table(ROWS)
    labels = explanations(table)
    for name in ROWS[0].metrics:
        assert KINDS[name].definition in labels
    words = text_of(body(table)["Edge"].children[0])
    assert "higher is better" in words
    assert "lower is better" in text_of(body(table)["LR sensitivity"].children[0])
    assert "better" not in text_of(body(table)["Start at"].children[0])


def test_what_to_bear_in_mind_is_reachable():
    labels = explanations(scorecard_table(ROWS))
    assert ROWS[0].metrics["edge"].note in labels


def test_a_number_that_is_undefined_says_why():
    labels = explanations(scorecard_table(ROWS))
    assert "This is what the others are compared with." in labels
    assert "not measured" in text_of(scorecard_table(ROWS))


def test_the_short_card_comes_first_and_the_rest_is_marked_as_further():
    table = body(scorecard_table(ROWS))
    assert list(table)[: len(SHORT)] == [KINDS[name].title.strip() + unit(name) for name in SHORT]
    further = [title for title, one in table.items() if one.className == "further"]
    assert len(further) == len(ROWS[0].metrics) - len(SHORT)
    assert {KINDS[name].title for name in ROWS[0].metrics} <= {
        title.removesuffix(" (times)") for title in table
    }


def unit(name: str) -> str:
    return " (times)" if KINDS[name].unit == "times" else ""


def test_every_number_is_listed_whatever_it_is_called():
    """A new number in the one list appears by being in it."""
    told = {kind.name for kind in NUMBERS if not kind.paper}
    assert set(ROWS[0].metrics) == told


def test_what_was_chosen_on_the_test_set_says_so():
    assert "chosen on test" not in text_of(scorecard_table(ROWS))
    on_test = scorecard_table(rows_of(scored(on_test=True)))
    assert "chosen on test" in text_of(body(on_test)["Best mean loss"])


def test_more_columns_than_fit_can_be_scrolled_to_and_are_hinted_at():
    region = scorecard_table(ROWS * 3)
    assert (region.role, region.tabIndex) == ("region", 0)
    style = (Path(dashboard.__file__).parent / "assets" / "etascope.css").read_text()
    for kind in region.className.split():
        assert f".{kind} {{" in style
    assert "position: sticky" in style.split('.scorecard th[scope="row"], ')[1].split("}")[0]
