"""One real web process: what it carries, killed while it sends a file, pestered by the slow."""

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

from backend.bench.installation import finish_everything
from backend.db import get_engine, reading, transaction
from backend.services import maintenance
from tests import factories
from tests.announced import TASK, arrive, method_manifest, task_manifest
from tests.installation import Web
from tests.servers import wait_for

SLOW_CLIENTS = 100


@pytest.fixture
def web(sqlite_database: str, tmp_path: Path) -> Iterator[Web]:
    # A cache of its own: what other processes have found out must not help this one.
    web = Web(tmp_path / "web.log", {"XDG_CACHE_HOME": str(tmp_path / "cache")})
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


def carries_torch(web: Web) -> bool:
    assert web.process is not None
    maps = psutil.Process(web.process.pid).memory_maps()
    return any("libtorch" in mapped.path for mapped in maps)


@pytest.mark.skipif(not psutil.LINUX, reason="only Linux tells what another process has loaded")
def test_plans_and_shows_sweeps_without_carrying_torch(web: Web) -> None:
    with httpx.Client(base_url=web.url, trust_env=False, timeout=60) as client:
        tasks = client.get("/api/catalog").raise_for_status().json()["tasks"]
        assert {t["name"]: t for t in tasks}["digits_mlp"]["profiles"]["text"]["parameters"]
        study = client.post("/api/studies", json={"name": "light"}).raise_for_status().json()["id"]
        sweeps = f"/api/studies/{study}/sweeps"
        body = {"task": "digits_mlp", "seeds": 2}
        forecast = client.post(sweeps, params={"dry_run": "true"}, json=body)
        submitted = client.post(sweeps, json=body).raise_for_status().json()
        assert forecast.raise_for_status().json()["trials"] == submitted["total"] > 0
        assert finish_everything(get_engine()) == submitted["total"]
        assert client.get(f"/api/studies/{study}/sensitivity").raise_for_status().json()["series"]
        assert client.get(f"/api/studies/{study}/scorecard").raise_for_status().json()["rows"]
        with transaction() as session:
            adamw = method_manifest(None, name="torch.optim.AdamW", title="AdamW")
            arrive(session, "one", task_manifest(), adamw)
        own = {"task": TASK, "methods": ["eb", "torch.optim.AdamW(wd=0.1)"], "seeds": 1}
        told = client.post("/api/forecast", json=own).raise_for_status().json()
        assert told["trials"] == 6
        assert not carries_torch(web)
        client.get("/api/illustrations/update").raise_for_status()
        assert carries_torch(web), "or the assertion above asserts nothing"


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
        assert sorted(taken)[10] < 3
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
