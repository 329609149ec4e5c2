"""A bundle: studies and the trials that answer them, as small compressed files.

`studies.json` lists the studies with their sweeps; `<task>.jsonl.gz` holds the trials of one
task, one line each, found by content. While a run goes on every finished trial is appended to
`<task>.jsonl` at once, so that whatever kills the run costs nothing that was finished; `pack`
folds these journals into the compressed files.

Where trials are many, `<task>.jsonl.xz` holds the same lines in half the bytes: without addresses,
which follow from the rest of a line and are a sixth of it that nothing can compress, and sorted so
that neighbours are alike. Where they are very many, `<task>.columns.xz` holds a trial in twenty
bytes, without the way from its first losses to its last: see `lines`.
"""

import gzip
import json
import lzma
import zlib
from collections.abc import Iterable, Iterator, Mapping
from importlib.resources import files
from itertools import chain
from pathlib import Path
from typing import Any

from ib_core.errors import CorruptData, InvalidSpec
from ib_core.reproduction.lines import decode, encode, fold, unfold
from ib_core.reproduction.studies import FORMAT, Study, read_list, read_studies, study_content
from ib_core.sweep import ENGINE_VERSION, TrialResult, TrialSpec

#: The names of the bundles that come with the program and are in every history from its first
#: start; the first is the paper's.
SHIPPED, SHIPPED_METHODS, SHIPPED_STUDIES = SHIPPED_NAMES = ("paper", "methods", "studies")
#: Comes with it as well: further seeds of the study of every UCI table, for whoever wants them.
SHIPPED_SEEDS = "seeds"
#: And every method on every UCI table, 118,800 trials of which only start and end are kept.
SHIPPED_TABLES = "tables"
#: All that come with it.
SHIPPED_ALL = (*SHIPPED_NAMES, SHIPPED_SEEDS, SHIPPED_TABLES)
PACKED, DENSE, COLUMNS = FORMS = ".jsonl.gz", ".jsonl.xz", ".columns.xz"
JOURNAL, STUDIES = ".jsonl", "studies.json"
RUN_TIMES, STEP_COSTS = "run_times.json", "step_costs.json"
_REMEDY = "Get the bundle again, or delete the file: `report paper --run` makes its content anew."


def shipped_folder(name: str = SHIPPED) -> Path:
    """Return where a bundle that comes with the program lies."""
    return Path(str(files("ib_core.reproduction") / f"{name}_bundle"))


def find_bundle(name: str | Path) -> "Bundle":
    """Return the bundle in a folder, or a shipped one by its name.

    Raises:
        InvalidSpec: If there is none.
    """
    folder = shipped_folder(str(name)) if str(name) in SHIPPED_ALL else Path(name)
    if not (folder / STUDIES).is_file():
        raise InvalidSpec(
            f"{folder} is no bundle: it has no {STUDIES}.",
            hint="Name a folder made by `etascope report paper --run --bundle`, or one of "
            f"{', '.join(SHIPPED_ALL)}.",
        )
    return Bundle(folder)


def shipped_run_times() -> dict[str, Any]:
    """Return the run times of the shipped bundle, without reading its trials."""
    return _measured(shipped_folder() / RUN_TIMES)


def _measured(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_text()) if path.is_file() else {}
    except ValueError as error:
        raise CorruptData(f"{path} is not JSON ({error}).", hint=_REMEDY) from None
    return found if isinstance(found, dict) else {}


