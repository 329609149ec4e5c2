"""What workers can be asked to do, and the messages that ask it."""

from celery.worker.request import Request
from kombu.asynchronous import get_event_loop

from backend.queue import RUN_REPLAY, RUN_SHARD, RUN_TIMING
from worker.app import app, training_process


class ShardRequest(Request):  # type: ignore[misc]
    """A message whose acknowledgement may get lost, but not unnoticed.

    If the broker is away when a shard ends, Celery logs that it could not acknowledge and goes on:
    it counts the message as still being worked on, fetches no other, and so never finds out that
    its connection is dead. The worker would wait for ever. Here it connects anew instead.
    """

    def acknowledge(self) -> None:
        """Tell the broker that the message is dealt with."""
        super().acknowledge()
        loop = get_event_loop()
        if not self.message.acknowledged and loop is not None:
            loop.call_soon(_lose_connection)  # type: ignore[no-untyped-call]


def _lose_connection() -> None:
    raise ConnectionError("A finished shard's message could not be acknowledged.")


def run_shard(shard_id: int) -> None:
    """Train a shard's trials together; a second delivery finds nothing to claim and returns."""
    training_process().run(shard_id)


app.task(name=RUN_SHARD, Request="worker.tasks:ShardRequest")(run_shard)


def run_timing(timing_id: int) -> None:
    """Let methods take steps in turn on one network; a second delivery finds nothing to claim."""
    training_process().time_steps(timing_id)


app.task(name=RUN_TIMING, Request="worker.tasks:ShardRequest")(run_timing)


def run_replay(trial_id: int) -> None:
    """Train a trial again alone, and record it; a second delivery finds nothing to claim."""
    training_process().replay(trial_id)


app.task(name=RUN_REPLAY, Request="worker.tasks:ShardRequest")(run_replay)
