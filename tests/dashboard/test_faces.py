"""Packages have a face: what others may use is imported from it, and it says what is behind it."""

import importlib
import re

import pytest

from tests.test_architecture import imports, modules, within

#: Those with modules of their own. `dashboard` itself imports nothing: who draws needs no Dash.
FACES = tuple(
    name
    for name, path in modules().items()
    if path.name == "__init__.py" and name.startswith("dashboard.")
)


@pytest.mark.parametrize("face", FACES)
def test_nobody_reaches_past_a_face(face):
    behind = [name for name in modules() if name.startswith(f"{face}.")]
    wrong = [
        f"{module} imports {name}"
        for module, path in modules().items()
        if not within(module, face)
        for name in sorted(imports(path))
        if any(within(name, inner) for inner in behind)
    ]
    assert wrong == []


@pytest.mark.parametrize("face", ["dashboard", *FACES])
def test_a_face_names_everything_behind_it(face):
    inner = {
        name.removeprefix(f"{face}.")
        for name in modules()
        if name.startswith(f"{face}.") and name.count(".") == face.count(".") + 1
    }
    named = set(re.findall(r"`([\w.]+)`", importlib.import_module(face).__doc__ or ""))
    assert inner - {"__main__"} - named == set()


@pytest.mark.parametrize("face", FACES)
def test_a_face_says_what_it_exports(face):
    module = importlib.import_module(face)
    assert module.__all__
    assert all(hasattr(module, name) for name in module.__all__)
