"""What the compose file starts, without an engine: PostgreSQL, a broker, two of everything."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from backend.client import Client
from backend.db import reading
from backend.services import maintenance
from tests.installation import Installation
from tests.servers import BrokerServer, wait_for

SECRET = "a-secret-of-at-least-32-characters-for-tests"
PASSWORD = "Correct-Horse-77-battery"
BODY: dict[str, Any] = {
    "task": "toy/quadratic",
    "methods": ["eb", "ib"],
    "learning_rates": {"from": 0.01, "to": 10, "count": 5},
    "seeds": 6,
    "epochs": 3,
}


def etascope(*arguments: str, typed: str = "") -> str:
    """Run a command as an operator does, in the installation's environment."""
    done = subprocess.run(
        [sys.executable, "-m", "backend.cli", *arguments],
        input=typed,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": os.getcwd()},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture
def team(
    postgresql_database: str,
    broker: BrokerServer,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[Installation]:
    monkeypatch.setenv("ETASCOPE_AUTH", "on")
    monkeypatch.setenv("ETASCOPE_SECRET", SECRET)
    settings = {"ETASCOPE_LOG_FORMAT": "json", "ETASCOPE_LOG_LEVEL": "debug"}
    team = Installation(tmp_path, **settings)
    # As if this machine were a TLS proxy of the second process, and nobody to the first.
    team.webs[1].environment["ETASCOPE_TRUSTED_PROXIES"] = "127.0.0.1"
    with team:
        yield team


def test_a_study_through_two_web_processes_and_two_workers(team: Installation) -> None:
    etascope("db", "upgrade")
    printed = etascope("user", "create", "ada", "--role", "admin", "--generate")
    password = re.findall(r"\S{12,}", printed)[-1].rstrip(".")
    token = re.findall(r"eta_[\w-]+", etascope("token", "create", "test", "--user", "ada"))[0]

    assert httpx.get(f"{team.door.url}/api/studies", trust_env=False).status_code == 401
    _log_in_badly_and_well(team, password)
    with Client(team.door.url, token=token) as client:
        study = client.create_study("Behind one address")
        sweep = client.submit(study.id, BODY)
        assert client.wait(sweep.id, timeout=120).state == "completed"
        again = client.submit(study.id, BODY)
        assert (again.total, again.reused) == (60, 60)
    _both_have_worked(team, token)
    with reading() as session:
        assert maintenance.check(session) == []
    assert "No contradiction was found" in etascope("db", "check")
    _logs_tell_ids_and_no_secrets(team, [password, token, SECRET, PASSWORD])


def _log_in_badly_and_well(team: Installation, password: str) -> None:
    """A login made at one web process is known to the other."""
    with httpx.Client(base_url=team.door.url, trust_env=False) as browser:
        wrong = {"username": "ada", "password": PASSWORD}
        assert browser.post("/api/auth/login", json=wrong).status_code == 401
        right = {"username": "ada", "password": password}
        assert browser.post("/api/auth/login", json=right).status_code == 200
        cookies = dict(browser.cookies)
    marked = [_is_marked_secure(web.url, right) for web in team.webs]
    assert marked == [False, True], "only a trusted proxy may say that a request came by https"
    for web in team.webs:
        header = {"Cookie": "; ".join(f"{name}={value}" for name, value in cookies.items())}
        me = httpx.get(f"{web.url}/api/me", headers=header, trust_env=False)
        assert me.json()["username"] == "ada"


def _is_marked_secure(url: str, login: dict[str, str]) -> bool:
    """Return whether the login's cookie is for https alone, after a proxy said it came by that."""
    header = {"X-Forwarded-Proto": "https", "X-Forwarded-For": "203.0.113.9"}
    answer = httpx.post(f"{url}/api/auth/login", json=login, headers=header, trust_env=False)
    return "secure" in answer.headers["set-cookie"].lower()


def _both_have_worked(team: Installation, token: str) -> None:
    assert min(team.door.served.values()) > 0, team.door.served
    header = {"Authorization": f"Bearer {token}"}
    answers = [
        httpx.get(f"{web.url}/api/studies/1/sensitivity", headers=header, trust_env=False)
        for web in team.webs
    ]
    assert answers[0].json() == answers[1].json()
    numbers = httpx.get(f"{team.webs[0].url}/metrics", headers=header, trust_env=False).text
    for name in ("queue_depth", "shard_seconds", "worker_heartbeat_age_seconds", "trials"):
        assert f"etascope_{name}" in numbers
    workers = httpx.get(f"{team.webs[0].url}/api/workers", headers=header, trust_env=False)
    assert [worker["alive"] for worker in workers.json()["items"]] == [True, True]


def _logs_tell_ids_and_no_secrets(team: Installation, secrets: list[str]) -> None:
    wait_for(lambda: "trials stored" in team.logs(), what="the workers' logs")
    lines = [json.loads(line) for line in team.logs().splitlines() if line.startswith("{")]
    written = [line for line in lines if "POST /api/studies/1/sweeps" in line["message"]]
    assert written
    assert all("request_id" in line for line in written)
    trained = [line for line in lines if "trials stored" in line["message"]]
    assert all(line["shard_id"] and line["trial_ids"] for line in trained)
    for secret in secrets:
        assert secret not in team.logs()
