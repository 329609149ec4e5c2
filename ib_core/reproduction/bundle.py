"""A bundle: studies and the trials that answer them, as small compressed files.

`studies.json` lists the studies with their sweeps; `<task>.jsonl.gz` holds the trials of one
task, one line each, found by content. While a run goes on every finished trial is appended to
`<task>.jsonl` at once, so that whatever kills the run costs nothing that was finished; `pack`
folds these journals into the compressed files.

Where trials are many, `<task>.jsonl.xz` holds the same lines in half the bytes: without addresses,
which follow from the rest of a line and are a sixth of it that nothing can compress, and sorted so
that neighbours are alike.
"""

import gzip
import json
import lzma
import math
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib.resources import files
from itertools import chain
from pathlib import Path
from types import UnionType
from typing import Any

from ib_core.errors import CorruptData, IBError, InvalidSpec
from ib_core.methods import stayed_at_zero
from ib_core.reproduction.studies import FORMAT, Study, read_list, read_studies, study_content
from ib_core.sweep import (
    ENGINE_VERSION,
    CurvePoint,
    Divergence,
    Options,
    Outcome,
    Recording,
    TrialResult,
    TrialSpec,
    fingerprint,
)

#: The names of the bundles that come with the program and are in every history from its first
#: start; the first is the paper's.
SHIPPED, SHIPPED_METHODS, SHIPPED_STUDIES = SHIPPED_NAMES = ("paper", "methods", "studies")
#: Comes with it as well: further seeds of the study of every UCI table, for whoever wants them.
SHIPPED_SEEDS = "seeds"
PACKED, DENSE, JOURNAL, STUDIES = ".jsonl.gz", ".jsonl.xz", ".jsonl", "studies.json"
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
    ours = (*SHIPPED_NAMES, SHIPPED_SEEDS)
    folder = shipped_folder(str(name)) if str(name) in ours else Path(name)
    if not (folder / STUDIES).is_file():
        raise InvalidSpec(
            f"{folder} is no bundle: it has no {STUDIES}.",
            hint="Name a folder made by `etascope report paper --run --bundle`, or one of "
            f"{', '.join(ours)}.",
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

    def pack(self, studies: Iterable[Study], *, dense: bool = False) -> None:
        """Fold the journals into compressed files and list the studies that have results.

        Args:
            studies: Those that may be listed.
            dense: Whether files are to be as small as can be; such a folder is always packed so.
        """
        self.folder.mkdir(parents=True, exist_ok=True)
        packed, write = (DENSE, _write_dense) if dense else (PACKED, _write)
        by_task: dict[str, list[TrialResult]] = {}
        for result in self.results.values():
            by_task.setdefault(result.spec.task, []).append(result)
        for task, results in by_task.items():
            if self._path(task, JOURNAL).exists() or not self._path(task, packed).exists():
                write(self._path(task, packed), results)
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
            for suffix in (PACKED, DENSE)
            for path in sorted(self.folder.glob(f"*{suffix}"))
        )
        for path, text in chain(packed, journals):
            for number, line in enumerate(text.split("\n"), 1):
                if line:
                    yield path, number, _decode(path, number, line)


def _packed_text(path: Path) -> str:
    dense = path.name.endswith(DENSE)
    try:
        content = path.read_bytes()
        return (lzma.decompress(content) if dense else gzip.decompress(content)).decode()
    except (EOFError, OSError, zlib.error, lzma.LZMAError, UnicodeDecodeError) as error:
        kind = "xz" if dense else "gzip"
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


def _decode(path: Path, number: int, line: str) -> TrialResult:
    try:
        return decode(line)
    except CorruptData as error:
        hint = "Get the bundle again, or delete the line: its trial will be trained again."
        if path.name.endswith((PACKED, DENSE)):
            hint = _REMEDY
        raise CorruptData(
            f"{path}, line {number} is no result: {error.message}.", hint=hint
        ) from None


def _write(path: Path, results: list[TrialResult]) -> None:
    results.sort(key=lambda result: json.dumps(result.spec.as_dict(), sort_keys=True))
    lines = "".join(encode(result) + "\n" for result in results)
    # Without a time inside, the same results give the same file.
    _replace(path, gzip.compress(lines.encode(), compresslevel=9, mtime=0))


def _write_dense(path: Path, results: list[TrialResult]) -> None:
    results.sort(key=lambda one: (one.spec.seed, one.spec.method, one.spec.lr, one.fingerprint))
    lines = "".join(encode(result, addressed=False) + "\n" for result in results)
    _replace(path, lzma.compress(lines.encode(), preset=9 | lzma.PRESET_EXTREME))


def _replace(path: Path, content: bytes) -> None:
    partial = path.with_name(path.name + ".partial")
    partial.write_bytes(content)
    partial.replace(path)


NUMBERS = ("initial_loss", "train_loss", "test_loss", "train_accuracy", "test_accuracy")
COLUMNS = ("step", "epoch", "train_loss", "test_loss", "train_accuracy", "test_accuracy")
LOSSES = ("initial_loss", "train_loss", "test_loss")
#: Of trials that hold rows out; others say nothing of them.
HELD_OUT = ("validation_loss", "validation_accuracy")
#: Of a sweep that records, the seed whose recordings are kept, thinned: each takes kilobytes.
RECORDED_SEED, MOST_RECORDED = 1, 120
#: Of trials that restart (App. C).
RESTARTED = ("restarts", "at_zero")
#: What a setting must be for trials to be compared, counted and told apart.
SETTINGS: dict[str, type | UnionType] = {
    **dict.fromkeys(("task", "profile", "method", "activation"), str),
    **dict.fromkeys(("seed", "epochs", "batch_size"), int),
    **dict.fromkeys(("lr", "mu"), float),
    "batch_rule": str | None,
    "clip": float | int | None,
}


