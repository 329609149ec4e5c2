from dataclasses import replace

import pytest
from typer.testing import CliRunner

from backend.cli import app
from backend.db import reading
from backend.services import studies
from ib_core.errors import CorruptData, InvalidSpec
from ib_core.reproduction.bundle import Bundle
from ib_core.sweep import run_sweep
from ib_core.sweep.spec import SweepSpec
from tests.backend.paper.bundles import good_ib, make_bundle

CSV = """experiment,dataset,method,lr,seed,clip,epochs,train_loss,test_loss
05_jsb_chorales,JSB Chorales,EB,0.5,1,0,5,0.5,0.5
05_jsb_chorales,JSB Chorales,EB,0.5,2,0,5,,
"""


def etascope(*words):
    return CliRunner().invoke(app, list(words))


def test_a_bundle_and_a_csv_go_into_the_local_database(sqlite_database, tmp_path):
    make_bundle(tmp_path / "bundle", good_ib, seeds=1)
    assert "14 of them were new" in etascope("import-bundle", str(tmp_path / "bundle")).output
    assert "0 of them were new" in etascope("import-bundle", str(tmp_path / "bundle")).output
    file = tmp_path / "runs.csv"
    file.write_text(CSV)
    said = etascope("import", str(file), "--name", "Recorded").output
    assert "1 runs imported" in said
    assert "1 without any loss" in said
    number = int(said.split()[1].rstrip(":"))
    with reading() as session:
        assert studies.get(session, study_id=number).name == "Recorded"


def test_a_file_that_is_not_there_is_said():
    answer = etascope("import", "/nowhere.csv")
    assert isinstance(answer.exception, InvalidSpec)


@pytest.fixture
def toy_bundle(tmp_path):
    bundle = Bundle(tmp_path)
    spec = SweepSpec.create("toy/quadratic", learning_rates=[0.5], seeds=[1, 2], epochs=1)
    for result in run_sweep(spec):
        bundle.append(result)
    bundle.pack([])
    return bundle


def test_verify_ends_well_for_honest_numbers(toy_bundle):
    good = etascope("verify", str(toy_bundle.folder), "--sample", "4")
    assert good.exit_code == 0, good.output
    assert "agreeing 4" in good.output


@pytest.mark.parametrize("name", ["train_loss", "test_loss"])
def test_verify_ends_badly_for_altered_ones(toy_bundle, name):
    for result in list(toy_bundle.results.values()):
        toy_bundle.append(replace(result, **{name: getattr(result, name) + 1}))
    bad = etascope("verify", str(toy_bundle.folder), "--sample", "4")
    assert bad.exit_code == 1
    assert "differing 4" in bad.output
    assert name.replace("_", " ") in bad.output


def test_verify_without_time_says_what_would_give_it_some(toy_bundle):
    answer = etascope("verify", str(toy_bundle.folder), "--max-minutes", "0")
    assert "in 0 minutes" in answer.exception.message
    assert "--max-minutes" in answer.exception.hint


def test_verify_says_how_it_draws():
    assert "take turns" in " ".join(etascope("verify", "--help").output.split())


def test_an_altered_bundle_is_not_imported(sqlite_database, tmp_path):
    bundle = make_bundle(tmp_path, good_ib, seeds=1)
    bundle.append(replace(next(iter(bundle.results.values())), fingerprint="0" * 64))
    answer = etascope("import-bundle", str(tmp_path))
    assert isinstance(answer.exception, CorruptData)
    assert "line 1: the fingerprint is not" in answer.exception.message


def test_a_run_goes_into_a_folder_and_reuses_what_is_there(tmp_path, monkeypatch, sqlite_database):
    from ib_core.reproduction import plan
    from ib_core.reproduction.studies import Portion, Study

    body = {"task": "toy/quadratic", "learning_rates": [0.5], "seeds": 2, "epochs": 1}
    study = Study("text/toy", "Toy", "A question.", (Portion(body),))
    monkeypatch.setattr(plan, "PLAN", {study.name: study})
    monkeypatch.setattr(
        "ib_core.reproduction.training.measure_overheads", lambda said: {"overheads": {}}
    )
    folder = str(tmp_path / "bundle")
    first = etascope("report", "paper", "--run", "--bundle", folder)
    assert "0 trials are known, 4 are left" in first.output
    assert "4 trials in" in first.output
    second = etascope("report", "paper", "--run", "--bundle", folder)
    assert "4 trials are known, 0 are left" in second.output


def test_a_report_shows_one_s_own_runs_and_the_shipped_ones(tmp_path, toy_bundle):
    from ib_core.reproduction.bundle import Bundle

    own = Bundle(tmp_path / "own")
    spec, mine = next(iter(toy_bundle.results.items()))
    own.append(mine)
    own.borrow(toy_bundle)
    assert own.results.keys() == toy_bundle.results.keys()
    assert own.results[spec] is mine
    assert len(Bundle(own.folder).results) == 1, "nothing borrowed is written"
