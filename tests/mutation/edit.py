"""A small fault one could make, where it would be made, and the tests that must notice it."""

import re
from collections import defaultdict
from dataclasses import dataclass
from functools import cache
from pathlib import Path

TEST = re.compile(r"^(?:async )?def (test_\w+)\(", re.MULTILINE)


class Stale(Exception):
    """An edit that does not fit the project any more; the message says how."""


@dataclass(frozen=True, slots=True)
class Edit:
    """A fault, as a change of one piece of text.

    Files move and are merged: so an edit names a folder, and its text is looked for in every
    module below it; and tests are named by their functions, wherever they stand.

    Attributes:
        fault: What a person would suffer, as a title.
        folder: The package, as `backend/services`.
        before: A piece of text that exactly one module below the folder has, exactly once.
        after: What stands there instead.
        tests: The smallest set of test functions of which one at least must fail: `name`, or
            `name[case]`, or `test_file.py::name` where several files have one of that name.
    """

    fault: str
    folder: str
    before: str
    after: str
    tests: tuple[str, ...]

    @property
    def package(self) -> str:
        """The part of the project it belongs to, for summaries."""
        top, _, rest = self.folder.partition("/")
        return f"{top}/{rest.partition('/')[0]}" if rest else top


def place_of(edit: Edit, root: Path) -> Path:
    """Return the one module that has an edit's text, once.

    Raises:
        Stale: None has, or it is there more than once.
    """
    found = [
        (path, count)
        for path in sorted((root / edit.folder).rglob("*.py"))
        if (count := path.read_text("utf-8").count(edit.before))
    ]
    if not found:
        raise Stale(f"No module below {edit.folder} has {edit.before!r} any more ({edit.fault}).")
    if len(found) > 1 or found[0][1] > 1:
        places = ", ".join(f"{path.relative_to(root)} ({count})" for path, count in found)
        raise Stale(f"{edit.before!r} is not unique: {places} ({edit.fault}).")
    return found[0][0]


def places_of_tests(names: tuple[str, ...], root: Path) -> list[str]:
    """Return tests as pytest names them.

    Raises:
        Stale: There is no such function, or there are several.
    """
    found = []
    for given in names:
        file, _, name = given.rpartition("::")
        everywhere = _functions(root).get(name.partition("[")[0], [])
        files = [path for path in everywhere if not file or Path(path).name == file]
        if len(files) != 1:
            raise Stale(f"{given} is in {len(files)} files below tests; name a test of one file.")
        found.append(f"{files[0]}::{name}")
    return found


@cache
def _functions(root: Path) -> dict[str, list[str]]:
    """Return the files of every test function, relative to the root."""
    found: defaultdict[str, list[str]] = defaultdict(list)
    for path in sorted((root / "tests").rglob("test_*.py")):
        for name in TEST.findall(path.read_text("utf-8")):
            found[name].append(str(path.relative_to(root)))
    return dict(found)
