"""A sweep that searches: what its trials tell, and what has been found so far."""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import Row, select
from sqlalchemy.orm import Session

from backend.models import AGENTS, SweepRow, SweepTrialRow, TrialRow
from backend.schemas import SearchRead, SeedEdgeRead, SeriesFoundRead, TrialState
from backend.services.trials import COUNTED, OUTCOMES, SETTINGS, UNFINISHED, spec_of
from ib_core.sweep import Search, SeedEdge, Seen, SeriesFound, TrialSpec, series_found, series_of

#: What of a trial a search looks at.
LOSSES = (TrialRow.train_loss, TrialRow.initial_loss, TrialRow.validation_loss, TrialRow.at_zero)


@dataclass(slots=True)
class Searched:
    """What is known of a sweep's search.

    Attributes:
        search: What is looked for.
        known: By series, seed and rate, as the planner takes it.
        rounds: Rates of each series and seed by round.
        sizes: Trials of each round.
        unfinished: Trials that still have to end.
        data_hash: Of what its trials are trained on.
        specs: One trial of each series that is trained here.
    """

    search: Search
    known: dict[Hashable, dict[int, dict[float, Seen | None]]] = field(default_factory=dict)
    rounds: dict[tuple[Hashable, int, int], list[float]] = field(default_factory=dict)
    sizes: dict[int, int] = field(default_factory=dict)
    unfinished: int = 0
    data_hash: str | None = None
    specs: list[TrialSpec] = field(default_factory=list)

    @property
    def trials(self) -> int:
        """How many were asked for so far."""
        return sum(self.sizes.values())


def load(session: Session, row: SweepRow) -> Searched:
    """Return what a sweep's trials tell its search, in the order in which they were asked for."""
    found = Searched(Search.from_dict(row.spec["search"]))
    for trial in _trials(session, row.id):
        series = _series(row, trial, found)
        seeds = found.known.setdefault(series, {})
        seeds.setdefault(trial.seed, {})[trial.lr] = _seen(trial)
        found.rounds.setdefault((series, trial.seed, trial.round), []).append(trial.lr)
        found.sizes[trial.round] = found.sizes.get(trial.round, 0) + 1
        found.unfinished += trial.state in UNFINISHED
        found.data_hash = trial.data_hash
    return found


def _trials(session: Session, sweep_id: int) -> Sequence[Row[Any]]:
    columns = (getattr(TrialRow, name) for name in SETTINGS)
    query = (
        select(SweepTrialRow.round, TrialRow.state, TrialRow.data_hash, *LOSSES, *columns)
        .join(TrialRow, TrialRow.id == SweepTrialRow.trial_id)
        .where(SweepTrialRow.sweep_id == sweep_id)
        .order_by(SweepTrialRow.position)
    )
    return session.execute(query).all()


def _series(row: SweepRow, trial: Row[Any], found: Searched) -> Hashable:
    """Return what trials of one series share; of an agent's cells only these may differ."""
    if row.device == AGENTS:
        return (trial.method, trial.clip)
    spec = TrialSpec.from_dict(spec_of(trial))
    series = series_of(spec)
    if series not in found.known:
        found.specs.append(spec)
    return series


def _seen(trial: Row[Any]) -> Seen | None:
    if trial.state not in COUNTED:
        return None
    losses = (trial.train_loss, trial.initial_loss, trial.validation_loss, bool(trial.at_zero))
    return Seen.of(OUTCOMES[TrialState(trial.state)], *losses)


def read_search(session: Session, row: SweepRow) -> SearchRead:
    """Return how far a sweep's search is, and what it has found."""
    found = load(session, row)
    search, last = found.search, max(found.sizes, default=0)
    runs = sum(len(seeds) for seeds in found.known.values())
    return SearchRead(
        find="edge" if search.find == "edge" else "best",
        low=search.low,
        high=search.high,
        within=search.within,
        most=search.most,
        trials=found.trials,
        grid_trials=search.grid * runs,
        rounds=[found.sizes[number] for number in sorted(found.sizes)],
        done=not row.searching,
        series=[_series_read(one, found, last) for one in series_found(search, found.known)],
    )


def _series_read(one: SeriesFound, found: Searched, last: int) -> SeriesFoundRead:
    series: Any = one.series
    method, clip = series if isinstance(series, tuple) else (series.method, series.clip)
    return SeriesFoundRead(
        method=method,
        clip=clip,
        label=method if clip is None else f"{method}, clip {clip:g}",
        value=one.value,
        low=one.low,
        high=one.high,
        coverage=one.coverage,
        loss=one.loss,
        where=_where(one, found),
        monotone=one.monotone,
        text=one.text,
        seeds=[_seed_read(edge, series, found, last) for edge in one.seeds],
    )


def _where(one: SeedEdge | SeriesFound, found: Searched) -> Any:
    """Return how far it is; what still trains is no reason to be stuck."""
    return "open" if one.where == "stuck" and found.unfinished else one.where


def _seed_read(edge: SeedEdge, series: Hashable, found: Searched, last: int) -> SeedEdgeRead:
    rates = sorted(found.known[series][edge.seed].items())
    return SeedEdgeRead(
        seed=edge.seed,
        low=edge.low,
        high=edge.high,
        edge=edge.edge,
        where=_where(edge, found),
        monotone=edge.monotone,
        sound=[lr for lr, seen in rates if seen is not None and not seen.broken],
        broken=[lr for lr, seen in rates if seen is not None and seen.broken],
        last=sorted(found.rounds.get((series, edge.seed, last), ())),
    )
