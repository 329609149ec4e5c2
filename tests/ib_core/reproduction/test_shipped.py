"""What must be true of the bundle that comes with the program, whatever it holds."""

from dataclasses import replace

import pytest

from ib_core.reproduction.bundle import SHIPPED, SHIPPED_SEEDS, Bundle, shipped_folder
from ib_core.reproduction.evidence import Evidence, runs_of
from ib_core.reproduction.findings import find, headlines
from ib_core.reproduction.plan import PLAN, shipped_in
from ib_core.reproduction.recorded import recorded_evidence
from ib_core.reproduction.verdicts import Verdict
from ib_core.sweep.result import ENGINE_VERSION, fingerprint


@pytest.fixture(scope="module")
def shipped():
    return Bundle(shipped_folder())


def test_it_is_small_and_packed_with_its_further_seeds(shipped):
    folders = shipped.folder, shipped_folder(SHIPPED_SEEDS)
    assert sum(path.stat().st_size for one in folders for path in one.glob("*.*")) < 12_000_000
    assert not [path for one in folders for path in one.glob("*.jsonl")]
    assert not list(shipped.folder.glob("*.xz"))
    assert not list(folders[1].glob("*.gz"))


@pytest.fixture(scope="module")
def some_seeds(tmp_path_factory):
    """A few tables of the bundle of further seeds; all of it takes seconds to read."""
    folder, own = shipped_folder(SHIPPED_SEEDS), tmp_path_factory.mktemp("seeds")
    for name in ("studies.json", *(f"uci.{table}.jsonl.xz" for table in ("iris", "wine", "zoo"))):
        (own / name).write_bytes((folder / name).read_bytes())
    return Bundle(own)


def test_the_further_seeds_are_of_the_study_of_every_table_and_of_the_same_data(
    shipped, some_seeds
):
    planned = {trial for _, trial in PLAN["beyond/uci_methods"].trials()}
    data = {spec.task: one.record["data"] for spec, one in shipped.results.items()}
    assert len({spec.task for spec in some_seeds.results}) == 3
    assert some_seeds.results.keys() <= planned - shipped.results.keys()
    for spec, result in some_seeds.results.items():
        assert shipped_in(spec) == SHIPPED_SEEDS
        assert result.record["engine"] == ENGINE_VERSION
        assert result.fingerprint == fingerprint(spec, data[spec.task])
    (study,) = some_seeds.studies()
    assert study.name == "beyond/uci_methods"


def test_the_shipped_bundle_has_nothing_that_belongs_into_the_other(shipped):
    assert {shipped_in(spec) for spec in shipped.results} == {SHIPPED}


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
    return find(text, authors, recorded=recorded_evidence())


@pytest.mark.parametrize("profile", ["text", "authors"])
def test_all_seventeen_experiments_have_a_verdict_in_both_profiles(findings, profile):
    judged = {
        found.experiment.id: getattr(found, profile).judgement.verdict
        for found in findings.experiments
    }
    assert Verdict.NOT_TESTED not in judged.values()
    assert len(judged) == 18


def test_every_clipped_experiment_has_its_differences_in_the_text_profile(findings):
    clipped = [found for found in findings.experiments if "clip" in found.experiment.id]
    assert len(clipped) == 11
    for found in clipped:
        shown = {(one.method, one.on_test) for one in found.text.clipping}
        assert shown == {(method, test) for method in ("eb", "ib") for test in (False, True)}


def test_what_is_said_in_short_is_counted_from_the_same_findings(findings):
    authors, text, claims = headlines(findings)
    cells = [
        found.authors.judgement for found in findings.experiments if found.experiment.id != "uci"
    ]
    agreeing, run = (sum(getattr(c, name) for c in cells) for name in ("agreeing", "cells"))
    recorded = sum(
        len(found.recorded[method])
        for found in findings.experiments
        for method in ("eb", "ib")
        if found.experiment.id != "uci"
    )
    some = f"of {recorded} recorded means {run} were run, and {agreeing} of them agree"
    assert (some if run < recorded else f"{agreeing} of {run} means agree") in authors
    held = [
        found.experiment.title
        for found in findings.experiments
        if found.text.judgement.verdict is Verdict.REPRODUCED and found.experiment.id != "uci"
    ]
    assert f"{len(held)} of 17 hold as published" in text
    assert f"{len(findings.claims)} claims" in claims


def test_what_runs_here_is_called_what_they_ran_only_where_all_losses_match(findings):
    def said(first, others):
        experiments = [
            replace(
                one, authors=replace(one.authors, judgement=replace(judgement, verdict=verdict))
            )
            for one, verdict in zip(findings.experiments, [first] + [others] * 17, strict=True)
            for judgement in (one.authors.judgement,)
        ]
        return headlines(replace(findings, experiments=experiments))[0]

    every = said(Verdict.REPRODUCED, Verdict.REPRODUCED)
    assert "the losses of 17 of 17 experiments match their recorded runs:" in every
    assert "So what runs here is what they ran" in every
    for verdict, also in (
        (Verdict.DIFFERS, " and those of 1 differ (MNIST classification):"),
        (Verdict.CANNOT_TELL, ":"),
    ):
        some = said(verdict, Verdict.REPRODUCED)
        assert f"the losses of 16 of 17 experiments match their recorded runs{also}" in some
        assert "Where they match, what runs here is what they ran" in some


def test_at_least_98_percent_of_the_printed_uci_losses_up_to_rate_one_are_met(findings):
    cells = [cell.agrees for cell in findings.uci_cells if cell.lr <= 1]
    assert len(cells) == 120 * 5 * 2
    assert sum(cells) >= 0.98 * len(cells)


def test_the_authors_jsb_runs_are_complete(findings):
    jsb = [found for found in findings.experiments if "jsb" in found.experiment.id]
    assert len(jsb) == 4
    assert all(found.authors.coverage.trials == found.authors.coverage.of for found in jsb)
