"""A disk that is really full while a worker reports: it says so, and nothing is lost."""

import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from backend.db import dispose_engines
from backend.operations.database import upgrade
from backend.settings import Settings, get_settings
from tests.servers import BrokerServer, wait_for
from tests.worker.test_faults import assert_done_once, attempts, seen, send

SIZE = "4m"


@pytest.fixture
def small_disk(home: Path, broker: BrokerServer, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A file system of a few megabytes that holds the database and nothing else."""
    del broker
    disk = home / "small"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={SIZE}", "tmpfs", str(disk)]
    if os.geteuid() != 0 or subprocess.run(mount, check=False, capture_output=True).returncode:
        pytest.skip("Mounting a small file system needs root.")
    monkeypatch.setenv("ETASCOPE_DATABASE_URL", f"sqlite:///{disk / 'etascope.db'}")
    get_settings.cache_clear()
    upgrade(Settings())
    yield disk
    dispose_engines()
    subprocess.run(["umount", "--lazy", str(disk)], check=True)


def fill(disk: Path) -> Path:
    """Leave no byte free."""
    filler = disk / "filler"
    with filler.open("wb", buffering=0) as file:
        try:
            while file.write(b"x" * 4096):
                pass
        except OSError:
            pass
    return filler


def test_a_full_disk_delays_results_and_loses_none(
    small_disk: Path, start_worker: Callable[..., Any]
) -> None:
    start_worker()
    sweep_id = send(epochs=100)
    wait_for(lambda: seen(sweep_id).progress["running"], seconds=60, what="training to begin")
    filler = fill(small_disk)
    worker_log = small_disk.parent / "worker-0.log"
    refused = lambda: "disk is full" in worker_log.read_text()  # noqa: E731
    wait_for(refused, seconds=60, what="the database to refuse")
    assert seen(sweep_id).state not in ("completed", "failed")
    filler.unlink()
    assert_done_once(sweep_id)
    assert attempts() in ([1], [2]), "and at most one lease ran out meanwhile"
