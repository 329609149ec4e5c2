"""What a person meets at the command line: one sentence, an honest exit code, no traceback."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from backend.cli import app

ROOT = Path(__file__).resolve().parents[3]


def etascope(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "backend.cli", *arguments],
        cwd=ROOT,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=60,
    )


@pytest.mark.parametrize(
    ("variable", "value", "expected"),
    [
        ("ETASCOPE_PORT", "many", "ETASCOPE_PORT"),
        ("ETASCOPE_PORT", "70000", "got '70000'"),
        ("ETASCOPE_HOST", "0.0.0.0", "ETASCOPE_AUTH=on"),
        ("ETASCOPE_AUTH", "on", "needs ETASCOPE_SECRET"),
    ],
)
def test_wrong_setting_is_named_and_nothing_starts(
    tmp_path: Path, variable: str, value: str, expected: str
) -> None:
    done = etascope("up", ETASCOPE_HOME=str(tmp_path / "home"), **{variable: value})

    assert done.returncode == 2
    assert expected in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "home").exists()


def test_password_in_a_wrong_setting_is_not_repeated() -> None:
    done = etascope("up", ETASCOPE_DATABASE_URL="mysql://me:geheim@host/db")

    assert done.returncode == 2
    assert "ETASCOPE_DATABASE_URL" in done.stderr
    assert "geheim" not in done.stderr + done.stdout


def test_absent_server_is_a_fault_of_the_machine_not_of_the_input() -> None:
    done = etascope("submit", "digits_mlp", "--server", "http://127.0.0.1:9")

    assert done.returncode == 1
    assert "Is `etascope up` running there?" in done.stderr
    assert "Traceback" not in done.stderr


def test_submit_without_a_task_says_what_to_name() -> None:
    done = etascope("submit")

    assert done.returncode == 2
    assert done.stderr.startswith("Name a task")


def test_help_lists_every_command() -> None:
    shown = CliRunner().invoke(app, ["--help"])

    assert shown.exit_code == 0
    for name in ("up", "api", "worker", "dashboard", "submit", "data", "db"):
        assert name in shown.output


def test_unknown_data_set_gets_a_guess() -> None:
    done = etascope("data", "check", "mnits")

    assert done.returncode == 2
    assert "Did you mean mnist?" in done.stderr


def test_one_missing_data_set_fails_the_check_but_the_others_are_checked(tmp_path: Path) -> None:
    done = etascope("data", "check", "mnist", "wine", ETASCOPE_DATA_DIR=str(tmp_path))

    assert done.returncode == 1
    assert "etascope data fetch mnist" in done.stderr
    assert "wine: as published" in done.stdout
