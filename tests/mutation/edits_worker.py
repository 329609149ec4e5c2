"""Faults in a worker: results lost, leases kept too long, shards given back or not."""

from tests.mutation.edit import Edit

EDITS = (
    Edit(
        "a stopping worker drops short shards and finishes long ones",
        "worker",
        "self._left() > SHORT_SECONDS",
        "self._left() < SHORT_SECONDS",
        ("test_a_stopping_worker_drops_a_long_shard_and_finishes_a_short_one",),
    ),
    Edit(
        "a point that arrives during a write is lost",
        "worker",
        "if len(self._curves.get(trial_id, ())) == len(so_far):",
        "if True:",
        ("test_a_point_that_arrives_during_a_write_is_in_the_next_one",),
    ),
    Edit(
        "wanted trials are dropped, unwanted ones trained",
        "worker",
        "if trial.id not in wanted)",
        "if trial.id in wanted)",
        ("test_exactly_the_trials_nobody_wants_any_more_are_reported",),
    ),
    Edit(
        "a worker trains on although its lease is lost",
        "worker",
        "recorder.lost = recorder.lost or not held",
        "recorder.lost = recorder.lost and not held",
        ("test_a_lost_lease_is_noticed",),
    ),
    Edit(
        "a worker that waits for the database is ended as hung",
        "worker",
        "if recorder.closing or silence <",
        "if silence <",
        ("test_waiting_for_the_database_after_training_is_not_hanging",),
    ),
    Edit(
        "missing data part the trials of a shard",
        "worker",
        "alone = not isinstance(error, IBError)",
        "alone = True",
        ("test_only_a_fault_that_may_be_one_trial_s_alone_parts_the_trials",),
    ),
    Edit(
        "a database that is away is asked half as often",
        "worker",
        "2.0 ** min(failures - 1, 10)",
        "2.0 ** min(failures, 10)",
        ("test_the_wait_begins_short_and_doubles",),
    ),
    Edit(
        "every process trains on the first GPU",
        "worker",
        "devices.gpus[index % len(devices.gpus)]",
        "devices.gpus[0]",
        ("test_each_process_sees_only_its_gpu",),
    ),
    Edit(
        "a shard is trained elsewhere than it asked for",
        "worker",
        'return kind if asked == "auto" else asked',
        "return kind",
        ("test_a_shard_runs_where_it_asked_to",),
    ),
    Edit(
        "a child told to stop stops its siblings",
        "worker",
        "        self._here = True\n",
        "        self._everywhere.value = 1\n",
        ("test_a_child_told_to_stop_does_not_stop_its_siblings",),
    ),
)
