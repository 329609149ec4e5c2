"""Every request a client can make, as a value: what to send, and what the answer is.

What needs no more than to be sent has its method here too, in a class that `Client` inherits.
"""

from collections.abc import Iterable
from typing import Any

from backend.client.requests import *
from backend.client.requests import Call, Sender, sends
from backend.client.runs import *
from backend.schemas import (
    Band,
    BundleRead,
    CatalogRead,
    CompareRead,
    CurveRead,
    DifferenceKind,
    DifferencesRead,
    DryRunRead,
    FirstStudyRead,
    HealthRead,
    LearningRead,
    LossMetric,
    Metric,
    Page,
    PaperRead,
    QuadraticRead,
    QueueRead,
    RaceRead,
    ReadyRead,
    RecordingRead,
    Reducer,
    ScorecardRead,
    SensitivityRead,
    StorageRead,
    StudyCreate,
    StudyRead,
    StudyUpdate,
    SweepCreate,
    SweepRead,
    SweepSubmitted,
    TablesRead,
    TheoremRead,
    TimingsRead,
    TrialRead,
    UpdateRead,
    WorkerRead,
)


def health() -> Call[HealthRead]:
    """Whether the process answers."""
    return Call("GET", "/api/health", HealthRead)


def ready() -> Call[ReadyRead]:
    """Whether sweeps would be run; "no" is an answer too."""
    return Call("GET", "/api/ready", ReadyRead, accepted=(503,))


def catalog() -> Call[CatalogRead]:
    """What can be run."""
    return Call("GET", "/api/catalog", CatalogRead)


def paper() -> Call[PaperRead]:
    """The paper's reproduction: every verdict with its numbers."""
    return Call("GET", "/api/paper", PaperRead)


def begin_first_study() -> Call[FirstStudyRead]:
    """Begin the study of an empty history; later it only names it."""
    return Call("POST", "/api/first-study", FirstStudyRead)


def bundle() -> Call[BundleRead]:
    """Whether the paper's reproduction is loaded."""
    return Call("GET", "/api/bundle", BundleRead)


def load_bundle() -> Call[BundleRead]:
    """Load the paper's reproduction."""
    return Call("POST", "/api/bundle", BundleRead)


def tables() -> Call[TablesRead]:
    """What every method does on every UCI table."""
    return Call("GET", "/api/bundle/tables", TablesRead)


def studies(**filters: Any) -> Call[Page[StudyRead]]:
    """One page of the history; see the API's documentation for the filters."""
    return Call("GET", "/api/studies", Page[StudyRead], query=filters)


def create_study(body: StudyCreate) -> Call[StudyRead]:
    """Create a study."""
    return Call("POST", "/api/studies", StudyRead, json=body.model_dump(mode="json"))


def study(study_id: int) -> Call[StudyRead]:
    """One study."""
    return Call("GET", f"/api/studies/{study_id}", StudyRead)


def update_study(study_id: int, body: StudyUpdate) -> Call[StudyRead]:
    """Change what the body sets."""
    changes = body.model_dump(mode="json", exclude_unset=True)
    return Call("PATCH", f"/api/studies/{study_id}", StudyRead, json=changes)


def delete_study(study_id: int) -> Call[None]:
    """Delete a study for good."""
    return Call("DELETE", f"/api/studies/{study_id}", type(None))


def submit(
    study_id: int, body: SweepCreate, *, idempotency_key: str | None = None
) -> Call[SweepSubmitted]:
    """Submit a sweep; the same key twice submits once."""
    headers = {"Idempotency-Key": idempotency_key} if idempotency_key else {}
    path = f"/api/studies/{study_id}/sweeps"
    return Call("POST", path, SweepSubmitted, json=_body(body), headers=headers)


