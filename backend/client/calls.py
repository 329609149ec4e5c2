"""Every request a client can make, as a value: what to send, and what the answer is."""

from collections.abc import Iterable
from typing import Any

from backend.client.answers import Call
from backend.schemas import (
    AuditRead,
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
    ImportRead,
    LoginCreate,
    MeRead,
    Metric,
    NoteCreate,
    NoteRead,
    Page,
    PaperRead,
    PasswordChange,
    PasswordRead,
    PersonRead,
    QuadraticRead,
    QueueRead,
    RaceRead,
    ReadyRead,
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
    TokenCreate,
    TokenCreated,
    TokenRead,
    TrialRead,
    UpdateRead,
    UserCreate,
    UserCreated,
    UserRead,
    UserUpdate,
    ViewCreate,
    ViewRead,
    WorkerRead,
)


def health() -> Call[HealthRead]:
    """Whether the process answers."""
    return Call("GET", "/api/health", HealthRead)


def ready() -> Call[ReadyRead]:
    """Whether sweeps would be run; "no" is an answer too."""
    return Call("GET", "/api/ready", ReadyRead, accepted=(503,))


def me() -> Call[MeRead]:
    """Who is asking."""
    return Call("GET", "/api/me", MeRead)


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


def sensitivity(
    study_id: int,
    *,
    metric: Metric = "train_loss",
    reducer: Reducer = "final",
    band: Band = "std",
) -> Call[SensitivityRead]:
    """A study's curves."""
    query = {"metric": metric, "reducer": reducer, "band": band}
    return Call("GET", f"/api/studies/{study_id}/sensitivity", SensitivityRead, query=query)


def scorecard(
    study_id: int, *, metric: Metric = "train_loss", reducer: Reducer = "final"
) -> Call[ScorecardRead]:
    """A study's robustness numbers."""
    query = {"metric": metric, "reducer": reducer}
    return Call("GET", f"/api/studies/{study_id}/scorecard", ScorecardRead, query=query)


def differences(
    study_id: int,
    *,
    kind: DifferenceKind = "method",
    metric: Metric = "train_loss",
    reducer: Reducer = "final",
) -> Call[DifferencesRead]:
    """Paired differences: methods minus EB, clipped minus unclipped, or engine by engine."""
    query = {"kind": kind, "metric": metric, "reducer": reducer}
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


def import_runs(
    content: bytes | Iterable[bytes],
    *,
    filename: str = "",
    study_id: int | None = None,
    name: str | None = None,
) -> Call[ImportRead]:
    """Bring runs made elsewhere into a study, a new one unless an id is given."""
    query = {"study_id": study_id, "name": name, "filename": filename or None}
    headers = {"Content-Type": "application/octet-stream"}
    return Call("POST", "/api/import", ImportRead, query=query, content=content, headers=headers)


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


def log_in(body: LoginCreate) -> Call[MeRead]:
    """Begin a login by cookie; programs do better with a token."""
    return Call("POST", "/api/auth/login", MeRead, json=body.model_dump())


def log_out() -> Call[None]:
    """End the login."""
    return Call("POST", "/api/auth/logout", type(None))


def change_password(body: PasswordChange) -> Call[None]:
    """Change one's own password."""
    return Call("POST", "/api/auth/password", type(None), json=body.model_dump())


def people() -> Call[Page[PersonRead]]:
    """Everybody's name."""
    return Call("GET", "/api/people", Page[PersonRead])


def tokens() -> Call[Page[TokenRead]]:
    """One's own tokens."""
    return Call("GET", "/api/tokens", Page[TokenRead])


def create_token(body: TokenCreate) -> Call[TokenCreated]:
    """Make a token; the answer is the only place its text is in."""
    return Call("POST", "/api/tokens", TokenCreated, json=body.model_dump())


def revoke_token(token_id: int) -> Call[None]:
    """End a token."""
    return Call("DELETE", f"/api/tokens/{token_id}", type(None))


def users() -> Call[Page[UserRead]]:
    """Every account."""
    return Call("GET", "/api/users", Page[UserRead])


def user(user_id: int) -> Call[UserRead]:
    """One account."""
    return Call("GET", f"/api/users/{user_id}", UserRead)


def create_user(body: UserCreate) -> Call[UserCreated]:
    """Create an account."""
    return Call("POST", "/api/users", UserCreated, json=body.model_dump())


def update_user(user_id: int, body: UserUpdate) -> Call[UserRead]:
    """Change a role, lock out or let in again."""
    changes = body.model_dump(exclude_unset=True)
    return Call("PATCH", f"/api/users/{user_id}", UserRead, json=changes)


def delete_user(user_id: int) -> Call[None]:
    """Delete an account."""
    return Call("DELETE", f"/api/users/{user_id}", type(None))


def reset_password(user_id: int) -> Call[PasswordRead]:
    """Give somebody a made-up password."""
    return Call("POST", f"/api/users/{user_id}/password", PasswordRead, json={})


def audit(**query: Any) -> Call[Page[AuditRead]]:
    """Who did what, to one study (`study_id`) or at all."""
    return Call("GET", "/api/audit", Page[AuditRead], query=query)


def notes(study_id: int, **paging: Any) -> Call[Page[NoteRead]]:
    """What people remarked about a study."""
    return Call("GET", f"/api/studies/{study_id}/notes", Page[NoteRead], query=paging)


def add_note(study_id: int, body: NoteCreate) -> Call[NoteRead]:
    """Remark something about a study."""
    return Call("POST", f"/api/studies/{study_id}/notes", NoteRead, json=body.model_dump())


def delete_note(note_id: int) -> Call[None]:
    """Delete a note of one's own."""
    return Call("DELETE", f"/api/notes/{note_id}", type(None))


def views() -> Call[Page[ViewRead]]:
    """One's own views of the history."""
    return Call("GET", "/api/views", Page[ViewRead])


def save_view(body: ViewCreate) -> Call[ViewRead]:
    """Keep filters of the history under a name."""
    return Call("POST", "/api/views", ViewRead, json=body.model_dump(exclude_none=True))


def delete_view(view_id: int) -> Call[None]:
    """Delete a view."""
    return Call("DELETE", f"/api/views/{view_id}", type(None))
