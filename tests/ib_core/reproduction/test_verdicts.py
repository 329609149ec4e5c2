import math

import pytest

from ib_core.reproduction.claims import CLAIMS
from ib_core.reproduction.evidence import Evidence
from ib_core.reproduction.verdicts import Verdict, judge_recorded, judge_text
from tests.ib_core.reproduction.evidence import evidence, runs

JSB, PIANO_CLIPPED = "05_jsb_chorales", "16_piano_midi_clip_0.1"
EB = {0.5: 1.0, 5: 0.5, 50: 2.5, 500: 4.0}
IB = {0.5: 1.0, 5: 0.4, 50: 0.5, 500: 3.0}


def text(eb, ib, experiment=JSB):
    return judge_text(evidence(**{experiment: {"eb": eb, "ib": ib}}), experiment)


def test_a_curve_like_the_papers_is_reproduced():
    found = text(EB, IB)
    assert found.verdict is Verdict.REPRODUCED
    assert "10 times" in found.reason  # EB breaks at 50 by the mid-point rule, IB at 500


def test_a_wrong_curve_differs():
    assert text(IB, EB).verdict is Verdict.DIFFERS


def test_lower_losses_without_headroom_differ():
    ib = {lr: loss * 0.9 for lr, loss in EB.items()}
    assert text(EB, {**ib, 50: 2.4}).verdict is Verdict.DIFFERS


def test_where_the_paper_says_worse_a_better_ib_differs():
    assert text(EB, IB, PIANO_CLIPPED).verdict is Verdict.DIFFERS
    assert text(IB, EB, PIANO_CLIPPED).verdict is Verdict.REPRODUCED


def test_a_grid_that_ends_too_early_neither_proves_nor_refutes_headroom():
    eb = {0.5: 1.0, 5: 0.5, 500: 4.0}
    ib = {0.5: 1.0, 5: 0.4, 500: 0.5}
    found = text(eb, ib)
    assert found.verdict is Verdict.REPRODUCED
    assert "outlasts the grid" in found.reason


def test_a_method_that_was_not_run_is_not_tested():
    assert judge_text(evidence(**{JSB: {"eb": EB}}), JSB).verdict is Verdict.NOT_TESTED


def test_a_loss_that_is_not_finite_loses():
    ib = {**IB, 0.5: math.inf}
    assert text(EB, ib).verdict is Verdict.DIFFERS


@pytest.mark.parametrize("experiment", [JSB, PIANO_CLIPPED])
def test_where_each_loses_at_a_rate_of_its_own_nobody_is_better_and_that_differs(experiment):
    found = text({**EB, 50: math.inf}, {**IB, 500: math.inf}, experiment)
    assert found.verdict is Verdict.DIFFERS
    assert found.reason.startswith("Neither's losses are lower over the grid")
    decisive = "EB's mean is not finite at 50 (2 of 2 seeds) and IB's mean is not finite at 500"
    assert decisive in found.reason
    both = evidence(**{experiment: {"eb": {**EB, 50: math.inf}, "ib": {**IB, 500: math.inf}}})
    assert CLAIMS["better"].judge(both).reason.startswith("0 of 1, not in ")


def test_a_reason_says_what_decides():
    assert "mean over it: EB 2, IB 1.225;" in text(EB, IB).reason
    lost = text(EB, {**IB, 500: math.nan}).reason
    assert "IB's mean is not finite at 500 (2 of 2 seeds)" in lost
    nobody = dict.fromkeys(EB, math.inf)
    assert "no mean of either is finite" in text(nobody, nobody, PIANO_CLIPPED).reason


def test_one_step_of_a_coarse_grid_is_told_apart_from_the_headroom_between_its_rates():
    eb = {0.5: 0.5, 1.0: 2.4, 1.2: 4.0, 1.4: 4.0}
    ib = {0.5: 0.4, 1.0: 2.2, 1.2: 2.5, 1.4: 3.0}
    found = text(eb, ib)
    assert "IB diverges at 1.2 times EB's rate (1.0" in found.reason
    assert "times between the rates of the grid)" in found.reason


def curves(eb, ib):
    return evidence(**{JSB: {"eb": eb, "ib": ib}}).curves[JSB]


def test_our_own_curve_agrees_with_itself_and_a_wrong_one_differs():
    recorded = curves(EB, IB)
    assert judge_recorded(curves(EB, IB), recorded).verdict is Verdict.REPRODUCED
    wrong = judge_recorded(curves({lr: 2 * v for lr, v in EB.items()}, IB), recorded)
    assert wrong.verdict is Verdict.DIFFERS
    assert "4 of 8" in wrong.reason
    assert judge_recorded(curves(EB, IB), {}).verdict is Verdict.NOT_TESTED


def test_a_mean_among_the_recorded_seeds_agrees_however_far_from_their_mean():
    recorded = Evidence.of(runs(JSB, "eb", EB, spread=0.5)).curves[JSB]  # 0.75 to 1.25 times

    def ours(factor):
        return Evidence.of(runs(JSB, "eb", {lr: factor * v for lr, v in EB.items()})).curves[JSB]

    assert "4 of 4" in judge_recorded(ours(1.24), recorded).reason
    assert "0 of 4" in judge_recorded(ours(1.26), recorded).reason


def test_a_mean_that_is_finite_only_here_is_not_told_in_percent():
    found = judge_recorded(curves(EB, IB), curves({**EB, 500: math.nan}, IB))
    assert "7 of 8" in found.reason
    assert found.reason.endswith("one mean is not finite or over a hundred times the other.")


def test_two_means_that_are_not_finite_agree():
    lost = {**EB, 500: math.nan}
    assert judge_recorded(curves(lost, IB), curves(lost, IB)).verdict is Verdict.REPRODUCED


def test_of_two_runs_with_one_rate_and_seed_the_first_counts():
    first, second = runs(JSB, "eb", {1.0: 0.5}, seeds=(1,)), runs(JSB, "eb", {1.0: 9.0}, seeds=(1,))
    assert Evidence.of([*first, *second]).curves[JSB]["eb"].points[0].mean == 0.5
