"""What is said in words, and that words, strip and table never contradict each other."""

import math
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ib_core.metrics import RateCurve, SeedResult
from ib_core.metrics.edge import THIN
from ib_core.metrics.number import LEAST_SEEDS, Number, rate_text
from ib_core.metrics.scoring import KINDS, TaskScore, score_task
from ib_core.metrics.words import advice, answer

GOOD, FAIR, LOST = [0.2] * 5, [1.0] * 5, [9.0] * 5
EB = {0.01: FAIR, 0.03: FAIR, 0.1: GOOD, 0.3: GOOD, 1.0: LOST, 3.0: LOST, 10.0: LOST}
IB = {**EB, 1.0: FAIR}


def said(score: TaskScore, label: str) -> str:
    return advice(score.strips[label], score.rows[label])


@pytest.fixture
def first(make_curve) -> TaskScore:
    return score_task({"eb": make_curve(EB), "ib": make_curve(IB)})


def test_advice_states_what_was_tested(first):
    assert said(first, "eb") == (
        "Good at 0.1 and 0.3 (5 seeds). At 1, 5 of 5 broke. Between 0.3 and 1 nothing was tried. "
        "Start at 0.1."
    )
    assert said(first, "ib") == (
        "Good at 0.1 and 0.3 (5 seeds). At 1 none broke, but the loss is too high to be good. "
        "Between 0.3 and 1 nothing was tried. Start at 0.1."
    )


def test_the_strip_shows_every_tested_rate_and_the_gap_to_test(first):
    eb = first.strips["eb"]
    states = {cell.lr: cell.state for cell in eb.cells}
    assert states == {
        **dict.fromkeys((0.01, 0.03), "tested"),
        **dict.fromkeys((0.1, 0.3), "good"),
        **dict.fromkeys((1.0, 3.0, 10.0), "broken"),
    }
    assert eb.to_test == (0.3, 1.0)
    assert eb.run == (0.1, 0.3)
    assert eb.gaps[:2] == ((0.01, 0.03), (0.03, 0.1))
    assert [(cell.n, cell.broke) for cell in eb.cells[3:5]] == [(5, 0), (5, 5)]


def test_the_answer_compares_what_both_hold(first):
    assert answer(first) == (
        "IB holds to 1.7, EB to 0.55: 3.2 times higher (1.5 to 6.8). "
        "Start at 0.1 with either; at their best they are equal."
    )


def test_what_beats_the_lead_comes_first(make_curve):
    better = make_curve({lr: [loss / 2 for loss in losses] for lr, losses in EB.items()})
    farther = make_curve({lr: FAIR if lr >= 1 else losses for lr, losses in EB.items()})
    score = score_task(
        {"ib": make_curve(IB), "eb": make_curve(EB), "adam": better, "ib_plus": farther}
    )
    words = answer(score, names={"adam": "Adam", "ib_plus": "IB+"})
    assert words.startswith(
        "At its best Adam does better than IB, whose lowest loss is 100 % (100 to 100) higher. "
        "IB+ holds farther than IB: it breaks nowhere up to 10. "
    )


def test_of_a_family_only_series_with_the_lead_s_own_settings_are_said_to_beat_it(make_curve):
    better = make_curve({lr: [loss / 2 for loss in losses] for lr, losses in EB.items()})
    farther = make_curve({lr: FAIR if lr >= 1 else losses for lr, losses in EB.items()})
    score = score_task(
        {"ib": make_curve(IB), "eb": make_curve(EB), "adam_wide": better, "ib_wide": farther}
    )
    assert "than IB" in answer(score)
    assert answer(score, among=("ib", "eb")).startswith("IB holds to 1.7, EB to 0.55: 3.2 times")
    assert answer(score, among=("ib", "eb", "ib_wide")).startswith("IB_WIDE holds farther than IB")


def test_where_the_baseline_holds_farther_it_comes_first(make_curve):
    score = score_task({"eb": make_curve(IB), "ib": make_curve(EB)})
    assert answer(score).startswith("EB holds to 1.7, IB to 0.55: 3.2 times higher (1.5 to 6.8)")


