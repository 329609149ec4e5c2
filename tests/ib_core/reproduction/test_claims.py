import pytest

from ib_core.reproduction.claims import CLAIMS
from ib_core.reproduction.evidence import CLIPPED_MUSIC, Evidence, Run
from ib_core.reproduction.verdicts import Verdict
from tests.ib_core.reproduction.evidence import evidence

JSB, PIANO_CLIPPED = "05_jsb_chorales", "16_piano_midi_clip_0.1"
EB = {0.5: 1.0, 5: 0.5, 50: 2.5, 500: 4.0}
IB = {0.5: 1.0, 5: 0.4, 50: 0.5, 500: 3.0}


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
    names = [f"{number:02}_made_up" for number in range(1, 10)]
    won = {name: {"eb": EB, "ib": IB} for name in names}
    lost = {name: {"eb": IB, "ib": EB} for name in ("10_a", "11_b")}
    assert judged("better", evidence(**won, **lost)).verdict is Verdict.REPRODUCED
    third = {"12_c": {"eb": IB, "ib": EB}}
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


def test_a_handful_of_experiments_is_no_count_of_seventeen():
    lost = evidence(**{JSB: {"eb": IB, "ib": EB}})
    found = judged("better", lost)
    assert found.verdict is Verdict.NOT_TESTED
    assert found.reason.startswith("0 of 1, not in JSB Chorales")


@pytest.mark.parametrize(
    ("ib", "verdict"),
    [(IB, "reproduced"), (EB, "differs"), ({**EB, 50: 2.2, 500: 2.3}, "reproduced")],
)
def test_ib_must_diverge_at_a_higher_rate_wherever_eb_diverges(ib, verdict):
    assert judged("headroom", evidence(**{JSB: {"eb": EB, "ib": ib}})).verdict == verdict


def test_a_grid_that_ends_where_eb_diverges_says_nothing_of_headroom():
    eb, ib = {0.5: 0.5, 5: 4.0}, {0.5: 0.5, 5: 0.6}
    found = judged("headroom", evidence(**{JSB: {"eb": eb, "ib": ib}}))
    assert found.verdict is Verdict.NOT_TESTED
    assert "ends where EB diverges" in found.reason


def music(helped_eb, helped_ib, count=9):
    """Return music runs in which clipping helps in so many of the first `count` experiments."""
    better, worse = ({lr: loss * factor for lr, loss in EB.items()} for factor in (0.5, 2.0))
    clipped = {
        name: {
            "eb": better if number < helped_eb else worse,
            "ib": better if number < helped_ib else worse,
        }
        for number, name in enumerate(list(CLIPPED_MUSIC)[:count])
    }
    plain = {name: {"eb": EB, "ib": EB} for name in set(CLIPPED_MUSIC.values())}
    return evidence(**clipped, **plain)


@pytest.mark.parametrize(
    ("eb", "ib", "verdict"),
    [(7, 2, "reproduced"), (8, 1, "reproduced"), (2, 7, "differs"), (7, 5, "differs")],
)
def test_clipping_helps_eb_more_often_than_ib(eb, ib, verdict):
    found = judged("clipping_helps", music(eb, ib))
    assert (found.verdict, found.reason) == (verdict, f"EB in {eb} of 9, IB in {ib} of 9.")


def test_clipping_in_few_experiments_is_not_counted():
    assert judged("clipping_helps", music(3, 1, count=4)).verdict is Verdict.NOT_TESTED


@pytest.mark.parametrize(
    ("claim", "experiment", "lower", "upper"),
    [
        ("clipped_classifier", "02_mnist_classification_clip_1.0", "ib", "eb"),
        ("clipped_autoencoder", "04_mnist_autoencoder_clip_1.0", "eb", "ib"),
    ],
)
def test_with_clipping_one_method_is_at_or_below_the_other(claim, experiment, lower, upper):
    high = {lr: loss * 1.1 for lr, loss in IB.items()}
    good = evidence(**{experiment: {lower: IB, upper: high}})
    assert judged(claim, good).verdict is Verdict.REPRODUCED
    turned = judged(claim, evidence(**{experiment: {lower: high, upper: IB}}))
    assert turned.verdict is Verdict.DIFFERS
    assert f"{lower.upper()} at or below {upper.upper()} at 0 of 4 rates" in turned.reason


@pytest.mark.parametrize(
    ("share", "verdict"), [(0.17, "reproduced"), (2.16, "reproduced"), (0.05, "differs")]
)
def test_run_times_are_judged_on_what_was_timed_for_its_own_sake(share, verdict):
    found = Evidence.of([], {"JSB Chorales": share})
    assert judged("run_time", found).verdict == verdict


def test_times_of_result_runs_are_told_but_not_judged():
    pair = [
        Run("05_jsb_chorales", "", method, 1.0, 1, 0.5, seconds=seconds)
        for method, seconds in (("eb", 10.0), ("ib", 47.0))
    ]
    found = judged("run_time", Evidence.of(pair))
    assert found.verdict is Verdict.NOT_TESTED
    assert "older, slower solver: JSB Chorales +370%" in found.reason


def test_a_uci_cell_is_its_first_seed():
    runs = [Run("uci", "iris", "eb", 0.1, seed, float(seed)) for seed in (3, 1, 2)]
    assert Evidence.of(runs).uci["iris"]["eb"][0.1].train_loss == 1.0
