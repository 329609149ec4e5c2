"""Every route, and what each kind of caller gets from it. A route that is not here fails a test."""

from dataclasses import dataclass, field
from typing import Any

from tests.backend.accounts import PASSWORD
from tests.backend.conftest import BODY
from tests.backend.matrix.world import AGENT, KNOWN, STRANGERS

REFUSED = dict.fromkeys(STRANGERS, 401)


@dataclass(frozen=True)
class Rule:
    """What a route answers.

    Attributes:
        allowed: Who may; they get `ok`.
        ok: The status of success.
        body: What to send.
        query: With which parameters.
        content: Or raw.
        others: Statuses of particular callers, where 403 is not the answer.
        strangers: What who is not known gets.
    """

    allowed: tuple[str, ...] = KNOWN
    ok: int = 200
    body: Any = None
    query: dict[str, Any] = field(default_factory=dict)
    content: bytes | None = None
    others: dict[str, int] = field(default_factory=dict)
    strangers: int = 401

    def expected(self, role: str) -> int:
        if role in self.others:
            return self.others[role]
        if role in STRANGERS:
            return self.strangers
        if role == AGENT and self.strangers != 401:
            return self.strangers  # open to everybody
        return self.ok if role in self.allowed else 403


WRITERS = ("other", "owner", "admin")
OWNERS = ("owner", "admin")
PEOPLE = ("viewer", "other", "owner", "admin")
ADMINS = ("admin",)
CSV = b"dataset,method,lr,seed,train_loss,epochs\njsb,eb,0.1,1,2.5,1\n"
RUN = {"key": "a-run-of-mine", "study": "mine", "task": "t", "method": "adam", "lr": 0.1}
READ = Rule()
NEW_PASSWORD = {"current": PASSWORD, "new": PASSWORD}

