"""From a row to a trial: names as we have them, outcomes judged as we judge our own."""

import hashlib
import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from backend.errors import InvalidInput
from backend.schemas import ImportProblem, TrialState
from backend.services.importing.files import Cells, RawRow, read_rows
from backend.services.trials import curve_row, finite, readable
from ib_core.datasets import UCI_NAMES
from ib_core.sweep import CurvePoint, explodes_above
from ib_core.tasks import TASKS

METHODS = {"exact": "isgd", "exact_isgd": "isgd", "ib+": "ib_plus"}
DATASETS = {
    "mnist": "mnist_classifier",
    "jsb chorales": "music/jsb_chorales",
    "musedata": "music/musedata",
    "nottingham": "music/nottingham",
    "piano-midi.de": "music/piano_midi",
    **{name: f"uci/{name}" for name in UCI_NAMES},
}
MOST_PROBLEMS = 5
LOSSES = ("train_loss", "test_loss")
ACCURACIES = ("train_accuracy", "test_accuracy")
HELD_OUT = ("validation_loss", "validation_accuracy")
#: Columns that only the recorded runs of the paper's authors have together.
AUTHORS = ("source_folder", "epochs_recorded")
#: All that are looked at below.
COLUMNS = frozenset(
    {
        "task",
        "dataset",
        "experiment",
        "profile",
        "method",
        "batch_rule",
        "activation",
        "lr",
        "learning_rate",
        "seed",
        "repeat",
        "clip",
        "mu",
        "momentum",
        "epochs",
        "batch_size",
        "options",
        "inner_isgd_iterations",
        "nodes",
        "width",
        "intra_epoch",
        "outcome",
        "error",
        "initial_loss",
        "seconds",
        "runtime_s",
        "diverged_at_step",
        "diverged_where",
        "diverged_layer",
        "train_loss_by_epoch",
        "test_loss_by_epoch",
        "train_loss_steps",
        "source",
        *LOSSES,
        *ACCURACIES,
        *HELD_OUT,
        *AUTHORS,
    }
)


@dataclass(frozen=True, slots=True)
class ImportedTrial:
    """A trial ready to be stored: its columns, its address and its curve."""

    columns: dict[str, Any]
    fingerprint: str
    curve: dict[str, Any] | None = None  # packed: a file may have millions of points
    record: dict[str, Any] | None = None  # which tracker it comes from
    numbered: bool = True  # False: its seed is its place among its likes, to be given when stored


@dataclass(frozen=True, slots=True)
class Imported:
    """What a file holds."""

    trials: list[ImportedTrial]
    skipped: list[ImportProblem]


def read_runs(content: bytes, *, most_bytes: int) -> Imported:
    """Return the trials of a file; see `read_rows` and `read_trials`."""
    return read_trials(read_rows(content, most_bytes=most_bytes, columns=COLUMNS))


def read_trials(rows: Sequence[RawRow]) -> Imported:
    """Return the trials of a file; rows without any result are skipped.

    Raises:
        InvalidInput: Some rows cannot be read; names the first few, with line and column.
    """
    scale = _accuracy_scale(rows)
    trials: list[ImportedTrial] = []
    skipped: list[ImportProblem] = []
    problems: list[InvalidInput] = []
    for row in rows:
        try:
            found = _trial(Cells(row), scale)
        except InvalidInput as problem:
            problems.append(problem)
            continue
        if found is None:
            skipped.append(ImportProblem(line=row.line, message="The run has no loss."))
        else:
            trials.append(found)
    if problems:
        first = " ".join(problem.message for problem in problems[:MOST_PROBLEMS])
        raise InvalidInput(
            f"{len(problems)} of {len(rows)} rows cannot be read. {first}", field=problems[0].field
        )
    if not trials:
        raise InvalidInput("No run in the file has a loss.", field="train_loss")
    return Imported(_without_blank_accuracies(trials), skipped)


def _trial(cells: Cells, accuracy_scale: float) -> ImportedTrial | None:
    losses = {name: cells.number(name) for name in LOSSES}
    initial = cells.number("initial_loss")
    state = _state(cells, losses, initial)
    if state is None:
        return None
    accuracies = {name: cells.number(name) for name in ACCURACIES}
    held_out = {name: cells.number(name) for name in HELD_OUT}
    # Their address is of these columns: one more would make every file's trials new again.
    columns: dict[str, Any] = {
        **_settings(cells),
        "state": state,
        "initial_loss": finite(initial),
        **{name: finite(value) for name, value in losses.items()},
        **{
            name: None if value is None else finite(value * accuracy_scale)
            for name, value in accuracies.items()
        },
        "seconds": finite(cells.number("seconds", "runtime_s")),
        "diverged_at_step": cells.whole(0, 2**62, "diverged_at_step"),
        "diverged_where": cells.text("diverged_where", longest=16),
        "diverged_layer": cells.text("diverged_layer", longest=100),
        "error": _error(cells) if state is TrialState.FAILED else None,
        **{
            name: finite(value * (accuracy_scale if name.endswith("accuracy") else 1.0))
            for name, value in held_out.items()
            if value is not None
        },
    }
    points, source = _curve(cells), cells.mapping("source")
    curve = curve_row(0, points) if points else None
    if not source:
        return ImportedTrial(columns, _fingerprint(columns, points), curve)
    # A tracker's run is itself whatever place among its likes an import gives it.
    numbered = cells.has("seed")
    itself = columns if numbered else columns | {"seed": None}
    address = _fingerprint(itself | {"source": source.get("run")}, points)
    return ImportedTrial(columns, address, curve, {"imported": source}, numbered)


