"""run.py on a copy of the project, with a pip that only writes down what it was asked for."""

import ast
import importlib.util
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

import pytest

from tests.lanes import ALONE, LONGEST, WITHOUT, place_of, scope_of

ROOT = Path(__file__).resolve().parents[1]

FAKE_PIP = """
import os, pathlib, sys
if sys.argv[1:] == ["config", "list"]:
    sys.exit(print(os.environ.get("PIP_CONFIGURED", "")))
pathlib.Path(os.environ["PIP_CALLS"]).open("a").write(" ".join(sys.argv[1:]) + "\\n")
plain = os.environ.get("PIP_CONFIG_FILE") == os.devnull
if "PIP_FAILS" in os.environ and not (plain and os.environ["PIP_FAILS"] == "if configured"):
    sys.exit("pip: no network")
command = pathlib.Path(sys.prefix, "bin", "etascope")
command.write_text("#!/bin/sh\\necho started etascope $*\\n")
command.chmod(0o755)
"""


POSTGRES = {"part": "PostgreSQL", "packages": ["postgresql"], "advice": "Advice."}


@dataclass
class Project:
    """A copy of the project's packaging, in which `run.py` may install."""

    root: Path

    def run(self, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        fake = {"PYTHONPATH": str(self.root / "fake"), "PIP_CALLS": str(self.root / "calls")}
        return subprocess.run(
            [sys.executable, "run.py", *arguments],
            cwd=self.root,
            env={**os.environ, **fake, **environment},
            capture_output=True,
            text=True,
            timeout=120,
        )

    def pip_calls(self) -> list[str]:
        """Return what pip was asked for since the last look."""
        calls = self.root / "calls"
        found = calls.read_text().splitlines() if calls.exists() else []
        calls.unlink(missing_ok=True)
        return found


@pytest.fixture(scope="module")
def venv(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """A project whose first `up` has just been run; made once, because a venv takes seconds."""
    root = tmp_path_factory.mktemp("project")
    for name in ("run.py", "pyproject.toml", "constraints.txt"):
        shutil.copy(ROOT / name, root)
    (root / "fake" / "pip").mkdir(parents=True)
    (root / "fake" / "pip" / "__init__.py").touch()
    (root / "fake" / "pip" / "__main__.py").write_text(FAKE_PIP)
    return Project(root)


@pytest.fixture
def project(venv: Project) -> Project:
    """The project, installed for `up`."""
    done = venv.run("up")
    assert done.returncode == 0, done.stderr
    venv.pip_calls()
    return venv


@pytest.fixture
def run_py() -> ModuleType:
    """run.py as a module."""
    spec = importlib.util.spec_from_file_location("etascope_run", ROOT / "run.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_first_up_installs_pinned_dependencies_and_starts_etascope(venv: Project) -> None:
    done = venv.run("up", "--no-first-study")

    assert "started etascope up --no-first-study" in done.stdout
    [call] = venv.pip_calls()
    assert "-c constraints.txt" in call
    assert call.endswith("-e .[server]")


def test_second_up_installs_nothing(project: Project) -> None:
    done = project.run("up")

    assert done.stdout == "started etascope up\n"
    assert project.pip_calls() == []


def test_changed_constraints_are_installed(project: Project) -> None:
    constraints = project.root / "constraints.txt"
    constraints.write_text(constraints.read_text() + "# a new pin\n")

    project.run("up")

    assert len(project.pip_calls()) == 1


def test_interrupted_installation_is_completed_with_clear_words(project: Project) -> None:
    (project.root / ".venv" / "etascope-installed").unlink()

    done = project.run("up")

    assert "was not finished; completing it" in done.stdout
    assert len(project.pip_calls()) == 1
    assert "started etascope up" in done.stdout


def test_failed_installation_is_not_taken_for_a_finished_one(project: Project) -> None:
    constraints = project.root / "constraints.txt"
    constraints.write_text(constraints.read_text() + "# another pin\n")

    failed = project.run("up", PIP_FAILS="1")
    again = project.run("up")

    assert failed.returncode == 1
    assert "Run the same command again" in failed.stderr
    assert "Traceback" not in failed.stderr
    assert "started" not in failed.stdout
    assert "started etascope up" in again.stdout


def test_index_in_a_folder_that_is_incomplete_is_done_without(project: Project) -> None:
    constraints = project.root / "constraints.txt"
    constraints.write_text(constraints.read_text() + "# a third pin\n")

    done = project.run(
        "up",
        PIP_FAILS="if configured",
        PIP_CONFIGURED="global.extra-index-url='file:///srv/simple'",
    )

    assert "once more without pip's configuration files" in done.stdout
    assert len(project.pip_calls()) == 2
    assert "started etascope up" in done.stdout


def test_venv_with_a_broken_python_is_made_anew(project: Project) -> None:
    python = project.root / ".venv" / "bin" / "python"
    python.unlink()
    python.symlink_to("/nonexistent/python")

    done = project.run("up")

    assert "does not work" in done.stdout
    assert "started etascope up" in done.stdout
    assert subprocess.call([python, "-c", ""]) == 0


def test_up_after_test_does_not_install_again(project: Project, run_py: ModuleType) -> None:
    stamp = project.root / ".venv" / "etascope-installed"
    stamp.write_text(stamp.read_text().replace("server", run_py.TESTED))

    project.run("up")
    assert project.pip_calls() == []

    stamp.write_text(stamp.read_text().replace(run_py.TESTED, "server"))
    project.run("test", "--version", PIP_FAILS="1")
    [call] = project.pip_calls()
    assert call.endswith(f"-e .[{run_py.TESTED}]")


def test_old_python_can_read_run_py_and_is_refused_in_one_sentence(run_py: ModuleType) -> None:
    ast.parse((ROOT / "run.py").read_text(), feature_version=(3, 7))
    with pytest.raises(run_py.Stop, match=r"needs Python 3\.11 or newer; this is 3\.9"):
        run_py.check_machine((3, 9), "posix")


def test_windows_is_refused_in_one_sentence(run_py: ModuleType) -> None:
    with pytest.raises(run_py.Stop, match="WSL"):
        run_py.check_machine((3, 12), "nt")


def test_one_failing_step_fails_the_run_and_the_others_still_run(
    run_py: ModuleType, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    steps = {
        "bad": [sys.executable, "-c", "raise SystemExit(3)"],
        "good": [sys.executable, "-c", "print('still ran')"],
    }

    failed = run_py.run_steps(steps, dict(os.environ))

    assert failed == ["bad"]
    assert "still ran" in capfd.readouterr().out


@dataclass
class Checked:
    """A small project and `run.py`, which runs its tests as it runs Etascope's."""

    root: Path
    run_py: ModuleType

    def fail(self, **files: str) -> list[str]:
        """Write the files, run them all; return the failed steps."""
        for name, text in files.items():
            (self.root / f"{name}.py").write_text(text)
        (self.root / "test_steady.py").write_text("def test_steady(): pass\n")
        bare = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTEST_ADDOPTS": "-p xdist.plugin -q"}
        command = self.run_py.steps([], full=False)["pytest"]
        return list(self.run_py.run_steps({"pytest": command}, {**os.environ, **bare}))


@pytest.fixture
def tests(run_py: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Checked:
    monkeypatch.setattr(run_py, "ROOT", tmp_path)
    monkeypatch.setattr(run_py, "PYTHON", sys.executable)
    monkeypatch.setattr(run_py.os, "cpu_count", lambda: 1)
    (tmp_path / "pyproject.toml").write_text("[tool.pytest.ini_options]\n")
    return Checked(tmp_path, run_py)


UNSTEADY = """
import pathlib, pytest

@pytest.mark.parametrize("name", ["a b", "[c]"])
def test_unsteady(name):
    seen = pathlib.Path(__file__).parent / name
    first = not seen.exists()
    seen.touch()
    assert not first, "the first failure"
"""


def test_unsteady_tests_pass_at_the_second_try_and_are_named(
    tests: Checked, capfd: pytest.CaptureFixture[str]
) -> None:
    assert tests.fail(test_unsteady=UNSTEADY) == []

    said = capfd.readouterr().out
    assert "AssertionError: the first failure" in said
    names = "test_unsteady.py::test_unsteady[a b], test_unsteady.py::test_unsteady[[c]]"
    [named] = [line for line in said.splitlines() if "Passed only at the second try" in line]
    assert sorted(named.split(": ", 1)[1].split(", ")) == sorted(names.split(", "))
    assert "3 passed" not in said  # the second try runs those and no other
    assert "2 passed" in said


def test_test_that_fails_twice_fails_the_run(
    tests: Checked, capfd: pytest.CaptureFixture[str]
) -> None:
    always = "def test_always(): raise ValueError('always')\n"

    assert tests.fail(test_unsteady=UNSTEADY, test_always=always) == ["pytest"]

    said = capfd.readouterr().out
    assert "1 failed, 2 passed" in said
    assert "Passed only" not in said


@pytest.mark.parametrize(
    "broken",
    [
        UNSTEADY.replace('["a b", "[c]"]', "list('0123456789')"),
        UNSTEADY.replace("import pathlib", "import pathlib, nothing_of_this_name"),
    ],
    ids=["ten that fail", "a file that cannot be read"],
)
def test_many_failures_and_unreadable_files_get_no_second_try(
    tests: Checked, broken: str, capfd: pytest.CaptureFixture[str]
) -> None:
    assert tests.fail(test_broken=broken) == ["pytest"]
    assert "once more" not in capfd.readouterr().out


def test_failure_of_an_earlier_run_is_not_taken_for_one_of_this_run(
    tests: Checked, capfd: pytest.CaptureFixture[str]
) -> None:
    kept = tests.root / ".pytest_cache" / "v" / "cache" / "lastfailed"
    kept.parent.mkdir(parents=True)
    kept.write_text('{"test_old.py::test_old": true}')

    assert tests.fail(test_unsteady=UNSTEADY) == []
    assert "test_old" not in capfd.readouterr().out


def test_debian_root_fails_the_run_if_a_server_cannot_be_installed(
    run_py: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    monkeypatch.setattr(run_py, "may_apt", lambda: True)
    monkeypatch.setattr(run_py, "apt_install", asked.extend)  # returns None: it did not work
    monkeypatch.setattr(run_py, "missing_parts", lambda: [POSTGRES])

    with pytest.raises(run_py.Stop, match="PostgreSQL"):
        run_py.test([])
    assert asked == ["postgresql"]


def test_libraries_that_show_up_one_by_one_are_installed_one_by_one(
    run_py: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[list[str]] = []
    driver = {"part": "A driver", "packages": ["libatomic1"], "advice": "Advice."}
    answers = iter([[driver, POSTGRES], [driver | {"packages": ["libzstd1"]}], []])
    monkeypatch.setattr(run_py, "may_apt", lambda: True)
    monkeypatch.setattr(run_py, "apt_install", lambda names: asked.append(names) or True)
    monkeypatch.setattr(run_py, "missing_parts", lambda: next(answers))
    monkeypatch.setattr(run_py, "run_steps", lambda steps, environment: [])

    assert run_py.test([]) == 0
    assert asked == [["libatomic1", "postgresql"], ["libzstd1"]]


def test_elsewhere_a_missing_server_is_named_with_advice_and_tests_run(
    run_py: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(run_py, "may_apt", lambda: False)
    monkeypatch.setattr(run_py, "missing_parts", lambda: [POSTGRES])
    monkeypatch.setattr(run_py, "run_steps", lambda steps, environment: [])

    assert run_py.test([]) == 0
    assert "PostgreSQL is missing, its tests will be skipped. Advice." in capsys.readouterr().out


def test_tests_cannot_reach_the_installation_of_the_person_who_runs_them(
    run_py: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ETASCOPE_DATABASE_URL", "postgresql://precious")
    monkeypatch.setenv("ETASCOPE_DATA_DIR", "/data")

    environment = run_py.test_environment("/tmp/home", full=True)

    assert "ETASCOPE_DATABASE_URL" not in environment
    assert environment["ETASCOPE_HOME"] == "/tmp/home"
    assert environment["ETASCOPE_DATA_DIR"] == "/data"
    assert environment["ETASCOPE_TEST_FULL"] == "1"


def test_full_run_leaves_out_only_what_needs_a_gpu(
    run_py: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_py.shutil, "which", lambda name: None)

    commands = run_py.steps([], full=True)

    assert list(commands) == ["ruff check", "ruff format", "mypy", "pytest"]
    assert commands["pytest"][-2:] == ["-m", "not gpu"]


def test_lanes_begin_with_what_takes_longest_and_one_lane_has_the_site() -> None:
    for start in LONGEST:
        assert (ROOT / start).exists(), start
    browser = [f"tests/e2e/{file.name}::test_it" for file in (ROOT / "tests/e2e").glob("test_*.py")]
    assert {scope_of(one) for one in browser} == {"tests/e2e", *ALONE, *WITHOUT}
    assert scope_of("tests/worker/test_faults.py::test_it[a::b]") == "tests/worker/test_faults.py"
    order = ["tests/e2e/test_toy.py::a", "tests/worker/test_faults.py::a", f"{ALONE[0]}::a"]
    order += ["tests/backend/test_db.py::a"]
    places = [place_of(one) for one in order]
    assert places == sorted(set(places))


def test_constraints_pin_every_dependency_and_name_no_build_or_place() -> None:
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    pins = [line for line in lines if line and not line.startswith("#")]

    assert "torch==2.13.0" in pins
    for pin in pins:
        name, version = pin.split("==")
        assert name.replace("-", "").replace(".", "").isalnum(), pin
        assert not set(version) & set("+@/: "), pin
