"""The sender: fast when the broker is there, quick to say so when it is not."""

import socket
import threading
import time
from pathlib import Path

import pytest

from backend.db import reading, transaction
from backend.errors import Unavailable
from backend.models import ShardRow
from backend.queue import KEY_PREFIX, RUN_SHARD, Queue, get_queue
from backend.services.shards import Announcement
from tests.factories import submit
from tests.servers import BrokerServer


@pytest.fixture
def shard_id(sqlite_database: str) -> int:
    with transaction() as session:
        return submit(session).shard_ids[0]


def sent_at(shard_id: int):
    with reading() as session:
        return session.get_one(ShardRow, shard_id).sent_at


def test_a_shard_is_announced_by_its_id_alone(shard_id: int, broker: BrokerServer) -> None:
    assert get_queue().enqueue([shard_id]) == 1
    assert get_queue().depths() == {"cpu": 1, "gpu": 0}
    assert get_queue().why_unavailable() is None
    with broker.client() as client:
        (message,) = client.lrange(f"{KEY_PREFIX}cpu", 0, -1)
    assert RUN_SHARD.encode() in message
    assert sent_at(shard_id) is not None


def test_announcing_twice_sends_once(shard_id: int, broker: BrokerServer) -> None:
    assert [get_queue().enqueue([shard_id]) for _ in range(2)] == [1, 0]


def test_nothing_to_send_needs_no_broker(home: Path) -> None:
    assert get_queue().enqueue([]) == 0
    get_queue().send([])


def test_with_the_broker_away_the_work_stays_queued(shard_id: int, broker: BrokerServer) -> None:
    broker.kill()
    began = time.monotonic()
    assert get_queue().enqueue([shard_id]) == 0
    assert time.monotonic() - began < 5
    assert sent_at(shard_id) is None
    assert "does not answer" in str(get_queue().why_unavailable())


def test_a_broker_that_only_reads_is_not_called_ready(home: Path, broker: BrokerServer) -> None:
    """On a full disk it lists its queues and refuses every message."""
    with broker.client() as client:
        client.config_set("min-replicas-to-write", 1)
        assert get_queue().depths() == {"cpu": 0, "gpu": 0}
        reason = str(get_queue().why_unavailable())
        assert "takes nothing" in reason
        assert "replicas" in reason, "its own reason is told"
        client.config_set("min-replicas-to-write", 0)
    assert get_queue().why_unavailable() is None


def test_a_broker_that_comes_back_is_used_again(shard_id: int, broker: BrokerServer) -> None:
    queue = get_queue()
    queue.send([Announcement(shard_id, "gpu")])
    broker.kill()
    with pytest.raises(Unavailable, match="does not answer"):
        queue.send([Announcement(shard_id, "gpu")])
    broker.start()
    queue.send([Announcement(shard_id, "gpu")])
    assert queue.depths()["gpu"] == 1


def test_a_broker_that_hangs_does_not_hang_the_request(tmp_path: Path) -> None:
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    listener.listen(8)
    queue = Queue(f"redis://127.0.0.1:{listener.getsockname()[1]}/0")
    began = time.monotonic()
    with pytest.raises(Unavailable):
        queue.depths()
    with pytest.raises(Unavailable):
        queue.send([Announcement(1, "cpu")])
    assert time.monotonic() - began < 15
    listener.close()


def test_many_threads_may_send(shard_id: int, broker: BrokerServer) -> None:
    queue = get_queue()

    def send() -> None:
        for _ in range(10):
            queue.send([Announcement(shard_id, "cpu")])

    threads = [threading.Thread(target=send) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert queue.depths()["cpu"] == 80
