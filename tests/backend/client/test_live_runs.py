"""Live runs: on disk first, sent whenever the service is there, never stored twice."""

import contextlib
import json
import math
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import httpx
import pytest
from fastapi.testclient import TestClient
from typer.testing import CliRunner

from backend.cli import app as etascope
from backend.cli import submit as cli_submit
from backend.client import ApiError, Client, spooled
from backend.client import runs as live
from backend.client.cells import FIRST_POINTS, Log
from tests.papers import ROOT
from tests.servers import wait_for

MINE = {"study": "Tuning", "task": "cifar", "method": "adamw", "lr": 0.1}


class Line:
    """The way to the API in this process, which can be cut, before or after the other side."""

    def __init__(self, api: TestClient) -> None:
        self.api = api
        self.cut = self.deaf = False
        self.sent = 0

    def __call__(self, request: httpx.Request) -> httpx.Response:
        if self.cut:
            raise httpx.ConnectError("cut")
        self.sent += 1
        path = str(request.url.raw_path, "ascii")
        kind = {"Content-Type": "application/json"}
        found = self.api.request(request.method, path, content=request.content, headers=kind)
        if self.deaf:  # it arrived, but nobody knows
            raise httpx.ReadError("cut")
        return httpx.Response(found.status_code, content=found.content)


@pytest.fixture
def line(api: TestClient) -> Line:
    return Line(api)


@pytest.fixture
def client(line: Line, monkeypatch: pytest.MonkeyPatch) -> Client:
    monkeypatch.setattr(live, "LAST_SECONDS", 0.0)
    transport = httpx.MockTransport(line)
    return Client(http=httpx.Client(transport=transport, base_url="http://127.0.0.1:8050"))


def trials(api: TestClient) -> list[dict[str, Any]]:
    studies = api.get("/api/studies").json()["items"]
    return [
        trial
        for study in studies
        for sweep in study["sweep_ids"]
        for trial in api.get(f"/api/sweeps/{sweep}/trials").json()["items"]
    ]


def test_a_run_ends_with_its_last_loss_and_leaves_nothing_behind(
    api: TestClient, client: Client, tmp_path: Path
) -> None:
    with client.run(**MINE, seed=7, spool=tmp_path) as run:
        for step in range(5):
            run.log(step, train_loss=1.0 / (step + 1), test_loss=2.0)
    (trial,) = trials(api)
    assert (trial["state"], trial["seed"], trial["train_loss"]) == ("completed", 7, 0.2)
    assert list(spooled(tmp_path)) == []
    assert len(api.get(f"/api/trials/{trial['id']}/curve").json()["points"]) == 5


def test_while_the_service_is_away_a_run_waits_on_disk_and_is_stored_once(
    api: TestClient, client: Client, line: Line, tmp_path: Path
) -> None:
    line.cut = True
    with client.run(**MINE, spool=tmp_path) as run:
        run.log(0, train_loss=1.0)
        run.log(1, train_loss=math.nan)
    assert trials(api) == []
    (waiting,) = spooled(tmp_path)
    line.cut, line.deaf = False, True
    for _ in range(3):  # whatever arrives unnoticed is sent again
        with pytest.raises(Exception, match="No answer"):
            client.sync_runs(tmp_path)
    line.deaf = False
    copy = waiting.read_bytes()
    assert client.sync_runs(tmp_path) == 1
    waiting.write_bytes(copy)  # as if it could not be deleted
    assert client.sync_runs(tmp_path) == 1
    (trial,) = trials(api)
    assert (trial["state"], trial["train_loss"]) == ("diverged", None)
    assert len(api.get(f"/api/trials/{trial['id']}/curve").json()["points"]) == 2


def test_a_run_that_raises_has_failed_with_its_reason(
    api: TestClient, client: Client, tmp_path: Path
) -> None:
    def train() -> None:
        with client.run(**MINE, spool=tmp_path) as run:
            run.log(0, train_loss=1.0)
            raise RuntimeError("out of memory")

    with pytest.raises(RuntimeError):
        train()
    (trial,) = trials(api)
    assert (trial["state"], trial["error"]) == ("failed", "RuntimeError: out of memory")


