from dataclasses import replace

import pytest

from ib_core.reproduction.bundle import Bundle
from ib_core.reproduction.verifying import Check, check, draw
from ib_core.sweep.local import run_sweep
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


def test_a_result_of_other_data_is_noticed(results):
    (found,) = check([replace(results[0], fingerprint="0" * 64)])
    assert not found.same_data


@pytest.mark.parametrize(
    ("again", "nudged", "verdict"),
    [
        (0.5001, (), "agrees"),
        (0.6, (0.6, 0.6, 0.6), "differs"),
        (0.6, (0.55, 0.6, 0.7), "chaotic"),
        (float("nan"), (0.6, 0.6, 0.6), "chaotic"),
        (float("nan"), (float("nan"),) * 3, "differs"),
    ],
)
def test_only_what_rounding_explains_is_called_chaotic(results, again, nudged, verdict):
    kept = replace(results[0], train_loss=0.5)
    assert Check(kept, again, nudged, same_data=True).verdict == verdict


def test_the_sample_is_drawn_anew_for_another_seed(bundle):
    first, second = (
        [result.fingerprint for result in draw(bundle, 4, seed=seed).results] for seed in (1, 2)
    )
    assert first != second


def test_trials_that_take_too_long_are_passed_over(bundle):
    drawn = draw(bundle, 4, most_seconds=0.0)
    assert drawn.results == ()
    assert drawn.too_long == len(bundle.results)
