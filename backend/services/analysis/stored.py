"""What is stored, as series, and the answers about studies that are made of them.

The only module here that knows the database: the others serve a sweep on the command line as well.
"""

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from heapq import nsmallest
from itertools import chain
from operator import attrgetter
from typing import Any, TypeVar

from sqlalchemy import Select, Text, cast, func, null, select, type_coerce
from sqlalchemy.orm import Session

from backend.models import (
    CurveRow,
    ShardState,
    StudyRow,
    SweepRow,
    SweepTrialRow,
    TimingRow,
    TrialRow,
)
from backend.schemas import (
    Band,
    CompareRead,
    CompareStudy,
    DifferenceKind,
    DifferencesRead,
    Metric,
    Reducer,
    ScorecardRead,
    SensitivityRead,
)
from backend.services.analysis import pair_to_read, pairs_of, to_across
from backend.services.analysis.rate_curves import Measure, stored_training, to_plots, to_series
from backend.services.analysis.scorecards import paper_studies, score_plots, step_costs, to_rows
from backend.services.analysis.series import (
    Finished,
    Key,
    Series,
    canonical,
    labels,
    series_order,
)
from backend.services.analysis.task_answers import difference_studies, to_answers, with_partners
from backend.services.trials import COUNTED, UNFINISHED
from ib_core.metrics import BAND_DEFINITIONS, DIFFERENCE, KINDS, paired_differences

T = TypeVar("T")
#: More series than this no screen has room for, and reading their answer would stop the process.
MOST_SERIES = 1000
#: The wide rows of ten thousand trials are not all held at once.
ROWS_AT_A_TIME = 500
#: What decides a result besides rate and seed, as columns; `key_of` reads them.
KEY_COLUMNS = (
    TrialRow.task,
    TrialRow.profile,
    TrialRow.method,
    TrialRow.batch_rule,
    TrialRow.activation,
    TrialRow.clip,
    TrialRow.mu,
    TrialRow.epochs,
    TrialRow.batch_size,
    cast(TrialRow.options, Text).label("options"),
    TrialRow.imported,
    TrialRow.engine_version,
    TrialRow.data_hash,
)


def load_series(
    session: Session,
    *,
    study_ids: Sequence[int],
    value: Any,
    validation: Any = TrialRow.validation_loss,
    with_curves: bool = False,
    task: str | None = None,
) -> tuple[list[Series], int]:
    """Return the first series of some studies and how many are left out, by one query a study.

    Args:
        session: For reading.
        study_ids: Which studies.
        value: A column of `TrialRow`, the trials' `final` number.
        validation: Another, by which rates are chosen.
        with_curves: Whether trials carry their packed curve too.
        task: Only this task's; None: all.
    """
    queries = {
        study_id: _query(study_id, value, validation, with_curves=with_curves)
        for study_id in study_ids
    }
    if task is not None:
        queries = {name: query.where(TrialRow.task == task) for name, query in queries.items()}
    alike = _grouped(session, queries)
    left_out = max(0, len(alike) - MOST_SERIES)
    if left_out:
        alike = _grouped(session, queries, only=set(_first(alike, lambda own: key_of(*own))))
    found: dict[Key, Series] = {}
    for (study_id, settings), trials in alike.items():
        # Here, because the database would carry every row's settings through its sorting.
        trials.sort(key=attrgetter("lr", "seed", "id"))
        _add_trials(found, key_of(study_id, settings), trials)
    first = _first(found.values(), lambda series: series.key)
    return first, left_out + len(found) - len(first)


def _first(every: Iterable[T], key: Callable[[T], Key]) -> list[T]:
    """Return the first of things by what series they are; sorting all at once stops the process."""
    return nsmallest(MOST_SERIES, every, key=lambda one: series_order(key(one)))


def _query(
    study_id: int, value: Any, validation: Any, *, with_curves: bool
) -> Select[*tuple[Any, ...]]:
    members = (
        select(SweepTrialRow.trial_id)
        .join(SweepRow, SweepRow.id == SweepTrialRow.sweep_id)
        .where(SweepRow.study_id == study_id)
    )
    # As plain text: ten thousand look-ups of an enum's member would take as long as the query.
    state = type_coerce(TrialRow.state, Text).label("state")
    own = (TrialRow.id, TrialRow.lr, TrialRow.seed, state, TrialRow.initial_loss)
    broke = (TrialRow.train_loss.label("end"), TrialRow.at_zero)
    curve, held_out = (CurveRow.data, CurveRow.validation) if with_curves else (null(), null())
    numbers = (value, curve, validation.label("held_out"), held_out)
    query: Select[*tuple[Any, ...]] = select(*own, *broke, *numbers, *KEY_COLUMNS)
    if with_curves:
        query = query.outerjoin(CurveRow, CurveRow.trial_id == TrialRow.id)
    return query.where(TrialRow.id.in_(members))


