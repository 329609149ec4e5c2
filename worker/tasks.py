"""What workers can be asked to do."""

from backend.queue import RUN_SHARD
from worker.app import app, training_process


def run_shard(shard_id: int) -> None:
    """Train a shard's trials together; a second delivery finds nothing to claim and returns."""
    training_process().run(shard_id)


app.task(name=RUN_SHARD, Request="worker.requests:ShardRequest")(run_shard)