def _settings(cells: Cells) -> dict[str, Any]:
    by_authors = all(cells.has(name) for name in AUTHORS)
    method = _needed(cells, "method", longest=32).lower()
    method = METHODS.get(method, method)
    dataset = _needed(cells, "task", "dataset", longest=100)
    clip = cells.within(0, 1e12, "clip")
    rate = cells.within(1e-12, 1e12, "lr", "learning_rate")
    if rate is None:
        raise cells.refuse("lr", "a learning rate is needed.")
    return {
        "task": dataset if dataset in TASKS else DATASETS.get(dataset.lower(), dataset),
        "profile": cells.text("profile", longest=16) or ("authors" if by_authors else ""),
        "method": method,
        "batch_rule": cells.text("batch_rule", longest=16)
        or ("share" if by_authors and method == "ib" else None),
        "activation": cells.text("activation", longest=32),
        "lr": rate,
        "seed": _or(cells.whole(0, 2**31 - 1, "seed", "repeat"), 1),
        "clip": clip or None,  # 0 means none
        "mu": _or(cells.within(0, 1e12, "mu"), 0.0),
        "epochs": _or(cells.whole(1, 10**9, "epochs"), 1),
        "batch_size": cells.whole(1, 10**9, "batch_size"),
        "options": _options(cells, method),
    }


def _needed(cells: Cells, *names: str, longest: int) -> str:
    found = cells.text(*names, longest=longest)
    if found is None:
        raise cells.refuse(names[0], f"a {' or '.join(names)} is needed.")
    return found


def _or(value: Any, default: Any) -> Any:
    return default if value is None else value


def _options(cells: Cells, method: str) -> dict[str, Any]:
    """Return the further settings that keep apart what must not be averaged.

    A named experiment says all there is to say; only runs without a name are told apart by the
    rest.
    """
    exact = method == "isgd"
    found: dict[str, Any] = {
        "momentum": cells.within(0, 1, "momentum") or None,
        "inner_steps": cells.whole(0, 10**9, "inner_isgd_iterations") if exact else None,
        "experiment": cells.text("experiment", longest=100),
    }
    if found["experiment"] is None:
        found["width"] = cells.whole(0, 10**9, "nodes", "width")
        found["intra_epoch"] = cells.text("intra_epoch", longest=16)
    return cells.mapping("options") | {k: v for k, v in found.items() if v is not None}


def _state(
    cells: Cells, losses: dict[str, float | None], initial: float | None
) -> TrialState | None:
    """Return a run's outcome as it says itself, else as we would judge it; None: no result."""
    said = cells.text("outcome", longest=16)
    if said is not None:
        if said not in ("completed", "diverged", "failed"):
            raise cells.refuse("outcome", f"completed, diverged or failed; got {said!r}.")
        lost = said == "completed" and all(finite(loss) is None for loss in losses.values())
        return TrialState.DIVERGED if lost else TrialState(said)
    given = [loss for loss in losses.values() if loss is not None]
    if not given or cells.has("outcome"):  # our own export: the trial had not ended
        return None
    train = losses["train_loss"]
    exploded = train is not None and initial is not None and train > explodes_above(initial)
    return TrialState.DIVERGED if _not_finite(given) or exploded else TrialState.COMPLETED


def _error(cells: Cells) -> str:
    return readable(cells.prose("error") or "It failed where it was run.")


def _curve(cells: Cells) -> tuple[CurvePoint, ...]:
    """Return the losses by epoch, where the file has them; steps, unless given, are epochs too."""
    train, test = cells.numbers("train_loss_by_epoch"), cells.numbers("test_loss_by_epoch")
    points = max(len(train), len(test))
    train += [math.nan] * (points - len(train))
    test += [math.nan] * (points - len(test))
    steps = cells.numbers("train_loss_steps")
    if len(steps) != points or any(not 0 <= step <= 2**53 for step in steps):
        steps = [float(epoch) for epoch in range(1, points + 1)]
    return tuple(
        CurvePoint(step=int(step), epoch=float(epoch), train_loss=one, test_loss=two)
        for epoch, (step, one, two) in enumerate(zip(steps, train, test, strict=True), start=1)
    )


def _fingerprint(columns: dict[str, Any], curve: tuple[CurvePoint, ...]) -> str:
    """Return an address no trial trained here can have: it is of the result, not the settings."""
    losses = [(repr(point.train_loss), repr(point.test_loss)) for point in curve]
    content = json.dumps(["imported", columns, losses], sort_keys=True, default=str)
    return hashlib.sha256(content.encode()).hexdigest()


def _accuracy_scale(rows: Sequence[RawRow]) -> float:
    """Return what turns the file's accuracies into fractions: above 1 they must be percent."""
    values = (Cells(row).raw(name) for row in rows for name in ACCURACIES)
    try:
        return 0.01 if any(float(value) > 1 for value in values if value is not None) else 1.0
    except (TypeError, ValueError, OverflowError):
        return 1.0  # the row's own error will say so


def _without_blank_accuracies(trials: list[ImportedTrial]) -> list[ImportedTrial]:
    """Drop accuracies of tasks where all are 0: files say so where accuracy has no meaning."""
    with_accuracy = {
        trial.columns["task"] for trial in trials if any(trial.columns[name] for name in ACCURACIES)
    }
    for trial in trials:
        if trial.columns["task"] not in with_accuracy:
            trial.columns.update(dict.fromkeys(ACCURACIES))
    return trials


def _not_finite(values: Sequence[float | None]) -> bool:
    """Return whether one of the numbers that were given is NaN or infinite."""
    return any(value is not None and not math.isfinite(value) for value in values)
