import json
from dataclasses import replace
from threading import Event, Thread

import pytest
from typer.testing import CliRunner

from backend.cli import app
from ib_core.errors import InvalidSpec
from ib_core.reproduction import plan
from ib_core.reproduction.bundle import DENSE, Bundle
from ib_core.reproduction.studies import Portion, Study
from ib_core.reproduction.training import locked
from ib_core.sweep.runner import run_all

BODY = {"task": "toy/quadratic", "learning_rates": [0.5], "seeds": 2, "epochs": 1}
STUDY = Study("text/toy", "Toy", "A question.", (Portion(BODY),))


def report(*words):
    return CliRunner().invoke(app, ["report", "paper", *map(str, words)])


@pytest.fixture(autouse=True)
def small_plan(monkeypatch, sqlite_database):
    monkeypatch.setattr(plan, "PLAN", {STUDY.name: STUDY})
    monkeypatch.setattr(
        "ib_core.reproduction.training.measure_overheads", lambda said: {"overheads": {}}
    )


@pytest.fixture
def no_training(monkeypatch):
    monkeypatch.setattr(
        "ib_core.reproduction.training.train", lambda *_, **__: pytest.fail("it was trained")
    )


@pytest.fixture
def shipped(tmp_path, monkeypatch):
    """A bundle with the whole plan in the place of the one that comes with the program."""
    bundle = Bundle(tmp_path / "shipped")
    for result in run_all([trial for _, trial in STUDY.trials()], lanes=1):
        bundle.append(result)
    bundle.pack([STUDY])
    bundle.keep_run_times({"overheads": {"JSB Chorales": 0.5}})
    monkeypatch.setattr(
        "ib_core.reproduction.bundle.shipped_folder", lambda name="paper": bundle.folder
    )
    return bundle


def files_in(folder):
    return sorted(path.name for path in folder.iterdir()) if folder.is_dir() else None


def test_a_report_that_could_not_be_written_is_refused_before_training(tmp_path, no_training):
    for place, why in (
        (tmp_path, "is a folder"),
        (tmp_path / "file" / "paper.html", "cannot be written"),
    ):
        (tmp_path / "file").write_text("")
        answer = report("--run", "--bundle", tmp_path / "bundle", "--out", place)
        assert isinstance(answer.exception, InvalidSpec)
        assert why in answer.exception.message
        assert answer.exception.hint
    assert not (tmp_path / "bundle").exists()


def test_a_report_that_is_there_stays_whole_while_training(tmp_path):
    out = tmp_path / "paper.html"
    out.write_text("the old report")
    report("--plan", "--bundle", tmp_path / "bundle", "--out", out)
    assert out.read_text() == "the old report"  # there is nothing yet to replace it
    report("--plan", "--bundle", tmp_path / "bundle", "--out", tmp_path / "new.html")
    assert not (tmp_path / "new.html").exists()


@pytest.mark.parametrize("minutes", ["0", "-1", "nan"])
def test_no_time_at_all_is_refused(tmp_path, no_training, minutes):
    answer = report("--run", "--bundle", tmp_path / "bundle", "--max-minutes", minutes)
    assert "--max-minutes must be above 0" in answer.exception.message


def test_a_plan_counts_what_is_known_and_writes_nothing(tmp_path, shipped):
    answer = report("--plan", "--bundle", tmp_path / "none")
    assert "4 trials are known, 0 are left" in answer.output
    assert not (tmp_path / "none").exists()
    own = Bundle(tmp_path / "own")
    own.append(next(iter(shipped.results.values())))
    before = files_in(own.folder)
    assert "4 trials are known" in report("--plan", "--bundle", own.folder).output
    assert files_in(own.folder) == before


def test_what_is_apart_among_the_shipped_is_known_and_reported_as_well(
    tmp_path, shipped, monkeypatch
):
    further, seen = Bundle(tmp_path / "further"), []
    for result in list(shipped.results.values()):
        if result.spec.seed > 1:
            further.append(shipped.results.pop(result.spec))
    further.pack([STUDY], form=DENSE)
    (shipped.folder / "toy.quadratic.jsonl.gz").unlink()
    shipped.pack([STUDY])
    folders = {"paper": shipped.folder, "seeds": further.folder}
    monkeypatch.setattr(plan, "shipped_in", lambda trial: "seeds" if trial.seed > 1 else "paper")
    monkeypatch.setattr(
        "ib_core.reproduction.bundle.shipped_folder", lambda name="paper": folders[name]
    )
    monkeypatch.setattr(
        "backend.paper.report.write_report",
        lambda bundle, out, look: (seen.append(bundle), out.write_text("")),
    )
    assert "4 trials are known, 0 are left" in report("--plan", "--bundle", tmp_path / "no").output
    assert report("--out", tmp_path / "paper.html").exit_code == 0
    assert len(seen[0].results) == 4
    assert seen[0].run_times() == {"overheads": {"JSB Chorales": 0.5}}


def test_a_plan_does_not_wait_for_a_run(tmp_path, shipped):
    with locked(tmp_path / "own", waiting=pytest.fail):
        assert "4 trials are known" in report("--plan", "--bundle", tmp_path / "own").output


def test_a_run_waits_for_another_says_so_and_loses_nothing_of_it(tmp_path, monkeypatch):
    monkeypatch.setattr("ib_core.reproduction.training.PATIENCE_SECONDS", 0.05)
    folder, held = tmp_path / "own", Event()
    faster = replace(next(trial for _, trial in STUDY.trials()), lr=3.0)
    (other,) = run_all([faster], lanes=1)

    def another_run():
        with locked(folder, waiting=pytest.fail):
            held.set()
            Event().wait(1.0)
            bundle = Bundle(folder)
            bundle.append(other)
            bundle.pack([])

    thread = Thread(target=another_run)
    thread.start()
    held.wait(10)
    answer = report("--run", "--bundle", folder)
    thread.join()
    assert "Another run writes to" in answer.output
    found = Bundle(folder).results
    assert len(found) == 5
    assert other.spec in found


def test_a_run_keeps_what_the_shipped_bundle_has(tmp_path, shipped, no_training, monkeypatch):
    monkeypatch.setattr("ib_core.reproduction.training.train", lambda units, *_, **__: list(units))
    answer = report("--run", "--bundle", tmp_path / "own")
    assert "4 trials in" in answer.output
    assert Bundle(tmp_path / "own").results.keys() == shipped.results.keys()


def test_a_report_of_one_s_own_folder_shows_the_shipped_run_times(tmp_path, shipped, monkeypatch):
    from backend.settings import get_settings

    seen = []
    monkeypatch.setattr(
        "backend.paper.report.write_report",
        lambda bundle, out, look: (seen.append(bundle), out.write_text("")),
    )
    own = Bundle(get_settings().home / "paper")
    own.append(next(iter(shipped.results.values())))
    assert report("--out", tmp_path / "paper.html").exit_code == 0
    assert len(seen[0].results) == 4
    assert seen[0].run_times() == {"overheads": {"JSB Chorales": 0.5}}
    assert not (own.folder / "run_times.json").exists()


def test_a_broken_bundle_is_a_sentence(tmp_path):
    (tmp_path / "studies.json").write_text(json.dumps({"format": 1, "studies": []}))
    (tmp_path / "toy.quadratic.jsonl.gz").write_bytes(b"no gzip")
    answer = report("--out", tmp_path / "paper.html", "--bundle", tmp_path)
    assert "toy.quadratic.jsonl.gz cannot be read" in answer.exception.message
