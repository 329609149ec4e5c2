"""The papers of the house, README, CONTRIBUTING, CHANGELOG and docs/, and what stands in them."""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PAPERS = tuple(
    sorted([ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md"])
    + sorted((ROOT / "docs").glob("*.md"))
)
#: What may stand before a command: where it is installed, or the container it runs in.
BEFORE = r"(?:docker compose (?:exec|run)(?: -\S+)* \S+ |\.venv/bin/)?"


def name_of(paper: Path) -> str:
    return str(paper.relative_to(ROOT))


def prose(paper: Path) -> str:
    """Return a paper's text without its fenced blocks."""
    return re.sub(r"^```.*?^```$", "", paper.read_text("utf-8"), flags=re.MULTILINE | re.DOTALL)


def python_blocks(paper: Path) -> list[str]:
    return re.findall(r"^```python\n(.*?)^```$", paper.read_text("utf-8"), re.MULTILINE | re.DOTALL)


def command_lines(paper: Path) -> Iterator[list[str]]:
    """Yield the words of every `etascope` command in an indented block, `etascope` left out."""
    for line in re.findall(rf"^    {BEFORE}etascope (.*)$", prose(paper), re.MULTILINE):
        yield shlex.split(line, comments=True)


def mentions(paper: Path) -> Iterator[list[str]]:
    """Yield the words of every command that is named in a sentence or a table."""
    for words in re.findall(rf"`{BEFORE}etascope ([^`]*)`", prose(paper)):
        yield words.split()


def headings(paper: Path) -> list[str]:
    return re.findall(r"^#+ (.*)$", prose(paper), re.MULTILINE)


def anchors(paper: Path) -> set[str]:
    """Return what a link can point to in a paper, as Git's hosts make it of the headings."""
    kept = (re.sub(r"[^\w\- ]", "", title.lower()) for title in headings(paper))
    return {title.strip().replace(" ", "-") for title in kept}
