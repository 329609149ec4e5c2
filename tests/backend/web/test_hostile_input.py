"""Input made to do harm: it is stored as text, refused in a sentence, or cut off."""

import gzip
import json
import os
import pickle
import time
import zlib
from collections.abc import Callable
from typing import Any

import psutil
import pytest
from fastapi.testclient import TestClient

from backend.db import reading
from backend.schemas import SweepCreate
from backend.services import maintenance
from ib_core.errors import InvalidSpec

EVIL = [
    "'; DROP TABLE trials; --",
    '" OR 1=1; DELETE FROM studies; --',
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "[click](javascript:alert(1))",
    "{{7*7}} ${7*7} %(name)s {0.__class__}",
    "../../../../etc/passwd",
    "%_\\",
]


def ok(answer: Any) -> Any:
    assert answer.status_code < 300, answer.text
    assert answer.headers["content-type"].startswith("application/json")
    assert answer.headers["x-content-type-options"] == "nosniff"
    return answer.json()


@pytest.mark.parametrize("evil", EVIL)
def test_every_text_field_is_only_text(
    api: TestClient, study: int, submit: Callable[..., dict[str, Any]], evil: str
) -> None:
    submit()
    change = {"name": evil, "notes": evil, "tags": [evil[:50]]}
    changed = ok(api.patch(f"/api/studies/{study}", json=change))
    assert (changed["name"], changed["notes"]) == (evil, evil)
    assert submit(note=evil, seeds=[99])["note"] == evil
    for field in ("q", "tag", "owner", "task"):
        answer = api.get("/api/studies", params={field: evil})
        assert answer.status_code in (200, 422)
    assert [one["id"] for one in ok(api.get("/api/studies", params={"q": evil}))["items"]] in (
        [[study], []]  # a wildcard is a character like any other
    )
    assert ok(api.get(f"/api/studies/{study}"))["total"] == 18
    with reading() as session:
        assert maintenance.check(session) == []


@pytest.mark.parametrize("evil", EVIL)
def test_an_imported_name_is_only_text(api: TestClient, evil: str) -> None:
    cell = '"' + evil.replace('"', '""') + '"'
    runs = f"task,method,lr,seed,train_loss\n{cell},eb,1,1,0.5\n"
    answer = api.post("/api/import", content=runs, params={"filename": evil, "name": evil})
    study = ok(answer)["study_id"]
    assert ok(api.get(f"/api/studies/{study}"))["tasks"] == [evil]
    name = api.get(f"/api/studies/{study}/export").headers["content-disposition"]
    assert name == f'attachment; filename="study-{study}.csv"'


@pytest.mark.parametrize(
    "path",
    [
        "/assets/../../backend/settings.py",
        "/assets/..%2f..%2fbackend/settings.py",
        "/assets/%2e%2e/%2e%2e/pyproject.toml",
        "/assets//etc/passwd",
        "/_dash-component-suites/dash/../../../../../etc/passwd",
        "/_dash-component-suites/..%2f..%2fetc/passwd",
        "/api/../backend/settings.py",
        "/api/studies/..%2f..%2fetc/export",
    ],
)
def test_no_path_leads_out_of_the_served_folders(sqlite_database: str, path: str) -> None:
    from backend.cli.server import create_site

    client = TestClient(create_site(), base_url="http://127.0.0.1:8050")
    answer = client.get(path)
    for secret in ("root:", "class Settings", "[project]"):
        assert secret not in answer.text


@pytest.mark.parametrize("task", ["uci/../../etc/passwd", "music/../../x", "../toy", "uci/\x00"])
def test_no_data_name_leads_out_of_the_data_folder(api: TestClient, study: int, task: str) -> None:
    answer = api.post(f"/api/studies/{study}/sweeps", json={"task": task})
    assert answer.status_code == 422
    assert answer.json()["error"]["field"] == "task"


def _gzip_bomb() -> bytes:
    packer = zlib.compressobj(9, wbits=31)
    return packer.compress(b"a" * 50_000_000) + packer.flush()


def _nested(depth: int) -> bytes:
    return b"[" * depth + b"]" * depth


BOMBS: dict[str, tuple[Callable[[], bytes], int]] = {
    "a small file that unpacks to a large one": (_gzip_bomb, 413),
    "a million empty gzip files in a row": (lambda: gzip.compress(b"") * 1_000_000, 413),
    "a line of a million columns": (lambda: b"," * 1_000_000 + b"\n", 413),
    "many rows of many columns": (lambda: (b"x" + b"," * 9_999 + b"\n") * 3_000, 413),
    "one endless cell": (lambda: b"task,method\n" + b"a" * 20_000_000, 413),
    "one endless quoted cell": (lambda: b'task,method\n"' + b"\n" * 20_000_000, 422),
    "ten million objects": (lambda: b"[" + b"{}," * 10_000_000 + b"{}]", 413),
    "lists in lists": (lambda: _nested(3_000_000), 413),
    "lists in lists, not quite as many": (lambda: _nested(500_000), 422),
    "a number of a million digits": (
        lambda: b'[{"task": "x", "method": "eb", "lr": ' + b"9" * 1_000_000 + b"}]",
        422,
    ),
}


