"""Answers, strips, numbers and pictures of random curves: they never contradict each other."""

import math
import re

from hypothesis import given, settings
from hypothesis import strategies as st

from backend.schemas import ScorecardRow, SeriesRead
from backend.services.analysis import (
    Finished,
    Key,
    Measure,
    Series,
    labels,
    score_plots,
    to_answers,
    to_plots,
    to_rows,
    to_series,
    varied,
)
from backend.services.analysis.scorecards import rates_between
from backend.services.analysis.task_answers import spoken
from ib_core.metrics.edge import NOT_MONOTONE
from ib_core.metrics.number import LEAST_SEEDS
from ib_core.sweep import ENGINE_VERSION, specs_of

RATES = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0)
MEASURE = Measure("train_loss")


def key(method: str, clip: float | None = None, **changes) -> Key:
    given = {
        "study_id": 1,
        "task": "digits_mlp",
        "profile": "text",
        "method": method,
        "batch_rule": "own" if method.startswith("ib") else None,
        "activation": "arctan",
        "clip": clip,
        "mu": 0.0,
        "epochs": 2,
        "batch_size": 100,
        "options": "{}",
        "imported": False,
        "engine_version": ENGINE_VERSION,
        "data_hash": None,
    }
    return Key(**{**given, **changes})


#: A rate's seeds do all alike, or each as it likes: broken, NaN, restarted to zero, non-monotone.
losses = st.sampled_from([0.1, 0.11, 0.3, 1.0, 2.4, 9.0, 1e30, None])


@st.composite
def series(draw, whose: Key) -> Series:
    rates = draw(st.lists(st.sampled_from(RATES), min_size=1, max_size=7, unique=True))
    seeds = draw(st.integers(1, 5))
    found = Series(whose)
    for lr in sorted(rates):
        alike = draw(st.sampled_from(["good", "lost", "any"]))
        for seed in range(1, seeds + 1):
            loss = {"good": 0.1, "lost": 9.0}.get(alike) or draw(losses)
            lost = loss is None or loss > 5 * 2.3
            state = "diverged" if lost else "completed"
            at_zero = alike == "any" and draw(st.sampled_from([False] * 9 + [True]))
            found.rows.append(
                Finished(len(found.rows), lr, seed, state, 2.3, loss, at_zero, loss, None)
            )
    return found


@st.composite
def studies(draw) -> list[Series]:
    methods = draw(st.lists(st.sampled_from(["eb", "ib", "ib_plus", "adam"]), unique=True))
    clips = draw(st.sampled_from([(None,), (None,), (None, 1.0)]))
    return [draw(series(key(method, clip))) for clip in clips for method in methods]


@given(studies())
@settings(max_examples=80, deadline=None)
def test_words_strip_table_and_picture_say_the_same(study):
    plots = to_plots(study, MEASURE, initial=True)
    tasks = score_plots(plots, MEASURE)
    rows = {row.id: row for row in to_rows(tasks, MEASURE)}
    lines = {line.id: line for line in to_series(plots, MEASURE, "std")}
    assert rows.keys() == lines.keys()
    for name, row in rows.items():
        check_picture(row, lines[name])
        check_numbers(row)
        check_edge(row)
        check_advice(row)
        check_gap(row)
    for answer in to_answers(tasks):
        assert set(answer.rows) <= rows.keys()
        check_answer(answer.answer, [rows[name] for name in answer.rows])


def check_picture(row: ScorecardRow, line: SeriesRead) -> None:
    """The strip lies on the picture's axis, and what is good looks good there."""
    cells = row.strip.cells
    assert [cell.lr for cell in cells] == [point.lr for point in line.points]
    for cell, point in zip(cells, line.points, strict=True):
        assert cell.n == point.n
        assert cell.broke >= point.diverged
        assert (cell.state == "broken") == (2 * cell.broke >= cell.n)
        if cell.state == "good":
            assert cell.broke == 0
            assert point.mean is not None
            assert point.mean < 2.3
    best = row.metrics["best_mean"]
    finite = [point.mean for point in line.points if point.mean is not None]
    assert best.value is None or not finite or best.value <= min(finite) + 1e-9


