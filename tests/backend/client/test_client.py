"""The Python client: typed answers, the service's own sentences as exceptions."""

from pathlib import Path
from typing import Any

import httpx
import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient

from backend.client import ApiError, AsyncClient, Client, ServerAway, calls
from tests.backend.conftest import ADDRESS, BODY
from tests.coroutines import run
from tests.papers import ROOT, python_blocks


@pytest.fixture
def client(api: TestClient) -> Client:
    return Client(http=api)


def test_a_study_from_creation_to_its_curves(client: Client, train, tmp_path: Path) -> None:
    study = client.create_study("Mine", tags=["x"])
    assert client.dry_run(study.id, BODY).trials == 12
    sweep = client.submit(study.id, BODY)
    train()
    assert client.wait(sweep.id, timeout=5).state == "completed"
    assert len(client.sensitivity(study.id).series) == 2
    assert client.scorecard(study.id).rows[0].advice
    assert len(list(client.trials(sweep.id, limit=5))) == 12
    assert [one.name for one in client.studies(tag="x")] == ["Mine"]
    client.export(study.id, tmp_path / "trials.csv")
    found = client.import_runs(tmp_path / "trials.csv", name="Copy")
    assert found.imported == 12
    assert client.study(found.study_id).name == "Copy"


def test_the_page_on_using_it_says_what_works(
    app: FastAPI, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def connect(url: str) -> Client:
        return Client(http=TestClient(app, base_url=url))

    monkeypatch.setattr("backend.client.Client", connect)
    page = ROOT / "docs" / "using.md"
    (code,) = python_blocks(page)
    exec(compile(code, page, "exec"), {})
    assert "'queued': 12" in capsys.readouterr().out


def test_the_page_on_training_elsewhere_says_what_works(
    app: FastAPI,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> None:
    def connect(url: str) -> Client:
        return Client(http=TestClient(app, base_url=url))

    monkeypatch.setattr("backend.client.Client", connect)
    monkeypatch.chdir(tmp_path)
    page, found = ROOT / "docs" / "elsewhere.md", {}
    for code in python_blocks(page):
        exec(compile(code, page, "exec"), found)
    assert "'completed': 4, 'diverged': 2" in capsys.readouterr().out
    trial = found["run"].trial_id or 7
    with connect("http://127.0.0.1:8050") as client:
        assert client.trial(trial).train_loss == 0.01


def test_waiting_tells_how_far_it_is(client: Client, train) -> None:
    sweep = client.submit(client.create_study("Mine").id, BODY)
    train()
    seen: list[dict[str, int]] = []
    client.wait(sweep.id, on_progress=lambda sweep: seen.append(sweep.progress), timeout=5)
    assert seen[-1]["completed"] == 10


def test_waiting_gives_up_in_time(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    sweep = client.submit(client.create_study("Mine").id, BODY)
    monkeypatch.setattr(client, "_progress", lambda *_: iter([client.sweep(sweep.id)]))
    monkeypatch.setattr("backend.client.POLL_SECONDS", 0.01)
    with pytest.raises(TimeoutError, match="still queued"):
        client.wait(sweep.id, timeout=0.05)


def test_a_refusal_is_raised_in_the_services_words(client: Client) -> None:
    study = client.create_study("Mine")
    with pytest.raises(ApiError, match="no task called 'mnits'") as caught:
        client.submit(study.id, {"task": "mnits"})
    assert (caught.value.status, caught.value.field) == (422, "task")


def test_an_answer_that_is_not_ours_is_named(api: TestClient) -> None:
    def proxy(_request: httpx.Request) -> httpx.Response:
        return httpx.Response(502, text="<html>Bad Gateway</html>")

    client = Client(http=httpx.Client(base_url=ADDRESS, transport=httpx.MockTransport(proxy)))
    with pytest.raises(ApiError, match="not Etascope's"):
        client.catalog()


def test_a_server_that_is_away_is_said_to_be() -> None:
    def refuse(request: httpx.Request) -> httpx.Response:
        raise httpx.ConnectError("refused", request=request)

    client = Client(http=httpx.Client(base_url=ADDRESS, transport=httpx.MockTransport(refuse)))
    with pytest.raises(ServerAway, match="etascope up"):
        client.study(1)


def test_without_a_stream_waiting_asks(client: Client, train, monkeypatch) -> None:
    sweep = client.submit(client.create_study("Mine").id, BODY)
    monkeypatch.setattr("backend.client.POLL_SECONDS", 0.01)
    real, asked = client._http.stream, []

    def broken(*_args: Any, **_kwargs: Any) -> Any:
        asked.append(1)
        if len(asked) == 2:
            train()
        raise httpx.ReadError("cut off")

    monkeypatch.setattr(client._http, "stream", broken)
    assert client.wait(sweep.id, timeout=5).state == "completed"
    assert len(asked) >= 2
    monkeypatch.setattr(client._http, "stream", real)


def test_a_call_can_go_to_an_app_in_this_process(app: FastAPI) -> None:
    async def ask() -> str:
        async with AsyncClient(ADDRESS, app=app) as client:
            return (await client.send(calls.me())).username

    assert run(ask()) == "local"


def test_not_ready_is_an_answer(client: Client) -> None:
    assert not client.send(calls.ready()).ready
