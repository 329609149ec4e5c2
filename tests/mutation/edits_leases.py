"""Faults in who trains what and when: leases, retries, the queue."""

from tests.mutation.edit import Edit

LEASES = (
    Edit(
        "a shard that has to wait is claimed at once",
        "backend/services",
        "ShardRow.not_before <= clock()),\n",
        "ShardRow.not_before <= clock(3600.0)),\n",
        ("test_a_failed_shard_waits_a_little_before_it_is_tried_again",),
    ),
    Edit(
        "a worker of the same name renews a lease it has lost",
        "backend/services",
        "ShardRow.lease == claim.lease,",
        "ShardRow.worker == claim.worker,",
        ("test_a_stale_worker_can_neither_finish_nor_fail_nor_renew_the_shard",),
    ),
    Edit(
        "who has lost the lease may still end the shard",
        "backend/services",
        "tuple(found) == (ShardState.RUNNING, claim.lease)",
        "found[0] == ShardState.RUNNING",
        ("test_a_stale_worker_can_neither_finish_nor_fail_nor_renew_the_shard",),
    ),
    Edit(
        "a late result leaves its shard waiting for nothing",
        "backend/services",
        "if stored and not held:",
        "if False:",
        ("test_a_late_result_closes_the_shard_that_waits_for_nothing_else",),
    ),
    Edit(
        "a late worker's half curve replaces the present one",
        "backend/services",
        "if live and held:",
        "if live:",
        ("test_a_stale_worker_s_curve_does_not_replace_that_of_who_trains_now",),
    ),
    Edit(
        "a result of other data is stored as this trial's",
        "backend/services",
        "if ours[id].fingerprint != addresses[id]:",
        "if False:",
        ("test_a_result_of_other_data_is_not_taken_for_this_trial",),
    ),
    Edit(
        "a dead worker's shard is taken from a living one",
        "backend/services",
        "ShardRow.state == ShardState.RUNNING, ShardRow.worker == worker)",
        "ShardRow.state == ShardState.RUNNING)",
        ("test_a_dead_processs_shard_is_given_back_at_once",),
    ),
    Edit(
        "leases that still run are taken back",
        "backend/services",
        "        .where(ShardRow.state == ShardState.RUNNING, ShardRow.lease_until < clock())\n",
        "        .where(ShardRow.state == ShardState.RUNNING)\n",
        ("test_a_lease_in_time_is_kept_and_one_that_ended_is_not",),
    ),
    Edit(
        "a failed shard waits twice as long as the settings say",
        "backend/services",
        "settings.retry_seconds * 2 ** (attempts - 1)",
        "settings.retry_seconds * 2**attempts",
        ("test_the_wait_is_the_one_in_the_settings_doubles_each_time_and_has_an_end",),
    ),
    Edit(
        "one attempt more than the settings say",
        "backend/services",
        "if attempts >= settings.max_attempts:",
        "if attempts > settings.max_attempts:",
        ("test_attempts_end",),
    ),
    Edit(
        "a worker that stops on purpose burns an attempt",
        "backend/services",
        '{"attempts": ShardRow.attempts - 1,',
        '{"attempts": ShardRow.attempts,',
        ("test_a_released_shard_waits_again_and_no_attempt_is_burnt",),
    ),
    Edit(
        "one poisonous trial takes its neighbours along",
        "backend/services",
        "attempts == settings.max_attempts - 1 and",
        "attempts == settings.max_attempts and",
        ("test_before_the_last_attempt_every_trial_gets_a_shard_of_its_own",),
    ),
    Edit(
        "a shard that trials still wait in is forgotten",
        "backend/services",
        "_before(ShardRow.finished_at, days), ~busy)",
        "_before(ShardRow.finished_at, days))",
        ("test_an_ended_shard_that_trials_still_wait_in_is_kept_however_old",),
    ),
    Edit(
        "a process of another machine is declared dead",
        "backend/services",
        'if row.details.get("namespace") == local_namespace() and not _runs(row.pid)',
        "if not _runs(row.pid)",
        ("test_a_process_id_elsewhere_says_nothing_here",),
    ),
    Edit(
        "work is sent to a worker that stops",
        "backend/services",
        ".where(_alive(), WorkerRow.stopping_at.is_(None))",
        ".where(_alive())",
        ("test_a_stopping_worker_gets_no_new_work",),
    ),
)

