"""What a step costs, measured: asked for, leased to a worker, and shown in scorecards.

A row is a race of methods on one network, an errand of one worker, which renews its lease while it
races. A bundle may bring races along, which count until one is run here.
"""

import math
import platform
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sqlalchemy import insert, select
from sqlalchemy.orm import Session

from backend.db import clock
from backend.errors import Conflict
from backend.models import ShardState, SweepRow, SweepTrialRow, TimingRow, TrialRow
from backend.schemas import TimingRead, TimingsRead
from backend.services import analysis, offers
from backend.services.analysis import Key
from backend.services.errands import OPEN, Errands
from backend.services.workers import LiveOffers, live_offers
from ib_core.errors import CorruptData
from ib_core.sweep import ENGINE_VERSION, TrialSpec, read_options

if TYPE_CHECKING:
    from ib_core.bench import Ratio

BASELINE = "eb"
#: Renewed now and then; a worker that is known to have died is not waited for.
LEASE_SECONDS = 300.0
RACES = Errands(TimingRow, TimingRow.id, seconds=LEASE_SECONDS, doing="measured")
#: The rate of the steps that are timed: what a step costs does not depend on it.
SMALL_RATE = 1e-3
#: Settings of a network, and the methods that race on it.
Network = tuple[dict[str, Any], dict[str, Any]]


@dataclass(frozen=True, slots=True)
class TimingClaim:
    """A worker's lease on a race.

    Attributes:
        timing_id: Which.
        lease: Tells it from every other claim of the same race.
        device: As asked for.
        trials: What takes steps, by the names under which results are stored; EB among them.
        needs: The keys of what its worker must have.
    """

    timing_id: int
    lease: int
    device: str
    trials: dict[str, TrialSpec]
    needs: tuple[str, ...] = ()


def request(
    session: Session, *, study_id: int, device: str, owner_id: int | None
) -> tuple[TimingsRead, list[int]]:
    """Ask for the step costs of every network of a study; return them and what to announce.

    A race that already waits, or runs, for the same network, device and methods is not asked for
    twice.

    Raises:
        Conflict: The study holds nothing that could be timed here.
    """
    keys = _keys(session, study_id)
    networks = _networks(keys)
    if not networks:
        raise Conflict(
            "This study has no trials of this engine, so there is no network to time.",
            hint="Run a sweep in it first.",
        )
    live, new = live_offers(session), []
    for network_hash, (network, methods) in networks.items():
        data = [key.data_hash for key in keys if analysis.network_hash(key) == network_hash]
        for racing, needs in _races(network, methods, data, live):
            if _asked_for(session, network_hash, device, racing):
                continue
            row = TimingRow(
                state=ShardState.QUEUED,
                device=device,
                network_hash=network_hash,
                network=network,
                methods=racing,
                needs=needs,
                owner_id=owner_id,
            )
            session.add(row)
            session.flush()
            new.append(row.id)
    return of_study(session, study_id=study_id), new


def _networks(keys: Iterable[Key]) -> dict[str, Network]:
    """Return what can be timed, by address: the networks of series, and their methods."""
    networks: dict[str, Network] = {}
    for key in keys:
        alone: Network = (analysis.network_of(key), {BASELINE: {}})
        _, methods = networks.setdefault(analysis.network_hash(key), alone)
        methods[analysis.name_of(key)] = analysis.method_of(key)
    return networks


def _races(
    network: Mapping[str, Any],
    methods: Mapping[str, Any],
    data: Iterable[str | None],
    live: LiveOffers,
) -> list[tuple[dict[str, Any], str | None]]:
    """Return which methods race together, and what a worker must have for that.

    All at once where somebody has everything, as without people's own code; else those together
    that need the same: no worker has two versions of one method.

    Args:
        network: Its settings.
        methods: All that shall race on it, the baseline among them.
        data: Hashes of the data it was trained on: any of them will do.
        live: What living workers have.
    """
    needs: dict[str, str] = {}
    for version in dict.fromkeys(data):
        keys = {
            name: offers.keys_of(one, version) for name, one in _trials(network, methods).items()
        }
        everything = ",".join(sorted(set().union(*keys.values())))
        if not everything or live.met(everything):
            return [(dict(methods), everything or None)]
        if not needs or live.met(",".join(keys[BASELINE])):
            needs = {name: ",".join(sorted(each)) for name, each in keys.items()}
    together: dict[str, dict[str, Any]] = {}
    for name, each in needs.items():
        if name != BASELINE:
            together.setdefault(each, {BASELINE: methods[BASELINE]})[name] = methods[name]
    return [(racing, each or None) for each, racing in together.items()] or [
        ({BASELINE: methods[BASELINE]}, needs[BASELINE] or None)
    ]