@pytest.mark.parametrize("name", BOMBS)
def test_bombs_are_refused_without_going_off(api: TestClient, name: str) -> None:
    make, status = BOMBS[name]
    content = make()
    before, began = psutil.Process().memory_info().rss, time.process_time()
    answer = api.post("/api/import", content=content)
    assert answer.status_code == status, answer.text[:300]
    assert answer.json()["error"]["message"]
    assert time.process_time() - began < 5.0  # of ours: other tests take the clock's
    assert psutil.Process().memory_info().rss - before < 400e6


class Boom:
    def __reduce__(self) -> tuple[Any, ...]:
        return os.system, ("touch /tmp/etascope-was-here",)


@pytest.mark.parametrize("protocol", [0, 2, 5])
def test_a_pickle_is_never_opened(api: TestClient, protocol: int) -> None:
    content = pickle.dumps(Boom(), protocol=protocol)
    for packed in (content, gzip.compress(content)):
        assert api.post("/api/import", content=packed).status_code == 422
    assert not os.path.exists("/tmp/etascope-was-here")


def test_a_deep_or_endless_json_body_is_a_plain_refusal(api: TestClient, study: int) -> None:
    for body in (b"[" * 100_000, b'{"name": "' + b"a" * 3_000_000 + b'"}', b"9" * 100_000):
        header = {"Content-Type": "application/json"}
        answer = api.post("/api/studies", content=body, headers=header)
        assert answer.status_code in (400, 413, 422), answer.text[:200]
        assert set(answer.json()["error"]) == {"code", "message", "field", "hint"}


@pytest.mark.parametrize(
    "endless", [[0] * 600_000, {str(n): 0 for n in range(150_000)}, [[{}] * 9] * 9000]
)
def test_an_endless_sweep_is_refused_before_its_values_are_looked_at(
    api: TestClient, study: int, endless: Any
) -> None:
    """Which kept everybody waiting for a quarter of a second."""
    for name in ("vary", "task", "settings"):
        body = {"task": "toy/quadratic", "learning_rates": [0.1], name: endless}
        whole = {"study": {"name": "x"}, "sweep": body}
        places = {f"/api/studies/{study}/sweeps": body, "/api/forecast": body, "/api/sweeps": whole}
        for place, sent in places.items():
            answer = api.post(place, json=sent)
            assert answer.status_code == 422, answer.text[:200]
            message = "A sweep is written in at most 20,000 values."
            assert answer.json()["error"]["message"] == message


@pytest.mark.parametrize("count", [1000, 20_001])
def test_what_a_sweep_may_hold_is_not_endless(count: int) -> None:
    body = {"learning_rates": [0.1] * count, "seeds": [1] * count, "vary": {"x": list(range(50))}}
    if count > 1000:
        with pytest.raises(InvalidSpec, match="at most 20,000 values"):
            SweepCreate(**body)
    else:
        assert SweepCreate(**body).given() == body


@pytest.mark.parametrize("name", SweepCreate.model_fields)
def test_half_a_character_is_a_plain_refusal(api: TestClient, study: int, name: str) -> None:
    body = {"task": "toy/quadratic", "learning_rates": [0.1], "seeds": 1}
    for half in ("\ud800", ["\ud800"], {"\ud800": "\udfff"}):
        content = json.dumps({**body, name: half})  # in ASCII, as JSON may say it
        for place in (f"/api/studies/{study}/sweeps", "/api/forecast"):
            answer = api.post(place, content=content, headers={"Content-Type": "application/json"})
            assert answer.status_code == 422, (place, content, answer.text)
            assert answer.json()["error"]["message"]


def test_invented_methods_and_paths_do_not_fill_the_numbers(api: TestClient) -> None:
    for number in range(200):
        api.request(f"X{number}", f"/api/{number}")
    shown = api.get("/metrics").text
    assert 'method="other"' in shown
    assert len(shown) < 20_000


@pytest.mark.parametrize("given", ["x" * 65, "a\tb", "<b>", "ü", "a b"])
def test_a_request_id_of_somebody_elses_making_is_not_repeated(api: TestClient, given: str) -> None:
    answer = api.get("/api/health", headers={"X-Request-ID": given.encode()})
    assert answer.headers["x-request-id"] != given
