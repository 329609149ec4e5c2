import math

import pytest

from ib_core.reproduction.claims import CLAIMS
from ib_core.reproduction.evidence import Evidence, Run
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
    assert "each has a learning rate at which only its own mean is not finite" in found.reason
    both = evidence(**{experiment: {"eb": {**EB, 50: math.inf}, "ib": {**IB, 500: math.inf}}})
    assert CLAIMS["better"].judge(both).reason.startswith("0 of 1, not in ")


def curves(eb, ib):
    return evidence(**{JSB: {"eb": eb, "ib": ib}}).curves[JSB]


def test_our_own_curve_agrees_with_itself_and_a_wrong_one_differs():
    recorded = curves(EB, IB)
    assert judge_recorded(curves(EB, IB), recorded).verdict is Verdict.REPRODUCED
    wrong = judge_recorded(curves({lr: 2 * v for lr, v in EB.items()}, IB), recorded)
    assert wrong.verdict is Verdict.DIFFERS
    assert "4 of 8" in wrong.reason
    assert judge_recorded(curves(EB, IB), {}).verdict is Verdict.NOT_TESTED


def test_a_mean_that_is_finite_only_here_is_not_told_in_percent():
    found = judge_recorded(curves(EB, IB), curves({**EB, 500: math.nan}, IB))
    assert "7 of 8" in found.reason
    assert found.reason.endswith("one mean is not finite or over a hundred times the other.")


def test_two_means_that_are_not_finite_agree():
    lost = {**EB, 500: math.nan}
    assert judge_recorded(curves(lost, IB), curves(lost, IB)).verdict is Verdict.REPRODUCED


def judged(name, found):
    return CLAIMS[name].judge(found)


@pytest.mark.parametrize("name", CLAIMS)
def test_no_claim_is_judged_without_runs(name):
    assert judged(name, Evidence()).verdict is Verdict.NOT_TESTED


@pytest.mark.parametrize(("gap", "verdict"), [(1.05, "reproduced"), (1.3, "differs")])
def test_small_rates_are_near_identical_up_to_a_tenth(gap, verdict):
    found = evidence(**{JSB: {"eb": EB, "ib": {**IB, 0.5: EB[0.5] * gap}}})
    assert judged("small_rates", found).verdict == verdict


def test_fifteen_of_seventeen_allows_two_exceptions():
    names = [f"{number:02}_made_up" for number in range(1, 5)]
    won = {name: {"eb": EB, "ib": IB} for name in names}
    lost = {name: {"eb": IB, "ib": EB} for name in ("05_a", "06_b")}
    assert judged("better", evidence(**won, **lost)).verdict is Verdict.REPRODUCED
    third = {"07_c": {"eb": IB, "ib": EB}}
    assert judged("better", evidence(**won, **lost, **third)).verdict is Verdict.DIFFERS


def test_ib_must_stay_below_clipped_eb_except_on_piano():
    clipped = {"eb": {lr: loss * 1.2 for lr, loss in IB.items()}, "ib": IB}
    below = {"eb": {lr: loss * 0.5 for lr, loss in IB.items()}, "ib": IB}
    plain = {"05_jsb_chorales": {"ib": IB}, "13_piano_midi": {"ib": IB}}
    good = evidence(**plain, **{"06_jsb_chorales_clip_8.0": clipped, PIANO_CLIPPED: below})
    assert judged("against_clipped_eb", good).verdict is Verdict.REPRODUCED
    bad = evidence(**plain, **{"06_jsb_chorales_clip_8.0": below})
    found = judged("against_clipped_eb", bad)
    assert found.verdict is Verdict.DIFFERS
    assert "JSB Chorales, clip 8 at rate" in found.reason


def test_exact_isgd_must_be_best_and_flat():
    name = "01_mnist_classification"
    flat, steep = {0.2: 0.1, 2.0: 0.11}, {0.2: 0.1, 2.0: 0.9}
    others = {"eb": {0.2: 0.12, 2.0: 1.9}, "ib": {0.2: 0.12, 2.0: 1.5}}
    assert judged("exact_isgd", evidence(**{name: {**others, "isgd": flat}})).verdict == (
        "reproduced"
    )
    assert judged("exact_isgd", evidence(**{name: {**others, "isgd": steep}})).verdict == "differs"


def test_the_accuracy_claim_chooses_rates_by_training_loss():
    def table(method, good, bad):
        return [
            Run("uci", "iris", method, 0.1, 1, 0.2, test_accuracy=good),
            Run("uci", "iris", method, 1.0, 1, 0.3, test_accuracy=bad),
        ]

    found = Evidence.of([*table("eb", 0.90, 0.99), *table("ib", 0.9013, 0.1)])
    assert judged("uci_accuracy", found).verdict is Verdict.REPRODUCED
    worse = Evidence.of([*table("eb", 0.90, 0.99), *table("ib", 0.89, 0.1)])
    assert judged("uci_accuracy", worse).verdict is Verdict.DIFFERS


def test_of_two_runs_with_one_rate_and_seed_the_first_counts():
    first, second = runs(JSB, "eb", {1.0: 0.5}, seeds=(1,)), runs(JSB, "eb", {1.0: 9.0}, seeds=(1,))
    assert Evidence.of([*first, *second]).curves[JSB]["eb"].points[0].mean == 0.5
