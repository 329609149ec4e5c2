"""What must be true of the bundle that comes with the program, whatever it holds."""

import pytest

from ib_core.reproduction.bundle import Bundle, shipped_folder
from ib_core.reproduction.evidence import Evidence, runs_of
from ib_core.reproduction.findings import find
from ib_core.reproduction.plan import PLAN
from ib_core.reproduction.verdicts import Verdict
from ib_core.sweep.result import ENGINE_VERSION, fingerprint


@pytest.fixture(scope="module")
def shipped():
    return Bundle(shipped_folder())


def test_it_is_small_and_packed(shipped):
    assert sum(path.stat().st_size for path in shipped.folder.glob("*.*")) < 5_000_000
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


@pytest.fixture(scope="module")
def findings(shipped):
    text, authors = (
        Evidence.of(runs_of(shipped.results.values(), name)) for name in ("text", "authors")
    )
    return find(text, authors, recorded=Evidence())


def test_most_of_the_seventeen_experiments_were_run_as_the_text_says(findings):
    run = [
        found.experiment.id
        for found in findings.experiments
        if found.text.judgement.verdict is not Verdict.NOT_TESTED and found.experiment.id != "uci"
    ]
    assert len(run) >= 13


def test_at_least_95_percent_of_the_printed_uci_losses_up_to_rate_one_are_met(findings):
    cells = [cell.agrees for cell in findings.uci_cells if cell.lr <= 1]
    assert len(cells) >= 850
    assert sum(cells) >= 0.95 * len(cells)


def test_the_authors_jsb_runs_are_complete(findings):
    jsb = [found for found in findings.experiments if "jsb" in found.experiment.id]
    assert len(jsb) == 4
    assert all(found.authors.coverage.trials == found.authors.coverage.of for found in jsb)