def test_a_program_that_was_killed_is_sent_as_failed_and_one_that_lives_is_left_alone(
    api: TestClient, client: Client, line: Line, tmp_path: Path
) -> None:
    line.cut = True
    run = client.run(**MINE, spool=tmp_path)
    run.log(0, train_loss=1.0)
    line.cut = False
    assert client.sync_runs(tmp_path) == 0
    code = "import os; print(os.getpid())"
    gone = subprocess.check_output([sys.executable, "-c", code], text=True)
    first, *rest = run.path.read_text().splitlines()
    dead = json.dumps(json.loads(first) | {"pid": int(gone)})
    run.finish()
    run.path.write_text("\n".join([dead, *rest, '{"point": {"st']))  # killed in mid-line
    for trial in trials(api):
        api.delete(f"/api/studies/{trial['id']}")
    api.delete("/api/studies/1")
    assert client.sync_runs(tmp_path) == 1
    (trial,) = trials(api)
    assert (trial["state"], trial["error"]) == ("failed", "Its program ended without saying how.")


def waiting_run(client: Client, line: Line, spool: Path, **changes: Any) -> Path:
    """Return the file of a run that ended while the service was away."""
    line.cut = True
    with client.run(**MINE | changes, spool=spool) as run:
        run.log(1, train_loss=0.5)
    line.cut = False
    return run.path


