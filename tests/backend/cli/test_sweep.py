import csv
import json
import os
import pty
import re
import signal
import subprocess
import sys
import threading
from contextlib import suppress

import pytest
from typer.testing import CliRunner

from backend.cli import app
from ib_core.errors import IBError
from ib_core.metrics import NUMBERS
from ib_core.sweep.result import COLUMNS
from tests.servers import wait_for

QUICK = ["bundled/iris", "--lrs", "0.1,1", "--seeds", "2", "--epochs", "1"]


def rows_of(file):
    return list(csv.DictReader(file.read_text().splitlines()))


def run(*arguments):
    return CliRunner().invoke(app, [*map(str, arguments)])


def sweep(*arguments):
    return run("sweep", *arguments)


def test_a_sweep_prints_answer_means_and_scorecard_and_writes_every_trial(tmp_path):
    file, whole, card = (tmp_path / name for name in ("out.csv", "out.json", "card.csv"))
    files = ("--csv", file, "--json", whole, "--scorecard", card)
    result = sweep(*QUICK, "--methods", "eb,ib", *files)
    assert result.exit_code == 0, result.output
    assert "training loss, mean ± std over seeds" in result.output
    assert result.output.split(": ")[1].startswith(("IB ", "EB ", "At its best "))
    assert "eb: Too few seeds for advice: run 3 or more" in result.output
    assert re.search(r"Best mean loss +[\d.]+ n=2", result.output)
    numbers = rows_of(card)
    assert len(numbers) == 2 * sum(not kind.paper for kind in NUMBERS)
    assert {line["n"] for line in numbers if line["number"] == "best_mean"} == {"2"}
    rows = rows_of(file)
    assert tuple(rows[0]) == COLUMNS
    assert len(rows) == 8
    assert rows[0]["batch_rule"] == ""
    trials = json.loads(whole.read_text())["trials"]
    assert [trial["fingerprint"] for trial in trials] == [row["fingerprint"] for row in rows]
    assert len(trials[0]["curve"]) == 2


def test_a_diverged_trial_is_a_row_with_its_outcome_and_an_empty_loss(tmp_path):
    file = tmp_path / "out.csv"
    arguments = ["digits_autoencoder", "--lr", "1000000", "--seeds", "1", "--epochs", "1"]
    result = sweep(*arguments, "--methods", "eb", "--csv", file)
    assert result.exit_code == 0
    (row,) = rows_of(file)
    assert row["outcome"] == "diverged"
    assert row["train_loss"] == ""
    assert row["diverged_at_step"] != ""


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["mnist_clasifier"], "no task called"),
        (["bundled/iris", "--lrs", "-1"], "must be above 0; got -1"),
        (["bundled/iris", "--lrs", ","], "at least one rate"),
        (["bundled/iris", "--lrs", "0.1,0.1"], "given twice"),
        (["bundled/iris", "--lrs", "nan"], "got nan"),
        (["bundled/iris", "--seeds", "0"], "from 1 to 1,000; got 0"),
        (["bundled/iris", "--seeds", "1000000000"], "from 1 to 1,000; got"),
        (["bundled/iris", "--device", "tpu"], "no device 'tpu'"),
        (["bundled/iris", "--csv", "/nonexistent/folder/out.csv"], "Cannot write"),
        (["bundled/iris", "--methods", "sgd"], "no method called 'sgd'"),
        (["bundled/iris", "--clip", "x"], "--clip: That is no number"),
        (["bundled/iris", "--png", "/tmp/picture.gif"], r"\.png, \.svg or \.pdf"),
        (["--preset", "paper/99"], "no preset called"),
        ([], "Name a task"),
    ],
)
def test_bad_input_is_one_sentence_before_any_training(arguments, words, monkeypatch):
    monkeypatch.setattr("ib_core.sweep.engine.run_trials", None)
    result = sweep(*arguments)
    assert isinstance(result.exception, IBError)
    assert words.replace("\\", "") in str(result.exception)


def test_missing_data_says_where_it_was_looked_for_and_how_to_get_it(monkeypatch, tmp_path):
    monkeypatch.setenv("ETASCOPE_DATA_DIR", str(tmp_path))
    result = sweep("uci/zoo")
    assert "etascope data fetch uci/zoo" in str(result.exception)


