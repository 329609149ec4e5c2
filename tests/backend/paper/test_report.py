import re

import pytest
from markupsafe import escape
from typer.testing import CliRunner

from backend.cli import app
from backend.cli.paper import chosen, dashboard_look
from backend.paper.report import judge, write_report
from ib_core.errors import InvalidSpec
from ib_core.reproduction import PLAN, Bundle
from tests.backend.paper.bundles import bad_ib, good_ib, make_bundle, result_of

TEXT, AUTHORS = "text/05_jsb_chorales", "authors/05_jsb_chorales"
CLIPPED = "text/06_jsb_chorales_clip_8.0"


@pytest.fixture(autouse=True)
def no_recorded_runs(tmp_path, monkeypatch):
    monkeypatch.setenv("ETASCOPE_DATA_DIR", str(tmp_path / "data"))


def experiment(paper, name="05_jsb_chorales"):
    return next(found for found in paper.experiments if found.id == name)


def test_a_bundle_like_the_paper_is_reproduced_and_a_wrong_one_differs(tmp_path):
    good = judge(make_bundle(tmp_path / "good", good_ib, seeds=5))
    assert experiment(good).text.verdict == "reproduced"
    assert good.counts == {"reproduced": 1, "not tested": 16}
    bad = judge(make_bundle(tmp_path / "bad", bad_ib, seeds=5))
    assert experiment(bad).text.verdict == "differs"
    few = judge(make_bundle(tmp_path / "few", good_ib, seeds=2))
    assert experiment(few).text.verdict == "cannot tell"


def test_what_was_not_run_is_said(tmp_path):
    found = experiment(judge(make_bundle(tmp_path, good_ib)))
    assert found.text.coverage == "7 of 7 rates, 2 seeds; 28 of the preset's 70 trials"
    assert found.authors.coverage == "not run"
    assert not found.present
    assert found.how_to_get


def test_the_report_is_one_file_that_asks_no_other_host(tmp_path):
    out = tmp_path / "deep" / "paper.html"
    bundle = make_bundle(tmp_path / "b", good_ib, (TEXT, AUTHORS, CLIPPED))
    paper = write_report(bundle, out, look=dashboard_look())
    text = out.read_text()
    for sentence in paper.headline:
        assert str(escape(sentence)) in text
    folded = "".join(re.findall(r'<details class="folded">.*?</details>', text, re.DOTALL))
    for rule in paper.rules.values():  # long prose, for whoever asks
        assert text.count(str(escape(rule))) == folded.count(str(escape(rule))) == 1
    assert out.stat().st_size < 8_000_000
    assert not re.search(r'<(script|link|img)[^>]+(src|href)="', text)
    for number in range(1, 18):
        assert f'<article id="{number:02}_' in text
    assert 'data-figure="05_jsb_chorales-text"' in text
    assert 'data-figure="05_jsb_chorales-authors"' in text
    assert 'data-figure="06_jsb_chorales_clip_8.0-text-clipping"' in text
    assert 'data-figure="09_musedata-authors"' in text  # the recorded runs are always there


def test_seeds_of_tables_are_told_and_methods_without_a_common_table_not_ranked(
    tmp_path, monkeypatch
):
    tables = PLAN["beyond/uci_methods"].only(["uci/iris", "uci/wine"])
    monkeypatch.setitem(PLAN, tables.name, tables)
    bundle, out = Bundle(tmp_path / "b"), tmp_path / "paper.html"
    trained = {("uci/iris", "eb", 1), ("uci/wine", "ib", 1), ("uci/wine", "ib", 2)}
    for _, trial in tables.trials():
        if (trial.task, trial.method, trial.seed) in trained:
            bundle.append(result_of(trial, 0.5, accuracy=0.9))
    write_report(bundle, out, look=dashboard_look())
    text = out.read_text()
    assert "2 tables, rates .001 to 1000, seeds a table 1 to 2:" in text
    assert "mean ranks over" not in text


def test_the_command_says_what_it_could_do():
    answer = CliRunner().invoke(app, ["report", "paper"])
    assert answer.exit_code != 0
    assert "--out" in str(answer.exception)


def test_the_command_refuses_studies_nobody_planned():
    answer = CliRunner().invoke(app, ["report", "--plan", "--only", "05_jsb,nothing"])
    assert "No study has 'nothing' in its name" in str(answer.exception)


def test_studies_can_be_narrowed_to_tasks():
    (study,) = chosen("authors/uci", "uci/iris, uci/wine")
    assert {portion.body["task"] for portion in study.portions} == {"uci/iris", "uci/wine"}
    with pytest.raises(InvalidSpec, match="None of these studies"):
        chosen("text/05_jsb", "uci/iris")
