"""The pulse: who waits for a study hears of its end, and of no other study."""

import httpx
from fastapi import FastAPI

from dashboard.pulse import add_pulse
from tests.coroutines import run
from tests.dashboard.fake_api import FakeApi


def ask(api: FakeApi, query: str) -> httpx.Response:
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
    assert ask(api, "?studies=1").json() == {"ended": [ended]}
    api.running = True
    api.studies[1] = api._study(1)
    assert ask(api, "?studies=1").json() == {"ended": []}


def test_a_study_one_may_not_see_is_forgotten_without_a_word():
    assert ask(FakeApi(), "?studies=99").json() == {
        "ended": [{"id": 99, "name": None, "state": None}]
    }


def test_it_asks_as_the_visitor_and_reads_no_nonsense():
    api = FakeApi()
    assert ask(api, "?studies=1,x,,-2,99999999999999999999").status_code == 200
    (asked,) = [call for call in api.sent if call.path.startswith("/api/studies")]
    assert asked.headers["Cookie"] == "session=s"


def test_an_api_that_does_not_answer_is_said():
    api = FakeApi()
    api.away = True
    assert ask(api, "?studies=1").status_code == 503
