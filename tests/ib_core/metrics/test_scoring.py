"""The list of numbers, and what holds for every one of them."""

import math
import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ib_core.metrics import RateCurve, SeedResult
from ib_core.metrics.number import Number, as_number, as_range, as_share, number_text
from ib_core.metrics.scoring import KINDS, NO_BASELINE, NUMBERS, score_task, score_tasks

EB = {0.1: [0.5, 0.6, 0.5], 1.0: [0.2, 0.3, 0.2], 10.0: [8.0, 8.0, None]}
IB = {0.1: [0.5, 0.6, 0.5], 1.0: [0.3, 0.3, 0.2], 10.0: [0.9, 0.8, 1.0]}


@pytest.fixture
def curves(make_curve) -> dict[str, RateCurve]:
    return {"eb": make_curve(EB), "ib": make_curve(IB)}


@pytest.mark.parametrize("kind", NUMBERS, ids=lambda kind: kind.name)
def test_every_number_has_a_title_a_unit_and_a_definition(kind):
    assert kind.title
    assert kind.unit
    assert kind.definition.endswith(".")
    assert KINDS[kind.name] is kind


def test_every_row_has_every_number_with_its_definition(curves):
    for row in score_task(curves, paper=True).rows.values():
        assert list(row) == [kind.name for kind in NUMBERS]
        assert all(number.definition == KINDS[name].definition for name, number in row.items())


def test_the_papers_numbers_are_shown_in_its_own_studies_only(curves):
    papers = {kind.name for kind in NUMBERS if kind.paper}
    assert papers == {"paper_threshold", "paper_divergence_rate", "paper_headroom"}
    assert not papers & set(score_task(curves).rows["ib"])


def test_the_papers_rule_says_nothing_above_the_initial_loss(make_curve):
    calm = make_curve({0.1: [0.5] * 3, 1.0: [0.2] * 3, 10.0: [1.8] * 3})
    ib = make_curve({0.1: [0.5] * 3, 1.0: [0.2] * 3, 10.0: [0.3] * 3})
    row = score_task({"eb": calm, "ib": ib}, paper=True).rows["ib"]
    assert row["paper_threshold"].value == pytest.approx(1.0)
    assert (row["paper_divergence_rate"].value, row["paper_divergence_rate"].censored) == (
        10.0,
        "above",
    )
    assert (row["paper_headroom"].value, row["paper_headroom"].censored) == (1.0, "above")
    wild = make_curve({0.1: [0.5] * 3, 1.0: [0.2] * 3, 10.0: [1e6] * 3})
    for name in ("paper_threshold", "paper_divergence_rate", "paper_headroom"):
        number = score_task({"eb": wild, "ib": ib}, paper=True).rows["ib"][name]
        assert number.value is None
        assert "above the initial loss" in number.note


def test_a_cost_is_what_was_measured_or_nothing(curves):
    assert score_task(curves).rows["ib"]["step_cost"].note == "Not measured."
    cost = Number(1.33, 1.3, 1.4, n=20)
    row = score_task(curves, step_costs={"ib": cost}).rows["ib"]
    assert (row["step_cost"].value, row["step_cost"].low) == (1.33, 1.3)
    assert "quartiles" in row["step_cost"].definition


def test_each_series_can_have_a_baseline_of_its_own(make_curve):
    clipped = make_curve({lr: [0.4] * 3 for lr in EB})
    curves = {"eb": make_curve(EB), "ib": make_curve(IB), "eb8": clipped, "ib8": make_curve(IB)}
    rows = score_task(curves, baseline={"ib": "eb", "ib8": "eb8", "eb": "eb"}).rows
    assert rows["ib"]["chance_better"].value != rows["ib8"]["chance_better"].value
    assert rows["eb"]["chance_better"].note.startswith("This is what")
    assert rows["eb8"]["chance_better"].note.startswith("There is nothing")


def test_without_the_baseline_relative_numbers_are_none_and_say_so(make_curve):
    row = score_task({"ib": make_curve(IB)}, paper=True).rows["ib"]
    papers = {kind.name for kind in NUMBERS if kind.paper}
    for name in {"headroom", "chance_better", "mean_difference"} | papers:
        assert (row[name].value, row[name].note) == (None, NO_BASELINE)
    for name in ("edge", "good_range", "lr_sensitivity", "best_of_3"):
        assert row[name].value is not None


def test_a_baseline_lost_everywhere_gives_no_threshold_to_anyone(make_curve):
    lost = make_curve({lr: [None] * 3 for lr in IB})
    row = score_task({"eb": lost, "ib": make_curve(IB)}, paper=True).rows["ib"]
    for name in ("paper_threshold", "paper_divergence_rate", "paper_headroom"):
        assert row[name].value is None
        assert "no mean loss of EB is finite" in row[name].note
    assert row["chance_better"].value == 1.0


