"""Team mode: nobody gets in by forging, guessing, fixing or spoofing anything."""

import hashlib
from datetime import UTC, datetime, timedelta

import pytest
from fastapi.testclient import TestClient
from sqlalchemy import select

from backend.db import transaction
from backend.models import SessionRow, TokenRow
from backend.schemas import CSRF_COOKIE, CSRF_HEADER
from backend.services import accounts
from backend.web.pages import SESSION_COOKIE
from tests.backend.accounts import PASSWORD, Person, bearer, fresh, token_of

LOGIN = {"username": "ada", "password": PASSWORD}


def test_a_path_nobody_opened_is_closed(team: TestClient) -> None:
    for path in ("/api/typo", "/api/docs", "/api/openapi.json", "/metrics", "/anything"):
        assert team.get(path).status_code == 401, path
    assert team.get("/api/health").status_code == 200
    assert team.get("/api/ready").status_code == 503  # no worker, and says so


def test_a_person_is_sent_to_the_login_page_and_a_program_told_why(team: TestClient) -> None:
    page = team.get("/studies/3?split=test", headers={"Accept": "text/html,*/*"})
    assert page.status_code == 303
    assert page.headers["location"] == "/login?next=%2Fstudies%2F3%3Fsplit%3Dtest"
    call = team.get("/api/studies", headers={"Accept": "text/html"})
    assert call.status_code == 401
    assert call.headers["www-authenticate"] == "Bearer"
    assert call.json()["error"]["code"] == "unauthorized"


@pytest.mark.parametrize(
    "header",
    [
        "X-Forwarded-User",
        "Remote-User",
        "X-Remote-User",
        "X-User",
        "X-Forwarded-For",
        "X-Real-IP",
        "X-Original-URL",
        "X-Rewrite-URL",
    ],
)
def test_no_header_but_authorization_and_cookie_makes_a_caller(
    team: TestClient, root: Person, header: str
) -> None:
    for value in ("root", "127.0.0.1", "/api/health"):
        assert team.get("/api/studies", headers={header: value}).status_code == 401


@pytest.mark.parametrize(
    "path", ["/api/health/../studies", "/login/../api/studies", "//api/health", "/api/health/x"]
)
def test_a_path_that_looks_like_an_open_one_is_not(team: TestClient, path: str) -> None:
    # Straight to the app: a client would tidy the path up.
    raw = team.build_request("GET", "/")
    raw.url = raw.url.copy_with(raw_path=path.encode())
    assert team.send(raw).status_code in (401, 303)


def test_guessed_tokens_are_refused_alike(team: TestClient, ada: Person) -> None:
    _, token = token_of(ada.id)
    with transaction() as session:
        stored = session.scalars(select(TokenRow.token_hash)).one()
    guesses = [
        "",
        "eta_",
        token[:-1],
        token[:12],
        token.swapcase(),
        token + "x",
        stored,
        f"eta_{stored}",
        hashlib.sha256(stored.encode()).hexdigest(),
        "x" * 100_000,
        "' OR 1=1 --",
        "eta_\x00",
    ]
    told = set()
    for guess in guesses:
        answer = team.get("/api/me", headers={"Authorization": b"Bearer " + guess.encode()})
        assert answer.status_code == 401, guess
        told.add(answer.json()["error"]["message"])
    assert len(told) == 1
    assert team.get("/api/me", headers={"Authorization": f"Basic {token}"}).status_code == 401
    assert team.get("/api/me", headers=bearer(token)).status_code == 200


def test_a_bad_token_is_not_saved_by_a_good_cookie(team: TestClient, ada: Person) -> None:
    assert team.get("/api/me", headers=ada.headers | bearer("eta_wrong")).status_code == 401


def test_a_login_never_takes_over_the_key_the_browser_brought(
    team: TestClient, ada: Person
) -> None:
    with fresh(team):
        planted = {"Cookie": f"{SESSION_COOKIE}=planted-by-somebody"}
        answer = team.post("/api/auth/login", json=LOGIN, headers=planted)
        assert answer.status_code == 200
        key = answer.cookies[SESSION_COOKIE]
        assert key != "planted-by-somebody"
        assert team.get("/api/me", headers=planted).status_code == 401
        again = team.post("/api/auth/login", json=LOGIN).cookies[SESSION_COOKIE]
        assert again != key


def test_the_cookie_is_out_of_reach_of_scripts_and_other_sites(
    team: TestClient, ada: Person
) -> None:
    with fresh(team):
        plain = team.post("/api/auth/login", json=LOGIN).headers.get_list("set-cookie")
        secure = team.post("https://etascope.example/api/auth/login", json=LOGIN)
    session, csrf = sorted(plain, key=lambda line: CSRF_COOKIE in line)
    assert "HttpOnly" in session
    assert "SameSite=lax" in session
    assert "Secure" not in session
    assert "HttpOnly" not in csrf
    assert all("Secure" in line for line in secure.headers.get_list("set-cookie"))


FORGERIES = {
    "no proof": {CSRF_HEADER: ""},
    "a made-up proof": {CSRF_HEADER: "0" * 64},
    "another site": {"Sec-Fetch-Site": "cross-site"},
    "a neighbouring site": {"Sec-Fetch-Site": "same-site"},
    "an old browser on another site": {"Sec-Fetch-Site": None, "Origin": "https://evil.example"},
    "a page without an origin": {"Sec-Fetch-Site": None, "Origin": "null"},
}


