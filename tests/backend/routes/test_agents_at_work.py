"""Agents that are not torch, killed and cancelled: every cell once, none stuck, all consistent."""

import os
import signal
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from fastapi import FastAPI

from backend.client import Client
from backend.db import reading, transaction
from backend.services import maintenance, shards
from tests.backend.conftest import listening
from tests.papers import ROOT
from tests.servers import wait_for

pytestmark = pytest.mark.slow

#: Logistic regression by plain gradient descent: NumPy, and a client; nothing else.
PROGRAM = """
import sys
import numpy as np
from backend.client import Client

def loss(w, x, y):
    with np.errstate(all="ignore"):
        return float(np.mean(np.logaddexp(0, -y * (x @ w))))

with Client(sys.argv[1]) as client:
    for cell in client.cells(int(sys.argv[2]), flush_seconds=0.3, poll_seconds=0.2):
        random = np.random.default_rng(cell.seed)
        x = random.normal(size=(200, 20)); y = np.sign(x @ random.normal(size=20))
        w = np.zeros(20)
        for step in range(cell.epochs):
            if not cell.log(step, train_loss=loss(w, x, y)):
                break
            with np.errstate(all="ignore"):
                w += cell.lr * (x.T @ (y / (1 + np.exp(y * (x @ w))))) / 200
            import time; time.sleep(cell.settings.get("pause", 0))
        else:
            cell.finish(train_loss=loss(w, x, y))
            print(cell.trial_id, flush=True)
assert "torch" not in sys.modules
"""


@pytest.fixture
def address(app: FastAPI, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A server whose leases are short, and a reaper's passes beside it."""
    from backend.settings import get_settings

    monkeypatch.setenv("ETASCOPE_LEASE_SECONDS", "6")
    monkeypatch.setenv("ETASCOPE_RETRY_SECONDS", "0.1")
    get_settings.cache_clear()
    over = threading.Event()

    def reap() -> None:
        while not over.wait(0.5):
            with transaction() as session:
                shards.expire(session)

    thread = threading.Thread(target=reap)
    thread.start()
    with listening(app) as url:
        yield url
    over.set()
    thread.join()


@pytest.fixture
def program(tmp_path: Path) -> Path:
    path = tmp_path / "train.py"
    path.write_text(PROGRAM)
    return path


def start(program: Path, url: str, sweep_id: int) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, str(program), url, str(sweep_id)],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )


def consistent() -> bool:
    with reading() as session:
        return maintenance.check(session) == []


def test_two_agents_one_killed_train_every_cell_once(address: str, program: Path) -> None:
    body: dict[str, Any] = {
        "where": "agents",
        "task": "logistic regression in NumPy",
        "methods": ["gradient descent"],
        "learning_rates": {"from": 0.01, "to": 1000, "count": 20},
        "seeds": 5,
        "epochs": 20,
    }
    with Client(address) as client:
        sweep = client.submit("Elsewhere", body | {"settings": {"pause": 0.002}})
        both = [start(program, address, sweep.id) for _ in range(2)]
        done = lambda: client.sweep(sweep.id).progress["completed"]  # noqa: E731
        wait_for(lambda: done() >= 20, seconds=300, what="a fifth of the cells", every=0.05)
        both[0].send_signal(signal.SIGKILL)
        assert client.wait(sweep.id, timeout=500).state == "completed"
        told = [int(line) for one in both for line in one.communicate(timeout=60)[0].split()]
        trials = list(client.trials(sweep.id))
        assert both[1].returncode == 0
        assert len(trials) == 100
        assert {trial.state.value for trial in trials} <= {"completed", "diverged"}
        assert len(told) == len(set(told))  # no cell was finished by both
        # What was killed between its report and its line is the only one not told of.
        assert len(told) >= 99
        assert sum(trial.attempts > 1 for trial in trials) <= 1
    assert consistent()


def test_a_cancelled_sweep_ends_its_agents_within_seconds(address: str, program: Path) -> None:
    body = {"where": "agents", "task": "slow", "learning_rates": [0.1], "seeds": 9}
    with Client(address) as client:
        sweep = client.submit("Elsewhere", {**body, "epochs": 9999, "settings": {"pause": 0.05}})
        agents = [start(program, address, sweep.id) for _ in range(2)]
        running = lambda: client.sweep(sweep.id).progress["running"]  # noqa: E731
        wait_for(lambda: running() == 2, seconds=120, what="two cells", every=0.2)
        client.cancel(sweep.id)
        for agent in agents:
            agent.communicate(timeout=120)
        assert [agent.returncode for agent in agents] == [0, 0]
        found = client.sweep(sweep.id)
        assert (found.state.value, found.progress["cancelled"]) == ("cancelled", 9)
    assert consistent()


@pytest.mark.timeout(3000)
def test_a_thousand_cells_of_twenty_lines_leave_the_service_quick(
    address: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Every line is a request of its own here, which no client of ours would do."""
    from backend.client import calls
    from backend.schemas import CellClaim, CellPoint, CellReport, CellResult

    body = {"where": "agents", "task": "load", "learning_rates": "0.01:10:100", "seeds": 10}
    taken: list[float] = []
    lock = threading.Lock()
    with Client(address) as client:
        sweep = client.submit("Load", body)

    def work(number: int) -> None:
        with Client(address, timeout=60) as client:

            def timed(call: calls.Call[Any]) -> Any:
                began = time.monotonic()
                answer = client.send(call)
                with lock:
                    taken.append(time.monotonic() - began)
                return answer

            while True:
                claim = CellClaim(agent=f"agent {number}")
                cell = timed(calls.claim_cell(sweep.id, claim)).cell
                if cell is None:
                    return
                for step in range(20):
                    points = [CellPoint(step=step, train_loss=1.0 / (step + 1))]
                    report = CellReport(lease=cell.lease, start=step, points=points)
                    timed(calls.report_cell(sweep.id, cell.trial_id, report))
                last = CellReport(lease=cell.lease, result=CellResult(train_loss=0.05))
                timed(calls.report_cell(sweep.id, cell.trial_id, last))

    memory = psutil.Process()
    before = memory.memory_info().rss
    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    grown = (memory.memory_info().rss - before) / 1e6
    with Client(address) as client:
        assert client.sweep(sweep.id).progress["completed"] == 1000
    high = statistics.quantiles(taken, n=100)[98]
    with capsys.disabled():
        sys.stdout.write(
            f"\n{len(taken)} requests, median {statistics.median(taken) * 1e3:.1f} ms, "
            f"p99 {high * 1e3:.1f} ms, {grown:.0f} MB more\n"
        )
    assert grown < 100
    assert consistent()
