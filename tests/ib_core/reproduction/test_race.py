"""The stored race of the start page is what training gives today."""

import random
from itertools import pairwise

import pytest

from ib_core.reproduction.bundle import Bundle
from ib_core.reproduction.plan import RACE, RACE_RATES, race_folder
from ib_core.reproduction.training import train_alone
from ib_core.reproduction.verify import check
from ib_core.sweep.result import ENGINE_VERSION, fingerprint


@pytest.fixture(scope="module")
def stored():
    return Bundle(race_folder())


def test_every_trial_of_the_race_is_there_with_its_own_address(stored):
    assert {trial for _, trial in RACE.trials()} == stored.results.keys()
    for result in stored.results.values():
        assert result.record["engine"] == ENGINE_VERSION
        assert result.fingerprint == fingerprint(result.spec, result.record["data"])


def test_it_is_small_enough_to_come_along(stored):
    assert sum(path.stat().st_size for path in stored.folder.iterdir()) < 150_000


def test_the_slider_moves_evenly_on_a_logarithmic_scale():
    ratios = [after / before for before, after in pairwise(RACE_RATES)]
    assert min(ratios) > 1.3
    assert max(ratios) < 1.7


def test_some_of_them_trained_again_give_the_same_numbers(stored):
    calm = [one for one in stored.results.values() if one.spec.lr <= 0.5]
    drawn = random.Random(7).sample(calm, 6)
    assert {found.verdict for found in check(drawn)} == {"agrees"}


def test_explicit_steps_break_again_where_they_broke(stored):
    broken = [
        one
        for one in stored.results.values()
        if (one.spec.method, one.spec.lr, one.spec.seed) == ("eb", 5.0, 1)
    ]
    [found] = check(broken)
    assert found.again.outcome is found.kept.outcome
    assert found.verdict != "differs"


def test_making_it_again_trains_only_what_is_missing(tmp_path, stored):
    for name in ("studies.json", "digits_mlp.jsonl.gz"):
        (tmp_path / name).write_bytes((stored.folder / name).read_bytes())
    assert train_alone(tmp_path, RACE).results == stored.results
