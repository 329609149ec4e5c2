import numpy as np
import pytest
from scipy import stats

from ib_core.reproduction.claims import CLAIMS
from ib_core.reproduction.clipping import differences
from ib_core.reproduction.evidence import Evidence, Run
from ib_core.reproduction.published import CLIPPED_MUSIC
from ib_core.reproduction.recorded import recorded_evidence
from ib_core.reproduction.uci import compared_accuracies, student
from ib_core.reproduction.verdicts import Verdict
from tests.ib_core.reproduction.evidence import evidence, runs

JSB, PIANO_CLIPPED = "05_jsb_chorales", "16_piano_midi_clip_0.1"
CLIPPED = "06_jsb_chorales_clip_8.0"
EB = {0.5: 1.0, 5: 0.5, 50: 3.0, 500: 4.0}
IB = {0.5: 1.0, 5: 0.4, 50: 0.5, 500: 3.0}


def judged(name, found):
    return CLAIMS[name].judge(found)


@pytest.mark.parametrize("name", CLAIMS)
def test_no_claim_is_judged_without_runs(name):
    assert judged(name, Evidence()).verdict is Verdict.NOT_TESTED


@pytest.mark.parametrize(
    ("gap", "verdict"), [(1.05, "reproduced"), (1.3, "differs"), (1.1, "cannot tell")]
)
def test_small_rates_are_near_identical_up_to_a_tenth(gap, verdict):
    seeds = zip((1, 2, 3, 4, 5), (-0.01, 0.01, 0.0, 0.005, -0.005), strict=True)
    ib = [run for seed, off in seeds for run in runs(JSB, "ib", {0.5: gap + off}, seeds=(seed,))]
    found = Evidence.of([*runs(JSB, "eb", {0.5: 1.0}), *ib])
    assert judged("small_rates", found).verdict == verdict


def test_fifteen_of_seventeen_allows_two_exceptions():
    names = [f"{number:02}_made_up" for number in range(1, 10)]
    won = {name: {"eb": EB, "ib": IB} for name in names}
    lost = {name: {"eb": IB, "ib": EB} for name in ("10_a", "11_b")}
    assert judged("better", evidence(**won, **lost)).verdict is Verdict.REPRODUCED
    third = {"12_c": {"eb": IB, "ib": EB}}
    assert judged("better", evidence(**won, **lost, **third)).verdict is Verdict.DIFFERS
    few = evidence(seeds=(1, 2), **won, **lost, **third)
    assert judged("better", few).verdict is Verdict.CANNOT_TELL


def test_an_interval_that_nobody_has_is_not_said_to_hold_zero():
    even = [*runs(JSB, "eb", EB), *runs(JSB, "ib", EB, spread=0.1)]
    short = [
        run
        for name, of in (("eb", EB), ("ib", IB))
        for run in runs(CLIPPED, name, of, seeds=(1, 2))
    ]
    found = judged("better", Evidence.of([*even, *short])).reason
    said = "Lower in 0 of 2; in 1 the interval holds 0; 1 with too few seeds for an interval. By"
    assert found.startswith(said)


def test_a_handful_of_experiments_is_no_count_of_seventeen():
    lost = evidence(**{JSB: {"eb": IB, "ib": EB}})
    found = judged("better", lost)
    assert found.verdict is Verdict.NOT_TESTED
    assert found.reason.startswith("Lower in 0 of 1, higher in 1 (JSB Chorales)")


def test_ib_must_stay_below_clipped_eb_except_on_piano():
    clipped = {"eb": {lr: loss * 1.2 for lr, loss in IB.items()}, "ib": IB}
    below = {"eb": {lr: loss * 0.5 for lr, loss in IB.items()}, "ib": IB}
    plain = {JSB: {"ib": IB}, "13_piano_midi": {"ib": IB}}
    good = evidence(**plain, **{CLIPPED: clipped, PIANO_CLIPPED: below})
    assert judged("against_clipped_eb", good).verdict is Verdict.REPRODUCED
    found = judged("against_clipped_eb", evidence(**plain, **{CLIPPED: below}))
    assert found.verdict is Verdict.DIFFERS
    assert "JSB Chorales, clip 8 at rate" in found.reason


