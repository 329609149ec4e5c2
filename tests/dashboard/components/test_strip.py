"""The strip: words, lanes and marks say what was tested, and never anything else."""

from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from dashboard.components.scorecard import MOST_LANES, spans, spoken, strip_lanes
from dashboard.components.words import advice, answer_words
from tests.dashboard.dispatch import names, text_of
from tests.dashboard.scored_answers import across, answers_of, rows, rows_of, score_losses

RATES = [0.01, 0.1, 0.3, 1.0, 3.0, 10.0]
values = st.one_of(st.floats(0.01, 2.3), st.floats(2.4, 50.0), st.just(None))
series = st.dictionaries(
    st.sampled_from(RATES), st.lists(values, min_size=1, max_size=4), min_size=1
)
tasks = st.fixed_dictionaries({"eb": series}, optional={"ib": series, "adam": series})


def at(lane, lr: float) -> set[str]:
    """Return the states that a lane shows at a rate; at a border there are two."""
    found = set()
    for span in lane:
        low = 0.0 if span.low is None else span.low
        high = float("inf") if span.high is None else span.high
        if low <= lr <= high:
            found.add(span.state)
    return found


@settings(max_examples=80, deadline=None)
@given(tasks)
def test_a_lane_shows_every_tested_rate_as_it_went_and_has_no_holes(losses):
    for row in rows_of(score_losses(losses)):
        lane = spans(row.strip)
        assert (lane[0].low, lane[-1].high) == (None, None)
        assert all(one.high == two.low for one, two in pairwise(lane))
        for cell in row.strip.cells:
            assert cell.state in at(lane, cell.lr)
            assert at(lane, cell.lr) <= {cell.state, "untried"}


@settings(max_examples=80, deadline=None)
@given(tasks)
def test_where_the_edge_is_looked_for_nothing_is_shown_as_tried(losses):
    for row in rows_of(score_losses(losses)):
        if row.strip.to_test:
            low, high = row.strip.to_test
            assert at(spans(row.strip), (low * high) ** 0.5) == {"untried"}
            assert f"never tried between {low:g} and {high:g}" in spoken(row)


@settings(max_examples=80, deadline=None)
@given(tasks)
def test_words_table_and_strip_never_recommend_what_was_not_trained(losses):
    for row in rows_of(score_losses(losses)):
        start = row.metrics["start_at"].value
        marks = [one for one in names(strip_lanes([row], "g")) if is_a(one, "start")]
        assert [float(getattr(one, "data-at")) for one in marks] == ([start] if start else [])
        if start:
            assert start in losses[row.label]
            assert "good" in at(spans(row.strip), start)
            assert f"Start at {row.metrics['start_at'].text}" in text_of(advice([row]))


def is_a(component, kind: str) -> bool:
    return getattr(component, "className", None) == kind


def test_the_edge_stands_in_the_gap_with_its_interval():
    eb = rows()[0]
    low, high = eb.strip.to_test
    lane = names(strip_lanes([eb], "g"))
    (mark,) = [one for one in lane if is_a(one, "edge")]
    assert low < float(getattr(mark, "data-at")) < high
    (whisker,) = [one for one in lane if is_a(one, "whisker")]
    edge = eb.metrics["edge"]
    assert float(getattr(whisker, "data-from")) == edge.low
    assert float(getattr(whisker, "data-to")) == edge.high


def test_an_edge_beyond_the_grid_is_open_to_that_side_and_has_no_mark():
    ib = rows()[1]
    assert ib.metrics["edge"].censored == "above"
    lane = names(strip_lanes([ib], "g"))
    assert not [one for one in lane if is_a(one, "edge")]
    (whisker,) = [one for one in lane if is_a(one, "whisker")]
    assert getattr(whisker, "data-to") == ""


def test_a_lane_is_told_to_who_does_not_see_it():
    words = spoken(rows()[0])
    assert words.startswith("Explicit (EB): good at ")
    assert "broken at 10, 30, 100" in words
    assert "edge" in words
    assert "start at" in words


def test_many_lanes_are_folded():
    (strip,) = strip_lanes(rows() * MOST_LANES, "g")
    assert [one for one in names(strip) if type(one).__name__ == "Summary"]
    (few,) = strip_lanes(rows(), "g")
    assert not [one for one in names(few) if type(one).__name__ == "Summary"]


def test_the_answer_of_one_task_is_its_sentences_alone():
    (told,) = answers_of("a")
    assert text_of(answer_words([told], None, None)).strip() == told.answer


def test_of_many_tasks_the_shown_one_is_told_and_all_are_folded():
    found = answers_of(*(f"t{place}" for place in range(120)))
    words = answer_words(found, "t7", across(), lambda task: {"data-value": task})
    folded = [one for one in words if type(one).__name__ == "Details"]
    open_words = [text_of(one) for one in words if one not in folded]
    assert len(folded) == 1
    assert len(open_words) == 2
    assert "Over 12 tasks" in open_words[0]
    assert open_words[1].startswith("Task t7:")
    assert "The answers of all 120 tasks" in text_of(folded)
    buttons = [one for one in names(folded) if type(one).__name__ == "Button"]
    assert len(buttons) == 120


def test_a_few_tasks_are_all_told():
    words = answer_words(answers_of("a", "b", "c"), None, None)
    assert [text_of(one)[:7] for one in words] == ["Task a:", "Task b:", "Task c:"]


def test_long_answers_are_folded_where_something_else_has_been_said():
    short, long = answers_of("a"), answers_of("a")
    long[0].answer = "EB breaks at 1. " * 50
    assert [type(one).__name__ for one in answer_words(short, None, None, led=True)] == ["P"]
    assert [type(one).__name__ for one in answer_words(long, None, None)] == ["P"]
    (fold,) = answer_words(long, None, None, led=True)
    assert text_of(fold).startswith("The whole answer")


def test_advice_on_many_series_is_folded():
    few, many = advice(rows()[:2]), advice([rows()[0]] * 12)
    assert not any(type(one).__name__ == "Details" for one in few)
    assert (len(many), type(many[-1]).__name__) == (9, "Details")
    assert "Advice on 4 more" in text_of(many[-1])
