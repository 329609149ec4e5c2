"""The files a team starts from: lint, schema, and that they agree with the code."""

import hashlib
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from backend.settings import Settings

ROOT = Path(__file__).resolve().parents[1]
COMPOSE = (ROOT / "docker-compose.yml").read_text("utf-8")
EXAMPLE = (ROOT / ".env.example").read_text("utf-8")
DOCKERFILE = (ROOT / "backend" / "Dockerfile").read_text("utf-8")
TOOLS = Path(sys.executable).parent


def run(*command: str) -> None:
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture(scope="module")
def services() -> dict[str, dict[str, Any]]:
    return dict(yaml.safe_load(COMPOSE)["services"])


def test_the_image_is_lint_clean() -> None:
    run(str(TOOLS / "hadolint"), "backend/Dockerfile")


def test_the_compose_file_fits_its_schema() -> None:
    checker = str(TOOLS / "check-jsonschema")
    run(checker, "--builtin-schema", "vendor.compose-spec", "docker-compose.yml")


def test_the_image_runs_as_nobody_special() -> None:
    user = re.findall(r"^USER (\d+):\d+$", DOCKERFILE, re.MULTILINE)
    assert [int(uid) > 1000 for uid in user] == [True]
    assert "constraints.txt" in DOCKERFILE


def test_images_are_plain_names_of_a_fixed_version(services: dict[str, dict[str, Any]]) -> None:
    told = dict(re.findall(r"^ARG (\w+_IMAGE)=(\S+)$", DOCKERFILE, re.MULTILINE))
    bases = re.findall(r"^FROM \$\{(\w+)\}", DOCKERFILE, re.MULTILINE)
    assert len(bases) == DOCKERFILE.count("\nFROM "), "every stage's image can be pinned"
    named = [told[base] for base in bases]
    arguments = services["web"]["build"]["args"]
    assert {re.sub(r".*:-(.*)\}", r"\1", arguments[base]) for base in bases} == set(named)
    named += [s["image"] for s in services.values() if "build" not in s]
    for image in named:
        chosen = re.sub(r"\$\{\w+:-(.*)\}", r"\1", image)  # what it is unless .env names a digest
        name, _, version = chosen.partition(":")
        assert "/" not in name
        assert re.match(r"\d", version), f"{image} may become another one tomorrow"


DOCKER = """#!/bin/sh
# Stands for a registry: every image has a digest made of its name.
case $1 in
    pull) echo "$3" >> pulled;;
    image) echo "${5%%:*}@sha256:$(printf %s "$5" | sha256sum | cut -d ' ' -f 1)";;
esac
"""


@pytest.mark.skipif(shutil.which("make") is None, reason="make is not installed")
def test_images_are_pinned_by_one_command(tmp_path: Path) -> None:
    for name in ("Makefile", ".env.example"):
        shutil.copy(ROOT / name, tmp_path)
    (tmp_path / ".env").write_text(EXAMPLE.replace("ETASCOPE_SECRET=", "ETASCOPE_SECRET=ours"))
    (tmp_path / "docker").write_text(DOCKER)
    (tmp_path / "docker").chmod(0o755)
    path = f"{tmp_path}{os.pathsep}{os.environ['PATH']}"
    for _ in range(2):  # again, too
        subprocess.run(["make", "pin"], cwd=tmp_path, env={**os.environ, "PATH": path}, check=True)
    before, after = (_values(text) for text in (EXAMPLE, (tmp_path / ".env").read_text()))
    images = {name for name in before if name.endswith("_IMAGE")}
    assert images == {name for name in before if before[name] != after[name]} - {"ETASCOPE_SECRET"}
    assert after["ETASCOPE_SECRET"] == "ours"
    for name in images:
        digest = hashlib.sha256(before[name].encode()).hexdigest()
        assert after[name] == f"{before[name].partition(':')[0]}@sha256:{digest}"
        assert f"${{{name}:-{before[name]}}}" in COMPOSE
    assert (tmp_path / "pulled").read_text().split() == [
        before[one] for one in before if one in images
    ] * 2


def _values(text: str) -> dict[str, str]:
    lines = (line for line in text.splitlines() if line and not line.startswith("#"))
    return {name: value for name, _, value in (line.partition("=") for line in lines)}


def test_everything_that_stays_is_watched_and_bounded(services: dict[str, dict[str, Any]]) -> None:
    for name, service in services.items():
        limits = service["deploy"]["resources"]["limits"]
        assert "memory" in limits, name
        assert service["restart"] == ("no" if name == "migrate" else "unless-stopped")
        watched = "healthcheck" in service or "HEALTHCHECK" in DOCKERFILE
        assert watched, name


def test_nothing_starts_before_the_tables_are_there(services: dict[str, dict[str, Any]]) -> None:
    for name in ("web", "worker", "worker-gpu"):
        migrated = services[name]["depends_on"]["migrate"]["condition"]
        assert migrated == "service_completed_successfully"


def test_a_team_has_accounts_and_no_password_of_ours(services: dict[str, dict[str, Any]]) -> None:
    for name in ("web", "worker", "worker-gpu", "migrate"):
        assert services[name]["environment"]["ETASCOPE_AUTH"] == "on"
    for secret in ("ETASCOPE_SECRET", "POSTGRES_PASSWORD", "REDIS_PASSWORD"):
        uses = re.findall(rf"\$\{{{secret}([^}}]*)\}}", COMPOSE)
        assert uses, secret
        assert all(use.startswith(":?") for use in uses), f"{secret} must not have a default"
        assert re.search(rf"^{secret}=$", EXAMPLE, re.MULTILINE)


def test_the_broker_keeps_what_it_was_told(services: dict[str, dict[str, Any]]) -> None:
    command = services["broker"]["command"][-1]
    for setting in ("requirepass", "appendonly yes", "noeviction"):
        assert setting in command
    assert services["broker"]["volumes"] == ["broker:/data"]


def test_every_variable_is_explained_and_every_setting_exists() -> None:
    asked = set(re.findall(r"\$\{([A-Z_]+)", COMPOSE))
    assert asked == set(re.findall(r"^([A-Z_]+)=", EXAMPLE, re.MULTILINE))
    settings = {f"ETASCOPE_{name.upper()}" for name in Settings.model_fields}
    given = set(re.findall(r"^\s+(ETASCOPE_[A-Z_]+):", COMPOSE, re.MULTILINE))
    assert given <= settings


def test_secrets_and_data_stay_out_of_the_image() -> None:
    lines = (ROOT / ".dockerignore").read_text("utf-8").splitlines()
    rules = [line for line in lines if line and not line.startswith("#")]
    assert rules[0] == "*"
    allowed = {line[1:] for line in rules if line.startswith("!")}
    copied = set()
    for line in re.findall(r"^COPY (?!--from)(.*)$", DOCKERFILE, re.MULTILINE):
        copied |= set(line.split()[:-1])
    assert allowed == copied


@pytest.mark.parametrize("name", ["database", "broker"])
def test_the_database_and_the_broker_have_no_more_rights_than_they_need(
    services: dict[str, dict[str, Any]], name: str
) -> None:
    service = services[name]
    assert service["read_only"] is True
    assert service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]
