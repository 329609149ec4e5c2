"""One real web process: killed while it sends a file, and pestered by slow clients."""

import contextlib
import csv
import io
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import psutil
import pytest

from backend.bench.synthetic import finish_everything
from backend.db import get_engine, reading, transaction
from backend.services import maintenance
from tests import factories
from tests.installation import Web
from tests.servers import wait_for

SLOW_CLIENTS = 100


@pytest.fixture
def web(sqlite_database: str, tmp_path: Path) -> Iterator[Web]:
    web = Web(tmp_path / "web.log", {})
    web.start()
    web.wait()
    yield web
    web.kill()


def finished_study(trials: int) -> int:
    """Store a study of so many finished trials; return its id."""
    with transaction() as session:
        rates = tuple(float(f"{0.01 * 1.02**n:.5g}") for n in range(100))
        seeds = tuple(range(1, trials // 200 + 1))
        submitted = factories.submit(session, learning_rates=rates, seeds=seeds)
    assert finish_everything(get_engine()) == trials
    return submitted.sweep.study_id


def test_killed_in_the_middle_of_an_export(web: Web) -> None:
    study = finished_study(6000)
    address = f"{web.url}/api/studies/{study}/export?format=csv"
    whole = httpx.get(address, trust_env=False, timeout=60).content
    received = b""
    with (
        contextlib.suppress(httpx.HTTPError),
        httpx.stream("GET", address, trust_env=False, headers={"Accept-Encoding": "identity"}) as a,
    ):
        for piece in a.iter_bytes(4096):
            received += piece
            if len(received) > 20_000:
                web.kill()
    assert 0 < len(received) < len(whole), "half a file, and the reader is told"
    web.start()
    web.wait()
    again = httpx.get(address, trust_env=False, timeout=60).content
    assert again == whole
    assert len(list(csv.reader(io.StringIO(again.decode())))) == 6001
    with reading() as session:
        assert maintenance.check(session) == []


def test_slow_clients_hold_nobody_up_and_endless_ones_are_cut_off(web: Web) -> None:
    _hold_on_slowly(web)
    _send_headers_without_end(web)


def _hold_on_slowly(web: Web) -> None:
    lines = [socket.create_connection(("127.0.0.1", web.port)) for _ in range(SLOW_CLIENTS)]
    try:
        for number, line in enumerate(lines):
            if number % 2:  # half a header, or half a body, and then nothing
                line.sendall(b"GET /api/health HTTP/1.1\r\nHost: 127.0.0.1\r\nX-A: ")
            else:
                line.sendall(
                    b"POST /api/import HTTP/1.1\r\nHost: 127.0.0.1\r\n"
                    b"Content-Length: 1000000\r\n\r\ntask,"
                )
        taken = []
        for _ in range(20):
            began = time.perf_counter()
            assert httpx.get(f"{web.url}/api/studies", trust_env=False).status_code == 200
            taken.append(time.perf_counter() - began)
        assert sorted(taken)[10] < 0.3
    finally:
        for line in lines:
            line.close()


def _send_headers_without_end(web: Web) -> None:
    assert web.process is not None
    before = psutil.Process(web.process.pid).memory_info().rss
    with socket.create_connection(("127.0.0.1", web.port)) as line:
        line.sendall(b"GET /api/health HTTP/1.1\r\nHost: 127.0.0.1\r\nX-A: ")
        with contextlib.suppress(OSError):
            for _ in range(50):
                line.sendall(b"a" * 1_000_000)
            pytest.fail("it took 50 MB of headers")
    wait_for(web.answers, what="the next answer")
    assert psutil.Process(web.process.pid).memory_info().rss - before < 20e6
