"""Shards: trials that one worker trains as one stack, under a lease.

| module | for |
| --- | --- |
| `planning` | which trials need training, and their shards: planned, given back, split, given up |
| `leases` | a shard in a worker's hands: claimed, renewed, reported on, ended |
| `dispatch` | what waits: announced to workers, taken back from silent ones, counted, forecast |
"""

from backend.services.shards.dispatch import (
    CPU,
    GPU,
    OPEN,
    QUEUES,
    Announcement,
    Counts,
    announce,
    count,
    due,
    expire,
    mark_unsent,
    obstacles,
    pending,
    queue_state,
    seconds_left,
    slowdown,
)
from backend.services.shards.leases import (
    Claim,
    ClaimedTrial,
    abandon,
    claim,
    drop_unwanted,
    fail,
    finish,
    heartbeat,
    release,
    report,
    wanted,
)
from backend.services.shards.planning import (
    cancel_unwanted,
    clear,
    close_empty,
    ensure_trials,
    grid_of,
    known_states,
    needs_training,
    plan,
    plan_again,
    shards_for,
)

__all__ = [
    "CPU",
    "GPU",
    "OPEN",
    "QUEUES",
    "Announcement",
    "Claim",
    "ClaimedTrial",
    "Counts",
    "abandon",
    "announce",
    "cancel_unwanted",
    "claim",
    "clear",
    "close_empty",
    "count",
    "drop_unwanted",
    "due",
    "ensure_trials",
    "expire",
    "fail",
    "finish",
    "grid_of",
    "heartbeat",
    "known_states",
    "mark_unsent",
    "needs_training",
    "obstacles",
    "pending",
    "plan",
    "plan_again",
    "queue_state",
    "release",
    "report",
    "seconds_left",
    "shards_for",
    "slowdown",
    "wanted",
]
