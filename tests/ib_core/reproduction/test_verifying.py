from contextlib import nullcontext
from dataclasses import replace

import pytest

from ib_core.datasets import Card
from ib_core.reproduction.bundle import Bundle
from ib_core.reproduction.verify import Check, check, draw
from ib_core.sweep import Observer, run_sweep
from ib_core.sweep.result import Outcome
from ib_core.sweep.spec import SweepSpec


@pytest.fixture(scope="module")
def results():
    spec = SweepSpec.create("toy/quadratic", learning_rates=[0.5, 1.0], seeds=[1, 2, 3], epochs=1)
    return run_sweep(spec)


@pytest.fixture
def bundle(tmp_path, results):
    made = Bundle(tmp_path)
    for result in results:
        made.append(result)
    return made


def test_what_was_trained_here_holds(bundle):
    drawn = draw(bundle, 5, seed=3)
    assert len({result.fingerprint for result in drawn.results}) == 5
    found = check(drawn.results)
    assert {one.verdict for one in found} == {"agrees"}
    assert all(one.same_data for one in found)


def test_a_number_that_was_tampered_with_differs(results):
    (found,) = check([replace(results[0], train_loss=results[0].train_loss + 0.1)])
    assert found.verdict == "differs"


def test_whoever_waits_is_told_how_far_it_is_of_the_second_training_too(results):
    heard = []

    class Ear(Observer):
        def finished(self, index, result):
            heard[-1][1] += 1

    def watch(count):
        heard.append([count, 0])
        return nullcontext(Ear())

    check([replace(results[0], train_loss=results[0].train_loss + 0.1)], watch=watch)
    assert heard == [[1, 1], [7, 7]]


def test_a_result_of_other_data_is_noticed(results):
    (found,) = check([replace(results[0], fingerprint="0" * 64)])
    assert not found.same_data


#: A hundred training examples and ten to test on.
CARD = Card("0" * 64, rows=100, test_rows=10, inputs=1, outputs=2)
NAN = float("nan")


def ended(results, **numbers):
    return replace(results[0], **{"train_accuracy": 0.5, "test_accuracy": 0.5, **numbers})


@pytest.mark.parametrize(
    ("again", "nudged", "verdict"),
    [
        (0.5001, (), "agrees"),
        (0.6, (0.6, 0.6, 0.6), "differs"),
        (0.6, (0.55, 0.6, 0.7), "chaotic"),
        (0.6, (0.6, 0.6, 0.634), "chaotic"),
        (0.6, (0.6, 0.6, 0.633), "differs"),  # it moved more than three times as far as these
        (0.6, (0.6, 0.6, 0.61), "differs"),
        (0.6, (0.6, NAN, 0.61), "differs"),  # a twin that is gone explains no movement
        (0.6, (0.55, NAN, 0.7), "chaotic"),
        (0.6, (NAN,) * 3, "differs"),
        (NAN, (0.49, 0.6, 0.6), "chaotic"),
        (NAN, (0.6, 0.6, 0.6), "differs"),  # the nearest is farther than three times their spread
        (NAN, (NAN,) * 3, "differs"),
        (float("inf"), (NAN,) * 3, "differs"),
    ],
)
@pytest.mark.parametrize("name", ["train_loss", "test_loss", "initial_loss"])
def test_only_what_rounding_explains_is_called_chaotic(results, name, again, nudged, verdict):
    kept = ended(results, **{name: 0.5})
    twins = tuple(ended(results, **{name: value}) for value in nudged)
    found = Check(kept, ended(results, **{name: again}), twins, CARD)
    assert found.verdict == verdict
    assert found.worst.name == (name if verdict != "agrees" else "train_loss")


@pytest.mark.parametrize(
    ("nudged", "verdict"), [((0.5, NAN, 0.5), "chaotic"), ((0.5, 0.6, 0.5), "differs")]
)
def test_a_loss_that_was_not_finite_may_be_so_today_only_if_a_rounding_is(results, nudged, verdict):
    twins = tuple(ended(results, train_loss=value) for value in nudged)
    kept, again = ended(results, train_loss=NAN), ended(results, train_loss=0.5)
    assert Check(kept, again, twins, CARD).verdict == verdict


def test_an_accuracy_may_move_where_rounding_decides_whether_there_is_a_loss(results):
    new = ended(results, train_loss=1.0, train_accuracy=0.6)
    kept = ended(results, train_loss=1.0)
    lost = replace(new, train_loss=NAN)
    assert Check(kept, new, (new, lost, new), CARD).verdict == "chaotic"