class Bundle:
    """The results in a folder, all in memory: a bundle is a few megabytes."""

    def __init__(self, folder: Path) -> None:
        """Read a folder; one that is not there yet is an empty bundle.

        Raises:
            IBError: If a file is broken or of another format; names the file and the line.
        """
        self.folder = folder
        self.results: dict[TrialSpec, TrialResult] = {}
        self._lent_run_times: dict[str, Any] = {}
        self._whole_journals: set[Path] = set()
        if (folder / STUDIES).is_file():
            read_list(folder / STUDIES)  # before trials of a format that is not ours are read
        for _, _, result in self._stored():
            self.results[result.spec] = result

    def studies(self) -> tuple[Study, ...]:
        """Return the studies, as they were when the bundle was last packed."""
        path = self.folder / STUDIES
        return read_studies(path) if path.is_file() else ()

    def results_of(self, study: Study) -> list[TrialResult]:
        """Return a study's trials, as far as they are here."""
        return [self.results[trial] for _, trial in study.trials() if trial in self.results]

    def place_of(self, result: TrialResult) -> str:
        """Return the file and line a result stands in, read anew: for error messages."""
        found = f"{self.folder}"
        for path, number, stored in self._stored():
            if stored.fingerprint == result.fingerprint and stored.spec == result.spec:
                found = f"{path}, line {number}"
        return found

    def borrow(self, other: "Bundle") -> None:
        """Show another bundle's results and run times where this one has none; writes nothing.

        Own results of another engine version are hidden: they may not share a mean with the rest,
        and would stand before results that may.
        """
        own = {
            spec: result
            for spec, result in self.results.items()
            if result.record.get("engine") == ENGINE_VERSION
        }
        self.results = {**other.results, **own}
        self._lent_run_times = other.run_times()

    def append(self, result: TrialResult) -> None:
        """Keep a result for good, at once."""
        self.folder.mkdir(parents=True, exist_ok=True)
        journal = self._path(result.spec.task, JOURNAL)
        if journal not in self._whole_journals:
            _cut_torn_line(journal)
            self._whole_journals.add(journal)
        self.results[result.spec] = result
        with journal.open("a") as file:
            file.write(encode(result) + "\n")

    def pack(self, studies: Iterable[Study], *, form: str = PACKED) -> None:
        """Fold the journals into compressed files and list the studies that have results.

        Args:
            studies: Those that may be listed.
            form: Of the files, one of `FORMS`; a folder is always packed in the same.
        """
        self.folder.mkdir(parents=True, exist_ok=True)
        by_task: dict[str, list[TrialResult]] = {}
        for result in self.results.values():
            by_task.setdefault(result.spec.task, []).append(result)
        for task, results in by_task.items():
            if self._path(task, JOURNAL).exists() or not self._path(task, form).exists():
                _replace(self._path(task, form), _WRITERS[form](results))
                self._path(task, JOURNAL).unlink(missing_ok=True)
        held = [study_content(study) for study in studies if self.results_of(study)]
        content = json.dumps({"format": FORMAT, "studies": held}, indent=1)
        _replace(self.folder / STUDIES, (content + "\n").encode())

    def run_times(self) -> dict[str, Any]:
        """Return IB's measured overheads and what they were measured on; empty: not measured."""
        return _measured(self.folder / RUN_TIMES) or self._lent_run_times

    def step_costs(self) -> list[dict[str, Any]]:
        """Return races of methods on the bundle's networks; `etascope bench methods` makes them."""
        return list(_measured(self.folder / STEP_COSTS).get("races", []))

    def keep_run_times(self, measured: Mapping[str, Any]) -> None:
        """Keep measured overheads."""
        _replace(self.folder / RUN_TIMES, (json.dumps(measured, indent=1) + "\n").encode())

    def _path(self, task: str, suffix: str) -> Path:
        return self.folder / (task.replace("/", ".") + suffix)

    def _stored(self) -> Iterator[tuple[Path, int, TrialResult]]:
        """Yield every result with its file and line; of a trial's results the newest comes last.

        The journals are read first, though newer: a run may fold one into a packed file meanwhile,
        and what has left the journals by then is found there.
        """
        journals = [
            (path, text)
            for path in sorted(self.folder.glob(f"*{JOURNAL}"))
            if (text := _journal_text(path)) is not None
        ]
        packed = (
            (path, _packed_text(path))
            for suffix in FORMS
            for path in sorted(self.folder.glob(f"*{suffix}"))
        )
        for path, text in chain(packed, journals):
            for number, line in enumerate(text.split("\n"), 1):
                for result in _decode(path, number, line) if line else ():
                    yield path, number, result


def _packed_text(path: Path) -> str:
    plain = path.name.endswith(PACKED)
    try:
        content = path.read_bytes()
        return (gzip.decompress(content) if plain else lzma.decompress(content)).decode()
    except (EOFError, OSError, zlib.error, lzma.LZMAError, UnicodeDecodeError) as error:
        kind = "gzip" if plain else "xz"
        raise CorruptData(
            f"{path} cannot be read, it is cut short or no {kind} file ({error}).", hint=_REMEDY
        ) from None


def _journal_text(path: Path) -> str | None:
    """Return a journal's whole lines; a last one torn by a power cut is no result.

    None: the journal has just been folded into its packed file.
    """
    try:
        text = path.read_bytes().decode(errors="replace")
    except FileNotFoundError:
        return None
    return text[: text.rfind("\n") + 1]


def _cut_torn_line(journal: Path) -> None:
    """Cut what a power cut left of a line, so that the next result starts a line of its own."""
    if journal.is_file():
        content = journal.read_bytes()
        whole = content.rfind(b"\n") + 1
        if whole < len(content):
            with journal.open("r+b") as file:
                file.truncate(whole)


def _decode(path: Path, number: int, line: str) -> list[TrialResult]:
    try:
        return unfold(line) if path.name.endswith(COLUMNS) else [decode(line)]
    except CorruptData as error:
        hint = "Get the bundle again, or delete the line: its trial will be trained again."
        if path.name.endswith(FORMS):
            hint = _REMEDY
        raise CorruptData(
            f"{path}, line {number} is no result: {error.message}.", hint=hint
        ) from None


def _plain(results: list[TrialResult]) -> bytes:
    results.sort(key=lambda result: json.dumps(result.spec.as_dict(), sort_keys=True))
    lines = "".join(encode(result) + "\n" for result in results)
    # Without a time inside, the same results give the same file.
    return gzip.compress(lines.encode(), compresslevel=9, mtime=0)


def _dense(results: list[TrialResult]) -> bytes:
    results.sort(key=lambda one: (one.spec.seed, one.spec.method, one.spec.lr, one.fingerprint))
    return _small("".join(encode(result, addressed=False) + "\n" for result in results))


def _in_columns(results: list[TrialResult]) -> bytes:
    return _small("".join(line + "\n" for line in fold(results)))


def _small(text: str) -> bytes:
    return lzma.compress(text.encode(), preset=9 | lzma.PRESET_EXTREME)


_WRITERS = {PACKED: _plain, DENSE: _dense, COLUMNS: _in_columns}


def _replace(path: Path, content: bytes) -> None:
    partial = path.with_name(path.name + ".partial")
    partial.write_bytes(content)
    partial.replace(path)