def check_numbers(row: ScorecardRow) -> None:
    tried = {cell.lr for cell in row.strip.cells}
    for name, number in row.metrics.items():
        assert number.value is not None or number.note
        assert number.low is None or number.low <= number.value
        assert number.high is None or number.high >= number.value
        assert number.n >= LEAST_SEEDS or name == "good_range" or number.interval == ""
        assert (number.value is None) == (number.text == "–")
    for name in ("best_rate", "start_at", "good_range"):
        number = row.metrics[name]
        assert number.value is None or number.value in tried
    good = row.metrics["good_range"]
    if good.value is not None:
        assert {good.low, good.high} <= tried
        assert row.strip.run == [lr for lr in sorted(tried) if good.low <= lr <= good.high]
    assert [one.k for one in row.best_of] == list(range(1, 21))
    for k in (3, 10):
        number, point = row.metrics[f"best_of_{k}"], row.best_of[k - 1]
        assert (number.value, number.low, number.high) == (point.value, point.low, point.high)


def check_edge(row: ScorecardRow) -> None:
    """It lies where the strip turns from sound to broken, or says that there is no such place."""
    edge, cells = row.metrics["edge"], row.strip.cells
    if NOT_MONOTONE in edge.note:
        return
    broke = [cell.broke / cell.n for cell in cells]
    if broke == sorted(broke):
        sound = [cell.lr for cell in cells if cell.broke == 0]
        lost = [cell.lr for cell in cells if cell.broke == cell.n]
        assert not sound or edge.value >= sound[-1]
        assert not lost or edge.value <= lost[0]


def check_advice(row: ScorecardRow) -> None:
    start = row.metrics["start_at"]
    tried = {cell.lr for cell in row.strip.cells}
    assert named(row.advice) <= tried | counts(row)
    if start.value is not None:
        state = {cell.lr: cell for cell in row.strip.cells}[start.value]
        assert (state.state, state.n >= LEAST_SEEDS) == ("good", True)
        assert f"Start at {start.value:g}" in row.advice
    else:
        assert "Start at" not in row.advice


def check_gap(row: ScorecardRow) -> None:
    if row.strip.to_test is None:
        assert row.gap is None
        return
    low, high = row.strip.to_test
    states = {cell.lr: cell.state for cell in row.strip.cells}
    assert states[low] != "broken"
    assert states[high] == "broken"
    (spec,) = specs_of(row.gap)
    assert all(low < rate < high for rate in spec.learning_rates)
    assert (spec.methods, spec.epochs, spec.clips) == ((row.method,), row.epochs, (row.clip,))


def check_answer(words: str, rows: list[ScorecardRow]) -> None:
    """Rates to start at are those of the table."""
    starts = {row.metrics["start_at"].value for row in rows}
    for said in re.findall(r"Start at ([^;.]*(?:\.\d[^;.]*)*)", words):
        assert named(said) <= starts, (words, starts)


def named(words: str) -> set[float]:
    return {float(number) for number in re.findall(r"\d+(?:\.\d+)?(?:e[+-]\d+)?", words)}


def counts(row: ScorecardRow) -> set[float]:
    """Numbers in advice that are no rates: seeds, and how many of them broke."""
    cells = row.strip.cells
    return {float(n) for cell in cells for n in (cell.n, cell.broke)} | {3.0, 10.0}


def test_settings_that_differ_are_answered_one_by_one():
    found = []
    for clip in (None, 1.0):
        for method in ("eb", "ib"):
            one = Series(key(method, clip))
            for lr in RATES:
                loss = 9.0 if lr > (0.3 if method == "eb" else 1.0) else 0.1
                one.rows += [
                    Finished(i, lr, i, "completed", 2.3, loss, False, loss, None)
                    for i in range(1, 6)
                ]
            found.append(one)
    (answer,) = to_answers(score_plots(to_plots(found, MEASURE, initial=True), MEASURE))
    first, second = answer.answer.split("Clip 1: ")
    assert first.startswith("No clip: IB holds to ")
    assert second.startswith("IB holds to ")


def told_moves(best: dict[int | None, float], grids=None) -> list[str]:
    """Return what is said of series whose best rates are given, by width; EB's is always 0.1."""
    found = []
    for method in ("eb", "ib"):
        for width, own in best.items():
            options = "{}" if width is None else f'{{"width": {width}}}'
            one = Series(key(method, options=options))
            lowest = own if method == "ib" else 0.1
            for lr in (grids or {}).get(width, RATES):
                loss = 0.1 + abs(math.log10(lr / lowest))
                one.rows += [
                    Finished(i, lr, i, "completed", 2.3, loss, False, loss, None) for i in (1, 2, 3)
                ]
            found.append(one)
    (answer,) = to_answers(score_plots(to_plots(found, MEASURE, initial=True), MEASURE))
    assert {one.setting for one in answer.moves} == {"width"}
    return [one.text for one in answer.moves]