def encode(result: TrialResult, *, addressed: bool = True) -> str:
    """Return the result as one line; one of this engine can do without its address."""
    spec = result.spec.as_dict()
    spec["options"] = {k: v for k, v in spec["options"].items() if v not in (None, False)}
    known = not addressed and result.fingerprint == _address(result.spec, result.record)
    content: dict[str, Any] = {
        **({} if known else {"fingerprint": result.fingerprint}),
        "spec": spec,
        "outcome": result.outcome.value,
        **{name: _short(getattr(result, name), 9) for name in NUMBERS},
        **{n: _short(v, 9) for n in HELD_OUT if (v := getattr(result, n)) is not None},
        **{n: getattr(result, n) for n in RESTARTED if result.spec.options.restart},
        "seconds": _short(result.seconds, 4),
        "curve": _columns(result.curve),
        "record": result.record,
    }
    if result.recording is not None and result.spec.seed == RECORDED_SEED:
        content["recording"] = result.recording.thin(MOST_RECORDED).to_text()
    if (broken := result.divergence) is not None:
        content["divergence"] = [broken.step, broken.where, broken.layer]
    return json.dumps(content, separators=(",", ":"), allow_nan=False)


def decode(line: str) -> TrialResult:
    """Return the result a line holds.

    Raises:
        CorruptData: If it holds none, with what is wrong; where it stood only the caller knows.
    """
    try:
        return _result(json.loads(line))
    except json.JSONDecodeError as error:
        raise CorruptData(f"it is not JSON ({error})") from None
    except KeyError as error:
        raise CorruptData(f"it has no {error}") from None
    except (IBError, TypeError, ValueError, AttributeError) as error:
        raise CorruptData(str(error).rstrip(".")) from None


def _result(content: Any) -> TrialResult:
    spec = TrialSpec.from_dict({"options": Options(), **content["spec"]})
    for name, kind in SETTINGS.items():
        if not isinstance(getattr(spec, name), kind):
            raise ValueError(f"its {name} cannot be {getattr(spec, name)!r}")
    # Options of every kind: they must have an address, and a place in a dict.
    json.dumps(content["spec"], allow_nan=False)
    hash(spec)
    if not isinstance(content["record"], dict):
        raise ValueError("its record is of the wrong kind")
    address = content.get("fingerprint") or _address(spec, content["record"])
    if not isinstance(address, str):
        raise ValueError("its fingerprint is of the wrong kind")
    numbers: dict[str, Any] = {
        name: None if content[name] is None else float(content[name]) for name in NUMBERS
    }
    for name in LOSSES if content["curve"].get("train_accuracy") is None else NUMBERS:
        numbers[name] = math.nan if numbers[name] is None else numbers[name]
    for name in set(HELD_OUT) & set(content):  # written as nothing where it was lost
        numbers[name] = math.nan if content[name] is None else float(content[name])
    divergence = content.get("divergence")
    return TrialResult(
        spec=spec,
        outcome=Outcome(content["outcome"]),
        **numbers,
        divergence=Divergence(*divergence) if divergence else None,
        seconds=float(content["seconds"]),
        curve=_points(content["curve"]),
        fingerprint=address,
        record=content["record"],
        recording=Recording.from_text(content["recording"]) if "recording" in content else None,
        **_restarted(content),
    )


def _address(spec: TrialSpec, record: Mapping[str, Any]) -> str:
    """Return a trial's address; empty, which is nobody's, where another engine made it."""
    return fingerprint(spec, str(record["data"])) if record["engine"] == ENGINE_VERSION else ""


def _restarted(content: dict[str, Any]) -> dict[str, Any]:
    """Return a line's count of restarts; one of an older version has it in its record alone."""
    if "restarts" in content:
        return {"restarts": int(content["restarts"]), "at_zero": bool(content["at_zero"])}
    noted = content["record"].get("theorem", {"theta": [None], "restarts": [0]})
    count = int(noted["restarts"][-1])
    return {"restarts": count, "at_zero": stayed_at_zero(noted["theta"][-1], count)}


def _short(value: float | None, digits: int) -> float | None:
    if value is None or not math.isfinite(value):
        return None
    return float(f"{value:.{digits}g}")


def _columns(curve: Sequence[CurvePoint]) -> dict[str, list[Any] | None]:
    found: dict[str, list[Any] | None] = {"step": [point.step for point in curve]}
    held_out = [name for name in HELD_OUT if any(getattr(p, name) is not None for p in curve)]
    for name in (*COLUMNS[1:], *held_out):
        values = [getattr(point, name) for point in curve]
        known = any(value is not None for value in values)
        found[name] = [_short(value, 6) for value in values] if known else None
    return found


def _points(columns: dict[str, list[Any] | None]) -> tuple[CurvePoint, ...]:
    lists: list[list[Any]] = []
    for name in (*COLUMNS, *HELD_OUT):
        column = columns[name] if name in COLUMNS else columns.get(name)
        if column is None:
            lists.append([None] * len(columns["step"] or ()))
            continue
        kind = int if name == "step" else float
        lists.append([math.nan if value is None else kind(value) for value in column])
    return tuple(CurvePoint(*row) for row in zip(*lists, strict=True))
