"""Bodies are counted as they arrive, whatever their headers say; nobody is waited for for ever."""

import socket
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from urllib.parse import urlsplit

import anyio
import httpx
import pytest
from anyio import fail_after, to_thread
from fastapi import FastAPI
from fastapi.testclient import TestClient
from uvicorn.protocols.http.h11_impl import H11Protocol

from backend.app import LARGEST_ENTRANCE, LARGEST_JSON
from backend.web import intake
from tests.backend.conftest import ADDRESS, listening
from tests.servers import wait_for

JSON = {"Content-Type": "application/json"}


def pieces(size: int) -> Iterator[bytes]:
    """Return a body without a Content-Length."""
    for _ in range(size // 65536 + 1):
        yield b" " * 65536


@pytest.mark.parametrize("streamed", [False, True])
def test_a_body_above_the_limit_is_refused_with_the_limit(api: TestClient, streamed: bool) -> None:
    size = LARGEST_JSON + 1
    content = pieces(size) if streamed else b" " * size
    answer = api.post("/api/studies", content=content, headers=JSON)
    assert answer.status_code == 413
    assert f"{LARGEST_JSON:,}" in answer.json()["error"]["message"]


def test_a_content_length_that_lies_does_not_help(api: TestClient) -> None:
    headers = JSON | {"Content-Length": "10"}
    answer = api.post("/api/studies", content=pieces(LARGEST_JSON + 1), headers=headers)
    assert answer.status_code == 413


def test_files_may_be_larger_than_json(api: TestClient) -> None:
    header = b"task,method,lr,seed,train_loss\n"
    rows = b"".join(b"x,eb,1,%d,0.5%s\n" % (seed, b"0" * 2000) for seed in range(1200))
    assert len(rows) > LARGEST_JSON
    answer = api.post("/api/import", content=header + rows)
    assert answer.status_code == 201
    assert answer.json()["imported"] == 1200


@pytest.mark.parametrize("path", ["/login", "/welcome", "/api/auth/login"])
def test_strangers_may_send_only_little(team: TestClient, path: str) -> None:
    answer = team.post(path, content=b"x" * (LARGEST_ENTRANCE + 1))
    assert answer.status_code == 413
    assert f"{LARGEST_ENTRANCE:,}" in answer.json()["error"]["message"]


def connect(address: str, text: str) -> socket.socket:
    """Return a connection that has said something."""
    parts = urlsplit(address)
    found = socket.create_connection((parts.hostname, parts.port), timeout=10)
    found.sendall(text.format(host=parts.netloc).encode())
    return found


def said(connection: socket.socket) -> bytes:
    """Return everything that comes until the connection is closed."""
    with connection:
        found = b""
        while piece := connection.recv(65536):
            found += piece
        return found


UNFINISHED = (
    "POST {path} HTTP/1.1\r\nHost: {{host}}\r\nContent-Type: application/json\r\n"
    "Content-Length: 1000\r\n\r\n{{{{"
)


def test_a_body_that_never_ends_is_not_waited_for(
    server: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(intake, "PATIENCE_SECONDS", 0.3)
    began = time.perf_counter()
    answer = said(connect(server, UNFINISHED.format(path="/api/studies")))
    assert time.perf_counter() - began < 10  # half of what a body is given
    assert answer.startswith(b"HTTP/1.1 408")
    assert b"to arrive" in answer


def test_a_body_that_trickles_is_cut_off_and_one_that_flows_is_not(
    server: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(intake, "PATIENCE_SECONDS", 0.4)

    def slowly(size: int) -> Iterator[bytes]:
        yield b'{"name": "slow", "notes": "'
        for _ in range(8):
            time.sleep(0.1)
            yield b"x" * size
        yield b'"}'

    with httpx.Client(base_url=server, trust_env=False) as http:
        headers = {"Content-Type": "application/json"}
        flowing = http.post("/api/studies", content=slowly(10_000), headers=headers)
        assert flowing.status_code == 201, flowing.text
        try:
            status = http.post("/api/studies", content=slowly(10), headers=headers).status_code
        except httpx.WriteError:  # cut off while still sending
            status = 408
        assert status == 408


@pytest.mark.parametrize("path", ["/api/nowhere", "/api/health"])
def test_who_is_answered_before_having_sent_all_is_not_listened_to_any_longer(
    server: str, path: str
) -> None:
    began = time.perf_counter()
    assert b"HTTP/1.1 40" in said(connect(server, UNFINISHED.format(path=path)))
    assert time.perf_counter() - began < 10  # half of what a body is given


@pytest.mark.parametrize("text", ["", "GET /api/health HTTP/1.1\r\nHost: {host}\r\nX-Slow: "])
def test_a_connection_that_asks_nothing_is_closed(
    app: FastAPI, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    monkeypatch.setattr(intake, "HEAD_SECONDS", 0.3)
    with listening(app) as address:
        assert said(connect(address, text)) == b""
        with httpx.Client(base_url=address, trust_env=False) as http:
            for _ in range(3):  # one that asks is kept, however long it has been there
                assert http.get("/api/health").is_success
                time.sleep(0.2)


def test_who_does_not_read_the_answers_is_cut_off_and_who_reads_slowly_is_not(
    app: FastAPI, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else a few hundred of them would be all that is answered, for ever."""
    monkeypatch.setattr(intake, "PATIENCE_SECONDS", 0.5)
    paused, lost = note_pauses(monkeypatch)
    many = "GET /api/openapi.json HTTP/1.1\r\nHost: {host}\r\n\r\n" * 300
    with listening(app) as address, ExitStack() as stack:
        *deaf, slow = (stack.enter_context(connect(address, many)) for _ in range(3))
        ports = {one.getsockname()[1] for one in deaf}

        def given_up() -> bool:
            assert slow.recv(100_000), "who reads is not cut off"
            return paused >= ports and lost >= ports

        wait_for(given_up, seconds=30, what="those who read nothing to be given up", every=0.05)
        assert slow.getsockname()[1] in paused - lost


def note_pauses(monkeypatch: pytest.MonkeyPatch) -> tuple[set[int], set[int]]:
    """Return the ports of clients that were once too slow, and of those that are gone."""
    paused: set[int] = set()
    lost: set[int] = set()
    pause, lose = H11Protocol.pause_writing, H11Protocol.connection_lost

    def noted_pause(self: H11Protocol) -> None:
        paused.add(self.transport.get_extra_info("peername")[1])
        pause(self)

    def noted_loss(self: H11Protocol, error: Exception | None) -> None:
        lost.add(self.client[1])
        lose(self, error)

    monkeypatch.setattr(H11Protocol, "pause_writing", noted_pause)
    monkeypatch.setattr(H11Protocol, "connection_lost", noted_loss)
    return paused, lost


def test_unfinished_bodies_keep_nobody_else_waiting(server: str) -> None:
    with ExitStack() as stack, httpx.Client(base_url=server, trust_env=False) as http:
        for _ in range(intake.MOST_WORKING + 20):
            stack.enter_context(connect(server, UNFINISHED.format(path="/api/studies")))
        assert http.get("/api/studies").status_code == 200
        assert http.post("/api/studies", json={"name": "x"}).status_code == 201


def test_too_many_at_once_are_told_to_come_back(
    server: str, app: FastAPI, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(intake, "MOST_ARRIVING", 1)
    with (
        httpx.Client(base_url=server, trust_env=False) as http,
        connect(server, UNFINISHED.format(path="/api/studies")),
    ):
        wait_for(
            lambda: http.post("/api/studies", json={"name": "x"}).status_code == 503,
            what="the other body to begin",
        )
        answer = http.post("/api/studies", json={"name": "x"})
        assert answer.json()["error"]["code"] == "unavailable"
        assert answer.headers["retry-after"] == "5"
    monkeypatch.setattr(intake, "MOST_WORKING", 0)
    with httpx.Client(base_url=server, trust_env=False) as http:
        busy = http.get("/api/studies")
        assert (busy.status_code, busy.json()["error"]["code"]) == (503, "unavailable")
        assert http.get("/api/health").status_code == 200


@pytest.mark.parametrize("accounts", [False, True])
def test_health_answers_while_every_thread_is_taken(
    app: FastAPI, team_app: FastAPI, accounts: bool
) -> None:
    async def ask() -> int:
        threads = to_thread.current_default_thread_limiter()
        for number in range(int(threads.total_tokens)):
            await threads.acquire_on_behalf_of(number)
        transport = httpx.ASGITransport(app=team_app if accounts else app)
        async with httpx.AsyncClient(transport=transport, base_url=ADDRESS) as http:
            with fail_after(5):
                return (await http.get("/api/health")).status_code

    with ThreadPoolExecutor(1) as apart:  # where no browser of another test has left its loop
        assert apart.submit(anyio.run, ask).result() == 200


def test_bytes_on_their_way_are_limited_all_together(
    api: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(intake, "MOST_HELD", 1000)
    assert api.post("/api/studies", json={"name": "x", "notes": "y" * 900}).status_code == 201
    assert api.post("/api/studies", json={"name": "x", "notes": "y" * 1000}).status_code == 503
    assert api.post("/api/studies", json={"name": "x"}).status_code == 201, "given back"


def test_a_request_has_a_hundred_parameters_at_most(api: TestClient) -> None:
    few = "&".join(["q=x", *(f"study={n}" for n in range(1, 100))])
    assert api.get(f"/api/studies?{few}").status_code == 422  # there is no parameter study
    began = time.process_time()  # the machine may be busy with other things
    answer = api.get(f"/api/studies?{'a&' * 10_000}")
    assert (answer.status_code, "at most 100" in answer.text) == (422, True)
    assert time.process_time() - began < 1.0
