"""What the papers of the house say is so: links, files, commands, routes, snippets, tables."""

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
import typer.main
from typer.testing import CliRunner

from backend.app import create_app
from backend.cli import app
from tests import written_docs
from tests.import_graph import modules
from tests.papers import (
    PAPERS,
    ROOT,
    anchors,
    command_lines,
    headings,
    mentions,
    name_of,
    prose,
    python_blocks,
)

OF_OURS = ("ib_core", "backend", "worker", "dashboard", "migrations", "tests", "docs")
#: Their snippets need a server: tests/backend/client/test_client.py runs them.
WITH_A_SERVER = ("docs/using.md", "docs/elsewhere.md")

each_paper = pytest.mark.parametrize("paper", PAPERS, ids=name_of)


@each_paper
def test_links_lead_somewhere(paper: Path) -> None:
    for target in re.findall(r"\]\(([^)]+)\)", prose(paper)):
        name, _, anchor = target.partition("#")
        found = paper.parent / name if name else paper
        assert found.exists(), target
        assert not anchor or anchor in anchors(found), target


@each_paper
def test_files_it_names_are_there(paper: Path) -> None:
    named = re.findall(rf"`((?:{'|'.join(OF_OURS)})(?:/[\w.*-]+)*)/?`", prose(paper))
    assert [name for name in named if not list(ROOT.glob(name))] == []


def test_sections_that_code_cites_are_there() -> None:
    numbered = {title.split(".")[0] for title in headings(ROOT / "docs" / "method.md")}
    for module, path in modules().items():
        text = path.read_text("utf-8")
        sections = re.findall(r"docs/method\.md, section (\d+)", text)
        assert text.count("method.md") == len(sections), f"{module}: cite it by section"
        assert set(sections) <= numbered, module


@each_paper
def test_tables_have_a_cell_for_every_column(paper: Path) -> None:
    """A stroke inside code, as in |z|, begins a new cell unless it is escaped."""
    for table in re.findall(r"(?:^\|.*\n)+", prose(paper), re.MULTILINE):
        widths = {len(re.findall(r"(?<!\\)\|", row)) for row in table.splitlines()}
        assert len(widths) == 1, table


@each_paper
def test_make_targets_it_names_exist(paper: Path) -> None:
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    assert set(re.findall(r"`make ([a-z]+)`", prose(paper))) <= targets


@each_paper
def test_commands_in_its_blocks_are_understood(paper: Path) -> None:
    for words in command_lines(paper):
        command, rest = find_command(words)
        command.make_context(words[0], rest)  # raises for an option or a value it does not know


@each_paper
def test_commands_it_mentions_have_those_options(paper: Path) -> None:
    for words in mentions(paper):
        command, rest = find_command(words)
        known = {name for one in command.params for name in (*one.opts, *one.secondary_opts)}
        assert {word for word in rest if word.startswith("--")} <= known, words


def find_command(words: list[str]) -> tuple[Any, list[str]]:
    """Return the command that some words begin with, and the words after its name."""
    command: Any = typer.main.get_command(app)
    rest = list(words)
    while rest and hasattr(command, "commands"):
        command = command.commands[rest.pop(0)]
    return command, rest


def test_routes_they_name_are_served() -> None:
    served = {re.sub(r"\{\w+\}", "*", path) for path in create_app().openapi()["paths"]}
    served |= {"/api/docs", "/api/openapi.json"}
    named = {path for paper in PAPERS for path in re.findall(r"`(/api/[^` ]+)`", prose(paper))}
    assert {path for path in named if re.sub(r"\{\w+\}", "*", path) not in served} == set()


