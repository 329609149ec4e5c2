"""`etascope new-task` writes a file that runs at once, and never over another."""

import os
import subprocess
import sys
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


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="watched on Linux only")
@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("import os; os._exit(4)", "bad.py ended the process that read it."),
        ("while True: pass", "bad.py, line 1, in <module>: TimeoutError: it was not read after"),
        ("import numpy; [numpy.zeros(2**30) for _ in range(99)]", "Unable to allocate 8.00 GiB"),
        ("import os; os.fork(); 1 / 0", "bad.py, line 1, in <module>: ZeroDivisionError"),
        (
            "x = '\0'",
            "Error: source code string cannot contain null bytes",
        ),  # or of value
    ],
)
def test_a_file_that_cannot_be_read_is_told_with_its_place(
    tmp_path: Path, line: str, said: str
) -> None:
    (tmp_path / "bad.py").write_text(line)
    command = [sys.executable, "-P", "-m", "backend.cli", "sweep", "bad.py:task", "--stall", "3"]
    found = subprocess.run(
        command,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": os.getcwd()},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert found.returncode != 0
    assert said in " ".join(found.stderr.split())


@pytest.mark.parametrize(
    ("data", "said"),
    [
        ("Data(train=(torch.zeros(5, 64), torch.zeros(4)))", "must have as many x as y"),
        ("Data(train={'x': 1})", "KeyError: 0"),
        ("None", "must return Data"),
    ],
)
def test_data_that_cannot_be_read_are_told_with_their_function(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, data: str, said: str
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("ib_core.own._files", {})
    runner.invoke(app, ["new-task", "bad_data.py"])
    file = tmp_path / "bad_data.py"
    text = file.read_text()
    begin, end = text.index("    x, y = ("), text.index("task = Task(")
    file.write_text(f"{text[:begin]}    return {data}\n\n\n{text[end:]}")
    found = runner.invoke(app, ["sweep", "bad_data.py:task", "--lrs", "0.1"])
    line = text[:begin].count("\n")
    assert isinstance(found.exception, InvalidSpec)
    assert found.exception.message.startswith(f"bad_data.py, line {line}, in data: ")
    assert said in found.exception.message
