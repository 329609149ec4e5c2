"""Faults in sweeps, accounts, numbers and files, as the service keeps them."""

from tests.mutation.edit import Edit

SWEEPS = (
    Edit(
        "trials that another sweep waits for are trained twice",
        "backend/services",
        "known.state is TrialState.QUEUED and not known.planned",
        "known.state is TrialState.QUEUED",
        ("test_a_second_sweep_shares_the_trials_it_repeats",),
    ),
    Edit(
        "cancelled work goes on",
        "backend/services",
        "SweepTrialRow.trial_id == TrialRow.id, SweepRow.cancelled_at.is_(None))",
        "SweepTrialRow.trial_id == TrialRow.id)",
        ("test_cancelling_stops_waiting_trials_at_once",),
    ),
    Edit(
        "a sweep with failed trials is called completed",
        "backend/services",
        "if progress.good == progress.total:",
        "if not progress.unfinished:",
        ("test_only_good_trials_make_a_completed_sweep",),
    ),
    Edit(
        "a trial is missing between two pages",
        "backend/services",
        "SweepTrialRow.position > position",
        "SweepTrialRow.position > position + 1",
        ("test_pages_together_are_the_whole",),
    ),
    Edit(
        "an item is missing between two pages of a short list",
        "backend/services",
        "write_cursor(*key(items[limit - 1])) if more",
        "write_cursor(*key(items[limit])) if more",
        ("test_pages_of_a_short_list_hold_everything_once_and_in_order",),
    ),
    Edit(
        "deleting a study takes other people's trials along",
        "backend/services",
        "orphans = (TrialRow.id.in_(chunk), ~in_a_sweep)",
        "orphans = (TrialRow.id.in_(chunk),)",
        ("test_a_deleted_study_leaves_the_trials_others_hold",),
    ),
)

ACCOUNTS = (
    Edit(
        "one guess more than allowed",
        "backend/services",
        "if over < 0 or now - row.last_at",
        "if over <= 0 or now - row.last_at",
        ("test_guessing_one_account_is_refused_even_with_the_right_password_then",),
    ),
    Edit(
        "who guesses on waits no longer",
        "backend/services",
        "FIRST_WAIT_SECONDS * 2.0 ** min(over, 10)",
        "FIRST_WAIT_SECONDS",
        ("test_the_wait_ends_doubles_and_a_success_forgets_it",),
    ),
    Edit(
        "a household has 2^64 times as many guesses",
        "backend/services",
        "ipaddress.ip_network((int(found), 64)",
        "ipaddress.ip_network((int(found), 128)",
        ("test_an_ipv6_household_is_one_address",),
    ),
    Edit(
        "one's own right password forgives guesses at others",
        "backend/services",
        ".values(failures=LoginAttemptsRow.failures - 1)",
        ".values(failures=0)",
        ("test_one_s_own_right_password_does_not_forgive_guesses_at_others",),
    ),
    Edit(
        "guesses of yesterday count today",
        "backend/services",
        "failures=case((forgotten, 1), else_=LoginAttemptsRow.failures + 1)",
        "failures=LoginAttemptsRow.failures + 1",
        ("test_after_an_hour_guesses_are_forgotten",),
    ),
    Edit(
        "revoked tokens take up room for ever",
        "backend/services",
        "held = [one for one in list_for(session, user_id=user_id) if not one.revoked]",
        "held = list_for(session, user_id=user_id)",
        ("test_a_revoked_token_makes_room_for_another",),
    ),
    Edit(
        "one token more than allowed",
        "backend/services",
        "if len(held) >= MOST_TOKENS:",
        "if len(held) > MOST_TOKENS:",
        ("test_a_revoked_token_makes_room_for_another",),
    ),
    Edit(
        "tokens of who is locked out still work",
        "backend/services",
        "UserRow.disabled_at.is_(None),\n",
        "",
        ("test_a_token_ends_at_once",),
    ),
    Edit(
        "a token outlives the one it was made with",
        "backend/services",
        "return min((moment for moment in (wanted, ends) if moment), default=None)",
        "return max((moment for moment in (wanted, ends) if moment), default=None)",
        ("test_a_token_does_not_outlive_the_one_it_was_made_with",),
    ),
    Edit(
        "anybody revokes anybody's token",
        "backend/services",
        "TokenRow.revoked_at.is_(None), *own)",
        "TokenRow.revoked_at.is_(None))",
        ("test_other_people_s_tokens_cannot_be_revoked",),
    ),
    Edit(
        "an admin's token for writing may do everything",
        "backend/services",
        '"write": {"viewer": "viewer", "member": "member", "admin": "member"}',
        '"write": {"viewer": "viewer", "member": "member", "admin": "admin"}',
        ("test_a_scope_takes_rights_away_and_gives_none",),
    ),
    Edit(
        "logins never end",
        "backend/services",
        "(SessionRow.expires_at > clock(), UserRow.disabled_at.is_(None))",
        "(UserRow.disabled_at.is_(None),)",
        ("test_a_login_ends_at_once",),
    ),
    Edit(
        "the last admin who can log in is locked out",
        "backend/services",
        'UserRow.role == "admin", UserRow.disabled_at.is_(None))',
        'UserRow.role == "admin")',
        ("test_an_admin_who_is_locked_out_is_none",),
    ),
    Edit(
        "a new password leaves other logins open",
        "backend/services",
        "session.execute(others.where(SessionRow.id != (keep_session or 0)))",
        "del others",
        ("test_a_new_password_ends_the_other_logins_only",),
    ),
    Edit(
        "anybody deletes anybody's note",
        "backend/services",
        'by.check_owner(row.user_id, of="note")',
        "del row",
        ("test_a_note_is_its_author_s_and_outlives_the_account",),
    ),
    Edit(
        "anybody deletes anybody's view",
        "backend/services",
        "SavedViewRow.id == view_id, _whose(user_id))",
        "SavedViewRow.id == view_id)",
        ("test_views_are_each_person_s_own",),
    ),
)