@pytest.fixture
def _one_thread() -> Iterator[None]:
    """Small products on two threads take fifty times as long while tests run beside this one."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.mark.usefixtures("_one_thread")
@pytest.mark.parametrize(
    "paper",
    [one for one in PAPERS if python_blocks(one) and name_of(one) not in WITH_A_SERVER],
    ids=name_of,
)
def test_snippets_run_and_print_what_they_say(
    paper: Path,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    found: dict[str, Any] = {}
    for code in python_blocks(paper):
        exec(compile(code, paper, "exec"), found)
        said = re.findall(r"^print\(.*\)(?:  |\n)# (.*)$", code, re.MULTILINE)
        printed = capsys.readouterr().out.splitlines()
        for expected, line in zip(said, printed, strict=False):
            assert_alike(line, expected)
        assert len(printed) >= len(said)


def assert_alike(line: str, expected: str) -> None:
    """Compare words as they are and numbers roughly: processors differ in their last digits."""
    number = r"\d*\.?\d+"
    assert re.sub(number, "0", line) == re.sub(number, "0", expected)
    pairs = zip(re.findall(number, line), re.findall(number, expected), strict=True)
    for one, other in pairs:
        assert float(one) == pytest.approx(float(other), rel=0.2)


def test_a_sweep_without_a_server_runs_as_printed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    printed = [one for one in command_lines(ROOT / "README.md") if one[0] == "sweep"]
    (words,) = [one for one in printed if ".py:" not in one[1]]  # a file of one's own is not here
    assert words in list(command_lines(ROOT / "docs" / "using.md"))
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 0, done.output
    assert "Start at " in done.output
    assert len((tmp_path / "out.csv").read_text().splitlines()) == 1 + 2 * 9 * 3


def test_commands_that_only_look_run_as_printed(home: Path) -> None:
    del home
    looking = [words for paper in PAPERS for words in command_lines(paper)]
    looking = [words for words in looking if words[:2] == ["data", "list"] or "--only" in words]
    assert len(looking) == 2
    for words in looking:
        done = CliRunner().invoke(app, words)
        assert done.exit_code == 0, done.output
        assert done.output


def test_runs_of_ones_own_are_imported_as_printed(
    sqlite_database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    del sqlite_database
    monkeypatch.chdir(tmp_path)
    page = ROOT / "docs" / "own-models.md"
    (code,) = [block for block in python_blocks(page) if "runs.csv" in block]
    exec(compile(code, page, "exec"), {})
    (words,) = [line for line in command_lines(page) if "import" in line]
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 0, done.output
    assert "6 runs imported" in done.output


@pytest.mark.parametrize("name", written_docs.PARTS)
def test_what_the_code_knows_is_written_as_it_is_now(name: str) -> None:
    page = written_docs.place(name)
    assert page.read_text("utf-8") == written_docs.written(page), "run `make docs`"


def test_every_page_can_be_found() -> None:
    linked = {
        (paper.parent / target.partition("#")[0]).resolve()
        for paper in PAPERS
        for target in re.findall(r"\]\(([^)]+)\)", prose(paper))
    }
    assert set(PAPERS) - linked == {ROOT / "README.md"}


def test_the_map_has_every_package() -> None:
    rows = re.findall(r"^\| `([\w/]+)` \|", prose(ROOT / "docs" / "architecture.md"), re.MULTILINE)
    packages = [ROOT / name for name in OF_OURS if name not in ("tests", "docs")]
    packages += [
        inner for outer in packages for inner in outer.iterdir() if (inner / "__init__.py").exists()
    ]
    named = {str(package.relative_to(ROOT)) for package in packages} - {"migrations/versions"}
    assert named - set(rows) == set()


def test_sections_that_the_code_cites_exist() -> None:
    for path in (one for name in OF_OURS for one in (ROOT / name).rglob("*.py")):
        text = path.read_text("utf-8")
        for page, section in re.findall(r"docs/([\w-]+\.md)(?:, section (\d+))?", text):
            paper = ROOT / "docs" / page
            assert paper.exists(), f"{path}: {page}"
            numbers = {title.partition(".")[0] for title in headings(paper)}
            assert not section or section in numbers, f"{path}: {page}, section {section}"
        bare = re.findall(r"(?<!docs/)\b[a-z]+\.md\b", text)
        assert not bare or "tests" in path.parts, f"{path}: there is no {bare[0]}; in docs/?"


def test_the_changelog_tells_of_this_version() -> None:
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    versions = [title for title in headings(ROOT / "CHANGELOG.md") if title.startswith("[")]
    assert versions[0] == "[Unreleased]"
    assert f"[{version}]" in versions
