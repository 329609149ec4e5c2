"""Faults in what programs elsewhere report: cells, live runs, other trackers, their tokens."""

from tests.mutation.edit import Edit

EDITS = (
    Edit(
        "a late report of a lost lease is believed",
        "backend/services",
        "if row.state is not ShardState.RUNNING or row.lease != lease:",
        "if row.state is not ShardState.RUNNING:",
        ("test_a_late_report_of_a_lost_lease_changes_nothing",),
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
