"""Scripts are packed once and mean the same as unpacked."""

import gzip

import httpx

from tests.coroutines import run

PLOTLY = "/_dash-component-suites/plotly/package_data/plotly.min.js"


def get(app, *, packed: bool, times: int = 1, path: str = PLOTLY, **headers: str) -> httpx.Response:
    async def send() -> httpx.Response:
        transport = httpx.ASGITransport(app=app.server)
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
            asked = {"Accept-Encoding": "gzip" if packed else "identity", **headers}
            for _ in range(times):
                answer = await client.get(path, headers=asked)
            return answer

    return run(send())


def test_packed_and_unpacked_scripts_are_the_same(dash_app, monkeypatch):
    plain, packed = get(dash_app, packed=False), get(dash_app, packed=True)
    assert "content-encoding" not in plain.headers
    assert packed.headers["content-encoding"] == "gzip"
    assert int(packed.headers["content-length"]) < len(plain.content) / 2
    assert packed.content == plain.content
    assert packed.headers["content-type"] == plain.headers["content-type"]
    monkeypatch.setattr(gzip, "compress", None)  # what is kept is not packed again
    assert get(dash_app, packed=True, times=2).content == plain.content


def test_a_script_that_is_not_there_is_not_kept(dash_app):
    missing = "/_dash-component-suites/plotly/package_data/nothing.js"
    assert get(dash_app, packed=True, path=missing).status_code != 200