@pytest.mark.parametrize("forgery", FORGERIES.values(), ids=FORGERIES)
def test_a_browser_s_write_needs_proof_that_it_is_ours(
    team: TestClient, ada: Person, forgery: dict[str, str | None]
) -> None:
    sent = {name: value for name, value in (ada.headers | forgery).items() if value is not None}
    for path in ("/api/studies", "/api/auth/logout", "/_dash-update-component"):
        answer = team.post(path, json={"name": "x"}, headers=sent)
        assert answer.status_code == 403, path
    assert team.get("/api/studies", headers=ada.headers).json()["items"] == []
    assert team.post("/api/studies", json={"name": "x"}, headers=ada.headers).status_code == 201


def test_one_login_s_proof_is_not_another_s(team: TestClient, ada: Person, root: Person) -> None:
    mixed = ada.headers | {CSRF_HEADER: root.headers[CSRF_HEADER]}
    assert team.post("/api/studies", json={"name": "x"}, headers=mixed).status_code == 403


def test_another_site_cannot_log_somebody_in(team: TestClient, ada: Person) -> None:
    foreign = {"Origin": "https://evil.example", "Sec-Fetch-Site": "cross-site"}
    assert team.post("/api/auth/login", json=LOGIN, headers=foreign).status_code == 403
    assert team.post("/login", data=LOGIN, headers=foreign).status_code == 403


def test_who_is_locked_out_or_deleted_is_out_at_once(
    team: TestClient, ada: Person, root: Person
) -> None:
    _, token = token_of(ada.id, "write")
    for headers in (ada.headers, bearer(token)):
        assert team.get("/api/me", headers=headers).status_code == 200
    locked = team.patch(f"/api/users/{ada.id}", json={"disabled": True}, headers=root.headers)
    assert locked.json()["disabled"]
    for headers in (ada.headers, bearer(token)):
        assert team.get("/api/me", headers=headers).status_code == 401
    team.patch(f"/api/users/{ada.id}", json={"disabled": False}, headers=root.headers)
    assert team.get("/api/me", headers=bearer(token)).status_code == 200
    assert team.delete(f"/api/users/{ada.id}", headers=root.headers).status_code == 204
    assert team.get("/api/me", headers=bearer(token)).status_code == 401


def test_logging_out_ends_the_login_on_the_server(team: TestClient, ada: Person) -> None:
    assert team.post("/api/auth/logout", headers=ada.headers).status_code == 204
    assert team.get("/api/me", headers=ada.headers).status_code == 401
    with transaction() as session:
        assert session.scalars(select(SessionRow).where(SessionRow.user_id == ada.id)).all() == []


def test_a_role_counts_from_the_next_request_on(team: TestClient, ada: Person) -> None:
    assert team.post("/api/studies", json={"name": "x"}, headers=ada.headers).status_code == 201
    with transaction() as session:
        accounts.change_user(session, user_id=ada.id, role="viewer")
    refused = team.post("/api/studies", json={"name": "x"}, headers=ada.headers)
    assert refused.status_code == 403
    assert "Viewers may read only" in refused.json()["error"]["message"]


def test_only_a_login_or_an_admin_s_token_makes_tokens(team: TestClient, root: Person) -> None:
    _, read = token_of(root.id, "read")
    _, write = token_of(root.id, "write")
    body = {"name": "more", "scope": "admin"}
    assert team.post("/api/tokens", json=body, headers=bearer(read)).status_code == 403
    assert team.post("/api/tokens", json=body, headers=bearer(write)).status_code == 403
    weaker = team.post("/api/tokens", json=body | {"scope": "read"}, headers=bearer(write))
    assert weaker.status_code == 403
    assert "cannot make others" in weaker.json()["error"]["message"]
    _, brief = token_of(root.id, "admin", days=9 / 86_400)
    made = team.post("/api/tokens", json=body | {"days": 90}, headers=bearer(brief)).json()
    left = datetime.fromisoformat(made["expires_at"]) - datetime.now(UTC)
    assert left < timedelta(seconds=10)
    change = {"current": PASSWORD, "new": "another long password"}
    assert team.post("/api/auth/password", json=change, headers=bearer(write)).status_code == 403


def test_a_reset_says_how_many_tokens_ended_with_the_password(
    team: TestClient, root: Person, ada: Person
) -> None:
    _, token = token_of(ada.id, "read")
    path = f"/api/users/{ada.id}/password"
    kept = team.post(path, json={"keep_tokens": True}, headers=root.headers).json()
    assert kept["tokens_revoked"] == 0
    assert team.get("/api/me", headers=bearer(token)).status_code == 200
    told = team.post(path, json={}, headers=root.headers).json()
    assert told["tokens_revoked"] == 1
    assert team.get("/api/me", headers=bearer(token)).status_code == 401


def test_a_token_s_use_is_remembered(team: TestClient, ada: Person) -> None:
    _, token = token_of(ada.id)
    (before,) = team.get("/api/tokens", headers=ada.headers).json()["items"]
    assert before["last_used_at"] is None
    team.get("/api/me", headers=bearer(token))
    (after,) = team.get("/api/tokens", headers=ada.headers).json()["items"]
    assert after["last_used_at"] is not None


def test_no_answer_can_be_put_into_another_site_s_frame(team: TestClient, ada: Person) -> None:
    for answer in (team.get("/login"), team.get("/api/me", headers=ada.headers), team.get("/x")):
        assert answer.headers["x-frame-options"] == "DENY"
