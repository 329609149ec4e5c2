"""`etascope new-task` writes a file that runs at once, and never over another."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from backend.cli import app
from ib_core.errors import InvalidSpec

runner = CliRunner()


def test_the_file_it_writes_is_swept_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("ib_core.own._files", {})
    said = runner.invoke(app, ["new-task", "mine_to_begin.py"])
    assert said.exit_code == 0, said.output
    assert "etascope sweep mine_to_begin.py:task" in said.output
    words = "sweep mine_to_begin.py:task --methods mine_to_begin.py:adamw(weight_decay=0.1),eb"
    words += " --vary width=8,16 --lrs 0.01,0.1 --seeds 1 --csv found.csv"
    found = runner.invoke(app, words.split())
    assert found.exit_code == 0, found.output
    lines = Path("found.csv").read_text().splitlines()
    assert len(lines) == 9
    assert all("completed" in line for line in lines[1:])


def test_it_never_overwrites(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text("x = 1\n")
    said = runner.invoke(app, ["new-task", str(file)])
    assert isinstance(said.exception, InvalidSpec)
    assert file.read_text() == "x = 1\n"