def _grouped(
    session: Session,
    queries: Mapping[int, Select[*tuple[Any, ...]]],
    *,
    only: Collection[tuple[int, tuple[Any, ...]]] | None = None,
) -> dict[tuple[int, tuple[Any, ...]], list[Finished]]:
    """Return trials by study and raw settings; without some where there are too many settings.

    Raw, because hashing a `Key` for every row would cost more than reading it.
    """
    alike: dict[tuple[int, tuple[Any, ...]], list[Finished]] = {}
    width = len(Finished._fields)
    for study_id, query in queries.items():
        # Through the connection: the session's own machinery is for rows that are entities.
        pieces = session.connection().execute(query).partitions(ROWS_AT_A_TIME)
        for row in chain.from_iterable(pieces):
            own = (study_id, row[width:])
            if only is None or own in only:
                trials = alike.setdefault(own, [])
                if len(alike) <= MOST_SERIES:
                    trials.append(Finished._make(row[:width]))
    return alike


def _add_trials(found: dict[Key, Series], key: Key, trials: Iterable[Finished]) -> None:
    first = found.setdefault(key, Series(key))
    seen: Counter[tuple[float, int]] = Counter()
    for trial in trials:
        if trial.state in COUNTED:
            cell = (trial.lr, trial.seed)
            series = _repeated(found, key, seen[cell]) if seen[cell] else first
            seen[cell] += 1
            series.rows.append(trial)
        elif trial.state in UNFINISHED:
            first.unfinished += 1
        else:
            first.failed += 1


def _repeated(found: dict[Key, Series], key: Key, times: int) -> Series:
    again = replace(key, repeat=times)
    return found.setdefault(again, Series(again))


def key_of(study_id: int, settings: Sequence[Any]) -> Key:
    """Return the key of a row's `SETTINGS`."""
    names = [column.key for column in KEY_COLUMNS]
    values = dict(zip(names, settings, strict=True))
    values["options"] = canonical(json.loads(values["options"] or "{}"))
    return Key(study_id=study_id, **values)


def _measured(
    session: Session,
    study_ids: Sequence[int],
    measure: Measure,
    *,
    initial: bool = False,
    task: str | None = None,
) -> tuple[list[Series], int]:
    """Return the series of some studies with what a measure needs, and how many are left out."""
    return load_series(
        session,
        study_ids=study_ids,
        value=getattr(TrialRow, measure.metric).label("final"),
        validation=getattr(TrialRow, measure.judge),
        with_curves=measure.needs_curves(initial=initial),
        task=task,
    )


def sensitivity(
    session: Session,
    *,
    study_id: int,
    metric: Metric = "train_loss",
    reducer: Reducer = "final",
    band: Band = "std",
    task: str | None = None,
) -> SensitivityRead:
    """Return a study's curves, perhaps one task's; the caller has checked the study."""
    measure = Measure(metric, reducer)
    paper = paper_studies(session, study_ids=[study_id])
    found, left_out = _measured(session, [study_id], measure, initial=bool(paper), task=task)
    plots = to_plots(found, measure, initial=bool(paper))
    series = to_series(plots, measure, band, paper=paper)
    thresholds = [line.threshold for line in series if line.threshold is not None]
    return SensitivityRead(
        study_id=study_id,
        metric=metric,
        reducer=reducer,
        band=band,
        band_definition=BAND_DEFINITIONS[band],
        series=series,
        left_out=left_out,
        threshold=thresholds[0] if thresholds else None,
        threshold_definition=KINDS["paper_threshold"].definition if paper else "",
    )


def scorecard(
    session: Session,
    *,
    study_id: int,
    metric: Metric = "train_loss",
    reducer: Reducer = "final",
    task: str | None = None,
) -> ScorecardRead:
    """Return a study's robustness numbers, perhaps one task's; the caller has checked it."""
    measure = Measure(metric, reducer)
    found, left_out = _measured(session, [study_id], measure, initial=True, task=task)
    paper = paper_studies(session, study_ids=[study_id])
    costs = step_costs(session, [series.key for series in found])
    plots = to_plots(found, measure, initial=True)
    training = stored_training(session, measure)
    tasks = score_plots(plots, measure, paper=paper, step_costs=costs, training=training)
    return ScorecardRead(
        study_id=study_id,
        metric=metric,
        reducer=reducer,
        answers=to_answers(tasks),
        rows=to_rows(tasks, measure),
        left_out=left_out,
        across=to_across(tasks),
    )


