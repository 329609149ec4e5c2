"""What a newcomer finds: the start page's race, the first study, the bundle that comes along."""

import math
import sys
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from statistics import median
from typing import Literal

from sqlalchemy import exists, func, select
from sqlalchemy.orm import Session

from backend.db import lock_table
from backend.models import StudyRow, StudyTagRow, SweepRow
from backend.operations.programs import Child, environment
from backend.schemas import BundleRead, RaceLane, RaceRate, RaceRead, StudyCreate
from backend.services import submission
from backend.services.accounts import Caller
from backend.services.studies import of_bundle
from backend.settings import Settings
from ib_core.errors import CorruptData
from ib_core.reproduction import RACE, SHIPPED_NAMES, Bundle, race_folder
from ib_core.sweep import ENGINE_VERSION, PRESETS, Outcome, TrialResult

#: How a method fares at a rate, judged on its runs.
Fate = Literal["breaks", "recovers", "falters", "struggles", "crawls", "learns"]
#: What sentences call the methods.
STEP_NAMES = {"eb": "explicit", "ib": "implicit", "ib_plus": "IB+"}
#: A method has learnt if its median loss is below this share of the loss before training.
LEARNT = 0.2
#: And stays there for so many epochs: at large rates one good epoch is luck.
SETTLED = 3
NUMBERS = ("no", "one", "two", "three", "four", "five")
Lanes = dict[float, list[RaceLane]]
FIRST_STUDY = "First study: explicit against implicit steps on handwritten digits"
FIRST_STUDY_TAG = "first-study"
FIRST_PRESET = "first/digits"


@lru_cache(maxsize=1)
def race() -> RaceRead:
    """Return the stored race, which comes with the program and never changes while it runs."""
    return race_of(Bundle(race_folder()).results_of(RACE))


def race_of(results: Sequence[TrialResult]) -> RaceRead:
    """Return a race as the API tells it: its curves by rate and method, each with its words.

    Raises:
        CorruptData: If there is no trial of this engine version to show.
    """
    held = [one for one in results if one.record.get("engine") == ENGINE_VERSION]
    if not held:
        raise CorruptData("The stored race has no trial of this engine version.")
    by_rate: dict[float, dict[str, list[TrialResult]]] = {}
    for result in held:
        by_rate.setdefault(result.spec.lr, {}).setdefault(result.spec.method, []).append(result)
    initial = median(result.initial_loss for result in held)
    lanes = {
        lr: [_lane(method, sorted(runs, key=_seed)) for method, runs in methods.items()]
        for lr, methods in sorted(by_rate.items())
    }
    first = held[0]
    return RaceRead(
        task=first.spec.task,
        epochs=[point.epoch for point in first.curve],
        initial=_short(initial),
        seeds=len({result.spec.seed for result in held}),
        trials=len(held),
        engine=ENGINE_VERSION,
        rates=[
            RaceRate(
                lr=lr, words=words(lr, lanes, initial), ahead=next_to_break(lr, lanes), lanes=here
            )
            for lr, here in lanes.items()
        ],
    )


def _seed(result: TrialResult) -> int:
    return result.spec.seed


def _lane(method: str, runs: Sequence[TrialResult]) -> RaceLane:
    """Return one method at one rate; a run that left the numbers stays above all others."""
    curves = [[point.train_loss for point in run.curve] for run in runs]
    most = max(map(len, curves))
    full = [[*curve, *[math.inf] * (most - len(curve))] for curve in curves]
    finite = [[loss if math.isfinite(loss) else math.inf for loss in curve] for curve in full]
    return RaceLane(
        method=method,
        losses=[[_short(loss) for loss in curve] for curve in finite],
        median=[_short(median(column)) for column in zip(*finite, strict=True)],
        broken=sum(run.outcome is Outcome.DIVERGED for run in runs),
    )


def _short(loss: float) -> float | None:
    """Return a loss with four digits, all that a picture can show; None: not finite."""
    return float(f"{loss:.4g}") if math.isfinite(loss) else None


def fate(lane: RaceLane, *, initial: float, rising: bool) -> Fate:
    """Return how a method fares; `rising`: its best rate is still to come."""
    ends = [math.inf if loss is None else loss for loss in lane.median[-SETTLED:]]
    if lane.broken == len(lane.losses):
        return "recovers" if ends[-1] <= LEARNT * initial else "breaks"
    if lane.broken:
        return "falters"
    if max(ends) <= LEARNT * initial:
        return "learns"
    return "crawls" if rising else "struggles"


def words(lr: float, lanes: Lanes, initial: float) -> str:
    """Return what happens at a rate, in one sentence; methods that fare alike share a part."""
    told: dict[str, list[str]] = {}
    broken = any(lane.broken for lane in lanes[lr])
    for lane in lanes[lr]:
        found = fate(lane, initial=initial, rising=lr < best_rate(lane.method, lanes))
        told.setdefault(_told(found, lane, still=broken), []).append(STEP_NAMES[lane.method])
    parts = [
        f"all {NUMBERS[len(names)]} {what}"
        if len(names) == len(lanes[lr])
        else f"{' and '.join(names)} steps {what}"
        for what, names in told.items()
    ]
    return f"At {lr:g} {'; '.join(parts)}."


def _told(found: Fate, lane: RaceLane, *, still: bool) -> str:
    runs = NUMBERS[len(lane.losses)]
    return {
        "breaks": f"break in all {runs} runs",
        "recovers": f"break in all {runs} runs before they recover",
        "falters": f"break in {NUMBERS[lane.broken]} of {runs} runs",
        "struggles": "hold, but learn little",
        "crawls": "learn slowly",
        "learns": "still learn" if still else "learn well",
    }[found]


