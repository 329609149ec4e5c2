"""From a row to a stored trial: names as we have them, outcomes judged as we judge our own.

Trials are shared by content like our own, one sweep a task.
"""

import hashlib
import json
import math
from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Engine, select, update
from sqlalchemy.orm import Session

from backend.db import clock, insert_for, transaction
from backend.errors import Conflict, InvalidInput
from backend.models import CurveRow, StudyRow, SweepRow, SweepTrialRow, TrialRow
from backend.schemas import ImportProblem, ImportRead, StudyCreate, TrialState
from backend.services import studies
from backend.services.importing.files import Cells, RawRow, not_finite
from backend.services.trials import chunks, curve_row, delete_orphans, finite, ids_at, readable
from ib_core.datasets import UCI_NAMES
from ib_core.sweep import CurvePoint
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
#: A trial has diverged when its loss exceeds this many times its initial value.
EXPLODED = 5.0
MOST_PROBLEMS = 5
LOSSES = ("train_loss", "test_loss")
ACCURACIES = ("train_accuracy", "test_accuracy")
#: Columns that only the recorded runs of the paper's authors have together.
AUTHORS = ("source_folder", "epochs_recorded")
MOST_SHOWN = 100
#: Trials stored in one transaction; on SQLite every other writer waits for its end.
PIECE = 1000


@dataclass(frozen=True, slots=True)
class ImportedTrial:
    """A trial ready to be stored: its columns, its address and its curve."""

    columns: dict[str, Any]
    fingerprint: str
    curve: tuple[CurvePoint, ...] = ()


@dataclass(frozen=True, slots=True)
class Imported:
    """What a file holds."""

    trials: list[ImportedTrial]
    skipped: list[ImportProblem]


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
    }
    curve = _curve(cells)
    return ImportedTrial(columns, _fingerprint(columns, curve), curve)


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
        "seed": _or(cells.whole(0, 2**31 - 1, "seed"), 1),
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
        "momentum": cells.number("momentum") or None,
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
    exploded = train is not None and initial is not None and train > EXPLODED * initial
    return TrialState.DIVERGED if not_finite(given) or exploded else TrialState.COMPLETED


def _error(cells: Cells) -> str:
    return readable(cells.prose("error") or "It failed where it was run.")