def test_a_loss_that_is_not_finite_is_the_same_however_it_is_written(results):
    kept, again = ended(results, train_loss=NAN), ended(results, train_loss=float("inf"))
    assert Check(kept, again, (), CARD).verdict == "agrees"


@pytest.mark.parametrize(
    ("name", "again", "verdict"),
    [
        ("train_accuracy", 0.51, "agrees"),  # one of a hundred
        ("train_accuracy", 0.52, "differs"),
        ("test_accuracy", 0.4, "agrees"),  # one of ten
        ("test_accuracy", 0.3, "differs"),
        ("outcome", Outcome.DIVERGED, "differs"),
    ],
)
def test_an_accuracy_may_differ_by_one_example_and_an_outcome_not_at_all(
    results, name, again, verdict
):
    new = ended(results, **{name: again})
    assert Check(ended(results), new, (new,) * 3, CARD).verdict == verdict


def test_where_rounding_moves_the_loss_it_may_move_what_follows_in_steps(results):
    new = ended(results, train_loss=1.0, train_accuracy=0.6, outcome=Outcome.DIVERGED)
    kept = ended(results, train_loss=1.0)
    calm, wild = (replace(new, train_loss=1.0 + moved) for moved in (0.005, 0.5))
    assert Check(kept, new, (calm,) * 3, CARD).verdict == "differs"
    assert Check(kept, new, (wild,) * 3, CARD).verdict == "chaotic"


def test_what_a_bundle_does_not_hold_is_not_compared(results):
    kept = ended(results, initial_loss=NAN, train_accuracy=None, test_accuracy=None)
    assert Check(kept, ended(results), (), CARD).verdict == "agrees"


@pytest.mark.parametrize(
    "numbers",
    [
        {"test_loss": 9.0},
        {"initial_loss": 9.0},
        {"outcome": Outcome.DIVERGED},
    ],
)
def test_every_number_that_was_tampered_with_differs(results, numbers):
    (found,) = check([replace(results[0], **numbers)])
    assert (found.verdict, found.worst.name) == ("differs", next(iter(numbers)))


def test_an_accuracy_that_was_tampered_with_differs():
    spec = SweepSpec.create("bundled/iris", learning_rates=[0.01], seeds=[1], epochs=1)
    kept = run_sweep(spec)[0]
    assert {one.verdict for one in check([kept])} == {"agrees"}
    (found,) = check([replace(kept, test_accuracy=1 - kept.test_accuracy / 2)])
    assert (found.verdict, found.worst.name) == ("differs", "test_accuracy")


def test_tasks_take_turns_however_many_trials_each_has(tmp_path, results):
    bundle = Bundle(tmp_path)
    few = {"bundled/iris": 2, "bundled/wine": 3, "digits_mlp": 1}
    for task, count in {"toy/quadratic": 200, **few}.items():
        for seed in range(count):
            spec = replace(results[0].spec, task=task, seed=seed)
            bundle.results[spec] = replace(results[0], spec=spec, fingerprint=f"{task}{seed}")
    drawn = draw(bundle, 8, seed=5).results
    families = [result.spec.task.partition("/")[0] for result in drawn]
    assert set(families[:3]) == {"toy", "bundled", "digits_mlp"}
    assert (families.count("toy"), families.count("bundled")) == (4, 3)
    bundled = [result.spec.task for result in drawn if result.spec.task in few]
    assert {"bundled/iris", "bundled/wine"} <= set(bundled)


def test_data_that_is_not_here_is_counted_and_left_out(tmp_path, results, monkeypatch):
    monkeypatch.setenv("ETASCOPE_DATA_DIR", str(tmp_path / "none"))
    bundle = Bundle(tmp_path)
    away = replace(results[0].spec, task="music/jsb_chorales")
    for spec in (results[0].spec, away):
        bundle.results[spec] = replace(results[0], spec=spec)
    drawn = draw(bundle, 5)
    assert [result.spec for result in drawn.results] == [results[0].spec]
    assert drawn.missing == {"jsb_chorales": 1}


def test_the_sample_is_drawn_anew_for_another_seed(bundle):
    first, second = (
        [result.fingerprint for result in draw(bundle, 4, seed=seed).results] for seed in (1, 2)
    )
    assert first != second


def test_trials_that_take_too_long_are_passed_over(bundle):
    drawn = draw(bundle, 4, most_seconds=0.0)
    assert drawn.results == ()
    assert drawn.too_long == len(bundle.results)
