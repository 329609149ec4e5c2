"""What must be true of the bundle that comes with the program, whatever it holds."""

import pytest

from ib_core.reproduction.bundle import Bundle, shipped_folder
from ib_core.reproduction.plan import PLAN
from ib_core.sweep.fingerprint import ENGINE_VERSION, fingerprint


@pytest.fixture(scope="module")
def shipped():
    return Bundle(shipped_folder())


def test_it_is_small_and_packed(shipped):
    assert shipped.size() < 5_000_000
    assert not list(shipped.folder.glob("*.jsonl"))


def test_every_trial_is_of_this_engine_and_has_its_own_address(shipped):
    for result in shipped.results.values():
        assert result.record["engine"] == ENGINE_VERSION
        assert result.fingerprint == fingerprint(result.spec, result.record["data"])


def test_every_trial_belongs_to_a_study_that_is_planned(shipped):
    planned = {trial for study in PLAN.values() for _, trial in study.trials()}
    assert shipped.results.keys() <= planned
    assert {study.name for study in shipped.studies()} <= PLAN.keys()


def test_nothing_in_it_is_a_recorded_run_or_a_path(shipped):
    for result in shipped.results.values():
        assert not any("/" in str(value) for value in result.record.values())
