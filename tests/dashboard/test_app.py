"""The dashboard on its server."""

import asyncio
import base64
import hashlib
import re

import httpx
import pytest
from fastapi import FastAPI

from backend.client import calls
from dashboard.__main__ import create_server
from dashboard.api_client import ask, connect, sentence
from dashboard.app import add_pulse, create_dash_app
from tests.coroutines import run
from tests.dashboard.fake_api import FakeApi


async def get(app, path: str, **headers: str) -> httpx.Response:
    transport = httpx.ASGITransport(app=app.server)
    async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
        return await client.get(path, headers=headers)


def test_the_pulse_tells_whether_the_api_answers():
    api = FakeApi()
    app = create_dash_app(FastAPI(), api)
    assert run(get(app, "/dashboard/pulse")).json() == {"ended": []}
    api.away = True
    assert run(get(app, "/dashboard/pulse")).status_code == 503


def test_there_is_no_second_way_in_by_websocket(dash_app):
    paths = [getattr(route, "path", "") for route in dash_app.server.router.routes]
    assert not [path for path in paths if "ws-callback" in path]
    assert "websocket" not in dash_app._config()


def test_the_page_forbids_every_outside_host(dash_app):
    html = run(get(dash_app, "/")).text
    policy = html.split('Content-Security-Policy" content="')[1].split('"')[0]
    assert "default-src 'self'" in policy
    assert "http" not in policy
    assert 'lang="en"' in html


def test_only_the_page_s_own_inline_scripts_run(dash_app):
    html = run(get(dash_app, "/")).text
    policy = html.split('Content-Security-Policy" content="')[1].split('"')[0]
    (scripts,) = [part for part in policy.split("; ") if part.startswith("script-src")]
    assert "unsafe-inline" not in scripts
    inline = re.findall(r"<script>(.*?)</script>", html, re.DOTALL)
    assert len(inline) > 2
    for text in inline:
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert f"'sha256-{digest}'" in scripts, text[:80]


def test_a_slow_api_does_not_hold_up_other_requests():
    api = FakeApi()
    app = create_dash_app(FastAPI(), api)
    answer = api.send

    async def slow(call):
        if call.path == "/api/catalog":
            await asyncio.sleep(0.5)
        return await answer(call)

    api.send = slow

    async def both() -> tuple[float, int]:
        loop = asyncio.get_running_loop()
        body = {
            "output": "..page.children...title.data...breadcrumbs.children...navigation.children..",
            "outputs": [
                {"id": "page", "property": "children"},
                {"id": "title", "property": "data"},
                {"id": "breadcrumbs", "property": "children"},
                {"id": "navigation", "property": "children"},
            ],
            "inputs": [
                {"id": "location", "property": "pathname", "value": "/"},
                {"id": "recoveries", "property": "data", "value": 0},
            ],
            "state": [{"id": "location", "property": "search", "value": ""}],
            "changedPropIds": [],
        }
        transport = httpx.ASGITransport(app=app.server)
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
            page = asyncio.create_task(client.post("/_dash-update-component", json=body))
            await asyncio.sleep(0.05)
            started = loop.time()
            await client.get("/dashboard/pulse")
            waited = loop.time() - started
            return waited, (await page).status_code

    waited, status = run(both())
    assert status == 200
    assert waited < 0.25


def test_the_browser_s_session_goes_along_with_every_call(dash_app, monkeypatch):
    import dash

    api = FakeApi()
    connect(dash_app.server, api)
    monkeypatch.setattr(dash._get_app, "APP", dash_app)
    sent = {"x-csrf-token": "proof", "authorization": "Bearer t", "host": "here"}
    context = type("Context", (), {"cookies": {"session": "abc"}, "headers": sent})()
    monkeypatch.setattr("dashboard.api_client.dash.ctx", context)
    run(ask(calls.health()))
    told = {"Cookie": "session=abc", "X-CSRF-Token": "proof", "Authorization": "Bearer t"}
    assert api.sent[-1].headers == told


def test_the_dashboard_can_stand_alone():
    server = create_server("http://example.invalid:8050/")
    assert server.state.api_address == "http://example.invalid:8050"


@pytest.mark.parametrize("error", [RuntimeError("x"), httpx.ConnectError("y")])
def test_every_trouble_has_a_sentence(error):
    assert sentence(error).endswith(".")


# The pulse: who waits for a study hears of its end, and of no other study.


def ask_pulse(api: FakeApi, query: str) -> httpx.Response:
    server = FastAPI()
    add_pulse(server, api)

    async def send() -> httpx.Response:
        transport = httpx.ASGITransport(app=server)
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
            return await client.get(f"/dashboard/pulse{query}", headers={"Cookie": "session=s"})

    return run(send())


def test_an_ended_study_is_named_and_a_running_one_is_not():
    api = FakeApi()
    ended = {"id": 1, "name": "Digits 1: EB against IB", "state": "completed"}
    assert ask_pulse(api, "?studies=1").json() == {"ended": [ended]}
    api.running = True
    api.studies[1] = api._study(1)
    assert ask_pulse(api, "?studies=1").json() == {"ended": []}


def test_a_study_one_may_not_see_is_forgotten_without_a_word():
    assert ask_pulse(FakeApi(), "?studies=99").json() == {
        "ended": [{"id": 99, "name": None, "state": None}]
    }


def test_it_asks_as_the_visitor_and_reads_no_nonsense():
    api = FakeApi()
    assert ask_pulse(api, "?studies=1,x,,-2,99999999999999999999").status_code == 200
    (asked,) = [call for call in api.sent if call.path.startswith("/api/studies")]
    assert asked.headers["Cookie"] == "session=s"


def test_an_api_that_does_not_answer_is_said():
    api = FakeApi()
    api.away = True
    assert ask_pulse(api, "?studies=1").status_code == 503
