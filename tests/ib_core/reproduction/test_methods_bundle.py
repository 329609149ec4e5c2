"""The stored comparison of all methods: whole, addressed, and judged on rows held out."""

import random

import pytest

from ib_core.methods import METHODS
from ib_core.reproduction import COMPARISON, THEORY, Bundle, check, find_bundle
from ib_core.sweep import ENGINE_VERSION, fingerprint


@pytest.fixture(scope="module")
def stored() -> Bundle:
    return find_bundle("methods")


def test_every_trial_of_its_studies_is_there_with_its_address(stored):
    wanted = {trial for study in (COMPARISON, THEORY) for _, trial in study.trials()}
    assert wanted == stored.results.keys()
    assert [study.name for study in stored.studies()] == [COMPARISON.name, THEORY.name]
    for spec, result in stored.results.items():
        assert result.record["engine"] == ENGINE_VERSION
        assert result.fingerprint == fingerprint(spec, result.record["data"])


def test_all_methods_but_exact_isgd_share_rates_seeds_and_rows_held_out(stored):
    by_task: dict[str, dict[str, set[tuple[float, int]]]] = {}
    for result in stored.results_of(COMPARISON):
        spec = result.spec
        assert result.validation_loss is not None
        by_task.setdefault(spec.task, {}).setdefault(spec.method, set()).add((spec.lr, spec.seed))
    for methods in by_task.values():
        assert set(methods) == {name for name, one in METHODS.items() if not one.exact}
        assert len({frozenset(grid) for grid in methods.values()}) == 1
        rates = {lr for lr, _ in methods["eb"]}
        assert max(rates) / min(rates) >= 1000
        assert len({seed for _, seed in methods["eb"]}) == 5


def test_some_of_it_trained_again_gives_the_same(stored):
    small = [spec for spec in stored.results if spec.task == "bundled/iris" and spec.lr < 0.1]
    drawn = random.Random(3).sample(sorted(small, key=str), 3)
    found = check([stored.results[spec] for spec in drawn])
    assert {one.verdict for one in found} <= {"agrees", "chaotic"}
