"""Local mode: other web sites are kept out."""

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from starlette.websockets import WebSocket, WebSocketDisconnect

from backend.web.gate import is_loopback


@pytest.mark.parametrize(
    "host",
    ["localhost", "localhost:8050", "127.0.0.1", "127.0.0.1:8050", "[::1]:8050", "127.3.2.1"],
)
def test_loopback_names_are_ours(host: str) -> None:
    assert is_loopback(host)


@pytest.mark.parametrize(
    "host",
    [
        "example.org",
        "10.0.0.1",
        "",
        "localhost.example.org",
        "127.0.0.1.example.org",
        "[::2]",
        "[",
        "0.0.0.0",
        "notlocalhost",
        "evil.example:80@127.0.0.1",
        "evil.example@localhost",
        "127.0.0.1/evil.example",
        "127.0.0.1?evil.example",
        "127.0.0.1 evil.example",
        "127.0.0.1:8050:80",
        "localhost:port",
    ],
)
def test_other_names_are_not(host: str) -> None:
    assert not is_loopback(host)


@pytest.mark.parametrize("path", ["/api/health", "/api/studies", "/metrics", "/", "/api/typo"])
def test_a_foreign_host_is_refused_everywhere(api: TestClient, path: str) -> None:
    answer = api.get(path, headers={"Host": "attacker.example:8050"})
    assert answer.status_code == 403
    assert answer.json()["error"]["code"] == "forbidden"


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "https://attacker.example"},
        {"Origin": "http://127.0.0.1:3000"},
        {"Origin": "null"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
    ],
)
def test_writes_of_other_sites_are_refused(api: TestClient, headers: dict[str, str]) -> None:
    answer = api.post("/api/studies", json={"name": "x"}, headers=headers)
    assert answer.status_code == 403
    assert api.get("/api/studies").json()["items"] == []


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"Origin": "http://127.0.0.1:8050", "Sec-Fetch-Site": "same-origin"},
        {"Sec-Fetch-Site": "none"},
    ],
)
def test_our_own_pages_and_plain_clients_may_write(
    api: TestClient, headers: dict[str, str]
) -> None:
    assert api.post("/api/studies", json={"name": "x"}, headers=headers).status_code == 201


@pytest.mark.parametrize("path", ["/api/studies", "/api/health", "/metrics", "/api/docs"])
@pytest.mark.parametrize(
    "headers", [{"Sec-Fetch-Site": "cross-site"}, {"Origin": "https://attacker.example"}]
)
def test_other_sites_cannot_keep_us_busy_with_reads(
    api: TestClient, path: str, headers: dict[str, str]
) -> None:
    assert api.get(path, headers=headers).status_code == 403
    assert api.get(path, headers={"Sec-Fetch-Site": "none"}).status_code == 200


def test_pages_may_be_linked_to_from_elsewhere(api: TestClient) -> None:
    # The API alone has no pages: nothing is there, but nothing was refused either.
    assert api.get("/studies/1", headers={"Sec-Fetch-Site": "cross-site"}).status_code == 404
    for path in ("/dashboard/pulse?studies=1", "/_dash-layout", "/assets/team.css"):
        assert api.get(path, headers={"Sec-Fetch-Site": "cross-site"}).status_code == 403, path
        assert api.get(path, headers={"Sec-Fetch-Site": "same-origin"}).status_code == 404, path


def test_websockets_of_other_sites_are_refused(app: FastAPI, api: TestClient) -> None:
    @app.websocket("/socket")
    async def socket(websocket: WebSocket) -> None:
        await websocket.accept()
        await websocket.send_text("hello")
        await websocket.close()

    with api.websocket_connect("ws://127.0.0.1:8050/socket") as ours:
        assert ours.receive_text() == "hello"
    foreign = {"origin": "https://attacker.example"}
    with (
        pytest.raises(WebSocketDisconnect),
        api.websocket_connect("ws://127.0.0.1:8050/socket", headers=foreign),
    ):
        pass