def test_it_is_said_whether_the_best_rate_moves_with_a_setting():
    """Ends are the lowest and the highest, not the first and the last."""
    eb = "EB: the best rate is 0.1 at every width, on 3 seeds."
    for best, words in (
        ({8: 3.0, 32: 1.0, 128: 0.1}, "moves over 3 tested rates (0.1 at width 128, 3 at width 8)"),
        ({8: 1.0, 32: 0.1, 128: 1.0}, "moves over 2 tested rates (0.1 at width 32, 1 at width 8)"),
        ({8: 1.0, 32: 1.0, 128: 0.3}, "stays within one tested rate (0.3 at width 128, 1 at"),
        ({8: 1.0, 32: 1.0, 128: 1.0}, "is 1 at every width"),
        ({None: 3.0, 32: 1.0}, "stays within one tested rate (1 at width 32, 3 at width off)"),
    ):
        first, second = told_moves(best)
        assert first == eb
        assert second.startswith("IB: the best rate ")
        assert words in second
        assert second.endswith(", on 3 seeds.")


def test_best_rates_of_unequal_grids_are_a_factor_apart():
    _, ib = told_moves({8: 1.0, 32: 0.1}, {8: RATES, 32: RATES[:-1]})
    assert ib.startswith("IB: best rates lie within a factor of 10 (0.1 at width 32, 1 at width 8)")


def test_a_best_rate_at_an_end_of_what_was_tested_may_lie_beyond_it():
    low, high = "at or below 0.01, the lowest tested,", "at or above 10, the highest tested,"
    for best, words in (
        ({8: 0.03, 32: 0.01}, f"moves over at least one tested rate ({low} at width 32, 0.03 at"),
        ({8: 10.0, 32: 1.0}, f"over at least 2 tested rates (1 at width 32, {high} at width 8)"),
        ({8: 0.01, 32: 0.01}, f"the best rate is {low} at every width, on 3 seeds."),
        ({8: 10.0, 32: 10.0}, f"the best rate is {high} at every width, on 3 seeds."),
    ):
        eb, ib = told_moves(best)
        assert words in ib
        assert "at or" not in eb
    _, ib = told_moves({8: 1.0, 32: 0.1}, {8: RATES, 32: RATES[2:]})
    assert "best tested rates lie within a factor of 10 (at or below 0.1, the lowest" in ib
    _, ib = told_moves({8: 0.1, 32: 0.1}, {8: RATES, 32: RATES[2:]})
    assert "is 0.1 at every width (at or below 0.1, the lowest tested, at width 32)" in ib


def test_an_option_at_its_default_is_told_as_that_and_not_as_off():
    given = [("ngn_m", '{"momentum": 0.5}'), ("ngn_m", "{}"), ("eb", "{}")]
    keys = [key(method, options=options) for method, options in given]
    assert [one["momentum"] for one in varied(keys)] == [0.5, 0.9, None]
    assert labels(keys) == ["ngn_m, momentum 0.5", "ngn_m, momentum 0.9", "eb"]


def test_series_that_differ_in_no_number_say_nothing_of_moving():
    found = [Series(key("eb", activation=name)) for name in ("relu", "arctan")]
    for one in found:
        one.rows += [Finished(1, lr, 1, "completed", 2.3, lr, False, lr, None) for lr in RATES]
    (answer,) = to_answers(score_plots(to_plots(found, MEASURE, initial=True), MEASURE))
    assert answer.moves == []


def test_the_gap_is_filled_with_rates_that_are_easy_to_say():
    assert rates_between(1.0, 3.0) == [1.32, 1.73, 2.28]
    (middle,) = rates_between(1.0, 1.0000001)
    assert 1.0 < middle < 1.0000001
    assert rates_between(1.0, 1.0000000000000002) == []


def test_nothing_imported_or_old_is_carried_on():
    for changes in ({"imported": True}, {"engine_version": "0"}):
        one = Series(key("eb", **changes))
        for lr, loss in ((0.1, 0.1), (1.0, 9.0)):
            one.rows += [
                Finished(i, lr, i, "completed", 2.3, loss, False, loss, None) for i in range(1, 4)
            ]
        (row,) = to_rows(score_plots(to_plots([one], MEASURE, initial=True), MEASURE), MEASURE)
        assert row.strip.to_test == (0.1, 1.0)
        assert row.gap is None


def test_a_sentence_calls_methods_by_name():
    assert [spoken(label) for label in ("ib", "momentum", "ib_plus, clip 1", "mine")] == [
        "IB",
        "SGD + momentum",
        "IB+ (clip 1)",
        "mine",
    ]
