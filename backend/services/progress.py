"""How far sweeps are, counted from their trials in one query for any number of sweeps."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from backend.models import SweepRow, SweepSummaryRow, SweepTrialRow, TrialRow
from backend.schemas import SweepState, TrialState

UNFINISHED = (TrialState.QUEUED, TrialState.RUNNING)
GOOD = (TrialState.COMPLETED, TrialState.DIVERGED)
RETRIABLE = (TrialState.FAILED, TrialState.CANCELLED)


@dataclass(slots=True)
class Progress:
    """The trials of a sweep by state."""

    counts: dict[TrialState, int] = field(default_factory=lambda: dict.fromkeys(TrialState, 0))
    fresh: int = 0  # finished trials that the sweep brought itself
    finished_at: datetime | None = None

    @property
    def total(self) -> int:
        """Number of trials."""
        return sum(self.counts.values())

    @property
    def unfinished(self) -> int:
        """Trials that still have to end."""
        return sum(self.counts[state] for state in UNFINISHED)

    @property
    def good(self) -> int:
        """Trials with a result; divergence is one."""
        return sum(self.counts[state] for state in GOOD)

    def by_name(self) -> dict[str, int]:
        """Return every state's count, zeros included, so that readers need no defaults."""
        return {state.value: count for state, count in self.counts.items()}


def of_sweeps(session: Session, *, sweep_ids: Iterable[int]) -> dict[int, Progress]:
    """Return the progress of each sweep."""
    wanted = list(sweep_ids)
    found = {sweep_id: Progress() for sweep_id in wanted}
    query = (
        select(
            SweepTrialRow.sweep_id,
            TrialRow.state,
            SweepTrialRow.reused,
            func.count(),
            func.max(TrialRow.finished_at, type_=TrialRow.finished_at.type),
        )
        .join(TrialRow, TrialRow.id == SweepTrialRow.trial_id)
        .where(SweepTrialRow.sweep_id.in_(wanted))
        .group_by(SweepTrialRow.sweep_id, TrialRow.state, SweepTrialRow.reused)
    )
    for sweep_id, state, reused, count, finished_at in session.execute(query):
        progress = found[sweep_id]
        progress.counts[state] += count
        if not reused and state not in UNFINISHED:
            progress.fresh += count
        if finished_at and (progress.finished_at is None or finished_at > progress.finished_at):
            progress.finished_at = finished_at
    return found


def sweep_state(progress: Progress, *, cancelled: bool) -> SweepState:
    """Return the state that a sweep's trials add up to."""
    if progress.good == progress.total:
        return SweepState.COMPLETED
    if cancelled:
        return SweepState.CANCELLED
    if progress.unfinished:
        started = progress.counts[TrialState.RUNNING] or progress.fresh
        return SweepState.RUNNING if started else SweepState.QUEUED
    return SweepState.FAILED if progress.counts[TrialState.FAILED] else SweepState.CANCELLED


#: What a study with several sweeps is said to be: the first of these that one of them is.
PRECEDENCE = (
    SweepState.RUNNING,
    SweepState.QUEUED,
    SweepState.FAILED,
    SweepState.CANCELLED,
    SweepState.COMPLETED,
)


def study_state(states: Iterable[SweepState]) -> SweepState | None:
    """Return the state that a study's sweeps add up to; None without a sweep."""
    present = set(states)
    return next((state for state in PRECEDENCE if state in present), None)


@dataclass(frozen=True, slots=True)
class StudyProgress:
    """A study's trials, each counted once however many of its sweeps hold it."""

    progress: Progress
    state: SweepState | None


def of_studies(
    session: Session, *, sweeps: Mapping[int, Sequence[SweepRow]]
) -> dict[int, StudyProgress]:
    """Return the progress of each study, given its sweeps, in three queries at most."""
    everyone = [sweep for held in sweeps.values() for sweep in held]
    by_sweep = _stored(session, [sweep.id for sweep in everyone])
    others = [sweep.id for sweep in everyone if sweep.id not in by_sweep]
    by_sweep |= of_sweeps(session, sweep_ids=others) if others else {}
    states = {
        sweep.id: sweep_state(by_sweep[sweep.id], cancelled=sweep.cancelled_at is not None)
        for sweep in everyone
    }
    shared = _of_shared(session, [study for study, held in sweeps.items() if _may_share(held)])
    return {
        study: StudyProgress(
            shared.get(study) or _sum(by_sweep[sweep.id] for sweep in held),
            study_state(states[sweep.id] for sweep in held),
        )
        for study, held in sweeps.items()
    }


def _may_share(sweeps: Sequence[SweepRow]) -> bool:
    """Return whether a trial could be in two of the sweeps: the later one would have reused it."""
    return any(sweep.reused for sweep in sorted(sweeps, key=lambda sweep: sweep.id)[1:])


def _sum(parts: Iterable[Progress]) -> Progress:
    found = Progress()
    for part in parts:
        for state, count in part.counts.items():
            found.counts[state] += count
    return found


def _stored(session: Session, sweep_ids: Sequence[int]) -> dict[int, Progress]:
    """Return the progress of those sweeps that were added up when all of their trials had ended."""
    query = select(
        SweepSummaryRow.sweep_id,
        SweepSummaryRow.completed,
        SweepSummaryRow.diverged,
        SweepSummaryRow.fresh,
        SweepSummaryRow.finished_at,
    ).where(SweepSummaryRow.sweep_id.in_(sweep_ids))
    found = {}
    for sweep_id, completed, diverged, fresh, finished_at in session.execute(query):
        found[sweep_id] = Progress(fresh=fresh, finished_at=finished_at)
        found[sweep_id].counts[TrialState.COMPLETED] = completed
        found[sweep_id].counts[TrialState.DIVERGED] = diverged
    return found


def _of_shared(session: Session, study_ids: Sequence[int]) -> dict[int, Progress]:
    if not study_ids:
        return {}
    found = {study_id: Progress() for study_id in study_ids}
    query = (
        select(SweepRow.study_id, TrialRow.state, func.count(TrialRow.id.distinct()))
        .select_from(SweepRow)
        .join(SweepTrialRow, SweepTrialRow.sweep_id == SweepRow.id)
        .join(TrialRow, TrialRow.id == SweepTrialRow.trial_id)
        .where(SweepRow.study_id.in_(study_ids))
        .group_by(SweepRow.study_id, TrialRow.state)
    )
    for study_id, state, count in session.execute(query):
        found[study_id].counts[state] = count
    return found