def test_alike_is_called_alike(make_curve):
    score = score_task({"eb": make_curve(EB), "ib": make_curve(EB)})
    assert answer(score).startswith(
        "IB holds to 0.55, EB to 0.55: equally far (0.45 to 2.2), which these seeds cannot tell"
    )


@pytest.mark.parametrize("seeds", [1, 2])
def test_too_few_seeds_give_no_advice_but_what_to_run(make_curve, seeds):
    score = score_task({"eb": make_curve({lr: losses[:seeds] for lr, losses in EB.items()})})
    assert said(score, "eb") == (
        "Too few seeds for advice: run 3 or more, better 10, at 0.1 and 0.3."
    )
    assert score.rows["eb"]["start_at"].value is None
    assert "Start at" not in answer(score)


def test_a_rate_near_the_edge_has_a_thin_margin(make_curve):
    score = score_task({"eb": make_curve({0.1: FAIR, 0.3: GOOD, 1.0: LOST})})
    assert score.rows["eb"]["start_at"].value == 0.3
    assert THIN in score.rows["eb"]["start_at"].note
    assert said(score, "eb").endswith("Start at 0.3, with a thin margin.")


@pytest.mark.parametrize(
    ("losses", "words"),
    [
        ({1.0: LOST, 3.0: LOST}, "Every tested rate broke: run lower ones than 1."),
        (
            {0.1: FAIR, 1.0: [0.9] * 5, 3.0: LOST},
            "No tested rate is good: run more above 0.1 and below 3, around its best, 1.",
        ),
        ({1.0: FAIR}, "No tested rate is good: run others than 1."),
    ],
)
def test_without_a_good_rate_it_says_what_to_run(make_curve, losses, words):
    score = score_task({"eb": make_curve(EB), "ib": make_curve(losses)})
    assert said(score, "ib") == words


def test_what_is_not_tested_above_is_said(make_curve):
    score = score_task({"eb": make_curve({0.1: FAIR, 0.3: GOOD, 1.0: GOOD})})
    assert said(score, "eb").startswith("Good at 0.3 and 1 (5 seeds). Higher rates were not tried.")


def test_a_rate_is_written_as_it_was_trained():
    for lr in (0.1, 1e-7, 3.0, 0.1 + 0.2, 1 / 3, 12345.678901):
        assert float(rate_text(lr)) == lr
    assert rate_text(0.3) == "0.3"


def test_nothing_trained_is_said():
    assert answer(score_task({})) == "Nothing has been trained yet."


# Random studies: unequal grids and seeds, explosions, NaN, broken below and sound above.
RATES = (0.001, 0.01, 0.1, 0.3, 1.0, 1.5, 3.0, 10.0, 1 / 3)
losses = st.one_of(
    st.sampled_from([math.nan, math.inf, None, 1e30, 2.0, 0.1]), st.floats(0.01, 4.0)
)
starts = st.sampled_from([2.0, 2.0, 2.0, 2.1, None])


@st.composite
def curves(draw) -> RateCurve:
    start = draw(starts)
    found = []
    for lr in draw(st.lists(st.sampled_from(RATES), min_size=1, max_size=6, unique=True)):
        kind = draw(st.sampled_from(["any", "good", "broken"]))
        for seed in range(1, draw(st.integers(1, 5)) + 1):
            loss = draw(losses) if kind == "any" else 0.1 if kind == "good" else 9.0
            outcome = draw(st.sampled_from(["completed"] * 5 + ["diverged"]))
            outcome = outcome if kind == "any" else "completed"
            found.append((lr, SeedResult(seed, loss, start, outcome)))
    return RateCurve.from_results(found)


studies = st.dictionaries(
    st.sampled_from(["eb", "ib", "ib_plus", "adam"]), curves(), min_size=1, max_size=4
)


@given(studies)
@settings(max_examples=250, deadline=None)
def test_words_strip_and_table_never_contradict_each_other(study):
    score = score_task(study, paper=True)
    words = answer(score)
    for label, curve in study.items():
        row, strip = score.rows[label], score.strips[label]
        assert tuple(cell.lr for cell in strip.cells) == curve.lrs
        check_numbers(row)
        check_rates(curve, row, strip)
        check_edge(row["edge"], strip)
        check_advice(said(score, label), row, strip)
    check_answer(words, score)


