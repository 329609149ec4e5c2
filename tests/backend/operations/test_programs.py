"""Programs that are not Python's: found in one place, by the product, its tests and run.py."""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from backend.operations import programs

ROOT = Path(__file__).resolve().parents[3]


def program(place: Path, body: str = "exit 0") -> Path:
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(f"#!/bin/sh\n{body}\n")
    place.chmod(0o755)
    return place


def test_driver_that_lacks_a_library_asks_for_the_package_that_brings_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    says = "node: error while loading shared libraries: libatomic.so.1: cannot open shared object"
    node = program(tmp_path / "node", f"echo '{says} file' >&2; exit 127")
    monkeypatch.setattr(programs, "_driver", lambda: (str(node),))

    lack = programs.missing_browser()

    assert lack is not None
    assert "libatomic1" in lack.packages
    assert "libatomic.so.1" in lack.advice


def test_driver_that_starts_is_asked_whether_it_has_a_browser(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(programs, "_driver", lambda: (str(program(tmp_path / "node")),))
    monkeypatch.setattr(programs, "find_browser", lambda: None)
    monkeypatch.setattr(programs, "_has_own_browser", lambda: False)
    lack = programs.missing_browser()
    assert lack is not None
    assert lack.packages == ("chromium", "chromium-headless-shell")

    monkeypatch.setattr(programs, "_has_own_browser", lambda: True)
    assert programs.missing_browser() is None


def test_the_browser_with_the_least_around_it_is_taken(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert programs.find_browser() is None
    whole = program(tmp_path / "chromium")
    assert programs.find_browser() == str(whole)
    bare = program(tmp_path / "chromium-headless-shell")
    assert programs.find_browser() == str(bare)


@pytest.mark.parametrize(
    ("library", "version", "package"),
    [("libatomic", "1", "libatomic1"), ("libnss3", "2", "libnss3-2"), ("libX11", "6", "libx11-6")],
)
def test_library_is_looked_for_under_debian_s_name(
    library: str, version: str, package: str
) -> None:
    assert programs.debian_package(library, version) == package


def test_newest_postgresql_that_is_whole_is_taken(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for version in ("9.6", "15"):
        for name in ("initdb", "postgres"):
            program(tmp_path / version / "bin" / name)
    program(tmp_path / "17" / "bin" / "initdb")  # its client only
    monkeypatch.setattr(programs, "POSTGRES_PLACES", tmp_path)
    assert programs.find_postgres() == tmp_path / "15" / "bin"


def test_broker_of_the_wheel_counts_for_everybody_or_for_nobody(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from backend.operations.broker import find_server

    monkeypatch.setattr(shutil, "which", lambda name: None)
    found = programs.find_broker()
    assert found is not None
    assert found.name == "valkey-server"
    assert find_server() == found
    assert "A broker" not in [lack.part for lack in programs.missing_parts()]


def test_run_py_is_told_what_the_tests_will_find() -> None:
    asked = subprocess.run(
        [sys.executable, "-m", "backend.operations.programs"],
        cwd=ROOT,
        capture_output=True,
        check=True,
    )
    told = [one["part"] for one in json.loads(asked.stdout)]
    assert told == [lack.part for lack in programs.missing_parts()]


def test_nobody_looks_for_these_programs_by_another_way() -> None:
    by_name = re.compile(r"which\(.*(redis|valkey|postgres|initdb|chrom)|/usr/lib/postgresql")
    elsewhere = [
        str(path.relative_to(ROOT))
        for folder in ("backend", "worker", "dashboard", "tests", "ib_core")
        for path in (ROOT / folder).rglob("*.py")
        if path.name not in ("programs.py", "test_programs.py")
        and by_name.search(path.read_text("utf-8"))
    ]
    assert elsewhere == []
    assert not by_name.search((ROOT / "run.py").read_text("utf-8"))