def _curve(cells: Cells) -> tuple[CurvePoint, ...]:
    """Return the losses by epoch, where the file has them; steps are then epochs too."""
    train, test = cells.numbers("train_loss_by_epoch"), cells.numbers("test_loss_by_epoch")
    points = max(len(train), len(test))
    train += [math.nan] * (points - len(train))
    test += [math.nan] * (points - len(test))
    return tuple(
        CurvePoint(step=epoch, epoch=float(epoch), train_loss=one, test_loss=two)
        for epoch, (one, two) in enumerate(zip(train, test, strict=True), start=1)
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


def store_trials(engine: Engine, found: Imported) -> set[str]:
    """Store a file's trials, a piece at a time, so that no other writer waits for all of them.

    They belong to no sweep yet, so nobody sees them before `store` publishes them together. If
    that does not happen, the same file finds them again, and `db check --repair` deletes them.

    Returns:
        The addresses of those that are new.
    """
    trials = {trial.fingerprint: trial for trial in found.trials}
    new: set[str] = set()
    for piece in chunks(sorted(trials), PIECE):
        with transaction(engine) as session:
            known = ids_at(session, piece)
            fresh = [trials[address] for address in piece if address not in known]
            _insert_trials(session, fresh)
            _insert_curves(session, fresh, ids_at(session, piece))
            new |= {trial.fingerprint for trial in fresh}
    return new


def forget(engine: Engine, addresses: Iterable[str]) -> None:
    """Delete trials that were stored for an import that could not be published."""
    with transaction(engine) as session:
        ids = sorted(ids_at(session, addresses).values())
        delete_orphans(session, trial_ids=ids)


def store(
    session: Session,
    *,
    found: Imported,
    new: Collection[str] = (),
    source: str,
    study_id: int | None,
    name: str,
    owner_id: int | None,
) -> ImportRead:
    """Publish what a file holds; the same file twice brings nothing new.

    Args:
        session: A session that may write.
        found: The file's trials; those that are not stored yet are stored here.
        new: Those that `store_trials` has stored for this very import.
        source: The file's name.
        study_id: The study to put them into; None: a new one.
        name: The new study's name.
        owner_id: Whose the new study is.
    """
    if study_id is None:
        payload = StudyCreate(name=name, tags=["imported"], notes=f"Imported from {source}.")
        study_id = studies.create(session, payload=payload, owner_id=owner_id).id
    studies.owner_of(session, study_id=study_id)  # raises if there is no such study
    trials = {trial.fingerprint: trial for trial in found.trials}
    known = ids_at(session, trials)
    absent = [trial for address, trial in trials.items() if address not in known]
    _insert_trials(session, absent)
    ids = ids_at(session, trials) if absent else known
    _insert_curves(session, absent, ids)
    new = {*new, *(trial.fingerprint for trial in absent)}
    by_task: defaultdict[str, list[ImportedTrial]] = defaultdict(list)
    for trial in trials.values():
        by_task[trial.columns["task"]].append(trial)
    links = {
        address: {"trial_id": ids[address], "reused": address not in new} for address in trials
    }
    common = {
        "study_id": study_id,
        "owner_id": owner_id,
        "body": {"import": source},
        "note": f"Imported from {source}.",
    }
    sweep_ids = [_sweep(session, task, by_task[task], links, common) for task in by_task]
    session.execute(update(StudyRow).where(StudyRow.id == study_id).values(updated_at=clock()))
    return ImportRead(
        study_id=study_id,
        sweep_ids=sweep_ids,
        imported=len(new),
        reused=len(found.trials) - len(new),
        skipped=len(found.skipped),
        problems=found.skipped[:MOST_SHOWN],
    )


def refuse_imported(session: Session, *, sweep_id: int) -> None:
    """Refuse to train what was trained elsewhere."""
    imported = session.scalar(select(SweepRow.imported).where(SweepRow.id == sweep_id))
    if imported:
        raise Conflict(f"Sweep {sweep_id} was imported; its runs cannot be repeated here.")


def _insert_trials(session: Session, trials: Sequence[ImportedTrial]) -> None:
    rows = [
        {**trial.columns, "fingerprint": trial.fingerprint, "imported": True}
        for trial in sorted(trials, key=lambda trial: trial.fingerprint)
    ]
    if rows:
        statement = insert_for(session, TrialRow).values(finished_at=clock())
        # With NULLs written out all rows have the same columns, and go in together.
        options = {"render_nulls": True}
        session.execute(statement.on_conflict_do_nothing(), rows, execution_options=options)


def _insert_curves(session: Session, trials: Sequence[ImportedTrial], ids: dict[str, int]) -> None:
    rows = [curve_row(ids[trial.fingerprint], trial.curve) for trial in trials if trial.curve]
    if rows:
        session.execute(insert_for(session, CurveRow).on_conflict_do_nothing(), rows)


def _sweep(
    session: Session,
    task: str,
    members: Sequence[ImportedTrial],
    links: dict[str, dict[str, Any]],
    common: dict[str, Any],
) -> int:
    """Return the sweep that holds these trials, the one of an earlier import if it is there."""
    rows = [links[trial.fingerprint] for trial in members]
    addresses = sorted(trial.fingerprint for trial in members)
    digest = hashlib.sha256("".join(addresses).encode()).hexdigest()
    key = f"import-{digest}"
    insert = insert_for(session, SweepRow).values(
        **common,
        task=task,
        device="auto",
        spec=_grid_of(task, members),
        body_hash=digest,
        idempotency_key=key,
        total=len(rows),
        reused=sum(row["reused"] for row in rows),
        imported=True,
    )
    insert = insert.on_conflict_do_nothing(index_elements=["study_id", "idempotency_key"])
    sweep_id = session.scalars(insert.returning(SweepRow.id)).one_or_none()
    if sweep_id is None:
        same = (SweepRow.study_id == common["study_id"], SweepRow.idempotency_key == key)
        return session.scalars(select(SweepRow.id).where(*same)).one()
    session.execute(
        insert_for(session, SweepTrialRow),
        [{"sweep_id": sweep_id, "position": i, **row} for i, row in enumerate(rows)],
    )
    return sweep_id


def _grid_of(task: str, members: Sequence[ImportedTrial]) -> dict[str, Any]:
    """Return the grid the runs span, in the form of a sweep's own."""

    def values(name: str) -> list[Any]:
        found = {trial.columns[name] for trial in members}
        return sorted(found, key=lambda value: (value is not None, value))

    return {
        "task": task,
        "methods": values("method"),
        "learning_rates": values("lr"),
        "seeds": values("seed"),
        "clips": values("clip"),
        "epochs": max(values("epochs")),
        "imported": True,
    }