def submit_into(
    study: StudyCreate,
    body: SweepCreate,
    *,
    reuse: bool = False,
    idempotency_key: str | None = None,
) -> Call[SweepSubmitted]:
    """Submit a sweep into a study made for it, or with `reuse` into the one of that name."""
    headers = {"Idempotency-Key": idempotency_key} if idempotency_key else {}
    whole = {"study": study.model_dump(mode="json"), "sweep": _body(body), "reuse": reuse}
    return Call("POST", "/api/sweeps", SweepSubmitted, json=whole, headers=headers)


def forecast(body: SweepCreate) -> Call[DryRunRead]:
    """What submitting would mean."""
    return Call("POST", "/api/forecast", DryRunRead, json=_body(body))


def dry_run(study_id: int, body: SweepCreate) -> Call[DryRunRead]:
    """What submitting into a study would mean."""
    path = f"/api/studies/{study_id}/sweeps"
    return Call("POST", path, DryRunRead, query={"dry_run": "true"}, json=_body(body))


def _body(body: SweepCreate) -> Any:
    # What was not set must stay unset: beside a preset, a value replaces the preset's.
    return body.given()


def sweeps(study_id: int, **paging: Any) -> Call[Page[SweepRead]]:
    """A study's sweeps."""
    return Call("GET", f"/api/studies/{study_id}/sweeps", Page[SweepRead], query=paging)


def sweep(sweep_id: int) -> Call[SweepRead]:
    """One sweep and how far it is."""
    return Call("GET", f"/api/sweeps/{sweep_id}", SweepRead)


def cancel(sweep_id: int) -> Call[SweepRead]:
    """Stop a sweep."""
    return Call("POST", f"/api/sweeps/{sweep_id}/cancel", SweepRead)


def retry(sweep_id: int) -> Call[SweepRead]:
    """Run a sweep's failed and cancelled trials again."""
    return Call("POST", f"/api/sweeps/{sweep_id}/retry", SweepRead)


def trials(sweep_id: int, **filters: Any) -> Call[Page[TrialRead]]:
    """One page of a sweep's trials."""
    return Call("GET", f"/api/sweeps/{sweep_id}/trials", Page[TrialRead], query=filters)


def trial(trial_id: int) -> Call[TrialRead]:
    """One trial with its record."""
    return Call("GET", f"/api/trials/{trial_id}", TrialRead)


def curve(
    trial_id: int, *, after: int | None = None, max_points: int | None = None
) -> Call[CurveRead]:
    """A trial's losses by step."""
    query = {"after": after, "max_points": max_points}
    return Call("GET", f"/api/trials/{trial_id}/curve", CurveRead, query=query)


def recording(trial_id: int, *, rows: int | None = None) -> Call[RecordingRead]:
    """A trial's norms and sharpness by step, and why it broke, in words."""
    return Call("GET", f"/api/trials/{trial_id}/recording", RecordingRead, query={"rows": rows})


def replay(trial_id: int, *, device: str = "auto") -> Call[RecordingRead]:
    """Have a worker train a trial again alone, recording every step around its break."""
    return Call("POST", f"/api/trials/{trial_id}/replay", RecordingRead, json={"device": device})


def sensitivity(
    study_id: int,
    *,
    metric: Metric = "train_loss",
    reducer: Reducer = "final",
    band: Band = "std",
    task: str | None = None,
) -> Call[SensitivityRead]:
    """A study's curves, or those of one task."""
    query = {"metric": metric, "reducer": reducer, "band": band, "task": task}
    return Call("GET", f"/api/studies/{study_id}/sensitivity", SensitivityRead, query=query)


def scorecard(
    study_id: int,
    *,
    metric: Metric = "train_loss",
    reducer: Reducer = "final",
    task: str | None = None,
) -> Call[ScorecardRead]:
    """A study's robustness numbers, or those of one task."""
    query = {"metric": metric, "reducer": reducer, "task": task}
    return Call("GET", f"/api/studies/{study_id}/scorecard", ScorecardRead, query=query)


