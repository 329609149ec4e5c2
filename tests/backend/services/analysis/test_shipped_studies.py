"""The scorecards of all shipped studies: nothing in them contradicts what was seen."""

from collections.abc import Iterator

import pytest

from backend.schemas import ScorecardRow
from backend.services.analysis import Measure, score_plots, to_across, to_answers, to_plots, to_rows
from backend.services.analysis.scorecards import ScoredTask
from backend.services.analysis.unstored import series_of
from ib_core.metrics.edge import NOT_MONOTONE
from ib_core.reproduction.bundle import find_bundle
from tests.ib_core.metrics.test_across import LATER, METHODS

MEASURE = Measure("train_loss")


@pytest.fixture(scope="module")
def shipped() -> dict[str, list[ScoredTask]]:
    """Every shipped study, scored as the API scores it."""
    bundle = find_bundle("paper")
    return {study.name: scored(bundle, study) for study in bundle.studies()}


def scored(bundle, study) -> list[ScoredTask]:
    trials = [trial for portion in study.portions for _, trial in portion.trials()]
    return scored_results(
        bundle.results[trial] for trial in dict.fromkeys(trials) if trial in bundle.results
    )


def scored_results(results) -> list[ScoredTask]:
    plots = to_plots(series_of(list(results)), MEASURE, initial=True)
    return score_plots(plots, MEASURE)


def rows_of(shipped: dict[str, list[ScoredTask]]) -> Iterator[ScorecardRow]:
    for tasks in shipped.values():
        yield from to_rows(tasks, MEASURE)


def test_no_edge_lies_outside_what_was_seen(shipped):
    """Between the last rate that is sound with all below it, and the first that breaks all."""
    count, outside = 0, []
    for row in rows_of(shipped):
        count += 1
        edge, cells = row.metrics["edge"], row.strip.cells
        low, high = 0.0, float("inf")
        for cell in cells:
            if cell.broke:
                break
            low = cell.lr
        for cell in reversed(cells):
            if cell.broke < cell.n:
                break
            high = cell.lr
        if not low <= edge.value <= high and NOT_MONOTONE not in edge.note:
            outside.append((row.task, row.label, low, edge.value, high))
    assert count > 850
    assert outside == []


def test_every_task_has_an_answer_that_recommends_only_trained_rates(shipped):
    for tasks in shipped.values():
        for task, answer in zip(tasks, to_answers(tasks), strict=True):
            assert answer.answer
            for plot_id in answer.rows:
                start = task.score.rows[plot_id]["start_at"].value
                assert start is None or start in task.plots[plot_id].curve.lrs


def test_the_product_has_the_recorded_ranks_of_the_uci_tables(shipped):
    """Of the methods, tables and seed that were there when another program first computed them."""
    tasks = shipped["beyond/uci_methods"]
    bundle = find_bundle("paper")
    study = next(one for one in bundle.studies() if one.name == "beyond/uci_methods")
    first = (
        result
        for result in bundle.results_of(study)
        if result.spec.method in METHODS
        and result.spec.seed == 1
        and result.spec.task.removeprefix("uci/") not in LATER
    )
    found = to_across(scored_results(first))
    assert (found.tasks, sorted(found.methods)) == (85, sorted(METHODS))
    ranks = {one.number: one for one in found.ranks}
    rounded = {
        number: tuple(round(one.mean_ranks[method], 2) for method in METHODS)
        for number, one in ranks.items()
    }
    assert rounded == {
        "best_mean": (3.09, 4.04, 4.27, 1.96, 1.64),
        "lr_sensitivity": (4.20, 3.44, 1.32, 2.75, 3.29),
    }
    assert {round(one.critical_difference, 2) for one in ranks.values()} == {0.66}
    assert to_across(tasks).tasks == len(tasks) > 85  # all of today's
