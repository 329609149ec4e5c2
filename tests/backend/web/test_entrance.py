"""The login page: it lets in, says why not, and leads nowhere else."""

import pytest
from fastapi.testclient import TestClient

from backend.services.accounts import passwords
from backend.services.accounts.people import _invitation_key
from backend.web import pages
from backend.web.pages import local_path, login_address
from tests.backend.accounts import PASSWORD, SECRET, Person, fresh

HTML = {"Accept": "text/html"}

ELSEWHERE = [
    "https://evil.example",
    "//evil.example",
    "///evil.example",
    "/\\evil.example",
    "\\\\evil.example",
    "http:evil.example",
    "javascript:alert(1)",
    "/\t/evil.example",
    "/\n/evil.example",
    "evil.example",
    "/" + "x" * 5000,
    "/login?next=//evil.example",
    "",
]


@pytest.mark.parametrize("wish", ELSEWHERE)
def test_no_wish_leads_elsewhere(wish: str) -> None:
    assert local_path(wish) == "/"


@pytest.mark.parametrize("wish", ["/", "/studies/3?split=test&y=log", "/new?lrs=0.1,1", "/a//b"])
def test_our_own_pages_are_kept(wish: str) -> None:
    assert local_path(wish) == wish


@pytest.mark.parametrize("wish", ELSEWHERE)
def test_the_form_does_not_redirect_elsewhere(team: TestClient, ada: Person, wish: str) -> None:
    with fresh(team):
        form = {"username": "ada", "password": PASSWORD, "next": wish}
        answer = team.post("/login", data=form)
        assert (answer.status_code, answer.headers["location"]) == (303, "/")
    assert login_address(wish) == "/login"


def test_a_right_password_leads_to_where_one_wanted_to_go(team: TestClient, ada: Person) -> None:
    with fresh(team):
        page = team.get("/login", params={"next": "/studies/3?y=log"})
        assert page.status_code == 200
        assert 'value="/studies/3?y=log"' in page.text
        form = {"username": "Ada ", "password": PASSWORD, "next": "/studies/3?y=log"}
        answer = team.post("/login", data=form)
        assert answer.headers["location"] == "/studies/3?y=log"
        assert pages.SESSION_COOKIE in answer.cookies
        assert team.get("/login").headers["location"] == "/"


def test_what_somebody_typed_is_shown_as_text(team: TestClient, ada: Person) -> None:
    name = '"><script>alert(1)</script>'
    page = team.post("/login", data={"username": name, "password": "x", "next": "/'\"><b>"})
    assert page.status_code == 401
    assert "<script>" not in page.text
    assert "<b>" not in page.text
    assert "The name or the password is wrong." in page.text
    policy = page.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "frame-ancestors 'none'" in policy


def test_the_page_says_how_long_to_wait(team: TestClient, ada: Person) -> None:
    form = {"username": "ada", "password": "wrong"}
    for _ in range(passwords.FREE_PER_ACCOUNT):
        assert team.post("/login", data=form).status_code == 401
    page = team.post("/login", data=form | {"password": PASSWORD})
    assert page.status_code == 429
    assert "Too many failed logins. Try again in 30 seconds." in page.text
    call = team.post("/api/auth/login", json=form)
    assert call.status_code == 429
    assert 0 < int(call.headers["retry-after"]) <= 30
    # Claiming another address does not help.
    spoofed = {"X-Forwarded-For": "10.1.2.3", "X-Real-IP": "10.1.2.3"}
    assert team.post("/api/auth/login", json=form, headers=spoofed).status_code == 429


@pytest.mark.parametrize("body", [b"", b"\xff\xfe", b"a" * 10_000, b"&".join([b"a=1"] * 50)])
def test_a_form_that_is_none_is_a_failed_login(team: TestClient, ada: Person, body: bytes) -> None:
    assert team.post("/login", content=body).status_code == 401


def test_the_first_admin_s_link_works_once(team: TestClient) -> None:
    with fresh(team):
        assert team.get("/welcome", headers=HTML).status_code == 200
        form = {"username": "ada", "password": PASSWORD, "key": "wrong"}
        assert team.post("/welcome", data=form).status_code == 403
        weak = team.post(
            "/welcome", data=form | {"password": "short", "key": _invitation_key(SECRET)}
        )
        assert weak.status_code == 422
        assert f'value="{_invitation_key(SECRET)}"' in weak.text  # one need not open the link again
        bad = team.post("/welcome", data=form | {"username": "A B", "key": _invitation_key(SECRET)})
        assert bad.status_code == 422
        done = team.post("/welcome", data=form | {"key": _invitation_key(SECRET)})
        assert done.status_code == 303
        assert team.get("/api/me").json()["role"] == "admin"
    with fresh(team):
        assert team.get("/welcome").headers["location"] == "/login"
        second = team.post(
            "/welcome", data=form | {"username": "eve", "key": _invitation_key(SECRET)}
        )
        assert second.status_code == 403


def test_there_is_no_login_page_without_accounts(api: TestClient) -> None:
    assert api.get("/login").status_code == 404
    answer = api.post("/api/auth/login", json={"username": "ada", "password": PASSWORD})
    assert answer.status_code == 409
    assert "Accounts are off" in answer.json()["error"]["message"]
