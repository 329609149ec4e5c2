"""Faults in what comes by itself: rounds of a search, and what programs elsewhere report."""

from tests.mutation.edit import Edit

EDITS = (
    Edit(
        "a search is called completed between two rounds",
        "backend/services",
        "if progress.good == progress.total and not searching:",
        "if progress.good == progress.total:",
        ("test_between_two_rounds_it_runs_and_is_not_added_up",),
    ),
    Edit(
        "a search goes on after it was cancelled",
        "backend/services",
        "if not row.searching or row.cancelled_at is not None:",
        "if not row.searching:",
        ("test_a_cancelled_search_plans_nothing_and_goes_on_when_retried",),
    ),
    Edit(
        "a search plans a round before the last has ended",
        "backend/services",
        "if found.unfinished:",
        "if False:",
        ("test_rounds_follow_each_other_until_every_seed_is_bracketed",),
    ),
    Edit(
        "a search spends more than it may",
        "ib_core/sweep",
        "left = max(0, search.most - spent)",
        "left = search.most",
        ("test_the_budget_is_never_exceeded",),
    ),
    Edit(
        "a late report of a lost lease is believed",
        "backend/services",
        "if row.state is not ShardState.RUNNING or row.lease != lease:",
        "if row.state is not ShardState.RUNNING:",
        ("test_a_late_report_of_a_lost_lease_changes_nothing",),
    ),
    Edit(
        "a cell's lease can be guessed",
        "backend/services",
        "secret = literal(1 + secrets.randbelow(MOST_LEASES - 1), ShardRow.lease.type)",
        "secret = literal(1, ShardRow.lease.type)",
        ("test_a_cells_lease_cannot_be_guessed",),
    ),
    Edit(
        "a likelihood that improves has exploded",
        "backend/services",
        "loss > EXPLODED * first > 0",
        "loss > EXPLODED * first",
        ("test_without_a_step_zero_a_loss_is_held_against_the_first_if_that_is_positive",),
    ),
    Edit(
        "a gate passes on half a grid",
        "backend/cli",
        "if not unfinished and (waiting := _still_trains(found)):",
        "if unfinished and (waiting := _still_trains(found)):",
        ("test_check_does_not_judge_a_study_that_still_trains",),
    ),
    Edit(
        "points that are sent again are stored again",
        "backend/services",
        "new = report.points[count - report.start :]",
        "new = report.points",
        ("test_a_report_sent_again_changes_nothing",),
    ),
    Edit(
        "what a lost holder logged is taken for the next one's",
        "backend/services",
        "session.execute(delete(CurveRow).where(CurveRow.trial_id.in_(ids)))",
        "del ids",
        ("test_a_late_report_of_a_lost_lease_changes_nothing",),
    ),
    Edit(
        "workers hear of cells that are not theirs to train",
        "backend/services",
        "return (ShardRow.state == ShardState.QUEUED, OURS, is_ready())",
        "return (ShardRow.state == ShardState.QUEUED, is_ready())",
        ("test_a_sweep_of_agents_waits_and_says_for_whom",),
    ),
    Edit(
        "a token for agents reads everything",
        "backend/web",
        'if caller.scope == "agent" and not (method == "POST" and CELLS.fullmatch(path)):',
        'if caller.scope == "nobody":',
        ("test_a_route_lets_in_whom_it_should",),
    ),
    Edit(
        "a tracker's run is new again once another one has ended",
        "backend/services",
        'itself = columns if cells.has("seed") else columns | {"seed": None}',
        "itself = columns",
        ("test_a_run_that_has_ended_meanwhile_is_all_that_a_second_import_adds",),
    ),
    Edit(
        "a bound that the grid cuts off passes for the number itself",
        "backend/cli",
        'if (least and found.censored == "below") or (not least and found.censored == "above"):',
        "if False:",
        ("test_a_number_keeps_to_its_bound_or_a_sentence_says_what_it_is",),
    ),
)