def test_what_cannot_be_sent_is_named_and_keeps_no_other_waiting(
    api: TestClient, line: Line, client: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    refused = waiting_run(client, line, tmp_path, study=99)
    others = {"empty": "", "list": "[1]\n", "text": "run\n", "old": '{"run": {"key": 1}}\n'}
    for name, content in others.items():
        (tmp_path / f"{name}.jsonl").write_text(content)
    (tmp_path / "binary.jsonl").write_bytes(b"\xff\xfe\x00")
    bad = list(spooled(tmp_path))
    assert (refused in bad, len(bad)) == (True, 6)
    waiting_run(client, line, tmp_path)  # the newest: all others are tried before it
    monkeypatch.setattr(cli_submit, "connect", lambda _server, _token: client)
    done = CliRunner().invoke(etascope, ["sync", str(tmp_path)])
    assert (done.exit_code, done.stdout) == (1, "1 runs sent.\n")
    assert [trial["state"] for trial in trials(api)] == ["completed"]
    assert set(spooled(tmp_path)) == set(bad)
    told = done.stderr.splitlines()
    assert all(any(line.startswith(f"Not sent: {path}: ") for line in told) for path in bad)
    assert len(told) == len(bad)  # a sentence each, and no traceback
    assert f"{tmp_path / 'empty.jsonl'}: It is empty and can be deleted." in done.stderr
    assert "There is no study 99" in done.stderr


def test_a_token_that_nobody_knows_ends_the_sending_at_once(
    line: Line, client: Client, tmp_path: Path
) -> None:
    for _ in range(2):
        waiting_run(client, line, tmp_path)

    def refuse(_request: httpx.Request) -> httpx.Response:
        line.sent += 1
        error = {"code": "unauthenticated", "message": "Who are you?"}
        return httpx.Response(401, json={"error": error})

    line.sent = 0
    transport = httpx.MockTransport(refuse)
    stranger = Client(http=httpx.Client(transport=transport, base_url="http://127.0.0.1"))
    with pytest.raises(Exception, match="Who are you"):
        stranger.sync_runs(tmp_path)
    assert line.sent == 1


@pytest.mark.parametrize(
    "elsewhere",
    [{"host": "far", "pid": 1}, {"namespace": "another container", "pid": 1}, {"namespace": None}],
)
def test_of_another_machine_a_days_silence_tells_that_a_program_is_gone(
    api: TestClient, client: Client, line: Line, tmp_path: Path, elsewhere: dict[str, Any]
) -> None:
    path = waiting_run(client, line, tmp_path)
    first, point, _end = path.read_text().splitlines()
    path.write_text("\n".join([json.dumps(json.loads(first) | elsewhere), point]) + "\n")
    now = time.time()
    os.utime(path, (now, now - 23 * 3600))
    assert client.sync_runs(tmp_path) == 0
    assert client.sync_runs(tmp_path, silent_seconds=22 * 3600) == 1
    (trial,) = trials(api)
    assert (trial["state"], trial["error"]) == ("failed", "Its program ended without saying how.")


def test_a_program_whose_number_another_one_has_now_is_gone(
    api: TestClient, client: Client, line: Line, tmp_path: Path
) -> None:
    path = waiting_run(client, line, tmp_path)
    first, point, _end = path.read_text().splitlines()
    path.write_text(f"{first}\n{point}\n")
    assert client.sync_runs(tmp_path) == 0, "it lives: it is this one"
    path.write_text(f"{json.dumps(json.loads(first) | {'began': 1})}\n{point}\n")
    assert client.sync_runs(tmp_path) == 1
    assert [trial["state"] for trial in trials(api)] == ["failed"]


def test_a_run_that_another_machine_took_for_dead_still_ends_as_it_ended(
    api: TestClient, client: Client, line: Line, tmp_path: Path
) -> None:
    line.cut = True
    run = client.run(**MINE, spool=tmp_path, flush_seconds=600)  # it says nothing in between
    run.log(1, train_loss=0.5)
    line.cut = False
    first, *rest = run.path.read_text().splitlines()
    far = json.dumps(json.loads(first) | {"host": "far"})
    run.path.write_text("\n".join([far, *rest]) + "\n")
    assert client.sync_runs(tmp_path, silent_seconds=-1) == 1
    assert [trial["state"] for trial in trials(api)] == ["failed"]
    run.finish()
    assert [trial["state"] for trial in trials(api)] == ["completed"]


def test_a_long_log_is_thinned_and_keeps_where_it_broke() -> None:
    log = Log()
    for step in range(200_000):
        log.add(step, 0.0, {"train_loss": math.nan if step == 77_777 else 1.0})
    steps = [point.step for point in log.points]
    assert FIRST_POINTS < len(steps) < 10_000
    assert steps[:FIRST_POINTS] == list(range(FIRST_POINTS))
    assert 77_777 in steps


@pytest.mark.parametrize(
    ("step", "losses", "words"),
    [(1, {"train_loss": 1.0}, "Steps rise"), (9, {"train_loss\n": 1.0}, "no 'train_loss")],
)
def test_a_log_refuses_wrong_orders_and_strange_names(
    step: int, losses: dict[str, float], words: str
) -> None:
    log = Log()
    log.add(1, 0.0, {"train_loss": 1.0})
    with pytest.raises(ValueError, match=words):
        log.add(step, 0.0, losses)


TRAIN = """
import json, sys, time
lr, seed, method = float(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
print("loading", method)
if lr == 5.0: sys.exit("no such file")
if lr == 7.0: time.sleep(60)
if lr == 9.0: sys.exit(print('{"train_loss": NaN, "outcome": "completed"}'))
w = 1.0
for step in range(5):
    print(json.dumps({"step": step, "train_loss": w * w}), flush=True)
    w -= lr * 2 * w
"""


BODY = {"where": "agents", "task": "t", "methods": ["gd"], "seeds": 1}


def line_of(server: str, program: Path, sweep_id: int, *options: str) -> list[str]:
    words = [sys.executable, str(program), "{lr}", "{seed}", "{method}"]
    start = [sys.executable, "-m", "backend.cli", "agent", str(sweep_id), "--server", server]
    return [*start, "--no-wait", *options, *([] if "--" in options else ["--", *words])]


def agent(server: str, program: Path, sweep_id: int, *options: str) -> str:
    """Return what `etascope agent` says at its end."""
    line = line_of(server, program, sweep_id, *options)
    done = subprocess.run(line, capture_output=True, text=True, cwd=ROOT, timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture
def program(tmp_path: Path) -> Path:
    path = tmp_path / "train.py"
    path.write_text(TRAIN)
    return path


def test_any_command_can_be_an_agent(server: str, program: Path) -> None:
    body = BODY
    with Client(server) as client:
        sweep = client.submit("Commands", {**body, "learning_rates": [0.1, 3, 5]})
        said = agent(server, program, sweep.id, "--parallel", "2")
        assert said == "2 cells finished, 1 broke, 0 were taken back.\n"
        found = {trial.lr: trial for trial in client.trials(sweep.id)}
        assert found[0.1].state.value == "completed"
        assert found[0.1].train_loss == pytest.approx(0.8**8)
        assert found[3.0].state.value == "diverged"
        assert "exit code 1" in " ".join(client.sweep(sweep.id).messages)
        slow = client.submit("Commands", {**body, "learning_rates": [7]})
        said = agent(server, program, slow.id, "--time-limit", "0.5")
        assert said == "0 cells finished, 1 broke, 0 were taken back.\n"
        assert "longer than the 0.5 seconds" in " ".join(client.sweep(slow.id).messages)


def test_a_result_that_is_refused_breaks_its_cell_and_no_other(server: str, program: Path) -> None:
    with Client(server) as client:
        sweep = client.submit("Commands", {**BODY, "learning_rates": [0.1, 9], "seeds": [2, 1]})
        said = agent(server, program, sweep.id)
        assert said == "2 cells finished, 2 broke, 0 were taken back.\n"
        found = client.sweep(sweep.id)
        assert (found.progress["completed"], found.progress["running"]) == (2, 0)
        assert "A completed cell needs a finite train_loss" in " ".join(found.messages)


def test_an_agent_trains_no_more_cells_than_it_was_asked_to(server: str, program: Path) -> None:
    with Client(server) as client:
        sweep = client.submit("Commands", {**BODY, "learning_rates": [0.1], "seeds": 6})
        said = agent(server, program, sweep.id, "--cells", "2", "--parallel", "4")
        assert said == "2 cells finished, 0 broke, 0 were taken back.\n"
        progress = client.sweep(sweep.id).progress
        assert (progress["completed"], progress["queued"]) == (2, 4)


def test_a_command_may_write_its_log_to_a_file_and_read_the_sweeps_settings(
    server: str, program: Path, tmp_path: Path
) -> None:
    program.write_text(
        "import json, sys\n"
        "log, width, trial = sys.argv[1:]\n"
        "print(json.dumps({'train_loss': 99.0}))\n"  # not where its log is
        "with open(log, 'a') as file:\n"
        "    for step in range(3):\n"
        "        loss = int(width) / (step + 1)\n"
        "        print(json.dumps({'step': step, 'train_loss': loss}), file=file)\n"
    )
    body = {**BODY, "learning_rates": [0.1], "settings": {"width": 6}}
    with Client(server) as client:
        sweep = client.submit("Commands", body)
        (trial,) = client.trials(sweep.id)
        (tmp_path / f"{trial.id}.jsonl").write_text('{"step": 9, "train_loss": 77.0}\n')
        words = [sys.executable, str(program), "{log}", "{settings.width}", "{trial}"]
        place = str(tmp_path / "{trial}.jsonl")
        agent(server, program, sweep.id, "--log-file", place, "--", *words)
        (trial,) = client.trials(sweep.id)
        assert (trial.state.value, trial.initial_loss, trial.train_loss) == ("completed", 6.0, 2.0)
        assert [point.step for point in client.curve(trial.id).points] == [0, 1, 2]


def test_an_agent_that_is_terminated_ends_its_commands_and_gives_their_cells_back(
    server: str, program: Path, tmp_path: Path
) -> None:
    pid = tmp_path / "pid"
    note = f"open({str(pid)!r}, 'w').write(str(os.getpid()))"
    program.write_text(f"import os, time\n{note}\ntime.sleep(600)\n")
    with Client(server) as client:
        sweep = client.submit("Commands", {**BODY, "learning_rates": [0.1], "seeds": 2})
        line = line_of(server, program, sweep.id)
        running = subprocess.Popen(line, stdout=subprocess.PIPE, text=True, cwd=ROOT)
        wait_for(lambda: pid.exists() and pid.read_text() != "", seconds=120, what="its command")
        running.terminate()
        said, _ = running.communicate(timeout=60)
        assert (running.returncode, said) == (
            130,
            "0 cells finished, 0 broke, 1 were taken back.\n",
        )
        with pytest.raises(ProcessLookupError):
            os.kill(int(pid.read_text()), 0)
        assert client.sweep(sweep.id).progress["queued"] == 2
        with contextlib.closing(client.cells(sweep.id)) as cells:
            assert next(cells).attempt == 1  # being terminated is no attempt


def test_a_cell_whose_report_is_refused_is_still_in_its_programs_hands(server: str) -> None:
    with Client(server) as client:
        sweep = client.submit("Cells", {**BODY, "learning_rates": [0.1], "seeds": 2})
        found = client.cells(sweep.id, wait=False)
        cell = next(found)
        with pytest.raises(ApiError, match="needs a finite train_loss"):
            cell.finish(outcome="completed", train_loss=math.nan)
        assert cell.finish(outcome="diverged", train_loss=math.nan)
        assert not cell.finish(train_loss=1.0)
        cell = next(found)
        cell.log(1, train_loss=1.0)
        cell._log.points *= 2  # steps that do not rise: the service refuses such a log
        with pytest.raises(ApiError, match="rise"):
            cell.finish(train_loss=1.0)
        assert cell.fail("it broke")
        assert "it broke" in " ".join(client.sweep(sweep.id).messages)
