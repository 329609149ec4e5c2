"""The paper's reproduction as this installation's own trials have it."""

import hashlib
import json
from collections.abc import Iterator
from functools import lru_cache

from sqlalchemy import Text, cast, func, select, type_coerce
from sqlalchemy.orm import Session

from backend.models import TrialRow
from backend.paper.reading import read_findings
from backend.schemas import TrialState
from backend.schemas.paper import PaperRead
from ib_core.datasets import DATASETS
from ib_core.reproduction import (
    SETTINGS,
    Evidence,
    Run,
    experiment_of,
    experiments,
    find,
    on_the_grid,
    recorded_evidence,
    recorded_file,
    recorded_overheads,
    shipped_run_times,
)
from ib_core.sweep import ENGINE_VERSION, Options, read_options

ENDED = (TrialState.COMPLETED, TrialState.DIVERGED)


def version(session: Session) -> str:
    """Return a text that changes whenever the reproduction could."""
    trials = select(
        func.count(),
        func.sum(TrialRow.id),
        func.max(TrialRow.finished_at, type_=TrialRow.finished_at.type),
    ).where(TrialRow.state.in_(ENDED))
    recorded = recorded_file()
    facts = [
        tuple(session.execute(trials).one()),
        (recorded, recorded.stat().st_mtime_ns if recorded else None),
        [name for name, info in DATASETS.items() if info.present()],
        ENGINE_VERSION,
    ]
    return hashlib.sha256(repr(facts).encode()).hexdigest()[:32]


def read(session: Session) -> PaperRead:
    """Judge every experiment and claim on the trials this installation has.

    Trials of other engine versions are left out: they may not share a mean.
    """
    measured = shipped_run_times().get("overheads", {})
    runs: dict[str, list[Run]] = {"text": [], "authors": []}
    for profile, run in _own_runs(session):
        runs[profile].append(run)
    return read_findings(
        find(
            text=Evidence.of(runs["text"], measured),  # the text's networks are what was timed
            authors=Evidence.of(runs["authors"]),
            recorded=_recorded(session),
        )
    )


def _own_runs(session: Session) -> Iterator[tuple[str, Run]]:
    columns = [getattr(TrialRow, name) for name in SETTINGS if name != "options"]
    query = (
        select(
            *columns,
            # A real cast: PostgreSQL's driver would hand over a dict, which no cache can keep.
            cast(TrialRow.options, Text).label("options"),
            *(TrialRow.lr, TrialRow.seed, TrialRow.initial_loss),
            *(TrialRow.train_loss, TrialRow.test_accuracy),
            type_coerce(TrialRow.state, Text).label("state"),
        )
        .where(TrialRow.state.in_(ENDED), TrialRow.imported.is_(False))
        .where(TrialRow.engine_version == ENGINE_VERSION)
        .order_by(TrialRow.id)
    )
    # Through the connection: the session's own machinery is for rows that are entities.
    for row in session.connection().execute(query):
        settings = (*row[: len(columns)], _options(row.options))
        experiment = experiment_of(settings, row.lr)
        if experiment is not None:
            yield (
                row.profile,
                Run(
                    experiment=experiment,
                    dataset=row.task.removeprefix("uci/") if experiment == "uci" else "",
                    method=row.method,
                    lr=row.lr,
                    seed=row.seed,
                    train_loss=row.train_loss,
                    test_accuracy=row.test_accuracy,
                    initial_loss=row.initial_loss,
                    outcome=row.state,
                ),
            )


@lru_cache(maxsize=256)
def _options(text: str) -> Options | None:
    """Return a trial's options; None for those of another version, which are no experiment's."""
    found = json.loads(text or "{}")
    return read_options(found) if found.keys() <= Options.__dataclass_fields__.keys() else None


def _recorded(session: Session) -> Evidence:
    """Return the recorded runs: those imported here, else those of the data folder."""
    known = {experiment.id for experiment in experiments()}
    query = select(
        *(TrialRow.options, TrialRow.task, TrialRow.method, TrialRow.lr, TrialRow.seed),
        *(TrialRow.train_loss, TrialRow.test_accuracy, TrialRow.seconds),
        type_coerce(TrialRow.state, Text).label("state"),
    ).where(TrialRow.imported.is_(True), TrialRow.state.in_(ENDED))
    runs = [
        Run(
            experiment=row.options["experiment"],
            dataset=row.task.removeprefix("uci/") if row.options["experiment"] == "uci" else "",
            method=row.method,
            lr=row.lr,
            seed=row.seed,
            train_loss=row.train_loss,
            test_accuracy=row.test_accuracy,
            outcome=row.state,
            seconds=row.seconds,
        )
        for row in session.execute(query.order_by(TrialRow.id))
        if row.options.get("experiment") in known
    ]
    plotted = [run for run in runs if on_the_grid(run)]
    return Evidence.of(plotted, recorded_overheads()) if plotted else recorded_evidence()
