"""Doors and names of the house: what a package shows to others, and what its rooms are called."""

import ast
import importlib
import re
from collections import Counter
from collections.abc import Collection

import pytest

from tests.import_graph import exported, importers, imports, is_package, modules, tree_of, within
from tests.walk import WANTED, definitions

#: A module of fewer lines that one other imports is a paragraph of that other.
SPLINTER_LINES = 40
#: Modules behind a face that others import by name: lighter than their face, or much heavier.
OPEN_DOORS = (
    "ib_core.sweep.request",
    "backend.paper.report",
    "backend.paper.pictures",
    "backend.paper.terminal",
    "backend.client.trainers",
)

#: Packages whose `__init__` lists what others may use of them.
FACES = [
    name for name, path in modules().items() if "." in name and is_package(name) and exported(path)
]


def test_nobody_reaches_past_a_face() -> None:
    past = {
        f"{module} imports {name}"
        for module, path in modules().items()
        for name in imports(path)
        for face in FACES
        if name in modules() and name.startswith(f"{face}.") and not within(module, face)
        if name not in OPEN_DOORS and not handed_out(name, face, imports(path))
    }
    assert past == set()


def handed_out(name: str, face: str, imported: Collection[str]) -> bool:
    """Tell a face's name from the module behind it that is called the same."""
    from_within = any(one.startswith(f"{name}.") for one in imported)
    return name.removeprefix(f"{face}.") in exported(modules()[face]) and not from_within


@pytest.mark.parametrize("face", FACES)
def test_a_face_says_what_its_modules_are_for_and_has_what_it_names(face: str) -> None:
    module = importlib.import_module(face)
    assert sorted(set(module.__all__)) == sorted(module.__all__)
    assert [name for name in module.__all__ if not hasattr(module, name)] == []
    lazy = {name for names in getattr(module, "_HOMES", {}).values() for name in names.split()}
    assert lazy <= set(module.__all__)
    if face == "ib_core":
        return
    told = ast.get_docstring(tree_of(modules()[face])) or ""
    exports = [getattr(module, name) for name in module.__all__]
    listed = {key for one in exports if isinstance(one, dict) for key in one}  # as methods are
    inside = [name.removeprefix(f"{face}.") for name in modules() if name.startswith(f"{face}.")]
    inside = [name for name in inside if "." not in name]  # what lies deeper has a face of its own
    told_of = listed | {"__main__"} | set(re.findall(r"`(\w+)`", told))
    assert [name for name in inside if name not in told_of] == []


def test_a_small_module_with_one_importer_says_why_it_is_one() -> None:
    found = []
    for module, path in modules().items():
        lines = len(path.read_text("utf-8").splitlines())
        splinter = lines < SPLINTER_LINES and len(importers()[module]) == 1
        if not splinter or is_package(module):
            continue
        told = ast.get_docstring(tree_of(path)) or ""
        if "of its own" not in told:
            found.append(f"{module} ({lines} lines) belongs into {min(importers()[module])}")
    assert found == []


@pytest.mark.parametrize(("name", "package"), WANTED)
def test_the_walk_finds_its_way(name: str, package: str) -> None:
    """`python -m tests.walk` counts any division of the house, if these are defined once."""
    assert len(definitions(name, package)) == 1


#: Nouns that several layers have a module for: a table, an answer, a service, a page of one thing.
NOUNS = frozenset(
    [
        "accounts",
        "across",
        "analysis",
        "bench",
        "catalogue",
        "cells",
        "controls",
        "curve",
        "curves",
        "errors",
        "history",
        "paper",
        "reproduction",
        "start",
        "studies",
        "study",
        "sweep",
        "sweeps",
        "system",
        "trials",
        "updates",
        "workers",
    ]
)
#: Words that modules of several packages have each for itself, and what it means in each.
EACH_ITS_OWN: dict[str, str] = {
    "app": "what a process runs: the API, the dashboard, the worker",
    "base": "what every module of its package is made of",
    "learning": "losses over training, and in the guide what that is",
    "pages": "of the dashboard, and of the API itself",
    "pictures": "of the report, and of the guide",
    "runs": "in files that are imported, and those that are logged live",
    "settings": "of an installation, and of a sweep",
    "words": "about studies, and the numbers in sentences",
    "training": "of a shard, and of the paper's bundle",
}


def test_a_second_module_of_the_same_name_means_the_same_or_is_listed() -> None:
    found = Counter(name.split(".")[-1] for name in modules())
    twice = {name for name, times in found.items() if times > 1 and not name.startswith("__")}
    assert twice == NOUNS | set(EACH_ITS_OWN)
