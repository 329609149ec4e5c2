"""Exactly these versions, of everything: what is installed is what was tested and can be audited.

Whether a pinned version has a known hole is in nobody's repository: where there is a network,
`pip-audit --requirement constraints.txt` asks. These tests see to it that its answer is complete.
"""

import re
import tomllib
from importlib.metadata import PackageNotFoundError, distribution
from itertools import chain
from pathlib import Path

from packaging.requirements import Requirement

ROOT = Path(__file__).resolve().parents[1]


def canonical(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def pins() -> dict[str, str]:
    lines = (ROOT / "constraints.txt").read_text("utf-8").splitlines()
    wanted = [line.split(";")[0].strip() for line in lines if line and not line.startswith("#")]
    found = [re.fullmatch(r"([A-Za-z0-9._-]+)==([A-Za-z0-9.!+]+)", line) for line in wanted]
    assert all(found), [line for line, match in zip(wanted, found, strict=True) if not match]
    return {canonical(match[1]): match[2] for match in found if match}


def asked_for() -> list[Requirement]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    extras = chain.from_iterable(project["optional-dependencies"].values())
    return [Requirement(text) for text in (*project["dependencies"], *extras)]


def installed() -> dict[str, str]:
    """Return every distribution that the project brings along here, with its version."""
    found: dict[str, str] = {}
    waiting = [(need.name, tuple(sorted(need.extras))) for need in asked_for()]
    seen: set[tuple[str, tuple[str, ...]]] = set()
    while waiting:
        name, asked = waiting.pop()
        if (name, asked) in seen:
            continue
        seen.add((name, asked))
        try:
            known = distribution(name)
        except PackageNotFoundError:  # for another system than this
            continue
        found[canonical(name)] = known.version
        for text in known.requires or ():
            need = Requirement(text)
            contexts = [{"extra": extra} for extra in ("", *asked)]
            if need.marker is None or any(need.marker.evaluate(one) for one in contexts):
                waiting.append((need.name, tuple(sorted(need.extras))))
    return found


def test_everything_that_is_installed_is_pinned_to_that_version() -> None:
    known = pins()
    found = installed()
    assert len(found) > 60
    other = {
        name: (version, known.get(name))
        for name, version in found.items()
        if known.get(name) != version.split("+")[0]  # torch+cpu is torch
    }
    assert other == {}


def test_no_package_comes_from_an_address_or_without_a_version() -> None:
    text = (ROOT / "constraints.txt").read_text("utf-8")
    assert "://" not in text
    assert "@" not in text
