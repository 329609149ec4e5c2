"""Applies edits to a copy of the project, one at a time, and runs their tests there."""

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from enum import StrEnum
from importlib.util import cache_from_source
from pathlib import Path
from queue import Queue
from tempfile import TemporaryDirectory
from typing import Self

from tests.mutation.edit import Edit, Stale, place_of, places_of_tests

ROOT = Path(__file__).resolve().parents[2]
LEFT_OUT = shutil.ignore_patterns(".venv", ".git", "__pycache__", ".*_cache", "*.egg-info")
#: Asserts as Python has them: nothing is to be explained, and libraries may be imported already.
PYTEST = ("-q", "-x", "-n0", "--assert=plain", "-p", "no:cacheprovider")
#: Pytest's own exit codes; all others mean that nothing was tested.
PASSED, FAILED = 0, 1
#: An edit may make a test wait for ever.
MOST_SECONDS = 200.0
#: Longer outputs are cut at the front.
SHOWN_LINES = 25


class Ended(Exception):
    """Tests cannot be run any more."""


class Verdict(StrEnum):
    """What became of an edit."""

    CAUGHT = "caught"
    SURVIVED = "survived"
    BROKEN = "broken"
    STALE = "stale"


@dataclass(frozen=True, slots=True)
class Outcome:
    """An edit, what became of it, and a sentence if that is not as it should be."""

    edit: Edit
    verdict: Verdict
    seconds: float = 0.0
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Run:
    """How a run of tests ended; no code means that it never did."""

    code: int | None
    output: str


class ProjectCopy:
    """The project in another folder, run by this interpreter; its own code is what is tested."""

    def __init__(self, folder: Path) -> None:
        self.root = folder / "project"
        self._folder = folder
        shutil.copytree(ROOT, self.root, ignore=LEFT_OUT)
        self._warm = subprocess.Popen(
            [sys.executable, "-P", str(self.root / "tests" / "mutation" / "warm.py")],
            cwd=self.root,
            env=self._environment(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._warm.kill()
        self._warm.communicate()

    def run(self, tests: Iterable[str], seconds: float = MOST_SECONDS) -> Run:
        """Run tests until the first fails."""
        assert self._warm.stdin is not None
        assert self._warm.stdout is not None
        output = self._folder / "output.txt"
        asked = {
            "arguments": [*PYTEST, *places_of_tests(tuple(tests), self.root)],
            "output": str(output),
            "seconds": seconds,
        }
        self._warm.stdin.write(json.dumps(asked) + "\n")
        self._warm.stdin.flush()
        answer = self._warm.stdout.readline()
        if not answer:
            raise Ended("The process that runs the tests has ended.")
        code = json.loads(answer)["code"]
        if code is None:
            return Run(None, f"They did not end within {seconds:g} s.")
        return Run(code, output.read_text("utf-8", errors="replace"))

    @contextmanager
    def edited(self, edit: Edit) -> Iterator[None]:
        """Apply an edit, and take it back."""
        path = place_of(edit, self.root)
        whole = path.read_text("utf-8")
        self._write(path, whole.replace(edit.before, edit.after))
        try:
            yield
        finally:
            self._write(path, whole)

    @staticmethod
    def _write(path: Path, text: str) -> None:
        path.write_text(text, "utf-8")
        # What was compiled counts as up to date within a second, if the size is the same.
        Path(cache_from_source(path)).unlink(missing_ok=True)

    def _environment(self) -> dict[str, str]:
        """Return an environment in which subprocesses import the copy too, and nothing is ours."""
        kept = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("PYTEST_", "ETASCOPE_")) or name == "ETASCOPE_DATA_DIR"
        }
        return kept | {
            "PYTHONPATH": str(self.root),
            "ETASCOPE_HOME": str(self._folder / "home"),
            "OMP_NUM_THREADS": "1",
        }


def judge(copy: ProjectCopy, edit: Edit) -> Outcome:
    """Return what an edit's tests say of it."""
    began = time.monotonic()
    try:
        with copy.edited(edit):
            run = copy.run(edit.tests)
    except Stale as reason:
        return Outcome(edit, Verdict.STALE, reason=str(reason))
    took = time.monotonic() - began
    if run.code in (FAILED, None):  # one that never ends is noticed too
        return Outcome(edit, Verdict.CAUGHT, took)
    names = ", ".join(edit.tests)
    if run.code == PASSED:
        reason = f"{edit.before!r} became {edit.after!r}, and nothing of it failed: {names}."
        return Outcome(edit, Verdict.SURVIVED, took, reason)
    reason = f"The tests could not be run ({names}):\n{tail(run.output)}"
    return Outcome(edit, Verdict.BROKEN, took, reason)


def why_unready(copy: ProjectCopy, edits: Sequence[Edit]) -> str | None:
    """Return why nothing can be learnt from the tests: some fail as it is; None if all pass."""
    names = dict.fromkeys(name for edit in edits for name in edit.tests)
    try:
        run = copy.run(names, seconds=MOST_SECONDS + 10 * len(names))
    except Stale as reason:
        return str(reason)
    if run.code == PASSED:
        return None
    return f"The tests must pass before anything is edited:\n{tail(run.output)}"


@contextmanager
def copies(count: int) -> Iterator[list[ProjectCopy]]:
    """Make copies of the project, and delete them in the end."""
    with ExitStack() as stack:
        made = []
        for _ in range(count):
            folder = stack.enter_context(TemporaryDirectory(prefix="etascope-mutation-"))
            made.append(stack.enter_context(ProjectCopy(Path(folder))))
        yield made


def judge_all(made: Sequence[ProjectCopy], edits: Sequence[Edit]) -> Iterator[Outcome]:
    """Judge edits, each by itself, in all copies side by side; yield outcomes in order."""
    free: Queue[ProjectCopy] = Queue()
    for copy in made:
        free.put(copy)

    def one(edit: Edit) -> Outcome:
        copy = free.get()
        try:
            return judge(copy, edit)
        finally:
            free.put(copy)

    with ThreadPoolExecutor(len(made)) as pool:
        yield from pool.map(one, edits)


def tail(output: str) -> str:
    """Return the end of an output."""
    return "\n".join(output.strip().splitlines()[-SHOWN_LINES:])