def _asked_for(
    session: Session, network_hash: str, device: str, methods: Mapping[str, Any]
) -> bool:
    waiting = select(TimingRow.methods).where(
        TimingRow.network_hash == network_hash,
        TimingRow.device == device,
        TimingRow.state.in_(OPEN),
    )
    return any(methods.keys() <= known.keys() for known in session.scalars(waiting))


def _keys(session: Session, study_id: int) -> list[Key]:
    """Return the study's series that this engine trains; EB first within a network."""
    members = (
        select(SweepTrialRow.trial_id)
        .join(SweepRow, SweepRow.id == SweepTrialRow.sweep_id)
        .where(SweepRow.study_id == study_id)
    )
    query = select(*analysis.KEY_COLUMNS).where(
        TrialRow.id.in_(members),
        TrialRow.imported.is_(False),
        TrialRow.engine_version == ENGINE_VERSION,
    )
    keys = {analysis.key_of(study_id, tuple(row)) for row in session.execute(query.distinct())}
    return sorted(keys, key=analysis.series_order)


def of_study(session: Session, *, study_id: int) -> TimingsRead:
    """Return the newest race of every network of a study, and of what took no part in it."""
    networks = _networks(_keys(session, study_id))
    untold = {address: set(methods) for address, (_, methods) in networks.items()}
    newest = select(TimingRow).where(TimingRow.network_hash.in_(untold))
    rows: list[TimingRow] = []
    for row in session.scalars(newest.order_by(TimingRow.id.desc())):
        if untold[row.network_hash] & set(row.methods):
            untold[row.network_hash] -= set(row.methods)
            rows.insert(0, row)
    waiting = [row.needs for row in rows if row.needs and row.state is ShardState.QUEUED]
    return TimingsRead(
        study_id=study_id,
        items=[
            TimingRead(
                id=row.id,
                state=row.state.value,
                task=row.network["task"],
                methods=list(dict.fromkeys(name.partition(" ")[0] for name in row.methods)),
                device=row.device,
                measured_on=row.measured_on,
                error=row.error,
                created_at=row.created_at,
                finished_at=row.finished_at,
            )
            for row in rows
        ],
        messages=[f"It is {one.sentence}." for one in offers.missing(session, needs=waiting)],
    )


def claim(
    session: Session, *, timing_id: int, worker: str, offers: Collection[str] = ()
) -> TimingClaim | None:
    """Lease a waiting race to this worker; None if there is nothing to do for it."""
    lease = RACES.claim(session, id=timing_id, worker=worker, offers=offers)
    if lease is None:
        return None
    # Not by RETURNING: there SQLite gives 3 for a stored 3.0.
    columns = (TimingRow.network, TimingRow.methods, TimingRow.device, TimingRow.needs)
    network, methods, device, needs = session.execute(
        select(*columns).where(TimingRow.id == timing_id)
    ).one()
    needed = tuple(needs.split(",")) if needs else ()
    return TimingClaim(timing_id, lease, device, _trials(network, methods), needed)


def _trials(network: Mapping[str, Any], methods: Mapping[str, Any]) -> dict[str, TrialSpec]:
    """Return what takes steps in a race, by name."""
    return {name: _trial(network, name, own) for name, own in methods.items()}