RETRIES = (
    Edit(
        "a shard is closed although trials still wait in it",
        "backend/services",
        "                ShardRow.id.not_in(busy),\n",
        "",
        ("test_a_late_result_closes_the_shard_that_waits_for_nothing_else",),
    ),
    Edit(
        "every part of a shard is forecast to take as long as the whole",
        "backend/services",
        "whole.seconds / len(trial_ids)",
        "whole.seconds",
        ("test_the_parts_of_a_shard_share_what_was_forecast_for_it",),
    ),
    Edit(
        "a part of a shard does not wait before it is tried again",
        "backend/services",
        ".where(ShardRow.id.in_(made)).values(not_before=wait)",
        ".where(ShardRow.id.in_(made)).values(not_before=None)",
        ("test_the_parts_of_a_shard_share_what_was_forecast_for_it",),
    ),
    Edit(
        "a sweep for a GPU is retried anywhere",
        "backend/services",
        "trial_ids=again, device=row.device)",
        "trial_ids=again)",
        ("test_a_retry_goes_to_the_device_the_sweep_asked_for",),
    ),
    Edit(
        "a retried trial shows the curve of its failure",
        "backend/services",
        ".values(CLEARED))\n        session.execute(delete(CurveRow)",
        ".values(CLEARED))\n        str(delete(CurveRow)",
        ("test_a_retried_trial_starts_with_a_clean_slate",),
    ),
    Edit(
        "cancelling a finished sweep marks it as cancelled",
        "backend/services",
        "if not _trial_ids(session, sweep_id, UNFINISHED):",
        "if False:",
        ("test_cancelling_what_has_ended_changes_nothing",),
    ),
    Edit(
        "a key sent with another body returns the first sweep",
        "backend/services",
        "if first_hash != body_hash:",
        "if False:",
        ("test_one_key_and_two_bodies_are_a_conflict",),
    ),
)

QUEUE = (
    Edit(
        "the reaper does not look for messages that were lost",
        "backend/services",
        "or_(ShardRow.sent_at.is_(None), ShardRow.sent_at < clock(-LOST_SECONDS))",
        "ShardRow.sent_at.is_(None)",
        ("test_a_broker_that_came_back_empty_is_told_everything_again",),
    ),
    Edit(
        "a shard is announced once more by whoever asks",
        "backend/services",
        "[:WINDOW]), ShardRow.sent_at.is_(None))",
        "[:WINDOW]))",
        ("test_announcing_twice_sends_once",),
    ),
    Edit(
        "the broker is flooded",
        "backend/services",
        ".limit(room)",
        ".limit(10**6)",
        ("test_the_broker_holds_a_bounded_number_of_messages",),
    ),
    Edit(
        "messages that still wait are repeated",
        "backend/services",
        "depths.get(queue, 0) < announced.get(queue, 0)",
        "depths.get(queue, 0) <= announced.get(queue, 0)",
        ("test_an_old_message_is_repeated_if_the_queue_is_too_short_to_hold_it",),
    ),
    Edit(
        "a message just sent counts as lost",
        "backend/services",
        "and_(ShardRow.queue.in_(empty), ShardRow.sent_at < clock(-LOST_SECONDS))",
        "ShardRow.queue.in_(empty)",
        ("test_a_message_just_sent_is_not_lost_because_the_queue_is_empty",),
    ),
    Edit(
        "work for a processor goes to the GPU's queue",
        "backend/services",
        'device == "cuda" or (device == "auto" and gpu_lives)',
        'device == "cuda" or gpu_lives',
        ("test_a_shard_goes_where_its_device_is",),
    ),
    Edit(
        "what the broker did not take counts as sent",
        "backend",
        "dispatch.unsent(session, shard_ids=[item.shard_id for item in announcements])",
        "del session",
        ("test_with_the_broker_away_the_work_stays_queued",),
    ),
    Edit(
        "after an outage every lease counts as lost",
        "backend",
        "if pending.expired and time.monotonic() >= self._patient_until:",
        "if pending.expired:",
        ("test_after_an_outage_workers_get_time_to_renew_their_leases",),
    ),
)

EDITS = (*LEASES, *RETRIES, *QUEUE)