def test_exact_isgd_must_be_below_every_seed_and_flat():
    name = "01_mnist_classification"
    flat, steep = {0.2: 0.1, 2.0: 0.11}, {0.2: 0.1, 2.0: 0.9}
    others = {"eb": {0.2: 0.12, 2.0: 1.9}, "ib": {0.2: 0.12, 2.0: 1.5}}

    def found(exact):
        return judged("exact_isgd", evidence(**{name: {**others, "isgd": exact}})).verdict

    assert found(flat) == "reproduced"
    assert found(steep) == "differs"
    assert found({0.2: 0.1195, 2.0: 0.11}) == "cannot tell"  # below the mean, not below all seeds


def table(dataset, method, good, bad, loss=0.2):
    return [
        Run("uci", dataset, method, 0.1, 1, loss, test_accuracy=good),
        Run("uci", dataset, method, 1.0, 1, loss + 0.1, test_accuracy=bad),
    ]


def tables(differences_):
    return Evidence.of(
        [
            run
            for number, gap in enumerate(differences_)
            for run in (
                *table(f"t{number}", "eb", 0.90, 0.99),
                *table(f"t{number}", "ib", 0.90 + gap / 100, 0.1),
            )
        ]
    )


@pytest.mark.parametrize(
    ("gaps", "verdict"),
    [
        ([0.12, 0.14] * 10, "reproduced"),
        ([-1.0, -1.1] * 10, "differs"),
        ([-5.0, 5.2] * 10, "cannot tell"),
        ([0.13], "cannot tell"),
    ],
)
def test_the_accuracy_claim_chooses_rates_by_training_loss_and_counts_tables(gaps, verdict):
    assert judged("uci_accuracy", tables(gaps)).verdict == verdict


