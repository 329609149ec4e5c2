"""The core installation is enough for the core: what only the server's extra brings is hidden."""

import json
import re
import subprocess
import sys
from importlib.metadata import PackageNotFoundError, packages_distributions, requires
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from tests.import_graph import ROOT
from tests.test_architecture import canonical, declared_packages

#: Runs a program in which some packages cannot be imported, wherever it asks for them.
HIDING = """
import json, sys

hidden = set(json.loads(sys.argv[1]))


class Without:
    def __init__(self, finder):
        self.finder = finder

    def find_spec(self, name, path=None, target=None):
        found = name.split(".")[0] not in hidden
        return self.finder.find_spec(name, path, target) if found else None

    def __getattr__(self, name):
        return getattr(self.finder, name)


sys.meta_path[:] = [Without(finder) for finder in sys.meta_path]
program, sys.argv = sys.argv[2], sys.argv[3:]
exec(program)
"""


def brought_along(names: set[str]) -> set[str]:
    """Return distributions with everything they ask for in turn."""
    found: set[str] = set()
    waiting = list(names)
    while waiting:
        name = canonical(waiting.pop())
        if name in found:
            continue
        found.add(name)
        try:
            asked = requires(name) or ()
        except PackageNotFoundError:  # for another system than this
            continue
        needs = (Requirement(text) for text in asked)
        waiting += [one.name for one in needs if one.marker is None or one.marker.evaluate()]
    return found


#: What torch looks for by itself, and counts on once its files are there.
TAKEN_BY_TORCH = {"optree"}


def hidden() -> list[str]:
    """Return what can be imported here and does not come with the core."""
    core = brought_along(declared_packages()) | TAKEN_BY_TORCH
    return sorted(
        top
        for top, names in packages_distributions().items()
        if re.fullmatch(r"\w+", top)
        and not {canonical(name) for name in names} & (core | {"etascope", "setuptools", "pip"})
    )


def alone(program: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", HIDING, json.dumps(hidden()), program, "etascope", *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=300,
    )


COMMAND = "from backend.cli import main; main()"


def test_what_is_hidden_is_what_the_server_needs() -> None:
    servers = {"sqlalchemy", "fastapi", "dash", "celery", "plotly", "pydantic_settings"}
    assert servers <= set(hidden())
    assert not {"torch", "numpy", "numba", "sklearn", "typer", "rich"} & set(hidden())


def test_the_public_names_need_the_core_alone() -> None:
    done = alone("import ib_core; print([bool(getattr(ib_core, n)) for n in ib_core.__all__])")
    assert done.returncode == 0, done.stderr
    assert "True" in done.stdout
    assert "False" not in done.stdout


def test_a_sweep_is_trained_judged_and_written_by_the_core_alone(tmp_path: Path) -> None:
    table = tmp_path / "out.csv"
    words = ("--lrs", "0.1:10:3", "--seeds", "2", "--csv", str(table))
    done = alone(COMMAND, "sweep", "toy/quadratic", *words)
    assert done.returncode == 0, done.stderr
    assert "learning rate" in done.stdout
    assert len(table.read_text().splitlines()) == 1 + 2 * 3 * 2


def test_data_sets_are_listed_by_the_core_alone() -> None:
    done = alone(COMMAND, "data", "list")
    assert done.returncode == 0, done.stderr
    assert "toy_moons" in done.stdout


def test_steps_are_raced_by_the_core_alone(tmp_path: Path) -> None:
    told = tmp_path / "core.json"
    hurry = "from ib_core.bench import steps; steps.QUICK = (0.01, 0.01); steps.CASES = (); "
    hurry += "steps.LAYER_WIDTHS = steps.LAYER_WIDTHS[:1]; "
    hurry += "steps.ALPHA_RULES = dict(list(steps.ALPHA_RULES.items())[:4]); "
    done = alone(hurry + COMMAND, "bench", "core", "--json", str(told))
    assert done.returncode == 0, done.stderr
    assert len(json.loads(told.read_text())["rows"]) > 3


@pytest.mark.parametrize("command", [("up",), ("submit", "toy/quadratic"), ("db", "check")])
def test_what_needs_more_says_what_to_install(command: tuple[str, ...]) -> None:
    done = alone(COMMAND, *command)
    assert done.returncode == 1
    assert done.stderr.strip().endswith("pip install 'etascope[server]'.")
    assert len(done.stderr.strip().splitlines()) == 1