def differences(
    session: Session,
    *,
    study_id: int,
    kind: DifferenceKind,
    metric: Metric = "train_loss",
    reducer: Reducer = "final",
    task: str | None = None,
) -> DifferencesRead:
    """Return a study's paired differences, perhaps one task's; the caller has checked the study.

    An accuracy is compared as an error, 1 - accuracy, so that negative always means better. Losses
    are capped, so that no pair is dropped because one of the two exploded. A clipped series whose
    unclipped partner is not in the study is paired with that of another.
    """
    measure = Measure(metric, reducer)
    _, *others = difference_studies(session, study_id=study_id, kind=kind)
    found = with_partners(
        _measured(session, [study_id], measure, initial=True, task=task)[0],
        others,
        lambda other: _measured(session, [other], measure, initial=True, task=task)[0],
    )
    keys = [series.key for series in found]
    named = dict(zip(keys, labels(keys), strict=True))
    curves = {plot.series.key: plot.curve for plot in to_plots(found, measure, initial=True)}
    items = [
        pair_to_read(first, second, named, paired_differences(one, two))
        for first, second in pairs_of(keys, kind)
        if (one := curves[first]) is not None and (two := curves[second]) is not None
    ]
    return DifferencesRead(
        study_id=study_id,
        metric=metric,
        reducer=reducer,
        kind=kind,
        definition=DIFFERENCE,
        items=[item for item in items if item.points],
    )


def compare(
    session: Session,
    *,
    studies: Mapping[int, str],
    metric: Metric = "train_loss",
    reducer: Reducer = "final",
    band: Band = "std",
) -> CompareRead:
    """Return the curves and numbers of several studies, labelled by what tells them apart.

    Args:
        session: For reading.
        studies: Names by id, in the order of the answer.
        metric: Which number.
        reducer: Final or best.
        band: What is drawn around the means.
    """
    measure = Measure(metric, reducer)
    found, left_out = _measured(session, list(studies), measure, initial=True)
    names = dict(studies) if len(studies) > 1 else {}
    plots = to_plots(found, measure, initial=True)
    paper = paper_studies(session, study_ids=list(studies))
    series = to_series(plots, measure, band, names, paper=paper)
    costs = step_costs(session, [series.key for series in found])
    training = stored_training(session, measure)
    tasks = score_plots(plots, measure, paper=paper, step_costs=costs, training=training)
    thresholds = [line.threshold for line in series if line.threshold is not None]
    return CompareRead(
        studies=[CompareStudy(id=id_, name=name) for id_, name in studies.items()],
        metric=metric,
        reducer=reducer,
        band=band,
        band_definition=BAND_DEFINITIONS[band],
        series=series,
        answers=to_answers(tasks, names),
        rows=to_rows(tasks, measure, names),
        left_out=left_out,
        across=to_across(tasks),
        threshold=thresholds[0] if thresholds else None,
    )


def studies_version(session: Session, *, study_ids: Sequence[int]) -> str:
    """Return a text that changes whenever an analysis of these studies could.

    A trial's numbers change only when it ends, which its state and time tell; names matter
    because labels and comparisons show them.
    """
    trials = (
        select(
            SweepRow.study_id,
            TrialRow.state,
            func.count(),
            func.sum(TrialRow.id),
            func.max(TrialRow.finished_at, type_=TrialRow.finished_at.type),
        )
        .select_from(SweepTrialRow)
        .join(SweepRow, SweepRow.id == SweepTrialRow.sweep_id)
        .join(TrialRow, TrialRow.id == SweepTrialRow.trial_id)
        .where(SweepRow.study_id.in_(study_ids))
        .group_by(SweepRow.study_id, TrialRow.state)
        .order_by(SweepRow.study_id, TrialRow.state)
    )
    names = (
        select(StudyRow.id, StudyRow.name).where(StudyRow.id.in_(study_ids)).order_by(StudyRow.id)
    )
    # Few, and of networks, not of studies: whenever one has been measured, all may show it.
    measured = select(func.count(), func.max(TimingRow.id)).where(
        TimingRow.state == ShardState.DONE
    )
    queries = (trials, names, measured)
    facts = [tuple(row) for query in queries for row in session.execute(query)]
    return hashlib.sha256(repr(facts).encode()).hexdigest()[:32]
