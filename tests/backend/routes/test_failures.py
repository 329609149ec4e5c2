"""One error shape, whatever goes wrong and wherever."""

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from pydantic import ValidationError
from sqlalchemy import func, select
from sqlalchemy.exc import OperationalError

from backend.app import create_app
from backend.db import reading
from backend.models import StudyRow
from backend.schemas import StudyCreate
from backend.schemas.base import MOST_FIELDS, Input
from backend.services import studies
from backend.services.accounts import Caller
from backend.web import gate
from tests.backend.accounts import team_settings

SHAPE = {"code", "message", "field", "hint"}
JSON = {"Content-Type": "application/json"}


def error_of(answer) -> dict:
    assert answer.headers["content-type"].startswith("application/json")
    assert set(answer.json()) == {"error"}
    assert set(answer.json()["error"]) == SHAPE
    return answer.json()["error"]


@pytest.mark.parametrize("path", ["/api/typo", "/api/", "/api", "/api/studies/1/typo"])
@pytest.mark.parametrize("method", ["GET", "POST", "DELETE"])
def test_unknown_paths_are_not_found_as_json(api: TestClient, method: str, path: str) -> None:
    answer = api.request(method, path)
    assert answer.status_code == 404
    assert error_of(answer)["code"] == "not_found"


def test_a_wrong_method_lists_all_the_path_has(api: TestClient) -> None:
    answer = api.put("/api/studies")
    assert answer.status_code == 405
    assert answer.headers["allow"] == "GET, POST"
    assert "GET, POST" in error_of(answer)["message"]
    assert api.post("/api/studies/1").headers["allow"] == "DELETE, GET, PATCH"


@pytest.mark.parametrize("body", ["{", "", "[", '{"name": }', "nope"])
def test_a_body_that_is_no_json_is_refused(api: TestClient, body: str) -> None:
    answer = api.post("/api/studies", content=body, headers=JSON)
    assert answer.status_code in (400, 422)
    assert error_of(answer)["message"]


@pytest.mark.parametrize("body", ["[]", "3", "null", '"x"'])
def test_a_body_that_is_no_object_is_refused(api: TestClient, body: str) -> None:
    answer = api.post("/api/studies", content=body, headers=JSON)
    assert answer.status_code == 422
    assert "JSON" in error_of(answer)["message"]


def test_a_body_without_its_type_is_refused_with_a_hint(api: TestClient) -> None:
    answer = api.post("/api/studies", content=b'{"name": "x"}')
    assert answer.status_code == 422
    assert "application/json" in error_of(answer)["hint"]


def test_a_body_nested_too_deep_does_not_break_us(api: TestClient) -> None:
    answer = api.post("/api/studies", content="[" * 100_000, headers=JSON)
    assert answer.status_code in (400, 422)
    assert error_of(answer)["message"]


def test_an_unknown_id_says_what_it_is(api: TestClient) -> None:
    answer = api.get("/api/studies/12")
    assert answer.status_code == 404
    assert error_of(answer)["message"] == "There is no study 12."


def test_what_is_asked_twice_is_refused_where_one_is_meant(api: TestClient, trained: int) -> None:
    answer = api.get("/api/studies?task=a&limit=2&task=b")
    assert answer.status_code == 422
    assert error_of(answer)["message"] == "task was given 2 times; give it once."
    assert api.get(f"/api/compare?study={trained}&study={trained}").status_code == 200


def test_an_unforeseen_fault_shows_an_id_and_no_traceback(
    api: TestClient, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(*_args: object, **_kwargs: object) -> None:
        raise RuntimeError("the secret inside")

    monkeypatch.setattr(studies, "get", broken)
    answer = api.get("/api/studies/1")
    assert answer.status_code == 500
    assert "secret" not in answer.text
    assert "Traceback" not in answer.text
    request_id = answer.headers["x-request-id"]
    assert request_id in error_of(answer)["hint"]
    assert request_id in caplog.text
    assert "the secret inside" in caplog.text


def test_a_database_that_is_away_is_503(api: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    def away(*_args: object, **_kwargs: object) -> None:
        raise OperationalError("SELECT", {}, Exception("postgresql://user:secret@host"))

    monkeypatch.setattr(studies, "get", away)
    answer = api.get("/api/studies/1")
    assert answer.status_code == 503
    assert answer.headers["retry-after"]
    assert "secret" not in answer.text
    assert error_of(answer)["code"] == "unavailable"


def test_what_is_stored_for_somebody_deleted_meanwhile_is_a_conflict(
    database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = Caller("gone", "member", 12, token_id=1)  # let in a moment ago
    monkeypatch.setattr(gate, "_by_token", lambda _: gone)
    team = TestClient(create_app(team_settings()), base_url="http://127.0.0.1")
    sweep = {"task": "x", "where": "agents", "learning_rates": [0.1]}
    for path, body in (
        ("/api/studies", {"name": "x"}),
        ("/api/sweeps", {"study": {"name": "x"}, "sweep": sweep}),
    ):
        answer = team.post(path, json=body, headers={"Authorization": "Bearer x"})
        assert answer.status_code == 409, answer.text
        assert "deleted at this moment" in error_of(answer)["message"]
    with reading() as session:
        assert session.scalar(select(func.count(StudyRow.id))) == 0


def test_request_ids_are_passed_on_if_they_are_harmless(api: TestClient) -> None:
    good = api.get("/api/health", headers={"X-Request-ID": "abc-1"})
    evil = api.get("/api/health", headers={"X-Request-ID": "a b\tc"})
    assert good.headers["x-request-id"] == "abc-1"
    assert evil.headers["x-request-id"] != "a b\tc"


def test_with_accounts_on_strangers_are_refused(app: FastAPI) -> None:
    app.state.settings = app.state.settings.model_copy(update={"auth": True})
    client = TestClient(app, base_url="http://127.0.0.1")
    for path in ("/api/studies", "/api/catalog", "/metrics", "/api/me", "/api/compare?study=1"):
        answer = client.get(path)
        assert answer.status_code == 401, path
        assert error_of(answer)["code"] == "unauthorized"
    assert client.get("/api/health").status_code == 200


def test_with_accounts_on_the_document_says_which_calls_take_a_token() -> None:
    document = create_app(team_settings()).openapi()
    scheme = document["components"]["securitySchemes"]["token"]
    assert (scheme["type"], scheme["scheme"]) == ("http", "bearer")
    assert document["security"] == [{"token": []}]
    assert document["paths"]["/api/health"]["get"]["security"] == []
    assert "security" not in document["paths"]["/api/studies"]["get"]


def test_a_body_full_of_unknown_names_costs_no_finding_each(api: TestClient) -> None:
    names = {f"n{number}": 0 for number in range(50_000)}
    with pytest.raises(ValidationError) as caught:
        StudyCreate.model_validate({**names, "name": "x"})
    assert caught.value.error_count() <= MOST_FIELDS + 1
    answer = api.post("/api/studies", json={"name": "x", **names})
    assert answer.status_code == 422
    assert error_of(answer)["message"] == "There is no field 'n0'. Known: name, tags, notes."


def test_no_input_has_as_many_fields_as_are_looked_at() -> None:
    kinds = Input.__subclasses__()
    assert kinds
    assert all(len(kind.model_fields) < MOST_FIELDS for kind in kinds)