RULES: dict[tuple[str, str], Rule] = {
    # Open to everybody
    ("GET", "/api/health"): Rule(strangers=200),
    ("GET", "/api/ready"): Rule(ok=503, strangers=503),  # there is no worker here
    ("POST", "/api/auth/login"): Rule(
        body={"username": "vera", "password": PASSWORD}, strangers=200
    ),
    # The service
    ("GET", "/api/workers"): READ,
    ("GET", "/api/queue"): READ,
    ("GET", "/api/storage"): READ,
    ("GET", "/metrics"): READ,
    ("GET", "/api/catalog"): READ,
    ("GET", "/api/paper"): READ,
    ("GET", "/api/illustrations/quadratic"): READ,
    ("GET", "/api/illustrations/update"): READ,
    ("GET", "/api/illustrations/race"): READ,
    ("POST", "/api/first-study"): Rule(WRITERS),
    ("GET", "/api/bundle"): READ,
    ("GET", "/api/bundle/tables"): READ,
    ("POST", "/api/bundle"): Rule(WRITERS, 202),
    # Oneself
    ("GET", "/api/me"): READ,
    ("GET", "/api/people"): READ,
    ("POST", "/api/auth/logout"): Rule(ok=204),
    ("POST", "/api/auth/password"): Rule(PEOPLE, 204, NEW_PASSWORD),
    ("GET", "/api/tokens"): READ,
    ("POST", "/api/tokens"): Rule(PEOPLE, 201, {"name": "t", "scope": "read"}),
    ("DELETE", "/api/tokens/{token_id}"): Rule(OWNERS, 204, others={"viewer": 404, "other": 404}),
    ("GET", "/api/views"): READ,
    ("POST", "/api/views"): Rule(PEOPLE, 201, {"name": "mine", "filters": {"q": "x"}}),
    ("DELETE", "/api/views/{view_id}"): Rule(
        ("owner",), 204, others={"viewer": 404, "other": 404, "admin": 404}
    ),
    # Accounts
    ("GET", "/api/users"): Rule(ADMINS),
    ("POST", "/api/users"): Rule(ADMINS, 201, {"username": "new"}),
    ("GET", "/api/users/{user_id}"): Rule(ADMINS),
    ("PATCH", "/api/users/{user_id}"): Rule(ADMINS, body={"role": "viewer"}),
    ("DELETE", "/api/users/{user_id}"): Rule(ADMINS, 204),
    ("POST", "/api/users/{user_id}/password"): Rule(ADMINS, body={}),
    ("GET", "/api/audit"): Rule(ADMINS),
    # Studies: everybody reads, members create, owners change
    ("GET", "/api/studies"): READ,
    ("POST", "/api/studies"): Rule(WRITERS, 201, {"name": "new"}),
    ("GET", "/api/studies/{study_id}"): READ,
    ("PATCH", "/api/studies/{study_id}"): Rule(OWNERS, body={"archived": True}),
    ("DELETE", "/api/studies/{study_id}"): Rule(OWNERS, 204),
    ("GET", "/api/studies/{study_id}/sensitivity"): READ,
    ("GET", "/api/studies/{study_id}/scorecard"): READ,
    ("GET", "/api/studies/{study_id}/theorem"): READ,
    ("GET", "/api/studies/{study_id}/learning"): READ,
    ("GET", "/api/studies/{study_id}/differences"): READ,
    ("GET", "/api/studies/{study_id}/timing"): READ,
    # Let in, and told that an empty study has no network to time.
    ("POST", "/api/studies/{study_id}/timing"): Rule(OWNERS, 409, {}),
    ("GET", "/api/compare"): Rule(query={"study": 1}),
    ("GET", "/api/studies/{study_id}/export"): READ,
    ("GET", "/api/publish"): Rule(query={"study": 1}),
    ("POST", "/api/import"): Rule(WRITERS, 201, content=CSV),
    ("GET", "/api/studies/{study_id}/notes"): READ,
    ("POST", "/api/studies/{study_id}/notes"): Rule(WRITERS, 201, {"text": "Look."}),
    ("DELETE", "/api/notes/{note_id}"): Rule(OWNERS, 204),
    # Sweeps and trials
    ("GET", "/api/studies/{study_id}/sweeps"): READ,
    ("POST", "/api/studies/{study_id}/sweeps"): Rule(OWNERS, 202, BODY),
    ("POST", "/api/sweeps"): Rule(WRITERS, 202, {"study": {"name": "a new one"}, "sweep": BODY}),
    ("POST", "/api/forecast"): Rule(WRITERS, 200, BODY),
    ("GET", "/api/sweeps/{sweep_id}"): READ,
    ("POST", "/api/sweeps/{sweep_id}/cancel"): Rule(OWNERS),
    ("POST", "/api/sweeps/{sweep_id}/retry"): Rule(OWNERS),
    # Cells: a token for agents may do these, and nothing else
    ("POST", "/api/sweeps/{sweep_id}/cells"): Rule(
        OWNERS, 200, {"agent": "me"}, others={"agent_token": 200}
    ),
    ("POST", "/api/sweeps/{sweep_id}/cells/{trial_id}"): Rule(
        OWNERS, 404, {"lease": 1}, others={"agent_token": 404}
    ),
    ("POST", "/api/runs"): Rule(WRITERS, 201, RUN),
    ("GET", "/api/sweeps/{sweep_id}/trials"): READ,
    ("GET", "/api/sweeps/{sweep_id}/events"): READ,
    ("GET", "/api/trials/{trial_id}"): READ,
    ("GET", "/api/trials/{trial_id}/curve"): READ,
    ("GET", "/api/trials/{trial_id}/recording"): READ,
    # Let in, and told that nothing was recorded; that a trial has to end first.
    ("GET", "/api/trials/{trial_id}/recording/export"): Rule(ok=404),
    ("POST", "/api/trials/{trial_id}/replay"): Rule(WRITERS, 409, {}),
}

#: What is served beside the documented API. Strangers who ask for a page are sent to log in.
OTHER_RULES: dict[tuple[str, str], Rule] = {
    ("GET", "/api/openapi.json"): READ,
    ("GET", "/api/docs"): READ,
    ("GET", "/api/nowhere"): Rule(ok=404),
    ("GET", "/login"): Rule(ok=200, strangers=200, others=dict.fromkeys(PEOPLE, 303)),
    ("GET", "/welcome"): Rule(ok=303, strangers=303),
    ("GET", "/dashboard/pulse"): READ,
    ("GET", "/assets/team.css"): READ,
    ("GET", "/_dash-layout"): READ,
    ("GET", "/_dash-dependencies"): READ,
    ("GET", "/_reload-hash"): READ,
    ("GET", "/_favicon.ico"): READ,
    ("GET", "/_dash-component-suites/dash/deps/polyfill@7.12.1.min.js"): READ,
}