def best_rate(method: str, lanes: Lanes) -> float:
    """Return the rate at which a method's median run ends lowest."""
    ends = {
        lr: lane.median[-1]
        for lr, here in lanes.items()
        for lane in here
        if lane.method == method and not lane.broken
    }
    return min(ends, key=lambda lr: math.inf if ends[lr] is None else ends[lr] or 0.0, default=0.0)


def next_to_break(lr: float, lanes: Lanes) -> str:
    """Return what turning the rate further up will break next."""
    whole = [lane.method for lane in lanes[lr] if not lane.broken]
    limits = {method: first_break(method, lanes, above=lr) for method in whole}
    known = {method: limit for method, limit in limits.items() if limit is not None}
    if known:
        soonest = min(known.values())
        names = [STEP_NAMES[method] for method, limit in known.items() if limit == soonest]
        return f"Next to break: {' and '.join(names)} steps, at {soonest:g}."
    if whole:
        names = [STEP_NAMES[method] for method in whole]
        return f"Up to {max(lanes):g} no run of the {' and '.join(names)} steps breaks."
    return "Turn the rate back until the curves fall again."


def first_break(method: str, lanes: Lanes, *, above: float) -> float | None:
    """Return the first rate beyond one at which a method loses a run; None: there is none."""
    for lr, here in sorted(lanes.items()):
        if lr > above and any(lane.method == method and lane.broken for lane in here):
            return lr
    return None


def _first_notes() -> str:
    [grid] = PRESETS[FIRST_PRESET].sweeps()
    return (
        "Etascope runs this study by itself, once, when its history is empty. Each dot is one "
        f"training run: the same network, weights and batches at {len(grid['learning_rates'])} "
        f"learning rates and {grid['seeds']} seeds. Look at the rate where explicit "
        "backpropagation (EB) breaks, and where the implicit one (IB) does."
    )


@dataclass(frozen=True, slots=True)
class FirstStudy:
    """What became of asking for it.

    Attributes:
        study_id: The first study's, whoever began it; None: the history began without one.
        shard_ids: What to announce to the workers, if it was begun just now.
    """

    study_id: int | None
    shard_ids: Sequence[int] = ()


def prepare_first_study() -> submission.Request:
    """Return its sweeps, ready to be stored; to be called before the transaction."""
    return submission.prepare({"preset": FIRST_PRESET})


def find_first_study(session: Session) -> int | None:
    """Return the first study's id, archived or not, None if there is none."""
    tagged = exists().where(StudyTagRow.study_id == StudyRow.id, StudyTagRow.tag == FIRST_STUDY_TAG)
    return session.scalars(select(StudyRow.id).where(tagged).order_by(StudyRow.id).limit(1)).first()


def first_study_is_due(session: Session) -> bool:
    """Return whether nothing is in the history but perhaps a first study without its sweep."""
    found = session.scalars(select(StudyRow.id).order_by(StudyRow.id).limit(2)).all()
    if not found:
        return True
    empty = (
        session.scalars(select(SweepRow.id).where(SweepRow.study_id == found[0])).first() is None
    )
    return list(found) == [find_first_study(session)] and empty


def begin_first_study(session: Session, *, request: submission.Request, by: Caller) -> FirstStudy:
    """Begin the first study if it is due; however many ask at once, it is begun once.

    Args:
        session: A session that may write.
        request: From `prepare_first_study`.
        by: Who asked.
    """
    lock_table(session, StudyRow)
    study_id = find_first_study(session)
    if not first_study_is_due(session):
        return FirstStudy(study_id)
    key = FIRST_STUDY_TAG
    if study_id is None:
        study = StudyCreate(name=FIRST_STUDY, tags=[FIRST_STUDY_TAG], notes=_first_notes())
        found = submission.submit_into(
            session, study=study, request=request, by=by, idempotency_key=key
        )
    else:
        found = submission.submit(
            session, study_id=study_id, request=request, by=by, idempotency_key=key
        )
    return FirstStudy(found.sweep.study_id, found.shard_ids)


class BundleLoading:
    """The process of a web process that loads the bundle."""

    def __init__(self) -> None:
        """Nothing is being loaded yet."""
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._fault = ""

    def begin(self, settings: Settings) -> None:
        """Begin to load, unless that goes on already."""
        with self._lock:
            if self._thread is None or not self._thread.is_alive():
                self._fault = ""
                # The process lives as long as the thread that starts it, so one waits for it.
                self._thread = threading.Thread(
                    target=self._load, args=(settings,), name="bundle", daemon=True
                )
                self._thread.start()

    def _load(self, settings: Settings) -> None:
        child = Child(
            "The import",
            [sys.executable, "-P", "-m", "backend.cli", "import-bundle", *SHIPPED_NAMES],
            log=settings.home / "logs" / "import-bundle.log",
            environment=environment(settings),
        )
        try:
            child.start()
            if child.wait():
                self._fault = child.tail(1)
        except OSError as error:
            self._fault = str(error)

    def read(self, session: Session) -> BundleRead:
        """Return how far it is."""
        here = select(func.count()).select_from(StudyRow).where(of_bundle())
        studies = session.scalars(here).one()
        if self._thread is not None and self._thread.is_alive():
            return BundleRead(state="loading", studies=studies)
        if self._fault:
            return BundleRead(state="failed", studies=studies, message=self._fault)
        return BundleRead(state="loaded" if studies else "absent", studies=studies)
