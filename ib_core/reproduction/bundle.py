"""A bundle: studies and the trials that answer them, as small compressed files.

`studies.json` lists the studies with their sweeps; `<task>.jsonl.gz` holds the trials of one
task, one line each, found by content. While a run goes on every finished trial is appended to
`<task>.jsonl` at once, so that whatever kills the run costs nothing that was finished; `pack`
folds these journals into the compressed files.
"""

import gzip
import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from importlib.resources import files
from pathlib import Path
from typing import Any

from ib_core.datasets.locking import exclusive
from ib_core.errors import InvalidSpec
from ib_core.reproduction.codec import decode, encode
from ib_core.reproduction.studies import Body, Portion, Study
from ib_core.sweep.result import TrialResult
from ib_core.sweep.spec import TrialSpec

#: The name of the bundle that comes with the program.
SHIPPED = "paper"
FORMAT = 1
PACKED, JOURNAL, STUDIES = ".jsonl.gz", ".jsonl", "studies.json"
RUN_TIMES = "run_times.json"


def shipped_folder() -> Path:
    """Return where the bundle that comes with the program lies."""
    return Path(str(files("ib_core.reproduction") / "paper_bundle"))


def find_bundle(name: str | Path) -> "Bundle":
    """Return the bundle in a folder, or the shipped one for `paper`.

    Raises:
        InvalidSpec: If there is none.
    """
    folder = shipped_folder() if str(name) == SHIPPED else Path(name)
    if not (folder / STUDIES).is_file():
        raise InvalidSpec(
            f"{folder} is no bundle: it has no {STUDIES}.",
            hint=f"Name a folder made by `etascope report paper --run --bundle`, or {SHIPPED}.",
        )
    return Bundle(folder)


def shipped_run_times() -> dict[str, Any]:
    """Return the run times of the shipped bundle, without reading its trials."""
    return _run_times(shipped_folder())


def _run_times(folder: Path) -> dict[str, Any]:
    path = folder / RUN_TIMES
    found: dict[str, Any] = json.loads(path.read_text()) if path.is_file() else {}
    return found


class Bundle:
    """The results in a folder, all in memory: a bundle is a few megabytes."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.results: dict[TrialSpec, TrialResult] = {}
        for result in self._stored():
            self.results[result.spec] = result

    def studies(self) -> tuple[Study, ...]:
        """Return the studies, as they were when the bundle was last packed."""
        path = self.folder / STUDIES
        if not path.is_file():
            return ()
        return tuple(_read_study(found) for found in json.loads(path.read_text())["studies"])

    def results_of(self, study: Study) -> list[TrialResult]:
        """Return a study's trials, as far as they are here."""
        return [self.results[trial] for _, trial in study.trials() if trial in self.results]

    def borrow(self, other: "Bundle") -> None:
        """Show another bundle's results where this one has none; nothing is written."""
        self.results = {**other.results, **self.results}

    def append(self, result: TrialResult) -> None:
        """Keep a result for good, at once."""
        self.folder.mkdir(parents=True, exist_ok=True)
        self.results[result.spec] = result
        with self._path(result.spec.task, JOURNAL).open("a") as file:
            file.write(encode(result) + "\n")

    def pack(self, studies: Iterable[Study]) -> None:
        """Fold the journals into compressed files and list the studies that have results."""
        self.folder.mkdir(parents=True, exist_ok=True)
        by_task: dict[str, list[TrialResult]] = {}
        for result in self.results.values():
            by_task.setdefault(result.spec.task, []).append(result)
        for task, results in by_task.items():
            if self._path(task, JOURNAL).exists() or not self._path(task, PACKED).exists():
                _write(self._path(task, PACKED), results)
                self._path(task, JOURNAL).unlink(missing_ok=True)
        held = [_study_content(study) for study in studies if self.results_of(study)]
        content = json.dumps({"format": FORMAT, "studies": held}, indent=1)
        _replace(self.folder / STUDIES, (content + "\n").encode())

    def run_times(self) -> dict[str, Any]:
        """Return IB's measured overheads and what they were measured on; empty: not measured."""
        return _run_times(self.folder)

    def keep_run_times(self, measured: Mapping[str, Any]) -> None:
        """Keep measured overheads."""
        _replace(self.folder / RUN_TIMES, (json.dumps(measured, indent=1) + "\n").encode())

    def locked(self) -> AbstractContextManager[None]:
        """Return a context in which no other run writes here."""
        return exclusive(self.folder / ".lock")

    def size(self) -> int:
        """Return the bytes of all its files."""
        return sum(path.stat().st_size for path in self.folder.glob("*.*") if path.is_file())

    def _path(self, task: str, suffix: str) -> Path:
        return self.folder / (task.replace("/", ".") + suffix)

    def _stored(self) -> Iterator[TrialResult]:
        for path in sorted(self.folder.glob(f"*{PACKED}")):
            with gzip.open(path, "rt") as file:
                yield from map(decode, file)
        for path in sorted(self.folder.glob(f"*{JOURNAL}")):
            yield from _whole_lines(path)


def _whole_lines(path: Path) -> Iterator[TrialResult]:
    """Yield a journal's results; a last line torn by a power cut is no result."""
    for line in path.read_text().splitlines():
        try:
            yield decode(line)
        except (ValueError, KeyError):
            continue


def _write(path: Path, results: list[TrialResult]) -> None:
    results.sort(key=lambda result: json.dumps(result.spec.as_dict(), sort_keys=True))
    lines = "".join(encode(result) + "\n" for result in results)
    # Without a time inside, the same results give the same file.
    _replace(path, gzip.compress(lines.encode(), compresslevel=9, mtime=0))


def _replace(path: Path, content: bytes) -> None:
    partial = path.with_name(path.name + ".partial")
    partial.write_bytes(content)
    partial.replace(path)


def _study_content(study: Study) -> dict[str, Any]:
    bodies: list[Body] = [portion.body for portion in study.portions]
    return {
        "name": study.name,
        "title": study.title,
        "question": study.question,
        "preset": study.preset,
        "sweeps": bodies,
    }


def _read_study(content: dict[str, Any]) -> Study:
    return Study(
        name=content["name"],
        title=content["title"],
        question=content["question"],
        portions=tuple(Portion(body) for body in content["sweeps"]),
        preset=content["preset"],
    )