ANALYSIS = (
    Edit(
        "an accuracy is scored as if low were good",
        "backend/services",
        "not self.higher_is_better else 1.0 - value",
        "not self.higher_is_better else value",
        ("test_accuracies_are_drawn_as_they_are_and_scored_as_errors",),
    ),
    Edit(
        "an accuracy's band is upside down",
        "backend/services",
        "low, high = high, low",
        "pass",
        ("test_accuracies_are_drawn_as_they_are_and_scored_as_errors",),
    ),
    Edit(
        "runs that stopped early make a method look quick",
        "backend/services",
        'if took and state == "completed"}',
        "if took}",
        ("test_a_run_that_diverged_says_nothing_of_the_cost",),
    ),
    Edit(
        "the best accuracy is the lowest",
        "backend/services",
        "np.fmax if highest else np.fmin",
        "np.fmin if highest else np.fmax",
        ("test_the_best_may_be_the_highest",),
    ),
    Edit(
        "a series is compared with one of other options",
        "backend/services",
        "if name not in OF_A_METHOD}",
        "if name in OF_A_METHOD}",
        ("test_a_group_leaves_out_the_method_and_what_is_its_own",),
    ),
)

FILES = (
    Edit(
        "a spreadsheet runs what somebody typed",
        "backend/services",
        'return f"\'{value}"',
        "return value",
        ("test_no_cell_of_an_export_is_a_formula",),
    ),
    Edit(
        "imported runs diverge later than our own",
        "backend/services/importing",
        "EXPLODED = 5.0",
        "EXPLODED = 50.0",
        ("test_a_loss_five_times_its_start_has_diverged",),
    ),
    Edit(
        "a perfect accuracy makes percent of a file's fractions",
        "backend/services/importing",
        "any(float(value) > 1 for",
        "any(float(value) >= 1 for",
        ("test_an_accuracy_of_one_is_a_fraction_too",),
    ),
    Edit(
        "an apostrophe of somebody's own is lost",
        "backend/services/importing",
        'if text[:1] == "\'" and text[1:].startswith(FORMULA_STARTS) else text',
        'if text[:1] == "\'" else text',
        ("test_only_the_mark_of_our_own_exports_is_taken_off_a_text",),
    ),
    Edit(
        "a run without a test loss counts as diverged",
        "backend/services/importing",
        'lost = said == "completed" and all(',
        'lost = said == "completed" and any(',
        ("test_a_run_that_says_it_completed_needs_one_finite_loss_only",),
    ),
    Edit(
        "seed 0 becomes seed 1",
        "backend/services/importing",
        "return default if value is None else value",
        "return value or default",
        ("test_seed_0_is_a_seed",),
    ),
    Edit(
        "half a packed file is taken for the whole",
        "backend/services/importing",
        "if not member.eof:",
        "if False:",
        ("test_files_that_cannot_be_read_say_where",),
    ),
    Edit(
        "known runs are counted as new",
        "backend/services/importing",
        '"reused": address not in new}',
        '"reused": address in new}',
        ("test_the_same_file_twice_brings_nothing_new",),
    ),
    Edit(
        "imported runs are trained here",
        "backend/services/importing",
        "if imported:",
        "if False:",
        ("test_imported_runs_cannot_be_trained_here",),
    ),
)

EDITS = (*SWEEPS, *ACCOUNTS, *ANALYSIS, *FILES)