def test_tasks_are_scored_on_their_own(curves, make_curve):
    other = {"eb": make_curve({1.0: [0.01] * 3, 2.0: [0.02] * 3})}
    scores = score_tasks({"one": curves, "two": other})
    assert scores["one"] == score_task(curves)
    assert scores["one"].rows["ib"]["price"].value < 1


def test_the_best_is_that_of_all_series_on_the_task(curves, make_curve):
    before = score_task(curves).rows["ib"]
    rows = score_task({**curves, "adam": make_curve({lr: [0.01] * 3 for lr in EB})}).rows
    assert rows["ib"]["lr_sensitivity"].value > before["lr_sensitivity"].value
    assert rows["ib"]["flatness"].value == before["flatness"].value
    assert before["good_range"].value == 1.0
    assert rows["ib"]["good_range"].value is None


def test_the_same_results_give_the_same_numbers(curves):
    assert score_task(curves) == score_task(curves)


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (Number(0.548, 0.33, 0.9), "0.548 (0.33 to 0.9)"),
        (Number(1000.0, 451.0, None, "above"), "at least 1000 (451 to …)"),
        (Number(0.01, censored="below"), "at most 0.01"),
        (Number(None), "–"),
    ],
)
def test_a_number_is_written_with_its_interval(number, text):
    assert as_number(number) == text


@pytest.mark.parametrize(
    ("value", "text"), [(1000.0, "1000"), (0.30000000000000004, "0.3"), (12345.0, "12300")]
)
def test_numbers_are_written_without_needless_digits_or_exponents(value, text):
    assert number_text(value) == text


def test_shares_and_ranges_are_written_as_such():
    assert as_share(Number(0.1234, 0.1, 0.2)) == "12.3 % (10 % to 20 %)"
    assert as_range(Number(0.3, 0.1, 1.0)) == "0.1 to 1"
    assert as_range(Number(0.3, 0.3, 0.3)) == "0.3"
    assert as_range(Number(None)) == "–"


def noisy_curve(edge: float, seeds: int) -> RateCurve:
    """A bowl in log lr that turns ragged, then not finite, above its edge."""
    rng = np.random.default_rng(int(10 * edge) + 10)

    def results():
        for lr in np.logspace(-3, 3, 20).tolist():
            for seed in range(seeds):
                past = math.log10(lr) - edge
                loss = 0.2 + 0.02 * past**2 + 2 * max(0, past) * rng.random()
                lost = past > 1 and rng.random() < 0.3
                yield lr, SeedResult(seed, math.nan if lost else loss, 2.3)

    return RateCurve.from_results(results())


def seconds(study: dict[str, RateCurve]) -> float:
    start = time.process_time()
    score_task(study, baseline="series 0")
    return time.process_time() - start


def test_ten_times_the_series_take_about_ten_times_as_long():
    edges = np.linspace(-1, 2, 60)
    study = {f"series {i}": noisy_curve(edge, 10) for i, edge in enumerate(edges)}
    tenth = {f"series {i}": study[f"series {10 * i}"] for i in range(6)}
    turns = [(seconds(study), seconds(tenth)) for _ in range(5)]
    whole, part = (min(times) for times in zip(*turns, strict=True))
    assert whole < 20 * part  # a comparison of each with each would take a hundred times


def test_ten_times_the_seeds_take_about_ten_times_as_long():
    many, few = (
        {f"series {i}": noisy_curve(0.4 * i, seeds) for i in range(5)} for seeds in (100, 10)
    )
    turns = [(seconds(many), seconds(few)) for _ in range(5)]
    whole, part = (min(times) for times in zip(*turns, strict=True))
    assert whole < 20 * part  # a comparison of each with each would take a hundred times


far = st.floats(0, 1e308) | st.sampled_from([math.nan, math.inf, 1.7e308, 5e-324, 0.0, 1.0])
cells = st.dictionaries(
    st.tuples(st.floats(1e-12, 1e12) | st.sampled_from([0.1, 1.0, 10.0]), st.integers(0, 4)),
    st.tuples(far, far),
    min_size=1,
    max_size=8,
)


@given(st.dictionaries(st.sampled_from(["eb", "ib", "other"]), cells, min_size=1))
def test_losses_at_the_ends_of_the_number_line_overflow_nowhere(series):
    curves = {
        label: RateCurve.from_results(
            [(lr, SeedResult(seed, *losses)) for (lr, seed), losses in found.items()]
        )
        for label, found in series.items()
    }
    for row in score_task(curves, paper=True).rows.values():  # a warning is an error here
        assert all(one.value is None or math.isfinite(one.value) for one in row.values())