def check_numbers(row: dict[str, Number]) -> None:
    assert list(row) == list(KINDS)
    for name, number in row.items():
        for value in (number.value, number.low, number.high):
            assert value is None or math.isfinite(value)
        assert number.definition == KINDS[name].definition
        assert number.value is not None or number.note
        assert number.low is None or number.low <= number.value
        assert number.high is None or number.value <= number.high
        assert KINDS[name].write(number)
        if number.n < LEAST_SEEDS and name != "good_range":
            assert not number.has_interval


def check_rates(curve, row, strip) -> None:
    """Every rate that is named was trained, and is what the strip shows."""
    state = {cell.lr: cell for cell in strip.cells}
    good = [cell.lr for cell in strip.cells if cell.state == "good"]
    if row["best_rate"].value is not None:
        assert row["best_rate"].value in curve.lrs
    assert (row["good_range"].value is None) == (not good)
    if good:
        between = [lr for lr in curve.lrs if row["good_range"].low <= lr <= row["good_range"].high]
        assert tuple(between) == strip.run
        assert row["good_range"].value in strip.run
        assert all(state[lr].state == "good" and state[lr].broke == 0 for lr in between)
    start = row["start_at"].value
    if start is not None:
        assert state[start].state == "good"
        assert state[start].n >= LEAST_SEEDS
        thin = THIN in row["start_at"].note
        assert thin or start <= row["edge"].low / 2
    if strip.to_test is not None:
        low, high = strip.to_test
        assert (low, high) in strip.gaps
        assert state[high].state == "broken"
        assert state[low].state != "broken"


def check_edge(edge: Number, strip) -> None:
    rates = [cell.lr for cell in strip.cells]
    if not any(cell.broke for cell in strip.cells):
        assert (edge.value, edge.censored) == (rates[-1], "above")
    elif all(cell.broke == cell.n for cell in strip.cells):
        assert (edge.value, edge.censored) == (rates[0], "below")
    if edge.censored == "none":
        assert rates[0] < edge.value < rates[-1]


def check_advice(words: str, row, strip) -> None:
    if row["start_at"].value is None:
        assert "Start at" not in words
        return
    assert f"Start at {rate_text(row['start_at'].value)}" in words
    listed = re.match(r"Good at (.*?) \(", words).group(1)
    assert tuple(float(lr) for lr in re.split(r", | and ", listed)) == strip.run
    told = re.search(r"At ([^,]*), (\d+) of (\d+) broke", words)
    if told:
        cell = next(cell for cell in strip.cells if cell.lr == float(told.group(1)))
        assert (cell.broke, cell.n) == (int(told.group(2)), int(told.group(3)))
    gap = re.search(r"Between (\S+) and (\S+) nothing", words)
    if gap:
        assert (float(gap.group(1)), float(gap.group(2))) in strip.gaps


def check_answer(words: str, score: TaskScore) -> None:
    names = {label.upper(): label for label in score.rows}
    for name, value in re.findall(r"(\w+) holds to ([\d.e+-]+\d)", words):
        if name == "it":
            continue
        for cell in score.strips[names[name]].cells:
            assert (cell.lr <= float(value)) == (cell.state != "broken")
    check_first(words, score, names)
    recommended = re.search(r"Start at (.*?)(?:;|\.$|\. )", words)
    if recommended:
        advised = {row["start_at"].value for row in score.rows.values()}
        for lr in re.findall(r"(\S+) with ", recommended.group(1)):
            assert float(lr) in advised


def check_first(words: str, score: TaskScore, names: dict[str, str]) -> None:
    for one, two in re.findall(r"(\w+) holds farther than (\w+)", words):
        assert score.rows[names[one]]["edge"].low > score.rows[names[two]]["edge"].high
    for one, two in re.findall(r"At its best (\w+) does better than (\w+)", words):
        means = [score.rows[names[name]]["best_mean"].value for name in (one, two)]
        assert means[0] < means[1]
    room = score.rows.get("ib", {}).get("headroom")
    if room is not None and room.value is not None and room.censored == "none":
        edges = [score.rows[label]["edge"].value for label in ("ib", "eb")]
        assert room.value == edges[0] / edges[1]
