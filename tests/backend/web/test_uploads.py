"""Forms as browsers and attackers send them; the time everybody else waits meanwhile."""

import asyncio
import threading
import time
from typing import Any

import httpx
import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient

from backend.services import importing
from backend.web.intake import FILES_AT_ONCE, MOST_PARTS
from tests.backend.conftest import ADDRESS
from tests.coroutines import run

RUNS = b"task,method,lr,seed,train_loss\nx,eb,0.1,1,0.5\n"
KIND = {"Content-Type": 'multipart/form-data; boundary="b"'}


def part(content: bytes, head: bytes = b'name="file"; filename="runs.csv"') -> bytes:
    return b"--b\r\nContent-Disposition: form-data; " + head + b"\r\n\r\n" + content + b"\r\n"


def nested(size: int) -> bytes:
    """Return parts in parts in parts, each opening the next."""
    found, number = bytearray(), 0
    while len(found) < size:
        outer = b"b" if number == 0 else b"b%d" % number
        found += (
            b"--"
            + outer
            + b"\r\nContent-Type: multipart/mixed; boundary=b%d\r\n\r\n" % (number + 1)
        )
        number += 1
    return bytes(found)


FORMS: dict[str, tuple[bytes, int]] = {
    "a file": (part(RUNS) + b"--b--\r\n", 201),
    "a field, then a file": (part(b"x", b'name="note"') + part(RUNS) + b"--b--\r\n", 201),
    "parts in parts": (nested(250_000), 422),
    "no file": (part(b"x", b'name="note"') + b"--b--\r\n", 422),
    "no end": (part(RUNS), 422),
    "many parts": (part(b"x", b'name="note"') * (MOST_PARTS + 1), 413),
    "a megabyte of header": (b"--b\r\nX: " + b"x" * 1_000_000 + b"\r\n\r\n", 422),
    "a thousand headers": (b"--b\r\n" + b"X: y\r\n" * 1000 + b"\r\n", 422),
    "nothing": (b"--b--\r\n", 422),
    "no form": (b"\x00" * 1000, 422),
    "ends that are none": (part(b"\r\n--" * 1_000_000) + b"--b--\r\n", 422),
}


@pytest.mark.parametrize("name", FORMS)
def test_a_form_is_read_or_refused_at_once(api: TestClient, name: str) -> None:
    content, status = FORMS[name]
    began = time.process_time()  # the machine may be busy with other things
    answer = api.post("/api/import", content=content, headers=KIND)
    assert answer.status_code == status, answer.text[:300]
    assert time.process_time() - began < 3.0


@pytest.mark.parametrize(
    "kind", ["multipart/form-data", "multipart/form-data; boundary=" + "x" * 500]
)
def test_a_form_without_a_sane_boundary_is_refused(api: TestClient, kind: str) -> None:
    answer = api.post("/api/import", content=part(RUNS), headers={"Content-Type": kind})
    assert answer.status_code == 422, answer.text


@pytest.mark.parametrize("content", [nested(250_000), part(b"x,y\n" * 7_500_000) + b"--b--\r\n"])
def test_others_are_answered_while_a_large_form_is_read(app: FastAPI, content: bytes) -> None:
    async def longest_wait() -> float:
        transport = httpx.ASGITransport(app)
        async with httpx.AsyncClient(transport=transport, base_url=ADDRESS) as client:
            form = asyncio.create_task(client.post("/api/import", content=content, headers=KIND))
            waits = []
            while not form.done():
                began = time.perf_counter()
                await asyncio.sleep(0.01)
                waits.append(time.perf_counter() - began)
            assert (await form).status_code in (413, 422)
            return max(waits)

    assert run(longest_wait()) < 3.0  # on the loop they took 11 and 6 s


def test_others_are_answered_however_many_files_are_being_read(
    app: FastAPI, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each file takes a thread for seconds; 45 of them had taken all there are, for minutes."""
    reading, most, goes_on = set[int](), 0, threading.Event()
    real = importing.read_runs

    def slowly(content: bytes, **limits: int) -> Any:
        nonlocal most
        reading.add(threading.get_ident())
        most = max(most, len(reading))
        assert goes_on.wait(60)
        reading.discard(threading.get_ident())
        return real(content, **limits)

    monkeypatch.setattr(importing, "read_runs", slowly)

    async def crowd() -> list[int]:
        transport = httpx.ASGITransport(app)
        async with httpx.AsyncClient(transport=transport, base_url=ADDRESS) as client:
            sent = [
                asyncio.create_task(client.post(f"/api/import?preview={one}", content=RUNS))
                for one in ["true", "false"] * 25
            ]
            try:
                await asyncio.sleep(0.5)
                async with asyncio.timeout(20):
                    assert (await client.get("/api/studies")).status_code == 200
            finally:
                goes_on.set()
            return [answer.status_code for answer in await asyncio.gather(*sent)]

    assert sorted(run(crowd())) == [200] * 25 + [201] * 25
    assert most == FILES_AT_ONCE