@pytest.mark.parametrize("n", [10, 13, 40, 120])
def test_the_interval_over_tables_is_students_however_few_there_are(n):
    assert student(n - 1) == pytest.approx(stats.t.ppf(0.975, n - 1), abs=5e-4)
    gaps = [0.1, -0.3, 0.4, 0.0, 0.2] * (n // 5) + [0.5] * (n % 5)
    found = judged("uci_accuracy", tables(gaps)).reason
    low, high = stats.t.interval(0.95, n - 1, np.mean(gaps), stats.sem(gaps))
    assert f"({low:+.2f} to {high:+.2f})" in found


def test_accuracies_are_compared_over_the_tables_that_all_have():
    few, many = tables([0.12, 0.14] * 6), tables([0.12, 0.14] * 6 + [30.0])
    found = compared_accuracies({"recorded": many, "text": few})
    assert {name: len(one.tables) for name, one in found.items()} == {
        "recorded": 12,
        "text": 12,
        "recorded, all": 13,
    }
    assert found["recorded"].difference == found["text"].difference
    assert found["recorded, all"].difference.value > 2
    assert compared_accuracies({"recorded": many, "text": Evidence()}).keys() == {"recorded"}


@pytest.mark.parametrize(
    ("times", "verdict"),
    [([890, 894] * 10, "reproduced"), ([2, 3] * 10, "differs"), ([1, 1785] * 2, "cannot tell")],
)
def test_an_explosion_of_892_times_is_judged_on_the_rate_above_the_best(times, verdict):
    found = Evidence.of(
        Run("uci", f"t{number}", "eb", lr, 1, loss)
        for number, factor in enumerate(times)
        for lr, loss in ((0.01, 3.0), (0.1, 0.5), (1.0, 0.5 * factor), (10.0, 9e9))
    )
    assert judged("uci_explosion", found).verdict == verdict


@pytest.mark.parametrize(
    ("ib", "verdict"),
    [
        (IB, "reproduced"),
        (EB, "cannot tell"),
        (dict.fromkeys(EB, 3.0) | {0.5: 1.0}, "differs"),
        (dict.fromkeys(EB, 1.0), "reproduced"),
    ],
)
def test_ib_must_break_at_a_higher_rate(ib, verdict):
    assert judged("headroom", evidence(**{JSB: {"eb": EB, "ib": ib}})).verdict == verdict


def test_the_papers_own_rule_is_told_beside_the_edges():
    found = judged("headroom", evidence(**{JSB: {"eb": {**EB, 50: 2.6, 500: 3}, "ib": IB}}))
    assert "by the paper's own rule the ratio is" in found.reason


def music(helped_eb, helped_ib, count=9, seeds=(1, 2, 3, 4, 5)):
    """Return music runs in which clipping helps in so many of the first `count` experiments."""
    plain = {0.5: 1.0, 5: 1.0, 50: 1.0, 500: 1.0}
    better, worse = ({lr: loss * factor for lr, loss in plain.items()} for factor in (0.5, 1.5))
    clipped = {
        name: {
            "eb": better if number < helped_eb else worse,
            "ib": better if number < helped_ib else worse,
        }
        for number, name in enumerate(list(CLIPPED_MUSIC)[:count])
    }
    unclipped = {name: {"eb": plain, "ib": plain} for name in set(CLIPPED_MUSIC.values())}
    return evidence(seeds=seeds, **clipped, **unclipped)


@pytest.mark.parametrize(
    ("eb", "ib", "verdict"),
    [(7, 2, "reproduced"), (8, 1, "reproduced"), (2, 7, "differs"), (7, 5, "differs")],
)
def test_clipping_helps_eb_more_often_than_ib(eb, ib, verdict):
    found = judged("clipping_helps", music(eb, ib))
    assert found.verdict == verdict
    assert f"EB helped beyond doubt in {eb} of 9, hurt in {9 - eb}, open in 0" in found.reason


def test_clipping_that_never_acts_is_told_apart_from_what_is_open():
    flat = {"eb": {0.5: 1.0, 5: 1.0}, "ib": {0.5: 1.0, 5: 1.0}}
    same = dict.fromkeys([*CLIPPED_MUSIC, *CLIPPED_MUSIC.values()], flat)
    reason = judged("clipping_helps", evidence(**same)).reason
    assert "IB helped beyond doubt in 0 of 9, without any effect in 9, open in 0" in reason


def test_clipping_in_few_experiments_or_with_few_seeds_is_not_counted():
    assert judged("clipping_helps", music(3, 1, count=4)).verdict is Verdict.NOT_TESTED
    assert judged("clipping_helps", music(7, 2, seeds=(1, 2))).verdict is Verdict.CANNOT_TELL


CLASSIFIERS = ("01_mnist_classification", "02_mnist_classification_clip_1.0")
AUTOENCODERS = ("03_mnist_autoencoder", "04_mnist_autoencoder_clip_1.0")


def test_clipping_must_lower_both_methods_on_both_mnist_tasks():
    high, low = {1.0: 1.5, 2.0: 1.5}, {1.0: 1.6, 2.0: 0.5}
    plain, clipped = {"eb": high, "ib": high}, {"eb": low, "ib": low}
    one = dict(zip(CLASSIFIERS, (plain, clipped), strict=True))
    good = one | dict(zip(AUTOENCODERS, (plain, clipped), strict=True))
    assert judged("clipping_mnist", evidence(**good)).verdict is Verdict.REPRODUCED
    bad = {**good, CLASSIFIERS[1]: {**clipped, "ib": {1.0: 0.1, 2.0: 1.9}}}
    assert judged("clipping_mnist", evidence(**bad)).verdict is Verdict.DIFFERS
    half = judged("clipping_mnist", evidence(**one))
    assert half.verdict is Verdict.CANNOT_TELL
    assert "MNIST autoencoder: it was not run both with and without" in half.reason


def test_a_claim_about_higher_rates_does_not_rest_on_the_lowest_with_clipping():
    """As recorded: the clipped autoencoder begins where the other one ends."""
    plain, worse = dict.fromkeys((0.005, 0.009, 0.01, 0.02), 1.0), {0.01: 1.9, 0.1: 1.0, 0.4: 1.0}
    good = {1.0: 1.5, 2.0: 0.5}
    found = judged(
        "clipping_mnist",
        evidence(
            **{
                AUTOENCODERS[0]: {"eb": plain, "ib": plain},
                AUTOENCODERS[1]: {"eb": worse, "ib": worse},
                CLASSIFIERS[0]: {"eb": dict.fromkeys(good, 1.5)},
                CLASSIFIERS[1]: {"eb": good},
            },
        ),
    )
    assert found.verdict is Verdict.CANNOT_TELL
    assert "no higher rate was run both with and without clipping, only 0.01" in found.reason


def test_the_recorded_runs_do_not_contradict_that_clipping_helps_on_mnist():
    found = judged("clipping_mnist", recorded_evidence())
    assert found.verdict is Verdict.CANNOT_TELL
    assert "MNIST autoencoder: no higher rate" in found.reason


def test_the_count_by_signs_is_told_beside_the_intervals():
    found = judged("better", recorded_evidence())
    assert found.verdict is Verdict.CANNOT_TELL
    assert found.beside == "by sign alone 15 of 17"
    assert found.reason.endswith(
        "By the sign of the mean alone IB is lower in 15 of 17, all but MNIST autoencoder, clip 1; "
        "Piano-midi.de, clip 0.1."
    )


def test_lower_variance_and_means_must_show_on_every_music_set():
    def found(factor, mean=0.5):
        return judged(
            "music_variance",
            Evidence.of(
                [
                    *runs(JSB, "eb", {0.5: 1.0, 5: 1.0, 50: 1.0, 500: 1.0}, spread=0.1),
                    *runs(JSB, "ib", dict.fromkeys((0.5, 5, 50, 500), mean), spread=0.1 * factor),
                ]
            ),
        )

    assert found(0.01).verdict is Verdict.REPRODUCED
    assert "JSB Chorales 0.005" in found(0.01).reason
    assert "lower beyond doubt at 2 of 2 higher rates" in found(0.01).reason
    assert found(100).verdict is Verdict.DIFFERS
    assert found(0.01, mean=1.0).verdict is Verdict.CANNOT_TELL  # steadier, but no better
    assert found(0.01, mean=1.9).verdict is Verdict.DIFFERS


@pytest.mark.parametrize(
    ("claim", "experiment", "lower", "upper"),
    [
        ("clipped_classifier", "02_mnist_classification_clip_1.0", "ib", "eb"),
        ("clipped_autoencoder", "04_mnist_autoencoder_clip_1.0", "eb", "ib"),
    ],
)
def test_with_clipping_one_method_is_at_or_below_the_other(claim, experiment, lower, upper):
    plain = {0.5: 1.0, 5: 0.4, 50: 0.5}
    high = {lr: loss * 1.1 for lr, loss in plain.items()}
    good = evidence(**{experiment: {lower: plain, upper: high}})
    assert judged(claim, good).verdict is Verdict.REPRODUCED
    turned = judged(claim, evidence(**{experiment: {lower: high, upper: plain}}))
    assert turned.verdict is Verdict.DIFFERS
    assert f"{lower.upper()} at or below {upper.upper()} at 0 of 3 rates" in turned.reason


@pytest.mark.parametrize(
    ("share", "verdict"), [(0.05, "reproduced"), (2.16, "reproduced"), (2.3, "differs")]
)
def test_run_times_are_judged_from_above_only(share, verdict):
    found = Evidence.of([], {"JSB Chorales": share})
    assert judged("run_time", found).verdict == verdict


def test_times_of_result_runs_are_told_but_not_judged():
    pair = [
        Run(JSB, "", method, 1.0, 1, 0.5, seconds=seconds)
        for method, seconds in (("eb", 10.0), ("ib", 47.0))
    ]
    found = judged("run_time", Evidence.of(pair))
    assert found.verdict is Verdict.NOT_TESTED
    assert "older, slower solver: JSB Chorales +370%" in found.reason


def test_a_uci_cell_is_its_first_seed():
    found = [Run("uci", "iris", "eb", 0.1, seed, float(seed)) for seed in (3, 1, 2)]
    assert Evidence.of(found).uci["iris"]["eb"][0.1].train_loss == 1.0


def test_clipped_runs_are_paired_by_rate_and_seed_and_an_explosion_is_capped():
    found = Evidence.of(
        [
            *runs(JSB, "eb", {5: 0.5}, seeds=(1, 2, 3)),
            *runs(JSB, "eb", {50: float("nan")}, seeds=(1,)),
            *runs(CLIPPED, "eb", {5: 0.4, 50: 0.5}, seeds=(1, 2, 4)),
            *runs(CLIPPED, "ib", {5: 0.4}),
        ]
    )
    train, test = differences(found, CLIPPED)
    assert (train.method, train.on_test, test.on_test) == ("eb", False, True)
    assert [point.lr for point in train.points] == [5, 50]
    assert [seed for seed, _ in train.points[0].seeds] == [1, 2]
    assert train.points[0].mean.value == pytest.approx(-0.1)
    assert train.points[1].seeds == ((1, 0.5 - 2.0),)  # the initial loss in place of NaN
    assert test.points[1].seeds == ((1, None),)
    assert differences(found, JSB) == []
