"""What a broker may deliver that we never sent, and a clock that is wrong."""

import json
import os
import pickle
import time
from base64 import b64encode
from collections.abc import Callable
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from backend.queue import KEY_PREFIX
from tests.servers import BrokerServer
from tests.worker.test_faults import assert_done_once, attempts, send


class Boom:
    """Unpickling it leaves a file behind."""

    def __init__(self, file: Path) -> None:
        self.file = file

    def __reduce__(self) -> tuple[Any, ...]:
        return os.system, (f"touch {self.file}",)


def message(body: bytes, kind: str) -> str:
    """Return a message as it lies in the broker's list."""
    return json.dumps(
        {
            "body": b64encode(body).decode(),
            "content-encoding": "binary",
            "content-type": kind,
            "headers": {"task": "etascope.run_shard", "id": str(uuid4()), "lang": "py"},
            "properties": {
                "body_encoding": "base64",
                "delivery_tag": str(uuid4()),
                "delivery_info": {"exchange": "", "routing_key": "cpu"},
                "correlation_id": str(uuid4()),
            },
        }
    )


@pytest.fixture
def on_sqlite(sqlite_database: str, broker: BrokerServer) -> BrokerServer:
    del sqlite_database
    return broker


def test_a_pickled_message_is_not_opened_and_work_goes_on(
    on_sqlite: BrokerServer, start_worker: Callable[..., Any], tmp_path: Path
) -> None:
    trap = tmp_path / "was-here"
    arguments = json.dumps([["no shard"], {}, {}]).encode()
    with on_sqlite.client() as client:
        evil = message(pickle.dumps(Boom(trap)), "application/x-python-serialize")
        client.lpush(f"{KEY_PREFIX}cpu", evil)
        client.lpush(f"{KEY_PREFIX}cpu", message(arguments, "application/json"))
        client.lpush(f"{KEY_PREFIX}cpu", message(b"{", "application/json"))
    start_worker()
    assert_done_once(send(epochs=1))
    assert not trap.exists()


SKEWED = """
import time
honest = time.time
time.time = lambda: honest() {hours:+d} * 3600
from worker.main import serve
serve()
"""


@pytest.mark.parametrize("hours", [30, pytest.param(-30, marks=pytest.mark.slow)])
def test_a_worker_whose_clock_is_wrong_keeps_its_shard_and_no_longer(
    on_sqlite: BrokerServer, start_worker: Callable[..., Any], hours: int
) -> None:
    worker = start_worker("-c", SKEWED.format(hours=hours))
    assert_done_once(send())
    assert attempts() == [1]
    sweep = send(seeds=(7,), epochs=400)
    time.sleep(1.5)
    worker.kill()
    start_worker()
    assert_done_once(sweep)