def _trial(network: Mapping[str, Any], name: str, own: Mapping[str, Any]) -> TrialSpec:
    options = {**network["options"], **{k: v for k, v in own.items() if k != "batch_rule"}}
    return TrialSpec(
        method=name.partition(" ")[0],
        batch_rule=own.get("batch_rule"),
        lr=SMALL_RATE,
        seed=1,
        epochs=1,
        **{k: v for k, v in network.items() if k != "options"},
        options=read_options(options),
    )


def renew(session: Session, *, claim: TimingClaim) -> bool:
    """Hold on to a race for another lease; False if it was lost."""
    return RACES.renew(session, id=claim.timing_id, lease=claim.lease)


def finish(
    session: Session, *, claim: TimingClaim, results: Mapping[str, Any], measured_on: str
) -> bool:
    """Store what was measured, as `told` says it; False if the lease was lost."""
    found = {"results": dict(results), "measured_on": measured_on[:300]}
    return RACES.finish(session, id=claim.timing_id, lease=claim.lease, **found)


def fail(session: Session, *, claim: TimingClaim, error: str) -> bool:
    """Give the race back because it broke, for good after a few attempts."""
    return RACES.fail(session, id=claim.timing_id, lease=claim.lease, error=error)


def told(results: Mapping[str, "Ratio"]) -> dict[str, dict[str, float]]:
    """Return ratios as they are stored."""
    return {
        name: {"value": one.value, "low": one.low, "high": one.high, "rounds": one.rounds}
        for name, one in results.items()
    }


# --- races that a bundle brings along


def race_networks(
    trials: Iterable[TrialSpec],
    *,
    seconds: float,
    tell: Callable[[str], None] = lambda _: None,
) -> list[dict[str, Any]]:
    """Race the methods of some trials on each of their networks, here; return what bundles keep.

    Args:
        trials: What names networks and methods; their rates and seeds do not matter.
        seconds: About how long to race on one network.
        tell: Called with every network's task.
    """
    from ib_core.bench import race_methods, with_threads

    keys = sorted({analysis.key_of_spec(trial) for trial in trials}, key=analysis.series_order)
    where = f"cpu ({platform.machine()}, 1 thread)"  # as the processes have that train stacks
    found = []
    for network, methods in _networks(keys).values():
        tell(network["task"])
        with with_threads(1):
            ratios = race_methods(_trials(network, methods), baseline=BASELINE, seconds=seconds)
        race = {"network": network, "methods": methods, "results": told(ratios)}
        found.append({**race, "measured_on": where})
    return found


def store_races(session: Session, races: Sequence[Mapping[str, Any]], *, source: str) -> int:
    """Store a bundle's races on networks that nobody has timed here; return how many.

    Raises:
        CorruptData: One of them is no race.
    """
    rows = {row["network_hash"]: row for row in (_row(race, source) for race in races)}
    known = select(TimingRow.network_hash).where(
        TimingRow.network_hash.in_(rows), TimingRow.state == ShardState.DONE
    )
    for timed in set(session.scalars(known)):
        del rows[timed]
    if rows:
        session.execute(insert(TimingRow).values(finished_at=clock()), list(rows.values()))
    return len(rows)


def _row(race: Mapping[str, Any], source: str) -> dict[str, Any]:
    """Return a race as a row; its address is computed, not believed."""
    try:
        network, methods, results = race["network"], race["methods"], race["results"]
        trials = _trials(network, methods)
        ratios = [one[name] for one in results.values() for name in ("value", "low", "high")]
        possible = results.keys() <= trials.keys() and all(0 < x < math.inf for x in ratios)
        least = min(int(one["rounds"]) for one in results.values())
        measured_on = str(race["measured_on"])
        (address,) = _networks(map(analysis.key_of_spec, trials.values()))
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise CorruptData(f"A race of {source} cannot be read ({error!r}).") from None
    if not possible or least < 1:
        raise CorruptData(f"A race of {source} has results that no race could have.")
    return {
        "state": ShardState.DONE,
        "device": "cpu",
        "network_hash": address,
        "network": network,
        "methods": methods,
        "results": results,
        "measured_on": f"{measured_on}, as {source} brought it"[:300],
        "attempts": 1,
    }
