"""`etascope bench` puts its tables where people read them."""

import pytest
import torch
from typer.testing import CliRunner

from backend.cli import app, bench
from ib_core.errors import InvalidSpec
from tests.papers import ROOT

FOUND = {
    "benchmark": "core",
    "surroundings": {"cores": 2, "torch": "2.13.0+cpu"},
    "rows": [{"step of": "a net", "over EB": "1.03 (1 to 1.1)"}],
}
MARKED = "before\n<!-- bench core -->\nold\n<!-- end of bench core -->\nafter\n"


def test_a_table_replaces_the_one_between_its_marks_and_nothing_else(tmp_path, monkeypatch):
    monkeypatch.setitem(bench.BENCHMARKS, "core", lambda full, tell: FOUND)
    file = tmp_path / "benchmarks.md"
    file.write_text(MARKED)
    told = CliRunner().invoke(app, ["bench", "core", "--into", str(file)])
    assert told.exit_code == 0, told.output
    text = file.read_text()
    assert text.startswith("before\n<!-- bench core -->\n")
    assert text.endswith("<!-- end of bench core -->\nafter\n")
    assert "| a net | 1.03 (1 to 1.1) |" in text
    assert "2 cores, torch 2.13.0:" in text
    assert "old" not in text


@pytest.mark.parametrize("text", ["nothing here", "<!-- end of bench core --><!-- bench core -->"])
def test_a_file_without_marks_is_refused_before_anything_is_measured(tmp_path, monkeypatch, text):
    measured = []
    monkeypatch.setitem(bench.BENCHMARKS, "core", lambda full, tell: measured.append(1))
    file = tmp_path / "benchmarks.md"
    file.write_text(text)
    for asked, words in ((file, "no marks"), (tmp_path / "absent.md", "no file")):
        told = CliRunner().invoke(app, ["bench", "core", "--into", str(asked)])
        assert isinstance(told.exception, InvalidSpec)
        assert words in str(told.exception)
    assert file.read_text() == text
    assert measured == []


@pytest.mark.skipif(torch.cuda.is_available(), reason="here is a GPU")
def test_without_a_gpu_launches_are_counted_and_what_is_missing_is_said():
    told = CliRunner().invoke(app, ["bench", "gpu", "--markdown"])
    assert told.exit_code == 0, told.output
    assert "| digits_mlp | ib | 10 | 62 |" in told.output
    assert "No GPU here" in told.output
    for column in ("ms a step", "memory of forecast"):
        assert column in " ".join(told.output.split())


def test_an_unknown_benchmark_is_said():
    told = CliRunner().invoke(app, ["bench", "speed"])
    assert "core" in str(told.exception)


@pytest.mark.parametrize("name", ["core", "sweep"])
def test_the_page_of_benchmarks_takes_a_new_table(name):
    page = ROOT / "docs" / "benchmarks.md"
    text = page.read_text("utf-8")
    again = bench.put_between_marks(text, f"bench {name}", "new", where=page)
    assert again != text
    assert "# Benchmarks" in again


def test_what_a_methods_step_costs_is_a_line_a_method_with_both_ends():
    def raced(task, **over_eb):
        results = {name: {"value": value} for name, value in over_eb.items()}
        usual = {"clip": None, "mu": 0.0, "options": {}}
        return {"network": {"task": task, **usual}, "results": results}

    rows = bench.step_cost_rows([raced("a", eb=1.0, ib=1.5), raced("b", ib=1.25), raced("c", ib=2)])
    assert rows[0] == {
        "method": "eb",
        "networks": 1,
        "over EB, median": "1",
        "least": "1 (a)",
        "most": "1 (a)",
    }
    assert list(rows[1].values()) == ["ib", 3, "1.5", "1.25 (b)", "2 (c)"]