def learning(
    study_id: int,
    *,
    metric: LossMetric = "train_loss",
    smooth: int = 1,
    points: int | None = None,
    series: Iterable[str] = (),
    task: str | None = None,
) -> Call[LearningRead]:
    """A study's losses over training; of the series named, or of all."""
    query = {"metric": metric, "smooth": smooth, "points": points, "task": task}
    asked = {**query, "series": list(series)}
    return Call("GET", f"/api/studies/{study_id}/learning", LearningRead, query=asked)


def measure_steps(study_id: int, *, device: str = "auto") -> Call[TimingsRead]:
    """Have a worker measure what a step of every method costs on a study's networks."""
    return Call("POST", f"/api/studies/{study_id}/timing", TimingsRead, json={"device": device})


def step_timing(study_id: int) -> Call[TimingsRead]:
    """How far the measuring of a study's step costs is."""
    return Call("GET", f"/api/studies/{study_id}/timing", TimingsRead)


def theorem(study_id: int) -> Call[TheoremRead]:
    """The average of App. C's theorem, from a study's trials with restarts."""
    return Call("GET", f"/api/studies/{study_id}/theorem", TheoremRead)


def differences(
    study_id: int,
    *,
    kind: DifferenceKind = "method",
    metric: Metric = "train_loss",
    reducer: Reducer = "final",
    task: str | None = None,
) -> Call[DifferencesRead]:
    """Paired differences: methods minus EB, clipped minus unclipped, or engine by engine."""
    query = {"kind": kind, "metric": metric, "reducer": reducer, "task": task}
    return Call("GET", f"/api/studies/{study_id}/differences", DifferencesRead, query=query)


def compare(
    study_ids: Iterable[int],
    *,
    metric: Metric = "train_loss",
    reducer: Reducer = "final",
    band: Band = "std",
) -> Call[CompareRead]:
    """Several studies on one axis."""
    query = {"study": list(study_ids), "metric": metric, "reducer": reducer, "band": band}
    return Call("GET", "/api/compare", CompareRead, query=query)


def workers() -> Call[Page[WorkerRead]]:
    """Who trains."""
    return Call("GET", "/api/workers", Page[WorkerRead])


def queue() -> Call[QueueRead]:
    """How much waits."""
    return Call("GET", "/api/queue", QueueRead)


def storage() -> Call[StorageRead]:
    """How much room everything takes."""
    return Call("GET", "/api/storage", StorageRead)


def quadratic(**parameters: Any) -> Call[QuadraticRead]:
    """Descent on a one-dimensional loss."""
    return Call("GET", "/api/illustrations/quadratic", QuadraticRead, query=parameters)


def update(**parameters: Any) -> Call[UpdateRead]:
    """One node's update."""
    return Call("GET", "/api/illustrations/update", UpdateRead, query=parameters)


def race() -> Call[RaceRead]:
    """The start page's race."""
    return Call("GET", "/api/illustrations/race", RaceRead)


class StudyCalls(Sender):
    """What needs no more than to be sent."""

    health = sends(health)
    ready = sends(ready)
    catalog = sends(catalog)
    paper = sends(paper)
    begin_first_study = sends(begin_first_study)
    bundle = sends(bundle)
    load_bundle = sends(load_bundle)
    tables = sends(tables)
    study = sends(study)
    update_study = sends(update_study)
    delete_study = sends(delete_study)
    sweeps = sends(sweeps)
    sweep = sends(sweep)
    cancel = sends(cancel)
    retry = sends(retry)
    trial = sends(trial)
    curve = sends(curve)
    recording = sends(recording)
    replay = sends(replay)
    sensitivity = sends(sensitivity)
    scorecard = sends(scorecard)
    learning = sends(learning)
    measure_steps = sends(measure_steps)
    step_timing = sends(step_timing)
    theorem = sends(theorem)
    differences = sends(differences)
    compare = sends(compare)
    workers = sends(workers)
    queue = sends(queue)
    storage = sends(storage)
    quadratic = sends(quadratic)
    update = sends(update)
    race = sends(race)