def test_data_that_end_the_command_are_a_sentence(monkeypatch, tmp_path):
    monkeypatch.setattr("ib_core.own._files", {})
    (tmp_path / "leaves.py").write_text(
        "import sys, torch\nfrom ib_core import Task\n"
        "def data():\n    sys.exit('no data')\n"
        "task = Task(lambda: torch.nn.Linear(1, 1), data, loss=torch.nn.functional.mse_loss)\n"
    )
    for command in ("sweep", "replay"):
        result = run(command, f"{tmp_path}/leaves.py:task", "--methods", "eb")
        assert isinstance(result.exception, IBError)
        assert "leaves.py, line 4, in data: SystemExit: no data" in str(result.exception)


def test_a_replay_of_a_model_that_ends_the_command_is_a_sentence(monkeypatch, tmp_path):
    monkeypatch.setattr("ib_core.own._files", {})
    (tmp_path / "quits.py").write_text(
        "import sys, torch\nfrom ib_core import Data, Task\n"
        "class Model(torch.nn.Linear):\n"
        "    def forward(self, x):\n        sys.exit('enough')\n"
        "rows = Data(train=(torch.ones(4, 1), torch.ones(4, 1)))\n"
        "task = Task(lambda: Model(1, 1), rows, loss=torch.nn.functional.mse_loss)\n"
    )
    result = run("replay", f"{tmp_path}/quits.py:task", "--methods", "eb")
    assert isinstance(result.exception, IBError)
    assert "quits.py, line 5, in forward: SystemExit: enough" in str(result.exception)


@pytest.mark.parametrize(
    ("does", "words"),
    [("os._exit(4)", "exit code 4"), ("time.sleep(600)", "no sign of life for 1")],
)
def test_a_replay_of_a_users_code_is_guarded(does, words, monkeypatch, tmp_path):
    monkeypatch.setattr("ib_core.own._files", {})
    (tmp_path / "wild.py").write_text(
        "import os, time, torch\nfrom ib_core import Data, Task\n"
        "HERE = os.getpid()\n"
        "class Model(torch.nn.Linear):\n"
        "    def forward(self, x):\n"
        f"        {does} if os.getpid() != HERE else time.sleep(0)\n"
        "        return super().forward(x)\n"
        "rows = Data(train=(torch.ones(4, 1), torch.ones(4, 1)))\n"
        "task = Task(lambda: Model(1, 1), rows, loss=torch.nn.functional.mse_loss)\n"
    )
    result = run("replay", f"{tmp_path}/wild.py:task", "--methods", "eb", "--stall", 1)
    assert isinstance(result.exception, IBError)
    assert words in str(result.exception)


def command(*arguments):
    return [sys.executable, "-m", "backend.cli", "sweep", *map(str, arguments)]


def test_the_shell_gets_exit_code_two_and_no_traceback():
    ran = subprocess.run(command("bundled/iris", "--lrs", "-1"), capture_output=True, text=True)
    assert ran.returncode == 2
    assert len(ran.stderr.strip().splitlines()) == 1


def _read_all(terminal: int, into: bytearray) -> None:
    with suppress(OSError):  # which is how Linux says that the other end is closed
        while more := os.read(terminal, 4096):
            into += more


def test_ctrl_c_keeps_what_is_finished(tmp_path):
    file = tmp_path / "out.csv"
    # Exact ISGD forms a second, long shard; the first is finished in a moment.
    arguments = ["digits_mlp", "--methods", "eb,isgd", "--lrs", "0.1", "--seeds", "2"]
    ours, theirs = pty.openpty()  # a terminal, so that the bar is drawn while it runs
    child = subprocess.Popen(
        command(*arguments, "--epochs", 40, "--csv", file),
        stderr=theirs,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        # Whoever starts the tests in the background of a shell has Ctrl-C ignored, and hands it on.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    os.close(theirs)
    seen = bytearray()
    # Read to the end, as a terminal does: a bar that nobody reads would keep the program waiting.
    reader = threading.Thread(target=_read_all, args=(ours, seen))
    reader.start()
    try:
        wait_for(lambda: b"2 completed" in seen, seconds=300, what="two trials")
        child.send_signal(signal.SIGINT)
        output, _ = child.communicate(timeout=120)
    finally:
        child.kill()
    reader.join()
    os.close(ours)
    assert child.returncode == 130
    assert "2 of 4 trials were finished" in output
    assert [row["method"] for row in rows_of(file)] == ["eb", "eb"]
